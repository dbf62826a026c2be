//! Decoding of commands.

use std::time::Duration;

use bytes::Bytes;

use super::{bytes, commands, emulation, position};
use crate::protocol::{
    Dialect,
    centrifuge::websocket,
    command::{Command, Connect, History, Request, Subscribe, TagsFilter},
    decode::{DecodeError, Emulation, Limits},
};

fn one(dialect: &'static Dialect, frame: &[u8]) -> Command {
    let mut commands = commands(dialect).decode(frame, &Limits::default()).unwrap();
    assert_eq!(commands.len(), 1);
    commands.remove(0)
}

/// Decodes the same command from both formats and expects equal results.
fn both(json: &str, protobuf: &str) -> Command {
    let command = one(&websocket::JSON, json.as_bytes());
    assert_eq!(command, one(&websocket::PROTOBUF, &bytes(protobuf)));
    command
}

fn fails(dialect: &'static Dialect, frame: &[u8]) -> DecodeError {
    commands(dialect)
        .decode(frame, &Limits::default())
        .unwrap_err()
}

#[test]
fn connect_brings_token_and_positions() {
    let command = both(
        r#"{"id":1,"connect":{"token":"t","data":{"a":1},"name":"js","version":"5",
            "subs":{"c":{"recover":true,"epoch":"e","offset":300}},"headers":{"a":"b"},"flag":1}}"#
            .replace('\n', " ")
            .as_str(),
        "300801222c0a017412077b2261223a317d1a0d0a01631208180132016538ac02\
         22026a732a013532060a01611201623801",
    );
    let subscription = Subscribe {
        channel: "c".into(),
        recover: Some(position("e", 300)),
        ..Subscribe::default()
    };
    let connect = Connect {
        token: "t".into(),
        data: Some(Bytes::from_static(b"{\"a\":1}")),
        subscriptions: vec![subscription],
        name: "js".into(),
        version: "5".into(),
        namespace: None,
    };
    assert_eq!(command.id, 1);
    assert_eq!(command.request, Request::Connect(connect));
}

#[test]
fn subscribe_brings_all_its_options() {
    let command = both(
        r#"{"id":2,"subscribe":{"channel":"ticks","token":"t","recover":true,"epoch":"xyz","offset":41,"data":1,"positioned":true,"recoverable":true,"join_leave":true,"delta":"fossil","flag":1,"tf":{"op":"and","nodes":[{"key":"k","cmp":"in","vals":["a","b"]},{"key":"l","cmp":"eq","val":"v"}]}}}"#,
        "4c08022a480a057469636b731201741801320378797a38294201314801500158\
         016206666f7373696c6a200a03616e64320d12016b1a02696e2a01612a016232\
         0a12016c1a0265712201767001",
    );
    let r#in = TagsFilter {
        key: "k".into(),
        comparison: "in".into(),
        values: vec!["a".into(), "b".into()],
        ..TagsFilter::default()
    };
    let eq = TagsFilter {
        key: "l".into(),
        comparison: "eq".into(),
        value: "v".into(),
        ..TagsFilter::default()
    };
    let subscribe = Subscribe {
        channel: "ticks".into(),
        token: "t".into(),
        recover: Some(position("xyz", 41)),
        data: Some(Bytes::from_static(b"1")),
        is_positioned: true,
        is_recoverable: true,
        with_join_leave: true,
        with_deltas: true,
        with_channel_id: true,
        tags_filter: Some(TagsFilter {
            operation: "and".into(),
            nodes: vec![r#in, eq],
            ..TagsFilter::default()
        }),
        ..Subscribe::default()
    };
    assert_eq!(command.request, Request::Subscribe(subscribe));
}

#[test]
fn subscribe_takes_our_options_in_json() {
    let json = br#"{"id":2,"subscribe":{"channel":"c","filter":"a > 1","batch_interval_ms":200,"conflate":"/k"}}"#;
    let subscribe = Subscribe {
        channel: "c".into(),
        filter: Some("a > 1".into()),
        batch_interval: Some(Duration::from_millis(200)),
        conflate: Some("/k".into()),
        ..Subscribe::default()
    };
    let Command { request, .. } = one(&websocket::JSON, json);
    assert_eq!(request, Request::Subscribe(subscribe));
}

