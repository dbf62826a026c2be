//! Dropping futures after any number of polls loses no byte and cuts no frame short.

mod beside;

use linerate_proto::engine::MessageKind;

use super::*;

/// The maximum number of polls to try; each test asserts that it needs fewer.
const POLLS_MAX: usize = 3_000;

/// What the peer sends: whole and fragmented messages, with control frames in between.
fn incoming() -> Vec<Frame> {
    vec![
        Frame::new(0x1, "größer €".as_bytes()),
        Frame::new(0x9, b"ping"),
        Frame::new(0x2, b"").with_fin(false),
        Frame::new(0x0, b"\x00\xff").with_fin(false),
        Frame::new(0x9, b"pong?"),
        Frame::new(0x0, &[7; 150]),
        Frame::new(0x1, b""),
        Frame::new(0x1, "κό".as_bytes()).with_fin(false),
        Frame::new(0x0, "σμε".as_bytes()),
        close(1000),
    ]
}

/// The messages in [`incoming`].
fn messages() -> Vec<Message> {
    vec![
        "größer €".into(),
        [&b"\x00\xff"[..], &[7; 150]].concat().into(),
        "".into(),
        "κόσμε".into(),
    ]
}

/// Lets the peer send [`incoming`] through a pipe of `pipe_bytes`, and returns what `receive` saw.
async fn receive<F, T>(
    place: Place,
    pipe_bytes: usize,
    receive: impl FnOnce(WebSocket) -> F,
) -> (T, Vec<(u8, Vec<u8>)>)
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let (peer, received) = place.start(pipe_bytes, quiet(), receive);
    let Peer {
        reader, mut writer, ..
    } = peer;
    let written = tokio::spawn(reader.frames());
    let wire = writer.wire(incoming());
    writer.send_bytes(&wire).await;
    let received = in_time(received).await.expect("it ends");
    // A client waits for its server to end the stream.
    drop(writer);
    let written = in_time(written).await.expect("it ends");
    (received, written)
}

/// Asserts that the control frames in [`incoming`] were answered.
fn assert_answered(written: &[(u8, Vec<u8>)]) {
    let close = 1000_u16.to_be_bytes().to_vec();
    let expected = [
        (0x8A, b"ping".to_vec()),
        (0x8A, b"pong?".to_vec()),
        (0x88, close),
    ];
    assert_eq!(written, expected);
}

