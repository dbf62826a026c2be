//! Messages that are received in batches, and replies that are sent together.

use super::*;
use crate::{MessageCow, Replies};

/// What the peer sends: messages of all forms, with control frames in between.
fn incoming() -> Vec<Frame> {
    let mut frames: Vec<_> = (0..20)
        .map(|number| Frame::new(0x1, format!("größer {number}").as_bytes()))
        .collect();
    frames.extend([
        Frame::new(0x9, b"ping"),
        Frame::new(0x2, b"").with_fin(false),
        Frame::new(0x0, b"\x00\xff").with_fin(false),
        Frame::new(0x9, b"pong?"),
        Frame::new(0x0, &[7; 150]),
        Frame::new(0x1, b""),
        Frame::new(0xA, b"unasked"),
        Frame::new(0x1, "κό".as_bytes()).with_fin(false),
        Frame::new(0x0, "σμε".as_bytes()),
        Frame::new(0x2, &[9; 2_000]),
        Frame::new(0x2, b"last"),
    ]);
    frames
}

/// The messages in [`incoming`].
fn messages() -> Vec<Message> {
    let mut messages: Vec<Message> = (0..20)
        .map(|number| format!("größer {number}").into())
        .collect();
    messages.extend([
        [&b"\x00\xff"[..], &[7; 150]].concat().into(),
        "".into(),
        "κόσμε".into(),
        vec![9; 2_000].into(),
        b"last".into(),
    ]);
    messages
}

/// Returns the data frames as messages, and asserts that the control frames were answered.
fn replies(written: Vec<(u8, Vec<u8>)>) -> Vec<Message> {
    let (data, control): (Vec<_>, Vec<_>) =
        written.into_iter().partition(|(first, _)| first & 0x8 == 0);
    let close = 1000_u16.to_be_bytes().to_vec();
    let answers = [
        (0x8A, b"ping".to_vec()),
        (0x8A, b"pong?".to_vec()),
        (0x88, close),
    ];
    assert_eq!(control, answers);
    let data = data.into_iter().map(|(first, payload)| match first {
        0x81 => String::from_utf8(payload).expect("text").into(),
        _ => payload.into(),
    });
    data.collect()
}

/// Lets the peer send [`incoming`] in pieces of `piece_bytes` and, once it has as many replies, a
/// Close frame; returns what `application` returned and the peer received.
async fn exchange<F, T>(
    place: Place,
    (piece_bytes, replies): (usize, usize),
    options: Options,
    application: impl FnOnce(WebSocket) -> F,
) -> (T, Vec<(u8, Vec<u8>)>)
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let (peer, running) = place.start(piece_bytes, options, application);
    let Peer {
        mut reader,
        mut writer,
        ..
    } = peer;
    let (answered, all_answered) = tokio::sync::oneshot::channel();
    let written = tokio::spawn(async move {
        let (mut frames, mut left) = (Vec::new(), replies);
        while left > 0 {
            let frame = reader.frame().await.expect("more replies");
            left -= usize::from(frame.0 & 0x8 == 0);
            frames.push(frame);
        }
        _ = answered.send(());
        frames.extend(reader.frames().await);
        frames
    });
    let wire = writer.wire(incoming());
    writer.send_bytes(&wire).await;
    in_time(all_answered).await.expect("all are answered");
    writer.send(close(1000)).await;
    let result = in_time(running).await.expect("it ends");
    // A client waits for its server to end the stream.
    drop(writer);
    (result, in_time(written).await.expect("it ends"))
}

