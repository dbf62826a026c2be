//! Formats detected by the first lines of a log.

use crate::format::{Format, Parser};

const COMMON: &str = r#"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 654"#;
const HEADERS: &str = r#" "-" "curl/8.5.0""#;
const CADDY: &str = r#"{"level":"info","ts":1611280025.5,"request":{"remote_ip":"192.0.2.7","method":"GET","host":"a","uri":"/"},"status":200}"#;

fn name(head: &str) -> Option<String> {
    Format::detect(head.as_bytes()).map(|format| format.name().to_owned())
}

#[test]
fn named_formats_are_distinguished() {
    let lines = |line: String| format!("{line}\n{line}\r\n{}", &line[..20]);
    let expect = |line: String, expected: &str| {
        assert_eq!(
            name(&lines(line.clone())).as_deref(),
            Some(expected),
            "{line}"
        );
        assert_eq!(name(&line).as_deref(), Some(expected), "{line}");
    };
    expect(COMMON.to_owned(), "common");
    expect(format!("{COMMON}{HEADERS}"), "combined");
    expect(
        format!("{COMMON}{HEADERS} \"198.51.100.1\" 0.003"),
        "combined",
    );
    expect(
        format!("www.example.com:443 {COMMON}{HEADERS}"),
        "vhost_combined",
    );
    expect(format!("www.example.com {COMMON}"), "vhost_common");
    expect(CADDY.to_owned(), "json");
}

#[test]
fn the_majority_of_lines_decides_the_format() {
    let noise = "2021-03-21T00:00:01.881Z host newsyslog[56965]: logfile turned over\n";
    assert_eq!(
        name(&format!("{noise}{noise}{COMMON}\n")).as_deref(),
        Some("common")
    );
    assert_eq!(
        name(&format!("{COMMON}{HEADERS}\n{CADDY}\n{CADDY}\n")).as_deref(),
        Some("json")
    );
    assert_eq!(name(noise), None);
    assert_eq!(name(""), None);
    assert_eq!(name("\n\n\0\0\n"), None);
}

#[test]
fn leading_hosts_lose_their_port() {
    for (host, expected) in [
        ("www.example.com:443", "www.example.com"),
        ("www.example.com", "www.example.com"),
        ("[2001:db8::1]:80", "2001:db8::1"),
        ("-", ""),
    ] {
        let line = format!("{host} {COMMON}");
        let mut parser = Parser::new(Format::parse("vhost_common").unwrap());
        let record = parser.parse(line.as_bytes()).unwrap();
        assert_eq!(record.host, expected.as_bytes());
        assert_eq!(
            (record.address, record.bytes_sent),
            (&b"192.0.2.7"[..], 654)
        );
    }
}
