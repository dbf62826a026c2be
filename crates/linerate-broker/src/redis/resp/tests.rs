use super::{LINE_BYTES_MAX, Message, Parsed, Reply, RespError, parse, skip_element};

fn reply(input: &[u8]) -> Reply<'_> {
    match parse(input, 100).unwrap() {
        Parsed::Complete { reply, consumed } => {
            assert_eq!(consumed, input.len());
            reply
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn replies_of_resp2_and_resp3_are_read() {
    let hello = Message {
        subscription: b"ticks",
        channel: b"ticks",
        payload: b"hello",
    };
    let of_pattern = Message {
        subscription: b"t*",
        ..hello
    };
    for (input, expected) in [
        (
            &b"*3\r\n$7\r\nmessage\r\n$5\r\nticks\r\n$5\r\nhello\r\n"[..],
            Reply::Message(hello),
        ),
        (
            b">3\r\n$8\r\nsmessage\r\n$5\r\nticks\r\n$5\r\nhello\r\n",
            Reply::Message(hello),
        ),
        (
            b"*4\r\n$8\r\npmessage\r\n$2\r\nt*\r\n$5\r\nticks\r\n$5\r\nhello\r\n",
            Reply::Message(of_pattern),
        ),
        (
            b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n",
            Reply::Subscribed(b"a"),
        ),
        (
            b"*3\r\n$10\r\nssubscribe\r\n$1\r\na\r\n:1\r\n",
            Reply::Subscribed(b"a"),
        ),
        (
            b">3\r\n+psubscribe\r\n$1\r\na\r\n:1\r\n",
            Reply::Subscribed(b"a"),
        ),
        (
            b"*3\r\n$12\r\nsunsubscribe\r\n$1\r\na\r\n:0\r\n",
            Reply::Unsubscribed(b"a"),
        ),
        (
            b"*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n",
            Reply::Unsubscribed(b""),
        ),
        (
            b">3\r\n$12\r\npunsubscribe\r\n_\r\n:0\r\n",
            Reply::Unsubscribed(b""),
        ),
        (b"*2\r\n$4\r\npong\r\n$0\r\n\r\n", Reply::Pong),
        (b"+PONG\r\n", Reply::Pong),
        (b"+OK\r\n", Reply::Simple(b"OK")),
        (b"-NOPERM no\r\n", Reply::Error(b"NOPERM no")),
    ] {
        assert_eq!(reply(input), expected);
    }
}

#[test]
fn payloads_may_contain_any_bytes() {
    let input = b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$12\r\n\0\r\n$5\r\n\xff*3\r\r\r\n";
    let Reply::Message(message) = reply(input) else {
        panic!("no message");
    };
    assert_eq!(message.payload, b"\0\r\n$5\r\n\xff*3\r\r");
}

#[test]
fn an_incomplete_reply_reports_the_missing_minimum() {
    let whole = b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$5\r\nhello\r\n";
    for cut in 0..whole.len() {
        let Ok(Parsed::Incomplete { bytes_min }) = parse(&whole[..cut], 100) else {
            panic!("{cut}");
        };
        assert!(bytes_min > cut && bytes_min <= whole.len(), "{cut}");
    }
    let payload_begins = b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$5\r\n";
    let parsed = parse(payload_begins, 100).unwrap();
    let bytes_min = whole.len();
    assert_eq!(parsed, Parsed::Incomplete { bytes_min });
}

#[test]
fn an_element_may_have_exactly_the_maximum_length() {
    let message = |bytes: usize| {
        let payload = "x".repeat(bytes);
        format!("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n${bytes}\r\n{payload}\r\n")
    };
    assert!(matches!(
        parse(message(100).as_bytes(), 100),
        Ok(Parsed::Complete { .. })
    ));
    let oversized = Parsed::Oversized {
        subscription: Some(b"a"),
        consumed: message(101).len() - 103,
        bytes: 101,
        elements: 0,
    };
    assert_eq!(parse(message(101).as_bytes(), 100), Ok(oversized));
    let name = b"*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$101\r\n";
    let oversized = Parsed::Oversized {
        subscription: Some(b"*"),
        consumed: name.len(),
        bytes: 101,
        elements: 1,
    };
    assert_eq!(parse(name, 100), Ok(oversized));
}

#[test]
fn invalid_replies_are_an_error() {
    for (input, error) in [
        (&b"%1\r\n"[..], RespError::Type { byte: b'%' }),
        (b"\r\n", RespError::Type { byte: b'\r' }),
        (b"*3\r\n*1\r\n", RespError::Type { byte: b'*' }),
        (b"*x\r\n", RespError::Number),
        (b"*\r\n", RespError::Number),
        (b"*-2\r\n", RespError::Number),
        (b"*99999999999\r\n", RespError::Number),
        (b"*3\rx", RespError::LineEnd),
        (b"*1\r\n$1\r\nabc", RespError::LineEnd),
        (
            b"*5\r\n",
            RespError::Elements {
                elements: 5,
                elements_max: 4,
            },
        ),
        (b"*0\r\n", RespError::Reply),
        (b"*-1\r\n", RespError::Reply),
        (b"*1\r\n$7\r\nmessage\r\n", RespError::Reply),
        (b"*2\r\n$3\r\nfoo\r\n$3\r\nbar\r\n", RespError::Reply),
        (
            b"*3\r\n$7\r\nmessage\r\n:1\r\n$1\r\na\r\n",
            RespError::Reply,
        ),
    ] {
        assert_eq!(parse(input, 100), Err(error), "{input:?}");
    }
}

#[test]
fn a_line_is_bounded() {
    let line = |bytes: usize| [b"-", &vec![b'x'; bytes][..], b"\r\n"].concat();
    assert!(matches!(
        reply(&line(LINE_BYTES_MAX)),
        Reply::Error(text) if text.len() == LINE_BYTES_MAX
    ));
    let bytes_max = LINE_BYTES_MAX;
    assert_eq!(
        parse(&line(LINE_BYTES_MAX + 2), 100),
        Err(RespError::Line { bytes_max })
    );
}

#[test]
fn an_element_is_skipped_with_its_line() {
    assert_eq!(skip_element(b"$5\r\nhe"), Ok(Some(11)));
    assert_eq!(skip_element(b"$-1\r\n"), Ok(Some(5)));
    assert_eq!(skip_element(b":12\r\n"), Ok(Some(5)));
    assert_eq!(skip_element(b"$5\r"), Ok(None));
    assert_eq!(skip_element(b""), Ok(None));
    assert_eq!(skip_element(b"*1\r\n"), Err(RespError::Type { byte: b'*' }));
}
