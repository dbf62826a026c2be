//! Messages to an echo server and back.

use linerate::{CloseCode, Message, MessageKind};

use crate::support::Running;

#[tokio::test]
async fn messages_come_back_as_they_were() {
    let server = Running::echo().await;
    let mut ws = linerate::connect(&server.url()).await.unwrap();
    for message in [
        Message::from("Spam"),
        Message::from(""),
        Message::from("größer €"),
        Message::from(&b"\x00\xff"[..]),
        Message::from(vec![7; 500_000]),
    ] {
        ws.send(message.clone()).await.unwrap();
        assert_eq!(ws.recv().await.unwrap(), Some(message));
    }
    let closed = ws.close(CloseCode::NORMAL, "bye").await.unwrap();
    assert_eq!((closed.code, closed.clean), (1000, true));
    assert_eq!(ws.recv().await.unwrap(), None);
    server.stop().await;
}

#[tokio::test]
async fn many_messages_in_flight_keep_their_order() {
    let server = Running::echo().await;
    let ws = linerate::connect(&server.url()).await.unwrap();
    let (sender, mut receiver) = ws.split();
    let send = tokio::spawn(async move {
        for number in 0..50_000 {
            sender.send(format!("{number}")).await.unwrap();
        }
        sender
    });
    for number in 0..50_000 {
        let message = receiver.recv().await.unwrap().unwrap();
        assert_eq!(message.as_text(), Some(&*format!("{number}")));
    }
    drop(send.await.unwrap());
    server.stop().await;
}

#[tokio::test]
async fn a_message_can_be_streamed_both_ways() {
    let server = Running::start(Default::default(), |mut ws, _| async move {
        while let Some(mut reader) = ws.reader().await? {
            let mut bytes = 0;
            while let Some(chunk) = reader.chunk().await? {
                bytes += chunk.len();
            }
            ws.send(bytes.to_string()).await?;
        }
        Ok(())
    })
    .await;
    let mut ws = linerate::connect(&server.url()).await.unwrap();
    let mut writer = ws.writer(MessageKind::Binary);
    for _ in 0..10 {
        writer.write(&[1; 100_000]).await.unwrap();
    }
    writer.finish().await.unwrap();
    assert_eq!(ws.recv().await.unwrap().unwrap().as_text(), Some("1000000"));
    drop(ws);
    server.stop().await;
}
