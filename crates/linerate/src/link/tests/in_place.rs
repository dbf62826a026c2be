//! Long messages, most of whose payload is read straight into their memory.

use super::*;
use crate::{MessageCow, ProtocolError};

/// More than fits in several reads, with code points of every length.
fn long_text() -> String {
    "a ü € 😀 ".repeat(40_000)
}

/// Runs an application that receives messages until the end, while a peer sends `frames` over a
/// pipe of `pipe_bytes`.
async fn receive(
    place: Place,
    pipe_bytes: usize,
    frames: Vec<Frame>,
) -> (Vec<Message>, Option<Error>) {
    let application = |mut ws: WebSocket| async move {
        let mut messages = Vec::new();
        loop {
            match ws.recv().await {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => return (messages, None),
                Err(error) => return (messages, Some(error)),
            }
        }
    };
    let mut options = quiet();
    options.config.limits.message_bytes_max = 2 << 20;
    let (peer, running) = place.start(pipe_bytes, options, application);
    let Peer {
        reader, mut writer, ..
    } = peer;
    let wire = writer.wire(frames);
    tokio::spawn(async move {
        // The other side may stop reading.
        _ = writer.stream.write_all(&wire).await;
        writer
    });
    let reading = tokio::spawn(reader.frames());
    let received = in_time(running).await.expect("it ends");
    reading.abort();
    received
}

#[tokio::test(start_paused = true)]
async fn long_messages_arrive_whole_and_in_order() {
    let text = long_text();
    let bytes: Vec<_> = (0..700_000_u32).map(|at| (at / 251) as u8).collect();
    let (start, end) = bytes.split_at(300_000);
    let frames = || {
        vec![
            Frame::new(0x1, text.as_bytes()),
            Frame::new(0x2, b"short"),
            Frame::new(0x2, start).with_fin(false),
            Frame::new(0x9, b"ping"),
            Frame::new(0x0, end),
            Frame::new(0x2, &bytes),
            close(1000),
        ]
    };
    for place in PLACES {
        for pipe_bytes in [3_333, 100_000, 4 << 20] {
            let (messages, error) = receive(place, pipe_bytes, frames()).await;
            assert!(error.is_none(), "{place:?}: {error:?}");
            let expected: [Message; 4] = [
                text.clone().into(),
                b"short".into(),
                bytes.clone().into(),
                bytes.clone().into(),
            ];
            assert!(messages == expected, "{place:?}, {pipe_bytes}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_invalid_byte_of_a_long_text_is_named() {
    let valid = long_text();
    for (at, byte) in [(300_000, 0xFF), (valid.len() - 1, 0xC3)] {
        let mut invalid = valid.clone().into_bytes();
        let at = (0..=at)
            .rev()
            .find(|at| valid.is_char_boundary(*at))
            .expect("the start");
        invalid[at] = byte;
        invalid.truncate(at + 100);
        let offset = if byte == 0xC3 { at + 1 } else { at } as u64;
        for place in PLACES {
            let (messages, error) = receive(
                place,
                100_000,
                vec![Frame::new(0x2, b"before"), Frame::new(0x1, &invalid)],
            )
            .await;
            assert_eq!(messages, [Message::from(b"before")], "{place:?}");
            let Some(Error::Protocol(error)) = error else {
                panic!("{place:?}: {error:?}");
            };
            assert_eq!(error, ProtocolError::InvalidUtf8 { offset }, "{place:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_gets_long_messages_too() {
    let application = |mut ws: WebSocket| async move {
        ws.for_each(|message: MessageCow<'_>, replies| {
            replies.push(message);
            Ok(())
        })
        .await
    };
    let text = long_text();
    for place in PLACES {
        let (peer, running) = place.start(100_000, quiet(), application);
        let Peer {
            mut reader,
            mut writer,
            ..
        } = peer;
        let wire = writer.wire([
            Frame::new(0x1, text.as_bytes()),
            Frame::new(0x1, text.as_bytes()),
        ]);
        let writing = tokio::spawn(async move {
            writer.send_bytes(&wire).await;
            writer
        });
        for _ in 0..2 {
            let frame = in_time(reader.frame()).await.expect("a reply");
            assert!(frame == (0x81, text.clone().into_bytes()), "{place:?}");
        }
        let mut writer = writing.await.expect("it has sent");
        writer.send(close(1000)).await;
        in_time(running).await.expect("it ends").expect("honest");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_streams_a_message_that_was_begun_before_it_was_asked_for() {
    let application = |mut ws: WebSocket| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut reader = ws.reader().await?.expect("a message");
        let mut text = String::new();
        while let Some(chunk) = reader.chunk().await? {
            let Message::Text(chunk) = chunk else {
                panic!("{chunk:?}");
            };
            text.push_str(&chunk);
        }
        Result::<_>::Ok(text)
    };
    let text = long_text();
    for place in PLACES {
        let mut options = quiet();
        options.recv_queue_bytes_max = 150_000;
        let (mut peer, running) = place.start(100_000, options, application);
        peer.send(Frame::new(0x1, text.as_bytes())).await;
        let received = in_time(running).await.expect("it ends").expect("honest");
        assert!(received == text, "{place:?}");
    }
}
