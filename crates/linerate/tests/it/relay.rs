//! Relays between connections, and taking connections apart.

use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use linerate::{
    Client, CloseCode, MessageKind, Options, Role, Server, State, WebSocket,
    parts::{Parts, PartsError},
    relay::{Pings, Relay, RelayEnd, RelayError, RelaySummary},
};
use linerate_proto::{Opcode, frame::listen};
use linerate_testkit::Frame;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    sync::{Notify, mpsc},
};

use crate::{
    raw::{Raw, in_time},
    support::Running,
};

/// Returns options for connections whose frames can be relayed unchanged.
fn options() -> Options {
    Options::default().without_compression()
}

/// Opens a connection that can be relayed.
async fn connect(url: &str) -> linerate::Result<WebSocket> {
    Client::new().with_options(options()).connect(url).await
}

/// Returns a server that relays its clients to `upstream`, and reports how each relay ended.
async fn passing_on(
    upstream: String,
    relay: Relay,
) -> (
    Running,
    mpsc::UnboundedReceiver<Result<RelaySummary, RelayError>>,
) {
    let (report, reports) = mpsc::unbounded_channel();
    let server = Running::start(Server::new().with_options(options()), move |ws, _| {
        let (report, upstream) = (report.clone(), upstream.clone());
        async move {
            let upstream = connect(&upstream).await?;
            let (client, upstream) = (ws.into_parts().unwrap(), upstream.into_parts().unwrap());
            report.send(relay.run(client, upstream).await).unwrap();
            Ok(())
        }
    });
    (server.await, reports)
}

#[tokio::test]
async fn messages_of_all_sizes_pass_both_ways_and_the_close_code_too() {
    let upstream = Running::echo().await;
    let (server, mut reports) = passing_on(upstream.url(), Relay::new()).await;
    let mut ws = linerate::connect(&server.url()).await.unwrap();
    for bytes in [0, 1, 125, 126, 65_535, 65_536, 70_001, 900_000] {
        let message = vec![bytes as u8; bytes];
        ws.send(message.clone()).await.unwrap();
        let echoed = in_time(ws.recv()).await.unwrap().unwrap();
        assert!(echoed.as_bytes() == message, "{bytes} bytes");
    }
    let closed = ws.close(CloseCode::new(4_321).unwrap(), "enough").await;
    assert!(closed.unwrap().clean);
    let closed = ws.closed().unwrap();
    assert_eq!(closed.code, 4_321);
    let relayed = in_time(reports.recv()).await.unwrap().unwrap();
    for passed in [relayed.from_first, relayed.from_second] {
        assert!(passed.bytes > 900_000);
        assert_eq!((passed.closed, passed.code), (true, Some(4_321)));
    }
    server.stop().await;
    upstream.stop().await;
}

#[tokio::test]
async fn many_messages_in_flight_keep_their_order() {
    let upstream = Running::echo().await;
    let (server, _reports) = passing_on(upstream.url(), Relay::new()).await;
    let (sender, mut receiver) = linerate::connect(&server.url()).await.unwrap().split();
    let send = tokio::spawn(async move {
        for number in 0..20_000 {
            sender.send(number.to_string()).await.unwrap();
        }
        sender.flush().await.unwrap();
        sender
    });
    for number in 0..20_000 {
        let message = in_time(receiver.recv()).await.unwrap().unwrap();
        assert_eq!(message.as_text(), Some(&*number.to_string()));
    }
    drop((send.await.unwrap(), receiver));
    server.stop().await;
    upstream.stop().await;
}

