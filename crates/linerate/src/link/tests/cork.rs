//! Replies are batched into few writes, and none of them waits for a later call.

use super::*;

/// Returns the frames of `count` small text messages.
fn burst(count: usize) -> impl Iterator<Item = Frame> {
    (0..count).map(|number| Frame::new(0x1, number.to_string().as_bytes()))
}

async fn echo(mut ws: WebSocket) -> Result<()> {
    while let Some(message) = ws.recv().await? {
        ws.send(message).await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn replies_to_one_read_are_one_write() {
    for place in PLACES {
        let (mut peer, running) = place.start(1 << 16, quiet(), echo);
        let wire = peer.writer.wire(burst(100));
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
async fn a_reply_arrives_although_the_handler_sleeps_and_never_flushes() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            let message = ws.recv().await?.expect("there is one");
            ws.send(message).await?;
            std::future::pending::<Result<()>>().await
        };
        let (mut peer, running) = place.start(1 << 16, quiet(), application);
        peer.send(Frame::new(0x1, b"Spam")).await;
        assert_eq!(in_time(peer.frame()).await, Some((0x81, b"Spam".to_vec())));
        running.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_arrives_although_input_is_left_that_nobody_takes() {
    for place in PLACES {
        let application = |mut ws: WebSocket| async move {
            ws.recv().await?;
            ws.send("only reply").await?;
            std::future::pending::<Result<()>>().await
        };
        let (mut peer, running) = place.start(1 << 16, quiet(), application);
        let wire = peer.writer.wire(burst(10));
        peer.writer.send_bytes(&wire).await;
        assert_eq!(
            in_time(peer.frame()).await,
            Some((0x81, b"only reply".to_vec()))
        );
        running.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn what_many_senders_queue_in_one_turn_is_one_write() {
    for place in PLACES {
        let application = |ws: WebSocket| async move {
            let (sender, mut receiver) = ws.split();
            for number in 0..50 {
                sender.clone().send(number.to_string()).await?;
            }
            receiver.recv().await
        };
        let (mut peer, running) = place.start(1 << 16, quiet(), application);
        for number in 0..50 {
            let frame = in_time(peer.frame()).await;
            assert_eq!(frame, Some((0x81, number.to_string().into_bytes())));
        }
        assert_eq!(peer.writes(), 1, "{place:?}");
        peer.send(close(1000)).await;
        let last = in_time(running).await.expect("it ends");
        assert_eq!(last.expect("a clean end"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_waits_for_its_peer_takes_no_turns() {
    // The peer does not read or write; the pipe is full after 64 bytes.
    type Wait = fn(WebSocket) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    let waits: [Wait; 4] = [
        |mut ws| {
            Box::pin(async move {
                _ = ws.recv().await;
            })
        },
        |mut ws| {
            Box::pin(async move { while ws.send("more than the pipe holds").await.is_ok() {} })
        },
        |mut ws| {
            Box::pin(async move {
                ws.send(vec![0; 100]).await.expect("it is open");
                _ = ws.flush().await;
            })
        },
        |mut ws| {
            Box::pin(async move {
                _ = ws.close(CloseCode::NORMAL, "").await;
            })
        },
    ];
    for place in PLACES {
        for (index, wait) in waits.into_iter().enumerate() {
            let mut options = quiet();
            options.send_queue_bytes_max = 1_000;
            let polls = Polls::default();
            let counted = polls.clone();
            let (peer, running) = place.start(64, options, move |ws| counted.count(wait(ws)));
            let mut settled = (0, 0);
            for _ in 0..2 {
                for _ in 0..100 {
                    yield_now().await;
                }
                let before = std::mem::replace(&mut settled, (polls.so_far(), peer.writes()));
                let is_first = before == (0, 0);
                assert!(
                    is_first || before == settled,
                    "{place:?}, {index}: {settled:?}"
                );
            }
            running.abort();
        }
    }
}
