//! Messages piece by piece, and connections as `Stream` and `Sink`.

use std::collections::VecDeque;

use futures_util::{SinkExt, StreamExt};
use linerate_proto::engine::MessageKind;

use super::*;

#[tokio::test(start_paused = true)]
async fn the_rest_of_a_dropped_reader_is_passed_over() {
    for place in PLACES {
        for whole in [false, true] {
            let application = move |mut ws: WebSocket| async move {
                let mut reader = ws.reader().await?.expect("a message");
                assert_eq!(reader.chunk().await?, Some("begins ".into()));
                drop(reader);
                if whole {
                    return ws.recv().await;
                }
                let mut reader = ws.reader().await?.expect("a message");
                assert_eq!(reader.kind(), MessageKind::Binary);
                let chunk = reader.chunk().await;
                assert!(reader.chunk().await?.is_none());
                chunk
            };
            let (mut peer, running) = place.start(1 << 10, quiet(), application);
            peer.send(Frame::new(0x1, b"begins ").with_fin(false)).await;
            for _ in 0..10 {
                yield_now().await;
            }
            peer.send(Frame::new(0x0, b"goes on ").with_fin(false))
                .await;
            peer.send(Frame::new(0x0, b"ends")).await;
            peer.send(Frame::new(0x2, b"next")).await;
            let next = in_time(running).await.expect("it ends").expect("honest");
            assert_eq!(next, Some(b"next".into()), "{place:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_read_ahead_behind_a_streamed_message_is_whole() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            let mut reader = ws.reader().await?.expect("a message");
            reader.chunk().await?;
            tokio::time::sleep(Duration::from_secs(1)).await;
            while reader.chunk().await?.is_some() {}
            Result::<_>::Ok((ws.recv().await?, ws.recv().await?))
        };
        let (mut peer, running) = place.start(1 << 10, quiet(), application);
        peer.send(Frame::new(0x1, b"begins").with_fin(false)).await;
        for _ in 0..10 {
            yield_now().await;
        }
        for frame in [
            Frame::new(0x0, b"ends"),
            Frame::new(0x2, b"one ").with_fin(false),
            Frame::new(0x0, b"message"),
            Frame::new(0x2, b"another"),
        ] {
            peer.send(frame).await;
            for _ in 0..10 {
                yield_now().await;
            }
        }
        let (one, another) = in_time(running).await.expect("it ends").expect("honest");
        assert_eq!(one, Some(b"one message".into()), "{place:?}");
        assert_eq!(another, Some(b"another".into()), "{place:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn chunks_of_text_end_with_a_code_point() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            let mut text = String::new();
            let mut reader = ws.reader().await?.expect("a message");
            while let Some(chunk) = reader.chunk().await? {
                text += chunk.as_text().expect("text");
            }
            Result::<_>::Ok(text)
        };
        // One byte at a time, so that reads end within code points.
        let (mut peer, running) = place.start(1, quiet(), application);
        peer.send(Frame::new(0x1, "κόσμε €🦀".as_bytes())).await;
        let text = in_time(running).await.expect("it ends");
        assert_eq!(text.expect("it is valid"), "κόσμε €🦀", "{place:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_does_not_end_is_an_error_of_its_reader() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            let mut reader = ws.reader().await?.expect("a message");
            while let Some(chunk) = reader.chunk().await? {
                assert_eq!(chunk.as_bytes(), b"begins");
            }
            Result::<_>::Ok(())
        };
        let (mut peer, running) = place.start(64, quiet(), application);
        peer.send(Frame::new(0x2, b"begins").with_fin(false)).await;
        peer.send(close(1000)).await;
        let error = in_time(running)
            .await
            .expect("it ends")
            .expect_err("no end");
        assert!(matches!(error, Error::Abnormal), "{place:?}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_writer_closes_with_1011_if_its_message_has_begun() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            drop(ws.writer(MessageKind::Text));
            ws.send("whole").await.expect("nothing had begun");
            let mut writer = ws.writer(MessageKind::Text);
            writer.write(b"begins").await.expect("it is open");
            drop(writer);
            ws.send("too late").await
        };
        let (mut peer, running) = place.start(64, quiet(), application);
        assert_eq!(in_time(peer.frame()).await, Some((0x81, b"whole".to_vec())));
        assert_eq!(
            in_time(peer.frame()).await,
            Some((0x01, b"begins".to_vec()))
        );
        let close = in_time(peer.frame()).await;
        assert_eq!(close, Some((0x88, 1011_u16.to_be_bytes().to_vec())));
        let sent = in_time(running).await.expect("it ends");
        assert!(matches!(sent, Err(Error::Send(SendError::Closed))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_writer_sends_pings_between_its_pieces() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            let mut writer = ws.writer(MessageKind::Text);
            writer.write(b"begins").await?;
            writer.ping(b"?").await?;
            let refused = writer.ping(&[0; 126]).await;
            assert!(matches!(refused, Err(Error::Send(_))), "{refused:?}");
            writer.write(b"goes on").await?;
            writer.finish().await
        };
        let (mut peer, running) = place.start(64, quiet(), application);
        for (first, payload) in [
            (0x01, &b"begins"[..]),
            (0x89, b"?"),
            (0x00, b"goes on"),
            (0x80, b""),
        ] {
            let frame = in_time(peer.frame()).await;
            assert_eq!(frame, Some((first, payload.to_vec())), "{place:?}");
        }
        in_time(running)
            .await
            .expect("it ends")
            .expect("it is open");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_forwards_into_its_sink() {
    for place in PLACES {
        let application = |ws: WebSocket| async move {
            let (sink, stream) = StreamExt::split(ws);
            stream.forward(sink).await
        };
        let mut options = quiet();
        options.send_queue_bytes_max = 50;
        let (peer, running) = place.start(7, options, application);
        let Peer {
            mut reader,
            mut writer,
            ..
        } = peer;
        let expected: Vec<_> = (0..200)
            .map(|n| (0x81, format!("{n}").into_bytes()))
            .collect();
        let wire = writer.wire(expected.iter().map(|(_, text)| Frame::new(0x1, text)));
        let sent = tokio::spawn(async move {
            writer.send_bytes(&wire).await;
            writer
        });
        let mut echoed = VecDeque::new();
        while echoed.len() < expected.len() {
            echoed.push_back(in_time(reader.frame()).await.expect("an echo"));
        }
        assert_eq!(echoed, expected, "{place:?}");
        let mut writer = in_time(sent).await.expect("it ends");
        writer.send(close(1000)).await;
        assert_eq!(in_time(reader.frame()).await.expect("a Close").0, 0x88);
        in_time(running)
            .await
            .expect("it ends")
            .expect("a clean end");
    }
}

#[tokio::test(start_paused = true)]
async fn pings_are_answered_although_a_stream_is_not_polled_again() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            assert!(poll_times(ws.next(), 2).await.is_none(), "nothing was sent");
            tokio::time::sleep(Duration::from_secs(60)).await;
            ws.next().await.transpose()
        };
        let (mut peer, running) = place.start(64, quiet(), application);
        for _ in 0..10 {
            yield_now().await;
        }
        for _ in 0..3 {
            peer.send(Frame::new(0x9, b"?")).await;
            let second = Duration::from_secs(1);
            let pong = tokio::time::timeout(second, peer.frame()).await;
            assert_eq!(
                pong.expect("at once"),
                Some((0x8A, b"?".to_vec())),
                "{place:?}"
            );
        }
        peer.send(Frame::new(0x1, b"Spam")).await;
        let message = in_time(running).await.expect("it ends").expect("honest");
        assert_eq!(message, Some("Spam".into()), "{place:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_the_connection() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            assert!(ws.next().await.is_none(), "the peer closes cleanly");
            ws.next().await.is_none() && SinkExt::close(&mut ws).await.is_ok()
        };
        let (mut peer, running) = place.start(64, quiet(), application);
        for _ in 0..10 {
            yield_now().await;
        }
        peer.send(close(1000)).await;
        assert_eq!(in_time(peer.frame()).await.expect("a Close").0, 0x88);
        assert!(in_time(running).await.expect("it ends"), "{place:?}");
    }
}

/// Returns options for messages of at most 1,000 bytes.
fn small_messages() -> Options {
    let mut options = quiet();
    options.config.limits.message_bytes_max = 1_000;
    options.config.limits.fragments_max = 10;
    options
}

#[tokio::test(start_paused = true)]
async fn a_reader_with_its_own_limit_receives_more_than_a_message_may_have() {
    for place in PLACES {
        // If the application is late, the message has already begun to arrive.
        for delay in [0, 1] {
            for bytes_max in [None, Some(100_000)] {
                let application = move |mut ws: WebSocket| async move {
                    tokio::time::sleep(Duration::from_secs(delay)).await;
                    let mut bytes = 0;
                    let reader = ws.reader_with_limit(bytes_max).await?;
                    let mut reader = reader.expect("a message");
                    while let Some(chunk) = reader.chunk().await? {
                        bytes += chunk.len();
                    }
                    assert_eq!(ws.recv().await?, Some(vec![7; 1_000].into()));
                    Result::<_>::Ok((bytes, ws.recv().await))
                };
                let (mut peer, running) = place.start(1 << 10, small_messages(), application);
                peer.send(Frame::new(0x2, &[7; 99_000]).with_fin(false))
                    .await;
                for _ in 0..100 {
                    peer.send(Frame::new(0x0, &[7; 10]).with_fin(false)).await;
                }
                peer.send(Frame::new(0x0, b"")).await;
                // Whole messages have the limit of the options again.
                peer.send(Frame::new(0x2, &[7; 1_000])).await;
                peer.send(Frame::new(0x2, &[7; 1_001])).await;
                let frame = in_time(peer.frame()).await.expect("a Close");
                assert_eq!(frame, (0x88, vec![3, 0xF1]), "{place:?}");
                let (bytes, next) = in_time(running).await.expect("it ends").expect("in order");
                assert_eq!(bytes, 100_000, "{place:?}");
                let error = next.expect_err("it is too long").to_string();
                assert!(error.contains("1001") && error.contains("1000"), "{error}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_fails_a_message_that_exceeds_its_limit() {
    for place in PLACES {
        for bytes_max in [Some(4_999), None] {
            let application = move |mut ws: WebSocket| async move {
                let reader = match bytes_max {
                    Some(_) => ws.reader_with_limit(bytes_max).await,
                    None => ws.reader().await,
                };
                let failed = async move {
                    let mut reader = reader?.expect("a message");
                    while reader.chunk().await?.is_some() {}
                    Result::<_>::Ok(())
                };
                let error = failed.await.expect_err("it is too long");
                assert!(ws.recv().await?.is_none());
                Result::<_>::Ok(error.to_string())
            };
            let (mut peer, running) = place.start(1 << 14, small_messages(), application);
            peer.send(Frame::new(0x2, &[7; 5_000])).await;
            let frame = in_time(peer.frame()).await.expect("a Close");
            assert_eq!(frame, (0x88, vec![3, 0xF1]), "{place:?}");
            let limit = bytes_max.unwrap_or(1_000).to_string();
            let error = in_time(running).await.expect("it ends").expect("one error");
            assert!(error.contains(&limit), "{place:?}: {error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_was_read_ahead_has_the_limit_of_how_it_is_received() {
    for place in PLACES {
        // Whole, and only begun, when the application receives it.
        for (frame, size) in [
            (Frame::new(0x2, &[7; 2_000]), "2000"),
            (Frame::new(0x2, &[7; 50]).with_claimed_bytes(3_000), "3000"),
        ] {
            let application = move |mut ws: WebSocket| async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                assert_eq!(ws.recv().await?, Some(b"first".into()));
                let error = ws.recv().await.expect_err("it is too long");
                assert!(ws.recv().await?.is_none());
                Result::<_>::Ok(error.to_string())
            };
            let (mut peer, running) = place.start(1 << 14, small_messages(), application);
            peer.send(Frame::new(0x2, b"first")).await;
            peer.send(frame).await;
            if size == "2000" {
                peer.send(Frame::new(0x2, b"after it")).await;
            }
            let frame = in_time(peer.frame()).await.expect("a Close");
            assert_eq!(frame, (0x88, vec![3, 0xF1]), "{place:?}");
            let error = in_time(running).await.expect("it ends").expect("in order");
            assert!(error.contains(size) && error.contains("1000"), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_passed_over_does_not_fail_and_the_next_has_its_limit() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            let reader = ws.reader_with_limit(None).await?;
            assert!(reader.expect("a message").chunk().await?.is_some());
            assert_eq!(ws.recv().await?, Some(b"next".into()));
            ws.recv().await
        };
        let (mut peer, running) = place.start(1 << 10, small_messages(), application);
        peer.send(Frame::new(0x2, &[7; 20_000])).await;
        peer.send(Frame::new(0x2, b"next")).await;
        peer.send(Frame::new(0x2, &[7; 100]).with_claimed_bytes(1_001))
            .await;
        assert_eq!(in_time(peer.frame()).await.expect("a Close").1, [3, 0xF1]);
        assert!(
            in_time(running).await.expect("it ends").is_err(),
            "{place:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_sender_learns_why_the_peer_has_closed() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            let mut writer = ws.writer(MessageKind::Binary);
            let error = loop {
                if let Err(error) = writer.write(&[7; 1_000]).await {
                    break error;
                }
            };
            drop(writer);
            let later = ws.send("more").await.expect_err("it is closed");
            assert_eq!(later.to_string(), error.to_string());
            error
        };
        let (mut peer, running) = place.start(1 << 10, quiet(), application);
        assert_eq!(in_time(peer.frame()).await.expect("a fragment").0, 0x02);
        let mut payload = 1009_u16.to_be_bytes().to_vec();
        payload.extend(b"5 GiB is\ntoo much");
        peer.send(Frame::new(0x8, &payload)).await;
        while in_time(peer.frame()).await.expect("a Close").0 != 0x88 {}
        let error = in_time(running).await.expect("it ends");
        let text = error.to_string();
        assert!(
            text.contains("1009") && text.contains(r"is\ntoo much"),
            "{text}"
        );
        assert!(
            matches!(error, Error::PeerClosed { code: 1009, .. }),
            "{place:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_message_takes_little_memory_at_both_ends() {
    const BYTES: usize = 64 << 20;
    let budget = linerate_budget::Budget::new(1 << 30);
    let account = |consumer| budget.account(consumer);
    let backlogs = account(linerate_budget::Consumer::Backlogs);
    let messages = account(linerate_budget::Consumer::Messages);
    let mut options = quiet();
    options.accounts = crate::memory::Accounts::new(backlogs.clone(), messages.clone());
    let (ours, theirs) = tokio::io::duplex(1 << 18);
    let connect = |io, role| {
        let io = Transport::Other(Box::new(io));
        let agreed = HandshakeResult::default();
        let link = Link::new(io, role, &options.clone().into(), b"", agreed);
        tokio::spawn(Driver::without_handler(link.clone(), &RuntimeHandle::Tokio));
        WebSocket::new(link)
    };
    let (mut server, mut client) = (connect(ours, Role::Server), connect(theirs, Role::Client));
    let sending = tokio::spawn(async move {
        let mut writer = server.writer(MessageKind::Binary);
        let piece = vec![7; 256 << 10];
        for _ in 0..BYTES / piece.len() {
            writer.write(&piece).await?;
        }
        writer.finish().await?;
        server.close(CloseCode::NORMAL, "").await
    });
    let mut received = 0;
    let reader = client.reader_with_limit(None).await.expect("no error");
    let mut reader = reader.expect("a message");
    while let Some(chunk) = reader.chunk().await.expect("no error") {
        received += chunk.len();
        let bytes = backlogs.bytes() + messages.bytes();
        assert!(bytes < 2 << 20, "{bytes} after {received}");
    }
    assert_eq!(received, BYTES);
    assert!(client.recv().await.expect("no error").is_none());
    sending.await.expect("it ends").expect("no error");
}