/// Bytes that were read in advance, parsed or not, are passed to the next user of the connection.
#[tokio::test]
async fn nothing_is_lost_when_a_connection_is_taken_apart() {
    let frames = [
        Frame::new(0x1, b"whole"),
        Frame::new(0x2, &[7; 300]).with_fin(false),
        Frame::new(0x9, b"ping"),
        Frame::new(0x0, b"").with_fin(false),
        Frame::new(0x0, "sm\u{f6}rg\u{e5}s".as_bytes()),
        Frame::new(0x1, "begun: \u{f6}".as_bytes()).with_fin(false),
        Frame::new(0x0, b"end"),
    ];
    let input = frames.map(|frame| frame.to_role(Role::Server).to_bytes());
    let input = input.concat();
    let binary = [&[7; 300], "sm\u{f6}rg\u{e5}s".as_bytes()].concat();
    let messages = ["whole".into(), binary.into(), "begun: \u{f6}end".into()];
    let (heard, mut hears) = mpsc::unbounded_channel();
    let upstream = Running::start(Server::new(), move |mut ws, _| {
        let heard = heard.clone();
        async move {
            let mut received = Vec::new();
            while let Some(message) = ws.recv().await? {
                received.push(message);
            }
            heard.send(received).unwrap();
            Ok(())
        }
    });
    let upstream = upstream.await;
    let (url, may_go_on) = (upstream.url(), Arc::new(Notify::new()));
    let (go_on, is_relaying) = (may_go_on.clone(), Arc::new(Notify::new()));
    let relaying = is_relaying.clone();
    let server = Running::start(Server::new().with_options(options()), move |ws, _| {
        let (url, may_go_on) = (url.clone(), may_go_on.clone());
        let relaying = relaying.clone();
        async move {
            may_go_on.notified().await;
            let upstream = connect(&url).await?.into_parts().unwrap();
            let parts = ws.into_parts().unwrap();
            relaying.notify_one();
            let relayed = Relay::new().run(parts, upstream).await;
            assert!(relayed.unwrap().from_first.closed);
            Ok(())
        }
    });
    let server = server.await;
    for cut in (0..input.len()).step_by(5) {
        let mut raw = Raw::open(server.address).await;
        raw.send(&input[..cut]).await;
        // The connection may or may not read in advance during this time; the result does not
        // depend on it.
        tokio::time::sleep(Duration::from_millis(1)).await;
        go_on.notify_one();
        raw.send(&input[cut..]).await;
        in_time(is_relaying.notified()).await;
        raw.send_frame(Frame::new(0x8, b"\x03\xe8")).await;
        assert_eq!(
            in_time(hears.recv()).await.unwrap(),
            messages,
            "cut at {cut}"
        );
        assert_eq!(raw.frame().await, Some((0x8A, b"ping".to_vec())));
        assert_eq!(raw.frame().await, Some((0x88, b"\x03\xe8".to_vec())));
    }
    server.stop().await;
    upstream.stop().await;
}

#[tokio::test]
async fn what_was_sent_and_not_written_is_among_the_parts() {
    let (ours, mut theirs) = duplex(64);
    let client = tokio::spawn(async move {
        let mut ws = Client::new()
            .connect_over(ours, "ws://example.com/")
            .await?;
        ws.send(vec![7; 1_000]).await?;
        Ok::<_, linerate::Error>(ws.into_parts().unwrap())
    });
    answer_handshake(&mut theirs).await;
    let parts = in_time(client).await.unwrap().unwrap();
    let mut wire = vec![0; 1_008 - parts.unsent.len()];
    theirs.read_exact(&mut wire).await.unwrap();
    wire.extend_from_slice(&parts.unsent);
    assert_eq!(wire[..4], [0x82, 0xFE, 0x03, 0xE8]);
    let unmasked = wire[8..].iter().enumerate();
    assert!(
        unmasked
            .into_iter()
            .all(|(at, byte)| byte ^ wire[4 + at % 4] == 7)
    );
    assert_eq!(parts.role, Role::Client);
}

/// Reads a request and accepts it.
pub(crate) async fn answer_handshake(stream: &mut DuplexStream) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
    }
    let mut reader = linerate_proto::handshake::RequestReader::new(Default::default());
    let (request, _) = reader.handle_input(&request).unwrap().unwrap();
    let mut answer = Vec::new();
    request.websocket().unwrap().accept().encode(&mut answer);
    stream.write_all(&answer).await.unwrap();
}

#[tokio::test]
async fn a_connection_in_the_middle_of_something_is_not_taken_apart() {
    let server = Running::echo().await;
    let mut ws = linerate::connect(&server.url()).await.unwrap();
    let mut writer = ws.writer(MessageKind::Text);
    writer.write(b"begun").await.unwrap();
    // Its destructor would close the connection.
    std::mem::forget(writer);
    let (mut ws, error) = ws.into_parts().unwrap_err();
    assert_eq!(error, PartsError::MessageInProgress);
    // The connection still works.
    ws.close(CloseCode::NORMAL, "").await.unwrap();
    let (ws, error) = ws.into_parts().unwrap_err();
    assert_eq!((error, ws.state()), (PartsError::Closed, State::Closed));
    server.stop().await;
}

