//! Compressed messages between client and server (RFC 7692).

use std::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
};

use linerate::{
    Client, Counters, Deflate, Error, Frames, Message, MessageKind, Options, ProtocolError, Server,
    deflate::Budget, room::Room,
};
use linerate_testkit::Frame;

use crate::{
    raw::{Raw, in_time, with_line},
    support::{Running, echo},
};

const TEXT: &str =
    r#"{"id":9182,"symbol":"ABC","price":123.45,"size":100,"side":"buy","venue":"XNAS"}"#;

fn options(deflate: Option<Deflate>, counters: &Arc<Counters>) -> Options {
    let mut options = Options::default();
    options.deflate = deflate;
    options.counters = Some(counters.clone());
    options
}

#[tokio::test]
async fn messages_are_compressed_both_ways_unless_one_side_does_not_want_it() {
    let on = Some(Deflate::default());
    for (server, client, expected) in [(on, on, true), (on, None, false), (None, on, false)] {
        let counters = Arc::default();
        let server = Server::new().with_options(options(server, &counters));
        let server = Running::start(server, echo).await;
        let client = Client::new().with_options(options(client, &Arc::default()));
        let mut ws = client.connect(&server.url()).await.unwrap();
        assert_eq!(ws.compression().is_some(), expected);
        for _ in 0..20 {
            ws.send(TEXT).await.unwrap();
            assert_eq!(ws.recv().await.unwrap(), Some(Message::from(TEXT)));
        }
        let plain = 20 * TEXT.len() as u64;
        for bytes in [counters.bytes_received(), counters.bytes_sent()] {
            assert_eq!(bytes < plain / 3, expected, "{bytes} of {plain}");
        }
        drop(ws);
        server.stop().await;
    }
}

#[tokio::test]
async fn a_receiver_yields_between_messages_that_inflate() {
    const MESSAGES: u32 = 40;
    for is_batched in [false, true] {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let client = tokio::spawn(async move {
            let mut ws = Client::new().connect_over(ours, "ws://localhost/").await?;
            for _ in 0..MESSAGES {
                ws.send(vec![0; 1 << 20]).await?;
            }
            Ok::<_, Error>(ws)
        });
        let incoming = Server::new().accept(theirs).await.unwrap();
        let mut ws = incoming.accept().await.unwrap();
        // All messages fit into the stream.
        let client = in_time(client).await.unwrap().unwrap();
        let received = Cell::new(0);
        let mut receiving = pin!(async {
            if is_batched {
                while received.get() < MESSAGES {
                    let batch = ws.recv_batch().await.unwrap().unwrap();
                    received.set(received.get() + batch.len() as u32);
                }
            } else {
                while received.get() < MESSAGES {
                    ws.recv().await.unwrap().unwrap();
                    received.set(received.get() + 1);
                }
            }
        });
        let mut most = 0;
        poll_fn(|cx| {
            let before = received.get();
            let polled = receiving.as_mut().poll(cx);
            most = most.max(received.get() - before);
            polled
        })
        .await;
        assert!(most <= 1, "{most} messages in one turn");
        drop(client);
    }
}

#[tokio::test]
async fn large_messages_are_compressed_and_streamed() {
    let counters = Arc::default();
    let mut options = options(Some(Deflate::default()), &counters);
    options.config.limits.message_bytes_max = 8 << 20;
    let server = Server::new().with_options(options.clone());
    let server = Running::start(server, |mut ws, _| async move {
        // Messages that arrive in pieces are sent back in pieces.
        while let Some(mut reader) = ws.reader().await? {
            let (kind, mut pieces) = (reader.kind(), Vec::new());
            while let Some(piece) = reader.chunk().await? {
                assert!(
                    piece.len() <= 16 << 10,
                    "{} bytes in one piece",
                    piece.len()
                );
                pieces.push(piece.into_bytes());
            }
            let mut writer = ws.writer(kind);
            for piece in pieces {
                writer.write(&piece).await?;
            }
            writer.finish().await?;
        }
        Ok(())
    })
    .await;
    let mut ws = Client::new()
        .with_options(options)
        .connect(&server.url())
        .await
        .unwrap();
    let text = TEXT.repeat(50_000);
    for _ in 0..2 {
        ws.send(text.as_str()).await.unwrap();
        let echoed = in_time(ws.recv()).await.unwrap().unwrap();
        assert!(
            echoed.as_text() == Some(&text),
            "the echo differs from the message"
        );
    }
    // The client's bytes count as well.
    assert!(counters.bytes_sent() < 4 * text.len() as u64 / 50);
    drop(ws);
    server.stop().await;
}

#[tokio::test]
async fn x13_what_is_secret_is_sent_as_it_is() {
    let server = Running::start(Server::new(), |mut ws, _| async move {
        ws.send_uncompressed(TEXT).await?;
        ws.send(TEXT).await?;
        let (sender, mut receiver) = ws.split();
        sender.send_uncompressed(TEXT).await?;
        while receiver.recv().await?.is_some() {}
        Ok(())
    })
    .await;
    let mut raw = Raw::connect(server.address).await;
    raw.send(with_line(
        "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
    ))
    .await;
    let head = raw.head().await;
    assert!(head.contains(
        "\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=12\r\n"
    ));
    assert_eq!(raw.frame().await, Some((0x81, TEXT.into())));
    let (first, compressed) = raw.frame().await.unwrap();
    assert_eq!(first, 0xC1);
    assert!(
        compressed.len() > TEXT.len() / 2,
        "the message refers back to an earlier secret"
    );
    assert_eq!(raw.frame().await, Some((0x81, TEXT.into())));
    drop(raw);
    server.stop().await;
}

