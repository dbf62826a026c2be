//! Other ways of sending: uncompressed messages, Pings, waiting for room without sending, and the
//! end of a message that is written in pieces.

use super::*;

/// What the application sends: small messages, and one that has to wait for the socket many times.
fn message(number: usize) -> Message {
    match number {
        2 => vec![2; 1_000].into(),
        _ => outgoing(number),
    }
}

#[tokio::test(start_paused = true)]
async fn k03_send_uncompressed_dropped_after_any_number_of_polls_is_sent_whole_or_not_at_all() {
    for_all_polls(async |place, polls| {
        let application = move |mut ws: WebSocket| async move {
            let (mut sent, mut cancelled) = (Vec::new(), 0);
            for number in 0..8 {
                match poll_times(ws.send_uncompressed(message(number)), polls).await {
                    Some(result) => {
                        result.expect("it is open");
                        sent.push(message(number));
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
async fn k03_ping_dropped_after_any_number_of_polls_is_sent_whole_or_not_at_all() {
    for_all_polls(async |place, polls| {
        let application = move |mut ws: WebSocket| async move {
            let (mut sent, mut cancelled) = (Vec::new(), 0);
            for number in 0..8_u8 {
                let payload = [number; 20];
                match poll_times(ws.ping(&payload), polls).await {
                    Some(result) => {
                        result.expect("it is open");
                        sent.push((0x89, payload.to_vec()));
                    }
                    None => cancelled += 1,
                }
            }
            let closed = ws.close(CloseCode::NORMAL, "").await.expect("short");
            assert!(closed.clean);
            (sent, cancelled)
        };
        let ((sent, cancelled), frames) = send(place, 1, application).await;
        let (_, pings) = frames.split_last().expect("there is a Close frame");
        assert_eq!(pings, sent, "{place:?}, {polls} polls");
        cancelled
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn k03_writable_dropped_after_any_number_of_polls_loses_nothing_and_comes_in_the_end() {
    for_all_polls(async |place, polls| {
        let application = move |ws: WebSocket| async move {
            let (sender, receiver) = ws.split();
            let mut cancelled = 0;
            for number in 0..8 {
                if let Some(room) = poll_times(sender.writable(), polls).await {
                    room.expect("it is open");
                } else {
                    cancelled += 1;
                    sender.writable().await.expect("it is open");
                }
                assert!(sender.room() > 0, "it was said that there is room");
                // There is room, so this does not wait.
                let sent = poll_times(sender.send(message(number)), 1).await;
                sent.expect("no waiting").expect("it is open");
            }
            let closed = sender.close(CloseCode::NORMAL, "").await.expect("short");
            assert!(closed.clean);
            drop(receiver);
            cancelled
        };
        let (cancelled, frames) = send(place, 64, application).await;
        let expected: Vec<_> = (0..8).map(message).collect();
        assert_eq!(sent_messages(&frames), expected, "{place:?}, {polls} polls");
        cancelled
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn k03_finish_dropped_after_any_number_of_polls_ends_the_message_or_the_connection() {
    for_all_polls(async |place, polls| {
        let application = move |mut ws: WebSocket| async move {
            let mut writer = ws.writer(MessageKind::Binary);
            writer.write(&[7; 100]).await.expect("it is open");
            let finished = poll_times(writer.finish(), polls).await.is_some();
            // Unless the message was finished, no other message can follow it.
            assert_eq!(ws.send("more").await.is_ok(), finished);
            _ = ws.close(CloseCode::NORMAL, "").await;
            finished
        };
        let (finished, frames) = send(place, 1, application).await;
        let (close, data) = frames.split_last().expect("there is a Close frame");
        let code = if finished { 1000_u16 } else { 1011 };
        assert_eq!(*close, (0x88, code.to_be_bytes().to_vec()), "{place:?}");
        let begun = (0x02, vec![7; 100]);
        let rest = [(0x80, vec![]), (0x81, b"more".to_vec())];
        let rest = if finished { &rest[..] } else { &[] };
        assert_eq!(data, [&[begun], rest].concat(), "{place:?}, {polls} polls");
        usize::from(!finished)
    })
    .await;
}
