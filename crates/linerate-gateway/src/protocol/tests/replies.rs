//! Encoding of replies and pushes to one client.

use std::time::Duration;

use bytes::Bytes;
use linerate_hub::{Publication, Unencodable};

use super::{bytes, channel, commands, full, info, position, publication};
use crate::protocol::{
    Dialect,
    centrifuge::{stream, websocket},
    codes::{ClientError, Disconnect, Unsubscribe},
    native,
    reply::{
        Answer, Connected, HistoryPage, Push, Recovery, Refreshed, Reply, ServerMessage, Subscribed,
    },
};

const MINUTE: Option<Duration> = Some(Duration::from_secs(60));

fn answer(id: u32, answer: Answer) -> ServerMessage {
    let result = Ok(answer);
    ServerMessage::Reply(Reply { id, result })
}

fn encoded(dialect: &'static Dialect, messages: &[ServerMessage]) -> Vec<u8> {
    let mut out = Vec::new();
    commands(dialect).encode(messages, &mut out).unwrap();
    out
}

/// Encodes `message` in both formats and compares the results.
fn both(message: ServerMessage, json: &str, protobuf: &str) {
    let messages = [message];
    let out = encoded(&stream::JSON, &messages);
    assert_eq!(String::from_utf8(out).unwrap(), format!("{json}\n"));
    let out = encoded(&stream::PROTOBUF, &messages);
    assert_eq!(out, bytes(protobuf), "{json}");
}

fn subscribed() -> Subscribed {
    Subscribed {
        position: Some(position("e", 300)),
        is_recoverable: true,
        is_positioned: true,
        ..Subscribed::default()
    }
}

#[test]
fn ping_is_empty() {
    both(ServerMessage::Ping, "{}", "00");
}

#[test]
fn an_error_has_its_code_and_says_whether_to_try_again() {
    let reply = Reply {
        id: 3,
        result: Err(ClientError::TOO_MANY_REQUESTS),
    };
    both(
        ServerMessage::Reply(reply),
        r#"{"id":3,"error":{"code":111,"message":"too many requests","temporary":true}}"#,
        "1b08031217086f1211746f6f206d616e792072657175657374731801",
    );
    let reply = Reply {
        id: 3,
        result: Err(ClientError::LIMIT_EXCEEDED.with_message("129 \"channels\"".into())),
    };
    let out = encoded(&stream::JSON, &[ServerMessage::Reply(reply)]);
    let expected = r#"{"id":3,"error":{"code":106,"message":"129 \"channels\""}}"#;
    assert_eq!(out, format!("{expected}\n").as_bytes());
}

#[test]
fn connect_tells_all_about_the_connection() {
    let recovery = Recovery {
        is_recovered: true,
        publications: vec![publication(b"1", 299)],
    };
    let subscribed = Subscribed {
        recovery: Some(recovery),
        ..subscribed()
    };
    let connected = Connected {
        client: "x".into(),
        version: "v".into(),
        ttl: Some(Duration::from_millis(59_001)),
        data: Some(Bytes::from_static(b"{}")),
        subscriptions: vec![(channel("c"), subscribed)],
        ping_interval: Some(Duration::from_secs(25)),
        wants_pong: true,
        session: "s".into(),
        node: "n".into(),
    };
    both(
        answer(1, Answer::Connect(connected)),
        r#"{"id":1,"connect":{"client":"x","version":"v","expires":true,"ttl":60,"data":{},"subs":{"c":{"recoverable":true,"positioned":true,"epoch":"e","offset":300,"was_recovering":true,"recovered":true,"publications":[{"data":1,"offset":299}]}},"ping":25,"pong":true,"session":"s","node":"n"}}"#,
        "3908012a350a01781201761801203c2a027b7d321b0a01631216180132016\
         53a0622013130ab02400148ac0250016001381940014a017352016e",
    );
}

#[test]
fn subscribe_says_how() {
    let subscribed = Subscribed {
        ttl: MINUTE,
        channel_id: Some(7),
        ..Subscribed::default()
    };
    both(
        answer(2, Answer::Subscribe(subscribed)),
        r#"{"id":2,"subscribe":{"expires":true,"ttl":60,"id":7}}"#,
        "0a080232060801103c7007",
    );
}

#[test]
fn presence_is_a_map_of_clients() {
    both(
        answer(5, Answer::Presence(vec![info()])),
        r#"{"id":5,"presence":{"presence":{"x":{"user":"u","client":"x","conn_info":{},"chan_info":1}}}}"#,
        "1808054a140a120a0178120d0a01751201781a027b7d220131",
    );
    let stats = Answer::PresenceStats {
        clients: 2,
        users: 1,
    };
    both(
        answer(6, stats),
        r#"{"id":6,"presence_stats":{"num_clients":2,"num_users":1}}"#,
        "080806520408021001",
    );
    let stats = Answer::PresenceStats {
        clients: 0,
        users: 0,
    };
    both(
        answer(6, stats),
        r#"{"id":6,"presence_stats":{"num_clients":0,"num_users":0}}"#,
        "0408065200",
    );
}

#[test]
fn history_holds_whole_publications() {
    let page = HistoryPage {
        publications: vec![full(b"[1]"), publication(b"2", 301)],
        newest: position("e", 301),
    };
    both(
        answer(7, Answer::History(page)),
        r#"{"id":7,"history":{"publications":[{"data":[1],"offset":300,"info":{"user":"u","client":"x","conn_info":{},"chan_info":1},"tags":{"k":"v"},"channel":"ticks:A"},{"data":2,"offset":301}],"epoch":"e","offset":301}}"#,
        "3c08075a380a2822035b315d2a0d0a01751201781a027b7d22013130ac023a06\
         0a016b12017652077469636b733a410a0622013230ad0212016518ad02",
    );
}