#[tokio::test]
async fn pings_pass_or_are_answered_as_asked() {
    let upstream = Running::start(Server::new(), |mut ws, _| async move {
        while ws.recv().await?.is_some() {}
        Ok(())
    });
    let upstream = upstream.await;
    for (pings, answered_by_upstream) in [(Pings::Forward, true), (Pings::Answer, false)] {
        let relay = Relay::new().with_pings(pings);
        let (server, mut reports) = passing_on(upstream.url(), relay).await;
        let mut raw = Raw::open(server.address).await;
        raw.send_frame(Frame::new(0x9, b"one")).await;
        raw.send_frame(Frame::new(0x2, b"between").with_fin(false))
            .await;
        raw.send_frame(Frame::new(0x9, b"two")).await;
        for expected in [b"one", b"two"] {
            assert_eq!(raw.frame().await, Some((0x8A, expected.to_vec())));
        }
        raw.send_frame(Frame::new(0x8, b"\x03\xe9")).await;
        assert_eq!(raw.frame().await, Some((0x88, b"\x03\xe9".to_vec())));
        let relayed = in_time(reports.recv()).await.unwrap().unwrap();
        let pongs = 2 * (2 + 3);
        let close = 2 + 2;
        assert_eq!(relayed.from_second.bytes, pongs + close);
        let (headers, payloads) = (4 * 6, 3 + 7 + 3 + 2);
        let answered = 2 * (6 + 3);
        let expected = headers + payloads - if answered_by_upstream { 0 } else { answered };
        assert_eq!(relayed.from_first.bytes, expected);
        server.stop().await;
    }
    upstream.stop().await;
}

/// Both peers have the same role. Between two clients, frames lose their masks on the way; between
/// two servers, they get one.
#[tokio::test]
async fn peers_of_the_same_role_hear_each_other() {
    for (ours, theirs) in [(Role::Server, Role::Client), (Role::Client, Role::Server)] {
        let (mut first, at_first) = duplex(1 << 16);
        let (mut second, at_second) = duplex(1 << 16);
        let relay = tokio::spawn(async move {
            let (first, second) = (Parts::new(at_first, ours), Parts::new(at_second, ours));
            Relay::new().run(first, second).await
        });
        // Reserved bits are passed on, such as those of compressed messages.
        let frame = Frame::new(0x1, b"Spam")
            .with_rsv(4)
            .to_role(ours)
            .to_bytes();
        let long = Frame::new(0x2, &[9; 70_000]).to_role(ours).to_bytes();
        let close = Frame::new(0x8, b"\x03\xe8bye").to_role(ours).to_bytes();
        let sent = [frame.repeat(100), long, close.clone()].concat();
        let write = async {
            first.write_all(&sent).await.unwrap();
            second.write_all(&close).await.unwrap();
        };
        write.await;
        let mut heard = Vec::new();
        in_time(second.read_to_end(&mut heard)).await.unwrap();
        let relayed = in_time(relay).await.unwrap().unwrap();
        assert_eq!(relayed.from_first.bytes, heard.len() as u64);
        let mut messages = Vec::new();
        let mut hear = |_: bool, rsv, opcode: Opcode, payload: &mut [u8]| {
            messages.push((opcode, rsv, payload.to_vec()));
        };
        let consumed = listen(theirs, &mut heard, &mut hear).unwrap();
        assert_eq!(consumed, relayed.from_first.bytes as usize);
        let mut expected = vec![(Opcode::Text, 4, b"Spam".to_vec()); 100];
        expected.push((Opcode::Binary, 0, vec![9; 70_000]));
        expected.push((Opcode::Close, 0, b"\x03\xe8bye".to_vec()));
        assert!(messages == expected);
    }
}