#[test]
fn short_commands_are_the_same_in_both_formats() {
    let channel = || String::from("c");
    let token = || String::from("t");
    let data = Bytes::from_static(b"1");
    let unsubscribe = Request::Unsubscribe { channel: channel() };
    let presence_stats = Request::PresenceStats { channel: channel() };
    let rpc = Request::Rpc {
        method: "m".into(),
        data: data.clone(),
    };
    let sub_refresh = Request::SubRefresh {
        channel: channel(),
        token: token(),
    };
    let cases = [
        (
            r#"{"id":3,"unsubscribe":{"channel":"c"}}"#,
            "07080332030a0163",
            3,
            unsubscribe,
        ),
        (
            r#"{"id":5,"presence":{"channel":"c"}}"#,
            "07080542030a0163",
            5,
            Request::Presence { channel: channel() },
        ),
        (
            r#"{"id":6,"presence_stats":{"channel":"c"}}"#,
            "0708064a030a0163",
            6,
            presence_stats,
        ),
        (r#"{"id":8,"ping":{}}"#, "0408085a00", 8, Request::Ping),
        (
            r#"{"send":{"data":1}}"#,
            "0562030a0131",
            0,
            Request::Send { data },
        ),
        (
            r#"{"id":9,"rpc":{"method":"m","data":1}}"#,
            "0a08096a060a013112016d",
            9,
            rpc,
        ),
        (
            r#"{"id":10,"refresh":{"token":"t"}}"#,
            "07080a72030a0174",
            10,
            Request::Refresh { token: token() },
        ),
        (
            r#"{"id":11,"sub_refresh":{"channel":"c","token":"t"}}"#,
            "0a080b7a060a0163120174",
            11,
            sub_refresh,
        ),
        ("{}", "00", 0, Request::Pong),
    ];
    for (json, protobuf, id, request) in cases {
        assert_eq!(both(json, protobuf), Command { id, request });
    }
}

#[test]
fn history_without_a_bound_asks_for_all() {
    let command = both(
        r#"{"id":7,"history":{"channel":"c","limit":-1,"since":{"offset":3,"epoch":"e"},"reverse":true}}"#,
        "1b080752170a016338ffffffffffffffffff01420508031201654801",
    );
    let history = History {
        channel: "c".into(),
        limit: None,
        since: Some(position("e", 3)),
        is_reverse: true,
    };
    assert_eq!(command.request, Request::History(history));
    let json = br#"{"id":7,"history":{"channel":"c","since":null}}"#;
    let Request::History(history) = one(&websocket::JSON, json).request else {
        panic!("expected a history request");
    };
    assert_eq!((history.limit, history.since), (Some(0), None));
}

#[test]
fn published_payloads_are_not_touched() {
    let published = |dialect, frame: &[u8]| match one(dialect, frame).request {
        Request::Publish { channel, data } => {
            assert_eq!(channel, "c");
            data
        }
        other => panic!("{other:?}"),
    };
    for payload in [
        r#"{ "b" : 1.0 ,	"a":1e2, "a":"\u00fc" }"#,
        "null",
        "\"\"",
        "12345678901234567890.123456789",
    ] {
        let frame = format!(r#"{{"id":4,"publish":{{"channel":"c","data":{payload}}}}}"#);
        assert_eq!(
            published(&websocket::JSON, frame.as_bytes()),
            payload.as_bytes()
        );
    }
    let frame = br#"{"id":4,"publish":{"channel":"c","b64data":"/wAK"}}"#;
    assert_eq!(published(&websocket::JSON, frame), &b"\xff\0\x0a"[..]);
    let frame = bytes("0c08043a080a01631203ff000a");
    assert_eq!(published(&websocket::PROTOBUF, &frame), &b"\xff\0\x0a"[..]);
}

#[test]
fn what_is_new_to_us_is_unknown_and_nothing_else_is_lost() {
    let frame = b"{\"id\":1,\"dance\":{\"a\":[1]},\"subscribe\":null}\n\n  {\"id\":2,\"ping\":{\"x\":1},\"y\":{}}\r\n";
    let found = commands(&websocket::JSON)
        .decode(frame, &Limits::default())
        .unwrap();
    let requests: Vec<_> = found
        .iter()
        .map(|command| (command.id, &command.request))
        .collect();
    assert_eq!(requests, [(1, &Request::Unknown), (2, &Request::Ping)]);
    // A command with only an ID and field 60, then a ping with an unknown field 9.
    let frame = bytes("05 0801 e20300  06 0802 5a02 4801");
    let found = commands(&websocket::PROTOBUF)
        .decode(&frame, &Limits::default())
        .unwrap();
    let requests: Vec<_> = found
        .iter()
        .map(|command| (command.id, &command.request))
        .collect();
    assert_eq!(requests, [(1, &Request::Unknown), (2, &Request::Ping)]);
}

#[test]
fn subscriptions_other_than_to_streams_are_unknown() {
    let command = both(
        r#"{"id":2,"subscribe":{"channel":"ticks","type":4}}"#,
        "0d08022a090a057469636b737804",
    );
    assert_eq!(command.request, Request::Unknown);
    for json in [
        r#"{"id":2,"sub_refresh":{"channel":"c","type":1}}"#,
        r#"{"id":2,"publish":{"channel":"c","type":1,"key":"k"}}"#,
    ] {
        assert_eq!(
            one(&websocket::JSON, json.as_bytes()).request,
            Request::Unknown
        );
    }
}

#[test]
fn the_first_of_several_requests_counts() {
    let json = br#"{"id":2,"presence":{"channel":"c"},"subscribe":{"channel":"c"}}"#;
    assert!(matches!(
        one(&websocket::JSON, json).request,
        Request::Subscribe(_)
    ));
}

#[test]
fn a_malformed_command_spoils_its_frame() {
    let nth = 2;
    for second in [
        "{",
        "[]",
        "1",
        "{\"id\":-1}",
        "{\"id\":4294967296}",
        "{\"id\":\"1\"}",
        "\u{0}",
    ] {
        let frame = format!("{{\"id\":1,\"ping\":{{}}}}\n{second}");
        let error = fails(&websocket::JSON, frame.as_bytes());
        assert!(
            matches!(error, DecodeError::Json { nth: 2, .. }),
            "{second}: {error}"
        );
    }
    let invalid = b"{\"id\":1,\"publish\":{\"channel\":\"c\",\"data\":\"\xff\"}}";
    assert!(matches!(
        fails(&websocket::JSON, invalid),
        DecodeError::Json { nth: 1, .. }
    ));
    let base64 = br#"{"id":1,"publish":{"channel":"c","b64data":"?"}}"#;
    assert!(matches!(
        fails(&websocket::JSON, base64),
        DecodeError::Json { nth: 1, .. }
    ));
    for second in [
        "01",
        "02 08",
        "05 0801 2a010a",
        "ffffffffffffffffffffff",
        "03 0a01ff",
    ] {
        let frame = bytes(&format!("0408085a00 {second}"));
        assert_eq!(
            fails(&websocket::PROTOBUF, &frame),
            DecodeError::Protobuf { nth },
            "{second}"
        );
    }
}

#[test]
fn commands_that_are_answered_need_an_id() {
    let nth = 1;
    assert_eq!(
        fails(&websocket::JSON, b"{\"ping\":{}}"),
        DecodeError::MissingId { nth }
    );
    assert_eq!(
        fails(&websocket::PROTOBUF, &bytes("025a00")),
        DecodeError::MissingId { nth }
    );
}

#[test]
fn an_empty_frame_is_no_command() {
    assert_eq!(fails(&websocket::JSON, b""), DecodeError::Empty);
    assert_eq!(
        fails(&websocket::JSON, &[b'\n'; 100_000]),
        DecodeError::Empty
    );
    assert_eq!(fails(&websocket::PROTOBUF, b""), DecodeError::Empty);
}

#[test]
fn commands_in_a_frame_are_limited() {
    let limits = Limits {
        commands_max: 3,
        ..Limits::default()
    };
    for (dialect, pong) in [
        (&websocket::JSON, &b"{}\n"[..]),
        (&websocket::PROTOBUF, b"\0"),
    ] {
        assert_eq!(
            commands(dialect)
                .decode(&pong.repeat(3), &limits)
                .unwrap()
                .len(),
            3
        );
        let error = commands(dialect)
            .decode(&pong.repeat(4), &limits)
            .unwrap_err();
        assert_eq!(error, DecodeError::TooManyCommands { commands_max: 3 });
        assert_eq!(error.to_string(), "frame has more than 3 commands");
    }
}

#[test]
fn nesting_is_limited() {
    // The command itself takes two levels.
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"id":1,"publish":{{"channel":"c","data":{open}"\"[[["{close}}}}}"#)
    };
    let limits = Limits {
        depth_max: 10,
        ..Limits::default()
    };
    assert!(
        commands(&websocket::JSON)
            .decode(nested(8).as_bytes(), &limits)
            .is_ok()
    );
    let error = commands(&websocket::JSON)
        .decode(nested(9).as_bytes(), &limits)
        .unwrap_err();
    assert_eq!(
        error,
        DecodeError::TooDeep {
            nth: 1,
            depth_max: 10
        }
    );
    assert_eq!(
        error.to_string(),
        "command 1 is nested deeper than 10 levels"
    );
    assert!(
        fails(&websocket::JSON, nested(100_000).as_bytes())
            .to_string()
            .contains("64")
    );

    // A deeply nested filter. The Protobuf decoder has its own limit.
    let mut filter = Vec::new();
    for _ in 0..1_000 {
        let mut node = vec![0x32];
        prost::encoding::encode_varint(filter.len() as u64, &mut node);
        node.extend_from_slice(&filter);
        filter = node;
    }
    let mut frame = Vec::new();
    for tag in [0x6A, 0x2A] {
        let inner = if frame.is_empty() {
            filter.clone()
        } else {
            frame
        };
        frame = vec![tag];
        prost::encoding::encode_varint(inner.len() as u64, &mut frame);
        frame.extend_from_slice(&inner);
    }
    let mut delimited = Vec::new();
    prost::encoding::encode_varint(frame.len() as u64, &mut delimited);
    delimited.extend_from_slice(&frame);
    assert_eq!(
        fails(&websocket::PROTOBUF, &delimited),
        DecodeError::Protobuf { nth: 1 }
    );
}

