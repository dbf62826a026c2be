//! Clients over TLS, whose connections become connections of the reactor in the middle of the
//! stream.

mod client;

use std::sync::Arc;

use linerate::{
    Client,
    tls::{
        danger_client_config_trusting_anybody,
        rustls::{
            AlertDescription, ClientConfig, HandshakeKind,
            version::{TLS12, TLS13},
        },
    },
};
use linerate_testkit::Frame;
use serde_json::{Value, json};

use crate::{
    pressure::{flood, missed, stalling},
    support::{Gateway, Json, in_time, message},
};
use client::Encrypted;

/// Returns a configuration for clients that accept any certificate.
pub(crate) fn trusting() -> Arc<ClientConfig> {
    Arc::new(danger_client_config_trusting_anybody())
}

fn trusting_client() -> Client {
    Client::new().with_tls(trusting())
}

/// Returns a text message of a client.
fn text(text: &str) -> Vec<u8> {
    let frame = Frame::new(1, text.as_bytes());
    frame.with_mask(Some(*b"mask")).to_bytes()
}

const CONNECT: &str = r#"{"id":1,"connect":{}}"#;

const CENTRIFUGE: &str = "/connection/websocket";

/// Connects a client of the native protocol.
async fn native(gateway: &Gateway, client: Client) -> linerate::WebSocket {
    let client = client.with_subprotocol("linerate.v1");
    let mut ws = client.connect(&gateway.url(CENTRIFUGE)).await.unwrap();
    ws.send(CONNECT).await.unwrap();
    message(&mut ws).await;
    ws
}