#[tokio::test]
async fn who_breaks_the_rules_of_framing_is_told_and_the_other_side_too() {
    let (mut first, at_first) = duplex(1 << 10);
    let (mut second, at_second) = duplex(1 << 10);
    let relay = tokio::spawn(async move {
        let first = Parts::new(at_first, Role::Server);
        Relay::new()
            .run(first, Parts::new(at_second, Role::Client))
            .await
    });
    let good = Frame::new(0x2, b"good").to_role(Role::Server).to_bytes();
    first.write_all(&good).await.unwrap();
    first
        .write_all(&Frame::new(0x3, b"bad").to_bytes())
        .await
        .unwrap();
    let error = in_time(relay).await.unwrap().unwrap_err();
    assert!(
        matches!(
            error,
            RelayError::Protocol {
                end: RelayEnd::First,
                ..
            }
        ),
        "{error}"
    );
    let mut told = Vec::new();
    in_time(first.read_to_end(&mut told)).await.unwrap();
    assert_eq!(told, b"\x88\x02\x03\xea");
    let mut told = Vec::new();
    in_time(second.read_to_end(&mut told)).await.unwrap();
    let mut frames = Vec::new();
    let mut hear = |_: bool, _, opcode: Opcode, payload: &mut [u8]| {
        frames.push((opcode, payload.to_vec()));
    };
    listen(Role::Server, &mut told, &mut hear).unwrap();
    let going_away = (Opcode::Close, b"\x03\xe9".to_vec());
    assert_eq!(frames, [(Opcode::Binary, b"good".to_vec()), going_away]);
}

#[tokio::test(start_paused = true)]
async fn a_relay_on_which_nothing_comes_ends() {
    let (mut first, at_first) = duplex(1 << 10);
    let (_second, at_second) = duplex(1 << 10);
    let relay = Relay::new().with_idle_timeout(Duration::from_secs(60));
    let begun = tokio::time::Instant::now();
    let relay = tokio::spawn(async move {
        let first = Parts::new(at_first, Role::Server);
        relay.run(first, Parts::new(at_second, Role::Client)).await
    });
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(50)).await;
        let ping = Frame::new(0x9, b"").to_role(Role::Server).to_bytes();
        first.write_all(&ping).await.unwrap();
    }
    let error = relay.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "no data from either side for 60s");
    assert_eq!(begun.elapsed().as_secs(), 150 + 60);
}