#[test]
fn a_frame_cut_short_is_refused_wherever_it_is_cut() {
    let json =
        br#"{"id":1,"connect":{"token":"t","data":{"a":[1,"x"]},"subs":{"c":{"recover":true}}}}"#;
    for end in 1..json.len() {
        let error = fails(&websocket::JSON, &json[..end]);
        assert!(
            matches!(error, DecodeError::Json { nth: 1, .. }),
            "{end}: {error}"
        );
    }
    let protobuf = bytes("1b080752170a016338ffffffffffffffffff01420508031201654801");
    for end in 1..protobuf.len() {
        assert_eq!(
            fails(&websocket::PROTOBUF, &protobuf[..end]),
            DecodeError::Protobuf { nth: 1 }
        );
    }
}

#[test]
fn emulation_brings_a_frame_of_commands() {
    let json = br#"{"session":"s","node":"n","data":"{\"id\":1,\"ping\":{}}\n{}","x":1}"#;
    let found = emulation("application/json", json).unwrap();
    assert_eq!((found.node.as_str(), found.session.as_str()), ("n", "s"));
    assert_eq!(found.frame, b"{\"id\":1,\"ping\":{}}\n{}");
    let protobuf = bytes("0a016e1201731a0100");
    let expected = Emulation {
        node: "n".into(),
        session: "s".into(),
        frame: vec![0],
    };
    assert_eq!(
        emulation("application/octet-stream", &protobuf),
        Ok(expected)
    );
    assert!(emulation("application/json", b"{\"data\":{}}").is_err());
    assert!(emulation("application/octet-stream", b"\x0a").is_err());
}