#[test]
fn short_answers_are_the_same_in_both_formats() {
    let refreshed = Refreshed {
        client: "x".into(),
        version: "v".into(),
        ttl: MINUTE,
    };
    let cases = [
        (4, Answer::Publish, r#"{"id":4,"publish":{}}"#, "0408044200"),
        (
            4,
            Answer::Unsubscribe,
            r#"{"id":4,"unsubscribe":{}}"#,
            "0408043a00",
        ),
        (4, Answer::Ping, r#"{"id":4,"ping":{}}"#, "0408046200"),
        (
            10,
            Answer::Refresh(refreshed),
            r#"{"id":10,"refresh":{"client":"x","version":"v","expires":true,"ttl":60}}"#,
            "0e080a720a0a01781201761801203c",
        ),
        (
            11,
            Answer::SubRefresh { ttl: MINUTE },
            r#"{"id":11,"sub_refresh":{"expires":true,"ttl":60}}"#,
            "08080b7a040801103c",
        ),
    ];
    for (id, one, json, protobuf) in cases {
        both(answer(id, one), json, protobuf);
    }
}

#[test]
fn pushes_are_the_same_in_both_formats() {
    let unsubscribe = Unsubscribe::INSUFFICIENT_STATE;
    let subscribed = Subscribed {
        data: Some(Bytes::from_static(b"1")),
        ..subscribed()
    };
    let cases = [
        (
            Push::Join {
                channel: channel("c"),
                info: info(),
            },
            r#"{"push":{"channel":"c","join":{"info":{"user":"u","client":"x","conn_info":{},"chan_info":1}}}}"#,
            "1622141201632a0f0a0d0a01751201781a027b7d220131",
        ),
        (
            Push::Leave {
                channel: channel("c"),
                info: info(),
            },
            r#"{"push":{"channel":"c","leave":{"info":{"user":"u","client":"x","conn_info":{},"chan_info":1}}}}"#,
            "162214120163320f0a0d0a01751201781a027b7d220131",
        ),
        (
            Push::Unsubscribe {
                channel: channel("c"),
                unsubscribe,
            },
            r#"{"push":{"channel":"c","unsubscribe":{"code":2500,"reason":"insufficient state"}}}"#,
            "1e221c1201633a1710c4131a12696e73756666696369656e74207374617465",
        ),
        (
            Push::Disconnect(Disconnect::SHUTDOWN),
            r#"{"push":{"disconnect":{"code":3001,"reason":"shutdown","reconnect":true}}}"#,
            "1322115a0f08b917120873687574646f776e1801",
        ),
        (
            Push::Subscribe {
                channel: channel("c"),
                subscribed,
            },
            r#"{"push":{"channel":"c","subscribe":{"recoverable":true,"positioned":true,"epoch":"e","offset":300,"data":1}}}"#,
            "1422121201634a0d080122016528ac0230013a0131",
        ),
    ];
    for (push, json, protobuf) in cases {
        both(ServerMessage::Push(push), json, protobuf);
    }
}

#[test]
fn each_transport_packs_messages_its_way() {
    let messages = [ServerMessage::Ping, answer(4, Answer::Publish)];
    let cases: [(&'static Dialect, &[u8]); 5] = [
        (&websocket::JSON, b"\x81\x18{}\n{\"id\":4,\"publish\":{}}"),
        (&native::BLOCKS, b"\x81\x18{}\n{\"id\":4,\"publish\":{}}"),
        (&websocket::PROTOBUF, b"\x82\x06\x00\x04\x08\x04\x42\x00"),
        (&stream::JSON, b"{}\n{\"id\":4,\"publish\":{}}\n"),
        (
            &stream::EVENTS,
            b"data: {}\n\ndata: {\"id\":4,\"publish\":{}}\n\n",
        ),
    ];
    for (dialect, expected) in cases {
        assert_eq!(encoded(dialect, &messages), expected, "{:?}", dialect.name);
        assert_eq!(encoded(dialect, &[]), b"", "{:?}", dialect.name);
    }
}

#[test]
fn what_is_no_json_is_refused_or_base64() {
    let page = HistoryPage {
        publications: vec![publication(b"1", 1), publication(b"\xff\0\x0a", 2)],
        newest: position("e", 2),
    };
    let messages = [ServerMessage::Ping, answer(7, Answer::History(page))];
    for dialect in [&stream::EVENTS, &stream::JSON, &websocket::JSON] {
        let mut out = b"before".to_vec();
        assert_eq!(
            commands(dialect).encode(&messages, &mut out),
            Err(Unencodable)
        );
        assert_eq!(out, b"before");
    }
    let out = encoded(&native::BLOCKS, &messages[1..]);
    assert_eq!(
        String::from_utf8_lossy(&out[2..]),
        r#"{"id":7,"history":{"publications":[{"data":1,"offset":1},{"b64data":"/wAK","offset":2}],"epoch":"e","offset":2}}"#,
    );
}

#[test]
fn json_that_we_pass_on_stays_on_its_line() {
    let data = Bytes::from_static(b"{\n\"a\":\r\n1}");
    let push = Push::Subscribe {
        channel: channel("c"),
        subscribed: Subscribed {
            data: Some(data),
            ..Subscribed::default()
        },
    };
    let out = encoded(&stream::JSON, &[ServerMessage::Push(push)]);
    assert!(
        out.ends_with(b"\"data\":{ \"a\":  1}}}}\n"),
        "{}",
        out.escape_ascii()
    );
    let page = HistoryPage {
        publications: vec![Publication::new(Bytes::from_static(b"[\n]"))],
        newest: position("e", 2),
    };
    let out = encoded(&stream::EVENTS, &[answer(7, Answer::History(page))]);
    let lines = out.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines, 2);
}