#[tokio::test]
async fn x01_a_bomb_is_answered_1009() {
    let server = Running::start(Server::new(), |mut ws, _| async move {
        let error = loop {
            match ws.recv().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the bomb was accepted as a message"),
                Err(error) => break error,
            }
        };
        let Error::Protocol(ProtocolError::MessageTooBig { bytes, bytes_max }) = error else {
            panic!("{error}");
        };
        assert_eq!((bytes, bytes_max), ((1 << 20) + 1, 1 << 20));
        Err(error)
    })
    .await;
    let mut raw = Raw::connect(server.address).await;
    raw.send(with_line("Sec-WebSocket-Extensions: permessage-deflate"))
        .await;
    raw.head().await;
    // The output of zlib for megabytes of zeros: a block of codes, and then two bits for each 258
    // bytes.
    let codes = b"\xec\xc1\x01\x01\x00\x00\x00\x80\x90\xfe\xaf\xee\x08\x0a";
    let bomb = [&codes[..], &[0; 9_000]].concat();
    let frame = Frame::new(2, &bomb).with_rsv(4);
    raw.send_frame(frame).await;
    assert_eq!(
        raw.frame().await,
        Some((0x88, 1_009_u16.to_be_bytes().into()))
    );
    drop(raw);
    server.stop().await;
}

#[tokio::test]
async fn x12_connections_count_their_windows_and_give_them_back() {
    static BUDGET: Budget = Budget::new(1 << 20);
    let mut deflate = Deflate::default();
    deflate.budget = &BUDGET;
    let server = Server::new().with_options(options(Some(deflate), &Arc::default()));
    let server = Running::start(server, echo).await;
    let mut ws = linerate::connect(&server.url()).await.unwrap();
    assert_eq!(BUDGET.used(), 4_096);
    for _ in 0..3 {
        ws.send(TEXT).await.unwrap();
        ws.recv().await.unwrap();
    }
    assert_eq!(BUDGET.used(), 4_096 + 256);
    drop(ws);
    server.stop().await;
    assert_eq!(BUDGET.used(), 0);
}

#[tokio::test]
async fn the_kinds_of_messages_stay_what_they_are() {
    let server = Running::echo().await;
    let mut ws = linerate::connect(&server.url()).await.unwrap();
    let bytes: Vec<u8> = (0..100_000_u32).map(|i| (i / 1_000) as u8).collect();
    for message in [Message::from(bytes), Message::from(TEXT), Message::from("")] {
        ws.send(message.clone()).await.unwrap();
        let echoed = ws.recv().await.unwrap().unwrap();
        assert!(echoed == message, "{:?}", message.kind());
        assert!(matches!(
            echoed.kind(),
            MessageKind::Binary | MessageKind::Text
        ));
    }
    drop(ws);
    server.stop().await;
}

#[tokio::test]
async fn frames_for_many_are_valid_whatever_a_connection_has_sent_before() {
    let frames = Frames::from_iter(&[TEXT.repeat(3).into(), Message::from("short")]);
    let frames = frames.compressed(&Deflate::default());
    assert!(frames.is_compressed());
    let server = Running::start(Server::new(), move |ws, _| {
        let frames = frames.clone();
        async move {
            let (sender, mut receiver) = ws.split();
            while let Some(message) = receiver.recv().await? {
                sender.send(message).await?;
                sender.try_send_frames([&frames]).expect("there is room");
            }
            Ok(())
        }
    })
    .await;
    for deflate in [Some(Deflate::default()), None] {
        let counters = Arc::default();
        let client = Client::new().with_options(options(deflate, &counters));
        let mut ws = client.connect(&server.url()).await.unwrap();
        for _ in 0..20 {
            ws.send(TEXT).await.unwrap();
            for expected in [TEXT, &TEXT.repeat(3), "short"] {
                let received = in_time(ws.recv()).await.unwrap();
                assert_eq!(received, Some(Message::from(expected)));
            }
        }
        let plain = 20 * 4 * TEXT.len() as u64;
        let received = counters.bytes_received();
        assert_eq!(received < plain / 2, deflate.is_some(), "{received}");
    }
    server.abort();
}

#[tokio::test]
async fn a_room_compresses_for_members_that_support_it() {
    let room = Room::new();
    let joins = room.clone();
    let server = Running::start(Server::new(), move |mut ws, _| {
        let room = joins.clone();
        async move {
            let _member = room.join(&ws)?;
            while ws.recv().await?.is_some() {}
            Ok(())
        }
    });
    let server = server.await;
    let text = TEXT.repeat(10);
    let mut clients = Vec::new();
    for deflate in [Some(Deflate::default()), None] {
        let counters = Arc::default();
        let client = Client::new().with_options(options(deflate, &counters));
        let ws = client.connect(&server.url()).await.unwrap();
        clients.push((ws, counters, deflate.is_some()));
    }
    while room.len() < 2 {
        tokio::task::yield_now().await;
    }
    for _ in 0..20 {
        assert_eq!(room.send(&*text), 2);
        for (ws, ..) in &mut clients {
            assert_eq!(in_time(ws.recv()).await.unwrap(), Some((&*text).into()));
        }
    }
    for (_, counters, is_compressed) in &clients {
        let bytes = counters.bytes_received();
        let plain = 20 * text.len() as u64;
        assert_eq!(bytes < plain / 4, *is_compressed, "{bytes} of {plain}");
    }
    drop(clients);
    server.stop().await;
}