#[tokio::test(start_paused = true)]
async fn one_direction_does_not_outlive_the_other_for_long() {
    let (mut first, at_first) = duplex(1 << 10);
    let (mut second, at_second) = duplex(1 << 10);
    let relay = tokio::spawn(async move {
        let first = Parts::new(at_first, Role::Server);
        Relay::new()
            .run(first, Parts::new(at_second, Role::Client))
            .await
    });
    let close = Frame::new(0x8, b"").to_role(Role::Server).to_bytes();
    first.write_all(&close).await.unwrap();
    // The other side keeps sending.
    let talk = async {
        while second.write_all(b"\x82\x00").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let hear = async { first.read_to_end(&mut Vec::new()).await.unwrap() };
    tokio::join!(talk, hear);
    let error = relay.await.unwrap().unwrap_err();
    assert!(
        matches!(error, RelayError::CloseTimeout { limit } if limit.as_secs() == 10),
        "{error}"
    );
}

#[tokio::test]
async fn an_end_without_a_close_frame_passes_as_such() {
    let (first, at_first) = duplex(1 << 10);
    let (mut second, at_second) = duplex(1 << 10);
    let relay = tokio::spawn(async move {
        let first = Parts::new(at_first, Role::Server);
        Relay::new()
            .run(first, Parts::new(at_second, Role::Client))
            .await
    });
    drop(first);
    let mut heard = Vec::new();
    in_time(second.read_to_end(&mut heard)).await.unwrap();
    assert_eq!(heard, b"");
    drop(second);
    assert_eq!(
        in_time(relay).await.unwrap().unwrap(),
        RelaySummary::default()
    );
}

#[tokio::test(start_paused = true)]
async fn a_relay_dropped_after_any_number_of_polls_ends_both_connections() {
    let sent: Vec<Vec<u8>> = (0..8).map(|number| vec![number; 20]).collect();
    let mut passed_max = 0;
    for polls in 0..80 {
        let (mut first, at_first) = duplex(7);
        let (mut second, at_second) = duplex(7);
        let frames = sent.iter().map(|payload| Frame::new(0x2, payload));
        let wire: Vec<u8> = frames
            .flat_map(|frame| frame.to_role(Role::Server).to_bytes())
            .collect();
        let mut talking = tokio::spawn(async move {
            _ = first.write_all(&wire).await;
            first.read_to_end(&mut Vec::new()).await.unwrap()
        });
        let hearing = tokio::spawn(async move {
            let mut heard = Vec::new();
            second.read_to_end(&mut heard).await.unwrap();
            heard
        });
        let parts = Parts::new(at_first, Role::Server);
        let mut relay = Box::pin(Relay::new().run(parts, Parts::new(at_second, Role::Client)));
        for _ in 0..polls {
            let polled = poll_fn(|cx| Poll::Ready(relay.as_mut().poll(cx))).await;
            assert!(polled.is_pending(), "nobody closes");
            tokio::task::yield_now().await;
        }
        drop(relay);
        assert_eq!(in_time(&mut talking).await.unwrap(), 0);
        let (mut heard, mut whole) = (in_time(hearing).await.unwrap(), Vec::new());
        let parsed = listen(
            Role::Server,
            &mut heard,
            &mut |_, _, _, payload: &mut [u8]| {
                whole.push(payload.to_vec());
            },
        );
        parsed.unwrap();
        assert!(sent.starts_with(&whole), "{polls} polls: {whole:?}");
        passed_max = whole.len().max(passed_max);
    }
    assert!(
        passed_max > 2,
        "no relay was dropped while messages were passing"
    );
}

/// A receiver that does not read slows the sender, and the relay holds at most one buffer.
#[tokio::test(start_paused = true)]
async fn a_receiver_that_does_not_read_slows_the_sender() {
    let (mut first, at_first) = duplex(1 << 10);
    let (mut second, at_second) = duplex(1 << 10);
    let relay = tokio::spawn(async move {
        let first = Parts::new(at_first, Role::Server);
        Relay::new()
            .run(first, Parts::new(at_second, Role::Client))
            .await
    });
    let frame = Frame::new(0x2, &[7; 1_000])
        .to_role(Role::Server)
        .to_bytes();
    let mut sent = 0_usize;
    let send = async {
        loop {
            first.write_all(&frame).await.unwrap();
            sent += frame.len();
        }
    };
    tokio::time::timeout(Duration::from_secs(1), send)
        .await
        .unwrap_err();
    let in_pipes = 2 << 10;
    assert!(sent < in_pipes + (64 << 10) + frame.len(), "{sent} bytes");
    // Nothing was lost.
    let mut heard = vec![0; sent];
    in_time(second.read_exact(&mut heard)).await.unwrap();
    relay.abort();
}

#[tokio::test]
async fn a_connection_over_tls_is_relayed_too() {
    let upstream = Running::echo().await;
    let url = upstream.url();
    let (config, roots) = crate::tls::certificate("localhost");
    let server = Server::new()
        .with_options(options())
        .with_tls(Arc::new(config));
    let server = Running::start(server, move |ws, _| {
        let url = url.clone();
        async move {
            let upstream = connect(&url).await?.into_parts().unwrap();
            let relayed = Relay::new().run(ws.into_parts().unwrap(), upstream).await;
            assert!(relayed.unwrap().from_second.closed);
            Ok(())
        }
    });
    let server = server.await;
    let client = Client::new().with_tls(Arc::new(linerate::tls::client_config(roots)));
    let url = format!("wss://localhost:{}/", server.address.port());
    let mut ws = in_time(client.connect(&url)).await.unwrap();
    ws.send(vec![1; 200_000]).await.unwrap();
    let echoed = in_time(ws.recv()).await.unwrap().unwrap();
    assert!(echoed.as_bytes() == [1; 200_000]);
    assert!(ws.close(CloseCode::NORMAL, "").await.unwrap().clean);
    server.stop().await;
    upstream.stop().await;
}

#[cfg(feature = "http2")]
#[tokio::test]
async fn a_stream_of_http2_is_relayed_like_a_connection() {
    let upstream = Running::echo().await;
    let (server, mut reports) = passing_on(upstream.url(), Relay::new()).await;
    let client = Client::new().with_http2_prior_knowledge();
    let mut ws = in_time(client.connect(&server.url())).await.unwrap();
    for bytes in [0, 125, 70_001, 900_000] {
        let message = vec![bytes as u8; bytes];
        ws.send(message.clone()).await.unwrap();
        let echoed = in_time(ws.recv()).await.unwrap().unwrap();
        assert!(echoed.as_bytes() == message, "{bytes} bytes");
    }
    assert!(ws.close(CloseCode::NORMAL, "").await.unwrap().clean);
    let relayed = in_time(reports.recv()).await.unwrap().unwrap();
    assert_eq!(relayed.from_second.code, Some(1000));
    server.stop().await;
    upstream.stop().await;
}
