//! Odd lines that are nevertheless requests.

use crate::format::{Reason, Record, combined};

fn parse(line: &[u8]) -> Record<'_> {
    let mut clock = Default::default();
    combined::parse(&mut clock, line)
        .unwrap_or_else(|reason: Reason| panic!("{reason}: {}", line.escape_ascii()))
}

fn headers<'a>(record: &Record<'a>) -> [&'a [u8]; 2] {
    [record.referrer, record.agent]
}

#[test]
fn combined_line_has_all_fields() {
    let line = br#"192.0.2.7 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)""#;
    let expected = Record {
        address: b"192.0.2.7",
        time: 971_211_336,
        request: b"GET /apache_pb.gif HTTP/1.0",
        method: b"GET",
        path: b"/apache_pb.gif",
        status: 200,
        bytes_sent: 2_326,
        referrer: b"http://www.example.com/start.html",
        agent: b"Mozilla/4.08 [en] (Win98; I ;Nav)",
        host: b"",
        duration: None,
    };
    assert_eq!(parse(line), expected);
}

#[test]
fn common_line_has_no_headers() {
    let record = parse(br#"192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 2326"#);
    assert_eq!(
        (record.bytes_sent, headers(&record)),
        (2_326, [&b""[..]; 2])
    );
}

#[test]
fn clients_may_be_ipv6_addresses_or_names() {
    for address in [
        "::1",
        "2001:db8::7",
        "::ffff:192.0.2.7",
        "fe80::1%eth0",
        "host.example",
    ] {
        let line = format!(r#"{address} - - [10/Oct/2000:13:55:36 -0700] "" 400 0"#);
        assert_eq!(parse(line.as_bytes()).address, address.as_bytes());
    }
}

#[test]
fn bytes_may_be_a_dash_or_up_to_2_pow_64() {
    let line = |bytes| format!(r#"::1 - - [10/Oct/2000:13:55:36 -0700] "" 304 {bytes} "-" "-""#);
    assert_eq!(parse(line("-").as_bytes()).bytes_sent, 0);
    assert_eq!(parse(line("007").as_bytes()).bytes_sent, 7);
    assert_eq!(
        parse(line("18446744073709551615").as_bytes()).bytes_sent,
        u64::MAX
    );
}

#[test]
fn statuses_are_any_three_digits() {
    for status in ["000", "099", "499", "999"] {
        let line = format!(r#"::1 - - [10/Oct/2000:13:55:36 -0700] "" {status} 0"#);
        assert_eq!(
            parse(line.as_bytes()).status,
            status.parse::<u16>().unwrap()
        );
    }
}

#[test]
fn requests_may_be_empty_binary_or_escaped() {
    let line = |request: &[u8]| {
        let stamp = b"::1 - - [10/Oct/2000:13:55:36 -0700] \"";
        [&stamp[..], request, b"\" 400 173 \"-\" \"-\""].concat()
    };
    let requests: [(&[u8], Option<&[u8]>); 9] = [
        (b"", None),
        (b"-", None),
        (br"\x16\x03\x01\x00\xEE\x01", None),
        (b"\x16\x03\x01\x00\xEE\x01", None),
        (b"\xFF\xFE\0\0", None),
        (br"GET /\x22a\x22?b HTTP/1.1", Some(br"/\x22a\x22")),
        (br#"GET /\"a\" HTTP/1.1"#, Some(br#"/\"a\""#)),
        (b"GET /\xE4\xF6 HTTP/1.1", Some(b"/\xE4\xF6")),
        (b"GET /a\0b HTTP/1.1", Some(b"/a\0b")),
    ];
    for (request, expected) in requests {
        let line = line(request);
        assert_eq!(parse(&line).request, request);
        assert_eq!(parse(&line).status, 400);
        assert_eq!(
            parse(&line).path,
            expected.unwrap_or_default(),
            "{}",
            request.escape_ascii()
        );
    }
}

#[test]
fn users_may_contain_spaces_and_brackets_but_cannot_forge_a_timestamp() {
    let users = [
        "John Doe",
        "[",
        "a] b",
        "[01/Jan/1999:00:00:00 +0000]",
        r"[01/Jan/1999:00:00:00 +0000] \x22GET /forged HTTP/1.1\x22 200 1",
        r#"[01/Jan/1999:00:00:00 +0000] \"GET /forged HTTP/1.1\" 200 1"#,
    ];
    for user in users {
        let line = format!(
            r#"192.0.2.7 - {user} [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 401 5 "-" "-""#
        );
        let record = parse(line.as_bytes());
        assert_eq!((record.time, record.status), (971_211_336, 401), "{user}");
    }
}

#[test]
fn headers_that_were_not_sent_are_empty() {
    let line = br#"::1 - - [10/Oct/2000:13:55:36 -0700] "" 200 1 "-" "-""#;
    assert_eq!(headers(&parse(line)), [&b""[..]; 2]);
}

#[test]
fn escaped_quotes_do_not_end_headers() {
    let line = br#"::1 - - [10/Oct/2000:13:55:36 -0700] "" 200 1 "a\"b" "c\\""#;
    assert_eq!(headers(&parse(line)), [&br#"a\"b"#[..], br"c\\"]);
}

#[test]
fn fields_after_the_last_are_ignored() {
    let combined = br#"::1 - - [10/Oct/2000:13:55:36 -0700] "" 200 1 "a" "b" "192.0.2.9" 0.003"#;
    assert_eq!(headers(&parse(combined)), [&b"a"[..], b"b"]);
    let common = br#"::1 - - [10/Oct/2000:13:55:36 -0700] "" 200 1 0.003"#;
    assert_eq!(headers(&parse(common)), [&b""[..]; 2]);
}