async fn echo(mut ws: WebSocket) -> Result<()> {
    ws.for_each(|message, replies| {
        replies.push(message);
        Ok(())
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn every_message_is_answered_whatever_the_reads_are() {
    for place in PLACES {
        for piece_bytes in [1, 7, 64, 1_000, 1 << 17] {
            let peer = (piece_bytes, messages().len());
            let (result, written) = exchange(place, peer, quiet(), echo).await;
            assert!(result.is_ok(), "{place:?}, {piece_bytes}: {result:?}");
            assert_eq!(replies(written), messages(), "{place:?}, {piece_bytes}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_what_one_read_had() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            let mut seen: Vec<Message> = Vec::new();
            let mut largest = 0;
            while let Some(mut batch) = ws.recv_batch().await? {
                assert!(!batch.is_empty());
                largest = largest.max(batch.len());
                let before = seen.len() + batch.len();
                seen.extend(batch.drain().map(MessageCow::into_message));
                assert_eq!(seen.len(), before);
            }
            Ok::<_, Error>((seen, largest))
        };
        let (result, _) = exchange(place, (1 << 17, 0), quiet(), application).await;
        let (seen, largest) = result.expect("the peer is honest");
        assert_eq!(seen, messages(), "{place:?}");
        assert!(largest >= 20, "{place:?}: {largest}");
    }
}

#[tokio::test(start_paused = true)]
async fn replies_to_one_read_are_one_write() {
    for place in PLACES {
        let (mut peer, running) = place.start(1 << 16, quiet(), echo);
        let burst = (0..100).map(|number: u32| Frame::new(0x1, number.to_string().as_bytes()));
        let wire = peer.writer.wire(burst);
        peer.writer.send_bytes(&wire).await;
        for number in 0..100 {
            let frame = in_time(peer.frame()).await;
            assert_eq!(frame, Some((0x81, number.to_string().into_bytes())));
        }
        assert_eq!(peer.writes(), 1, "{place:?}");
        peer.send(close(1000)).await;
        assert!(in_time(running).await.expect("it ends").is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn messages_before_a_violation_are_answered() {
    let violations: [(&[Frame], u16); 5] = [
        (&[Frame::new(0x1, b"\xff")], 1007),
        (&[Frame::new(0x3, b"")], 1002),
        (&[Frame::new(0x0, b"")], 1002),
        (&[Frame::new(0x2, b"").with_claimed_bytes(1 << 40)], 1009),
        (
            &[
                Frame::new(0x1, b"a").with_fin(false),
                Frame::new(0x0, b"\xff"),
            ],
            1007,
        ),
    ];
    // In other places, the driver may read the violation before the application has the messages.
    for place in [Place::Handler] {
        for (frames, code) in violations {
            let (mut peer, running) = place.start(1 << 16, quiet(), echo);
            let before = [Frame::new(0x1, b"one"), Frame::new(0x2, b"two")];
            let wire = peer
                .writer
                .wire(before.into_iter().chain(frames.iter().cloned()));
            peer.writer.send_bytes(&wire).await;
            let mut written = Vec::new();
            while let Some(frame) = in_time(peer.frame()).await {
                written.push(frame.0);
                if frame.0 == 0x88 {
                    assert_eq!(frame.1[..2], code.to_be_bytes(), "{place:?}");
                    break;
                }
            }
            assert_eq!(written, [0x81, 0x82, 0x88], "{place:?}, {code}");
            drop(peer);
            let error = in_time(running).await.expect("it ends").unwrap_err();
            assert!(matches!(error, Error::Protocol(_)), "{place:?}: {error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_pings_between_messages_is_cheap() {
    // A batch that ended at each Ping would copy the rest of the read each time. It ends only with
    // the turn, after 255 of them.
    let (mut peer, running) = Place::Handler.start(1 << 17, quiet(), |mut ws| async move {
        let mut batches = 0;
        while let Some(mut batch) = ws.recv_batch().await? {
            batch.drain().for_each(drop);
            batches += 1;
        }
        Ok::<_, Error>(batches)
    });
    let flood = (0..4_000).map(|number| match number % 2 {
        0 => Frame::new(0x9, b""),
        _ => Frame::new(0x2, b"x"),
    });
    let wire = peer.writer.wire(flood.chain([close(1000)]));
    peer.writer.send_bytes(&wire).await;
    let batches = in_time(running).await.expect("it ends");
    assert!(batches.expect("the peer is honest") <= 2_000 / 255 + 3);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_its_replies_is_not_listened_to() {
    for place in PLACES {
        let mut options = quiet();
        options.send_queue_bytes_max = 1_000;
        let (called, calls) = tokio::sync::watch::channel(0_usize);
        let (mut peer, running) = place.start(1 << 16, options, |mut ws| async move {
            ws.for_each(move |_, replies| {
                called.send_modify(|calls| *calls += 1);
                replies.push(vec![7; 20_000]);
                Ok(())
            })
            .await
        });
        let burst = (0..1_000).map(|_| Frame::new(0x1, b"x"));
        let wire = peer.writer.wire(burst);
        peer.writer.send_bytes(&wire).await;
        for _ in 0..1_000 {
            yield_now().await;
        }
        assert!(*calls.borrow() < 10, "{place:?}: {}", *calls.borrow());
        for _ in 0..1_000 {
            let frame = in_time(peer.frame()).await.expect("a reply");
            assert_eq!((frame.0, frame.1.len()), (0x82, 20_000), "{place:?}");
        }
        peer.send(close(1000)).await;
        assert_eq!(in_time(peer.frame()).await.expect("an answer").0, 0x88);
        drop(peer);
        assert!(in_time(running).await.expect("it ends").is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_function_ends_it_after_its_replies() {
    for place in PLACES {
        let (mut peer, running) = place.start(1 << 16, quiet(), |mut ws| async move {
            let ended = ws
                .for_each(|message, replies| match message.as_text() {
                    Some("stop") => Err(Error::Abnormal),
                    _ => {
                        replies.push(message);
                        Ok(())
                    }
                })
                .await;
            // The rest of the batch can still be received.
            (ended, ws.recv().await)
        });
        let frames = ["one", "stop", "three"].map(|text| Frame::new(0x1, text.as_bytes()));
        let wire = peer.writer.wire(frames);
        peer.writer.send_bytes(&wire).await;
        assert_eq!(in_time(peer.frame()).await, Some((0x81, b"one".to_vec())));
        let (ended, next) = in_time(running).await.expect("it ends");
        assert!(matches!(ended, Err(Error::Abnormal)), "{place:?}");
        assert_eq!(next.expect("it is open"), Some("three".into()), "{place:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn k02_for_each_dropped_after_any_number_of_polls_loses_no_message() {
    for place in PLACES {
        for piece_bytes in [3, 64, 1 << 17] {
            let mut polls = 1;
            loop {
                let mut options = quiet();
                options.send_queue_bytes_max = 100;
                let application = move |mut ws: WebSocket| async move {
                    let mut cancelled = 0;
                    let mut seen = Vec::new();
                    loop {
                        let passing = ws.for_each(|message, replies| {
                            // Replies are lost if the future is dropped while they wait.
                            replies.push(vec![0; message.len()]);
                            seen.push(message.into_message());
                            Ok(())
                        });
                        match poll_times(passing, polls).await {
                            Some(Ok(())) => return (seen, cancelled),
                            // The peer's Close frame may come before its replies are sent.
                            Some(Err(Error::PeerClosed { code: 1000, .. })) => {}
                            Some(Err(error)) => panic!("{error}"),
                            None => cancelled += 1,
                        }
                    }
                };
                let peer = (piece_bytes, 0);
                let ((seen, cancelled), _) = exchange(place, peer, options, application).await;
                assert_eq!(seen, messages(), "{place:?}, {piece_bytes}, {polls} polls");
                if cancelled == 0 || polls > 25 {
                    break;
                }
                polls += 1;
            }
            assert!(polls > 1, "{place:?}: something was cancelled");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn k02_recv_batch_dropped_after_any_number_of_polls_loses_nothing() {
    for place in PLACES {
        for piece_bytes in [1, 64, 1 << 17] {
            for polls in 0..8 {
                let application = move |mut ws: WebSocket| async move {
                    let mut seen: Vec<Message> = Vec::new();
                    loop {
                        let received = match poll_times(ws.recv_batch(), polls).await {
                            Some(received) => received,
                            None => ws.recv_batch().await,
                        };
                        match received.expect("the peer is honest") {
                            Some(mut batch) => {
                                seen.extend(batch.drain().map(MessageCow::into_message));
                            }
                            None => return seen,
                        }
                    }
                };
                let peer = (piece_bytes, 0);
                let (seen, _) = exchange(place, peer, quiet(), application).await;
                assert_eq!(seen, messages(), "{place:?}, {piece_bytes}, {polls} polls");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn k03_replies_dropped_after_any_number_of_polls_are_sent_whole_or_not_at_all() {
    for place in PLACES {
        for polls in 0..20 {
            let mut options = quiet();
            options.send_queue_bytes_max = 16;
            let (mut peer, running) = place.start(64, options, move |mut ws| async move {
                let mut sent = Vec::new();
                for number in 0..8_u32 {
                    let mut replies = Replies::new();
                    replies.push(format!("message {number}"));
                    replies.push(vec![number as u8; 40_000 * (number % 2) as usize]);
                    replies.push(&[number as u8; 300][..]);
                    let before = (replies.len(), replies.bytes());
                    match poll_times(ws.send_replies(&mut replies), polls).await {
                        Some(result) => {
                            result.expect("it is open");
                            assert!(replies.is_empty() && replies.bytes() == 0);
                            sent.push(number);
                        }
                        None => assert_eq!((replies.len(), replies.bytes()), before),
                    }
                }
                ws.close(CloseCode::NORMAL, "").await.expect("short");
                sent
            });
            let mut received = Vec::new();
            while let Some((first, payload)) = in_time(peer.frame()).await {
                if first == 0x88 {
                    peer.send(close(1000)).await;
                    break;
                }
                received.push(payload);
            }
            drop(peer);
            let sent = in_time(running).await.expect("it ends");
            let expected = sent.iter().flat_map(|number| {
                [
                    format!("message {number}").into_bytes(),
                    vec![*number as u8; 40_000 * (number % 2) as usize],
                    vec![*number as u8; 300],
                ]
            });
            assert!(expected.eq(received), "{place:?}, {polls} polls: {sent:?}");
        }
    }
}