#[tokio::test(start_paused = true)]
async fn k02_recv_dropped_after_any_number_of_polls_loses_nothing() {
    for place in PLACES {
        for pipe_bytes in [1, 3, 64] {
            let mut polls = 0;
            loop {
                let application = move |mut ws: WebSocket| async move {
                    let (mut seen, mut cancelled) = (Vec::new(), 0);
                    loop {
                        let received = match poll_times(ws.recv(), polls).await {
                            Some(received) => received,
                            None => {
                                cancelled += 1;
                                ws.recv().await
                            }
                        };
                        match received.expect("the peer is honest") {
                            Some(message) => seen.push(message),
                            None => return (seen, cancelled),
                        }
                    }
                };
                let ((seen, cancelled), written) = receive(place, pipe_bytes, application).await;
                assert_eq!(seen, messages(), "{place:?}, {polls} polls");
                assert_answered(&written);
                if cancelled == 0 {
                    break;
                }
                polls += 1;
                assert!(polls < POLLS_MAX, "{place:?} with {pipe_bytes}");
            }
            assert!(polls > 1, "something was cancelled");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn recv_that_is_dropped_again_and_again_gets_there() {
    for place in PLACES {
        for polls in 1..20 {
            let application = move |mut ws: WebSocket| async move {
                let mut seen = Vec::new();
                loop {
                    match poll_times(ws.recv(), polls).await {
                        Some(Ok(Some(message))) => seen.push(message),
                        Some(Ok(None)) => return seen,
                        Some(Err(error)) => panic!("{error}"),
                        None => {}
                    }
                }
            };
            let (seen, written) = receive(place, 5, application).await;
            assert_eq!(seen, messages(), "{place:?}, {polls} polls");
            assert_answered(&written);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn k02_chunks_dropped_after_any_number_of_polls_lose_nothing() {
    for place in PLACES {
        for pipe_bytes in [1, 7] {
            let mut polls = 0;
            loop {
                let application = move |mut ws: WebSocket| async move {
                    let (mut seen, mut cancelled) = (Vec::<Message>::new(), 0);
                    loop {
                        if poll_times(ws.reader(), 0).await.is_some() {
                            unreachable!("it was not polled");
                        }
                        let Some(mut reader) = ws.reader().await.expect("the peer is honest")
                        else {
                            return (seen, cancelled);
                        };
                        let mut bytes = Vec::new();
                        loop {
                            let chunk = match poll_times(reader.chunk(), polls).await {
                                Some(chunk) => chunk,
                                None => {
                                    cancelled += 1;
                                    reader.chunk().await
                                }
                            };
                            let Some(chunk) = chunk.expect("the peer is honest") else {
                                break;
                            };
                            assert_eq!(chunk.kind(), reader.kind());
                            bytes.extend_from_slice(chunk.as_bytes());
                        }
                        seen.push(match reader.kind() {
                            MessageKind::Binary => bytes.into(),
                            MessageKind::Text => String::from_utf8(bytes).expect("text").into(),
                        });
                    }
                };
                let ((seen, cancelled), written) = receive(place, pipe_bytes, application).await;
                assert_eq!(seen, messages(), "{place:?}, {polls} polls");
                assert_answered(&written);
                if cancelled == 0 {
                    break;
                }
                polls += 1;
                assert!(polls < POLLS_MAX, "{place:?} with {pipe_bytes}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn k02_reader_dropped_after_any_number_of_polls_loses_nothing() {
    for place in PLACES {
        let mut polls = 0;
        loop {
            let application = move |mut ws: WebSocket| async move {
                let (mut seen, mut cancelled) = (Vec::<Message>::new(), 0);
                loop {
                    let mut bytes = Vec::new();
                    let begun = poll_times(ws.reader(), polls).await;
                    cancelled += usize::from(begun.is_none());
                    if let Some(Ok(Some(mut reader))) = begun {
                        while let Some(chunk) = reader.chunk().await.expect("honest") {
                            bytes.extend_from_slice(chunk.as_bytes());
                        }
                        seen.push(match reader.kind() {
                            MessageKind::Binary => bytes.into(),
                            MessageKind::Text => String::from_utf8(bytes).expect("text").into(),
                        });
                    } else if let Some(message) = ws.recv().await.expect("honest") {
                        seen.push(message);
                    } else {
                        return (seen, cancelled);
                    }
                }
            };
            let ((seen, cancelled), written) = receive(place, 2, application).await;
            assert_eq!(seen, messages(), "{place:?}, {polls} polls");
            assert_answered(&written);
            if cancelled == 0 {
                break;
            }
            polls += 1;
            assert!(polls < POLLS_MAX, "{place:?}");
        }
    }
}

/// What the application sends: small messages, and one that is written in place.
fn outgoing(number: usize) -> Message {
    match number {
        2 => vec![number as u8; 40_000].into(),
        5 => "".into(),
        _ => format!("message {number}").into(),
    }
}

/// Returns the data frames as messages; each message must be a single frame.
fn sent_messages(frames: &[(u8, Vec<u8>)]) -> Vec<Message> {
    let data = frames.iter().filter(|(first, _)| first & 0x8 == 0);
    data.map(|(first, payload)| match first {
        0x81 => String::from_utf8(payload.clone()).expect("text").into(),
        0x82 => payload.clone().into(),
        other => panic!("unexpected frame {other:#x}"),
    })
    .collect()
}

/// Runs an application that sends; returns its result and what arrived before the Close frame.
async fn send<F, T>(
    place: Place,
    pipe_bytes: usize,
    application: impl FnOnce(WebSocket) -> F,
) -> (T, Vec<(u8, Vec<u8>)>)
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let mut options = quiet();
    options.send_queue_bytes_max = 16;
    let (peer, sent) = place.start(pipe_bytes, options, application);
    let Peer {
        mut reader,
        mut writer,
        ..
    } = peer;
    let mut frames = Vec::new();
    in_time(async {
        while let Some(frame) = reader.frame().await {
            let is_close = frame.0 == 0x88;
            frames.push(frame);
            if is_close {
                writer.send(close(1000)).await;
                // If the peer is the server, it ends the stream below; a linerate server does so
                // without waiting for the peer.
                break;
            }
        }
    })
    .await;
    let sent = in_time(sent).await.expect("it ends");
    drop(writer);
    assert_eq!(in_time(reader.frame()).await, None, "nothing follows");
    (sent, frames)
}

/// Calls `run` with 0 polls, 1 poll and so on, in each place, until it cancels nothing.
async fn for_all_polls(mut run: impl AsyncFnMut(Place, usize) -> usize) {
    for place in PLACES {
        let mut polls = 0;
        while run(place, polls).await > 0 {
            polls += 1;
            assert!(polls < POLLS_MAX, "{place:?}");
        }
        assert!(polls > 10, "{place:?} had to wait");
    }
}

#[tokio::test(start_paused = true)]
async fn k03_send_dropped_after_any_number_of_polls_is_sent_whole_or_not_at_all() {
    for_all_polls(async |place, polls| {
        let application = move |mut ws: WebSocket| async move {
            let (mut sent, mut cancelled) = (Vec::new(), 0);
            for number in 0..8 {
                match poll_times(ws.send(outgoing(number)), polls).await {
                    Some(result) => {
                        result.expect("it is open");
                        sent.push(outgoing(number));
                    }
                    None => cancelled += 1,
                }
            }
            let closed = ws.close(CloseCode::NORMAL, "").await.expect("short");
            assert!(closed.clean);
            (sent, cancelled)
        };
        let ((sent, cancelled), frames) = send(place, 64, application).await;
        assert_eq!(sent_messages(&frames), sent, "{place:?}, {polls} polls");
        cancelled
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_send_can_be_repeated() {
    for place in PLACES {
        for polls in [1, 2, 3, 5, 8] {
            let application = move |mut ws: WebSocket| async move {
                for number in (0..8).filter(|number| *number != 2) {
                    let mut tries = 0;
                    while poll_times(ws.send(outgoing(number)), polls).await.is_none() {
                        tries += 1;
                        assert!(tries < POLLS_MAX, "no room for message {number}");
                    }
                }
                ws.close(CloseCode::NORMAL, "").await.expect("short");
            };
            let ((), frames) = send(place, 1, application).await;
            let expected: Vec<_> = (0..8).filter(|n| *n != 2).map(outgoing).collect();
            assert_eq!(sent_messages(&frames), expected, "{place:?}, {polls} polls");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn k03_write_dropped_after_any_number_of_polls_is_a_whole_fragment_or_nothing() {
    for place in PLACES {
        let mut polls = 0;
        loop {
            let application = move |mut ws: WebSocket| async move {
                let (mut sent, mut cancelled) = (Vec::new(), 0);
                let mut writer = ws.writer(MessageKind::Binary);
                for number in 0..8_u8 {
                    let piece = [number; 20];
                    match poll_times(writer.write(&piece), polls).await {
                        Some(result) => {
                            result.expect("it is open");
                            sent.extend(piece);
                        }
                        None => cancelled += 1,
                    }
                }
                writer.finish().await.expect("it is open");
                let closed = ws.close(CloseCode::NORMAL, "").await.expect("short");
                assert!(closed.clean);
                (sent, cancelled)
            };
            let ((sent, cancelled), frames) = send(place, 1, application).await;
            let (close, fragments) = frames.split_last().expect("there is a Close frame");
            assert_eq!(close.0, 0x88);
            let firsts: Vec<_> = fragments.iter().map(|(first, _)| *first).collect();
            let mut expected = vec![0x00; firsts.len()];
            expected[0] = 0x02;
            *expected.last_mut().expect("there is one") |= 0x80;
            assert_eq!(firsts, expected, "{place:?}, {polls} polls");
            let payload: Vec<u8> = fragments.iter().flat_map(|(_, p)| p.clone()).collect();
            assert_eq!(payload, sent, "{place:?}, {polls} polls");
            if cancelled == 0 {
                break;
            }
            polls += 1;
            assert!(polls < POLLS_MAX, "{place:?}");
        }
        assert!(polls > 10, "writing had to wait");
    }
}

#[tokio::test(start_paused = true)]
async fn flush_dropped_after_any_number_of_polls_goes_on() {
    for place in PLACES {
        let mut polls = 0;
        loop {
            let application = move |mut ws: WebSocket| async move {
                ws.send("a message that takes many writes").await?;
                let flushed = poll_times(ws.flush(), polls).await;
                let is_cancelled = flushed.is_none();
                ws.flush().await?;
                ws.send("another").await?;
                ws.close(CloseCode::NORMAL, "").await?;
                Result::<_>::Ok(is_cancelled)
            };
            let (cancelled, frames) = send(place, 1, application).await;
            let expected = ["a message that takes many writes", "another"].map(Message::from);
            assert_eq!(sent_messages(&frames), expected, "{place:?}, {polls} polls");
            if !cancelled.expect("it is open") {
                break;
            }
            polls += 1;
            assert!(polls < POLLS_MAX, "{place:?}");
        }
        assert!(polls > 1, "flushing had to wait");
    }
}

#[tokio::test(start_paused = true)]
async fn flush_without_another_call_is_written_in_the_background() {
    for place in PLACES {
        for polls in 0..20 {
            let application = move |mut ws: WebSocket| async move {
                ws.send("a message that takes many writes").await?;
                poll_times(ws.flush(), polls).await;
                ws.recv().await
            };
            let (mut peer, running) = place.start(1, quiet(), application);
            let frame = in_time(peer.frame()).await.expect("it was written");
            assert_eq!(frame.1, b"a message that takes many writes");
            peer.send(close(1000)).await;
            assert_eq!(
                in_time(running).await.expect("it ends").expect("clean"),
                None
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn close_dropped_after_any_number_of_polls_goes_on() {
    for place in PLACES {
        let mut polls = 0;
        loop {
            let application = move |mut ws: WebSocket| async move {
                ws.send("before").await.expect("it is open");
                let closed = poll_times(ws.close(CloseCode::NORMAL, ""), polls).await;
                let is_cancelled = closed.is_none();
                let closed = ws.close(CloseCode::NORMAL, "").await.expect("short");
                assert_eq!((closed.code, closed.clean), (1000, true));
                assert_eq!(ws.recv().await.expect("a clean end"), None);
                is_cancelled
            };
            let (cancelled, frames) = send(place, 1, application).await;
            let close = (0x88, 1000_u16.to_be_bytes().to_vec());
            assert_eq!(frames, [(0x81, b"before".to_vec()), close], "{place:?}");
            if !cancelled {
                break;
            }
            polls += 1;
            assert!(polls < POLLS_MAX, "{place:?}");
        }
        assert!(polls > 1, "closing had to wait");
    }
}