/// Waits until only `count` clients are left.
async fn left(gateway: &Gateway, count: u64) {
    in_time(async {
        while gateway.info().clients != count {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn clients_of_all_protocols_send_and_receive_long_messages() {
    let gateway = Gateway::encrypted("[client]\nmessage_bytes_max = 4000000").await;
    for client in [trusting_client(), trusting_client().with_http2()] {
        let mut raw = gateway.raw(&client, "channel=demo:x").await;
        let mut centrifuge = Json::open_as(&gateway, &client).await;
        centrifuge.ask(CONNECT).await;
        centrifuge.subscribe("demo:x").await;
        let mut ws = native(&gateway, client).await;
        for bytes in [1, 16_300, 70_000, 1_000_000] {
            let data = "x".repeat(bytes);
            let command = json!({"id": 2, "publish": {"channel": "demo:x", "data": data}});
            ws.send(command.to_string()).await.unwrap();
            let reply = message(&mut ws).await;
            let reply: Value = serde_json::from_str(reply.as_text().unwrap()).unwrap();
            assert_eq!(reply, json!({"id": 2, "publish": {}}));
            let received = message(&mut raw).await;
            assert!(received.as_text() == Some(&*json!(data).to_string()));
            let push = centrifuge.next().await;
            assert!(push["push"]["pub"]["data"] == data);
        }
        drop((raw, centrifuge, ws));
        left(&gateway, 0).await;
    }
}

/// The wait for one message is limited for all clients on the reactor, and only for them.
#[tokio::test]
async fn clients_of_all_protocols_are_on_the_reactor() {
    let gateway = Gateway::encrypted("[client]\nmessage_timeout_s = 1").await;
    let claim = Frame::new(1, b"").with_claimed_bytes(60_000);
    let mut claim = claim.with_mask(Some(*b"mask")).to_bytes();
    claim.push(b'x');
    for (path, subprotocol, first) in [
        ("/raw?channel=demo:x", None, None),
        (CENTRIFUGE, None, Some(CONNECT)),
        (CENTRIFUGE, Some("linerate.v1"), Some(CONNECT)),
    ] {
        let mut slow = Encrypted::connect(&gateway, trusting()).await;
        let mut wire = slow.encrypt(&gateway.request(path, subprotocol));
        if let Some(first) = first {
            wire.extend(slow.encrypt(&text(first)));
        }
        wire.extend(slow.encrypt(&claim));
        slow.write(&wire).await;
        slow.accepted().await;
        if first.is_some() {
            slow.frame().await;
        }
        let (mut opcode, mut payload) = slow.frame().await;
        if opcode == 0x89 {
            (opcode, payload) = slow.frame().await;
        }
        let reason = payload.escape_ascii();
        assert_eq!(
            (opcode, &payload[..2]),
            (0x88, &3502_u16.to_be_bytes()[..]),
            "{path}: {reason}"
        );
    }
}

#[tokio::test]
async fn a_connection_continues_wherever_its_input_is_cut() {
    let gateway = Gateway::encrypted("").await;
    let command = |id| text(&format!(r#"{{"id":{id},"ping":{{}}}}"#));
    let mut cut = 0;
    loop {
        let mut client = Encrypted::connect(&gateway, trusting()).await;
        // The first message is in the record of the request, and the last one is in two records.
        let mut request = gateway.request(CENTRIFUGE, None);
        request.extend(text(CONNECT));
        let first = client.encrypt(&request);
        let last = command(3);
        let mut wire = client.encrypt(&command(2));
        wire.extend(client.encrypt(&last[..5]));
        wire.extend(client.encrypt(&last[5..]));
        if cut > wire.len() {
            break;
        }
        // rustls has the first bytes of a record when it reads the request.
        client.write(&[&first, &wire[..cut]].concat()).await;
        client.accepted().await;
        let reply = client.json().await;
        assert!(reply["connect"].is_object(), "{reply}");
        client.write(&wire[cut..]).await;
        for id in [2, 3] {
            assert_eq!(client.json().await["id"], id, "cut at {cut}");
        }
        cut += 3;
    }
}

#[tokio::test]
async fn sessions_are_resumed_and_key_updates_followed() {
    let gateway = Gateway::encrypted("").await;
    for version in [&TLS12, &TLS13] {
        let config = Arc::new(gateway.client_config(version));
        for expected in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let mut client = Encrypted::open(&gateway, config.clone(), CENTRIFUGE).await;
            assert_eq!(client.handshake_kind(), expected, "{version:?}");
            client.send(&text(CONNECT)).await;
            assert!(client.json().await["connect"].is_object());
            if *version == TLS13 {
                for id in 2..20 {
                    client.update_keys();
                    let ping = format!(r#"{{"id":{id},"ping":{{}}}}"#);
                    client.send(&text(&ping)).await;
                    assert_eq!(client.json().await["id"], id);
                }
            }
        }
    }
}

#[tokio::test]
async fn an_end_without_a_close_frame_ends_the_session() {
    let gateway = Gateway::encrypted("").await;
    let mut client = Encrypted::open(&gateway, trusting(), "/raw?channel=demo:x").await;
    left(&gateway, 1).await;
    let close = client.close_notify();
    client.write(&close).await;
    // The end is announced in return: rustls would report an error otherwise.
    assert_eq!(client.rest().await.unwrap(), b"");
    left(&gateway, 0).await;

    // The end may come right after the request, which is then not answered.
    let mut hasty = Encrypted::connect(&gateway, trusting()).await;
    let mut wire = hasty.encrypt(&gateway.request("/raw?channel=demo:x", None));
    wire.extend(hasty.close_notify());
    hasty.write(&wire).await;
    _ = hasty.rest().await;
    left(&gateway, 0).await;
    assert_eq!(gateway.info().subscriptions, 0);
}

#[tokio::test]
async fn garbage_is_answered_with_an_alert_and_disturbs_no_other_client() {
    let gateway = Gateway::encrypted("").await;
    let mut other = Json::open_as(&gateway, &trusting_client()).await;
    other.ask(CONNECT).await;
    let forged = [&b"\x17\x03\x03\x00\x20"[..], &[7; 32]].concat();
    for (garbage, expected) in [
        (
            &b"GET / HTTP/1.1\r\n"[..],
            AlertDescription::ProtocolVersion,
        ),
        (b"\x17\x03\x03\xff\xff", AlertDescription::RecordOverflow),
        (&forged, AlertDescription::BadRecordMac),
        // Half of it arrives with the request.
        (
            b"\x15\x03\x03\x00\x02\x02\x00",
            AlertDescription::UnexpectedMessage,
        ),
    ] {
        for at in [0, garbage.len() / 2] {
            let mut client = Encrypted::connect(&gateway, trusting()).await;
            let mut wire = client.encrypt(&gateway.request("/raw?channel=demo:x", None));
            wire.extend_from_slice(&garbage[..at]);
            client.write(&wire).await;
            if at == 0 {
                client.accepted().await;
            }
            client.write(&garbage[at..]).await;
            assert_eq!(client.alert().await, expected, "cut at {at}");
        }
    }
    assert_eq!(other.ask(r#"{"id":9,"ping":{}}"#).await["id"], 9);
    left(&gateway, 1).await;
}

#[tokio::test]
async fn r02_a_client_that_never_reads_holds_little_and_ends() {
    let toml = "[client]\nping_interval_s = 1\n[channel]\nring_messages_max = 10";
    let gateway = Gateway::encrypted(toml).await;
    let mut slow = Encrypted::open(&gateway, trusting(), "/raw?channel=demo:x").await;
    let mut live = gateway.raw(&trusting_client(), "channel=demo:x").await;
    let payload = "x".repeat(100_000);
    in_time(async {
        while gateway.info().clients > 1 {
            gateway.publish("demo:x", &payload).await;
            message(&mut live).await;
        }
    })
    .await;
    // The connection was reset, or ends in the middle of a record.
    assert!(slow.rest().await.is_err());
}

#[tokio::test]
async fn r02_a_client_that_stalls_gets_the_newest() {
    let gateway = Gateway::encrypted("[channel]\nring_messages_max = 100").await;
    let slow_client = stalling().with_tls(trusting());
    let mut slow = gateway.raw(&slow_client, "channel=a&gaps=true").await;
    let mut live = gateway.raw(&trusting_client(), "channel=a").await;
    flood(&gateway, &mut live).await;
    assert!(missed(&mut slow).await > 300);
}

/// Clients send anything but a WebSocket after the handshake, and vanish at any time.
#[tokio::test]
async fn floods_at_the_moment_of_the_upgrade_leave_nothing_behind() {
    let gateway = Gateway::encrypted("").await;
    let mut other = Json::open_as(&gateway, &trusting_client()).await;
    other.ask(CONNECT).await;
    for turn in 0..60 {
        let mut client = Encrypted::connect(&gateway, trusting()).await;
        let mut wire = client.encrypt(&gateway.request("/raw?channel=demo:x", None));
        match turn % 6 {
            // Key updates without data, before and after the upgrade.
            0 => {
                for _ in 0..40 {
                    client.update_keys();
                    wire.extend(client.encrypt(b""));
                }
            }
            // Two requests.
            1 => wire.extend(wire.clone()),
            // An unmasked frame, in records of a byte.
            2 => {
                for byte in b"\x81\x04Spam" {
                    wire.extend(client.encrypt(&[*byte]));
                }
            }
            // Only a part of the request.
            3 => wire.truncate(wire.len() / 2),
            // Half a record.
            4 => {
                let record = client.encrypt(&[b'x'; 16_000]);
                wire.extend_from_slice(&record[..8_000]);
            }
            // The start of another handshake.
            _ => wire.extend_from_slice(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        }
        client.write(&wire).await;
        if turn % 4 != 0 {
            continue;
        }
        if turn % 6 != 3 && turn % 6 != 4 {
            // Any end will do.
            _ = client.rest().await;
        }
    }
    left(&gateway, 1).await;
    assert_eq!(gateway.info().subscriptions, 0);
    assert_eq!(other.ask(r#"{"id":9,"ping":{}}"#).await["id"], 9);
}

#[tokio::test]
async fn an_event_stream_is_encrypted_and_its_end_is_announced() {
    let gateway = Gateway::encrypted("").await;
    for version in [&TLS12, &TLS13] {
        let config = Arc::new(gateway.client_config(version));
        let mut client = Encrypted::connect(&gateway, config).await;
        let host = format!("Host: {}\r\n\r\n", gateway.address);
        // What follows the request is ignored.
        let requests = format!("GET /sse?channel=a HTTP/1.1\r\n{host}GET / HTTP/1.1\r\n{host}");
        client.send(requests.as_bytes()).await;
        client.until(b"3\r\n:\n\n\r\n").await;
        gateway.publish("a", "one").await;
        client.until(b"data: one\n\n\r\n").await;
        let long = "x".repeat(100_000);
        gateway.publish("a", &long).await;
        client.until(b"x\n\n\r\n").await;
        // An event is text, so that this ends the stream.
        gateway.publish_bytes("a", b"\xFF").await;
        let all = String::from_utf8(client.rest().await.unwrap()).unwrap();
        assert!(all.starts_with("HTTP/1.1 200 OK\r\n"), "{all}");
        assert!(all.contains(&long));
        assert!(all.contains("\"code\":3506"));
        assert!(all.ends_with("\n\n\r\n0\r\n\r\n"));
        left(&gateway, 0).await;
    }
}
