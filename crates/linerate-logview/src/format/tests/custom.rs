//! Formats copied from configurations.

use proptest::prelude::*;

use crate::format::{Format, FormatError, Parser, Reason};

/// Parses a line in a format and returns its fields as one text.
fn fields(format: &str, line: &str) -> Result<String, Reason> {
    let format = Format::parse(format).unwrap_or_else(|error| panic!("{error}: {format}"));
    let mut parser = Parser::new(format);
    let record = parser.parse(line.as_bytes())?;
    let text = |bytes| String::from_utf8_lossy(bytes);
    let texts = [record.address, record.host, record.method, record.path];
    let texts: Vec<_> = texts.map(text).into_iter().collect();
    let headers = [text(record.referrer), text(record.agent)];
    Ok(format!(
        "{} {} {} {} {} {:?}",
        record.time,
        texts.join(" "),
        record.status,
        record.bytes_sent,
        headers.join(" "),
        record.duration.unwrap_or_default()
    ))
}

const MAIN: &str = r#"
    log_format  main  '$remote_addr - $remote_user [$time_local] "$request" '
                      '$status $body_bytes_sent "$http_referer" '
                      '"$http_user_agent" "$http_x_forwarded_for" rt=$request_time urt="$upstream_response_time"';
"#;

#[test]
fn log_format_of_nginx_is_parsed() {
    let line = r#"192.0.2.7 - John Doe [22/Jan/2021:01:47:05 +0000] "GET /a?b HTTP/1.1" 200 654 "-" "a \x22b\x22" "-" rt=0.125 urt="0.1, 0.02""#;
    let expected = r#"1611280025 192.0.2.7  GET /a 200 654  a \x22b\x22 125000"#;
    assert_eq!(fields(MAIN, line).unwrap(), expected);
    assert_eq!(Format::parse(MAIN).unwrap().name(), "main");
}

#[test]
fn names_of_users_cannot_forge_a_timestamp() {
    let user = r"[01/Jan/1999:00:00:00 +0000] [";
    let line = format!(
        r#"192.0.2.7 - {user} [22/Jan/2021:01:47:05 +0000] "GET /a?b HTTP/1.1" 200 654 "-" "c" "-" rt=0.125 urt="-""#
    );
    let expected = "1611280025 192.0.2.7  GET /a 200 654  c 125000";
    assert_eq!(fields(MAIN, &line).unwrap(), expected);
}

#[test]
fn variables_in_any_order_and_notation_are_parsed() {
    for (format, line, expected) in [
        (
            "$time_iso8601|$host|${request_method}|$scheme://$host$request_uri|$status|${bytes_sent}B|$request_time",
            "2021-01-22T01:47:05+00:00|[::1]:80|PUT|https://a.example/x/y?z|204|17B|1.5",
            "1611280025  ::1 PUT /x/y 204 17   1500000",
        ),
        (
            "$msec $remote_addr:$remote_port $upstream_addr $upstream_response_time $upstream_status \"$uri$is_args$args\"",
            "1611280025.999 2001:db8::7:4321 192.0.2.1:80, 192.0.2.2:80 : 192.0.2.3:80 0.1, 0.2 : 0.25 502, 502 : 200 \"/a?b\"",
            "1611280025 2001:db8::7   /a 200 0   250000",
        ),
        (
            "$http_x_forwarded_for $time_local $status",
            "192.0.2.7, 198.51.100.1 22/Jan/2021:01:47:05 +0000 200",
            "1611280025 192.0.2.7    200 0   0",
        ),
        (
            r#"log_format j escape=json '{"t":"$time_iso8601","r":"$request","s":$status,"d":$request_time,"ua":"$http_user_agent"}';"#,
            r#"{"t":"2021-01-22T01:47:05+00:00","r":"GET \/\"a\" HTTP/1.1","s":200,"d":0.001,"ua":"\u00e4\\"}"#,
            "1611280025   GET /\"a\" 200 0  ä\\ 1000",
        ),
        (
            r#"log_format n escape=none '"$request" "$http_user_agent" $msec';"#,
            r#""GET /"a" HTTP/1.1" "b"c" 1611280025.000"#,
            "1611280025   GET /\"a\" 0 0  b\"c 0",
        ),
    ] {
        assert_eq!(fields(format, line).unwrap(), expected, "{format}");
    }
}

#[test]
fn log_format_of_apache_is_parsed() {
    for (format, line, expected) in [
        (
            r#"LogFormat "%v:%p %h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\" %D" vhost_timed"#,
            r#"www.example.com:443 192.0.2.7 - a b [22/Jan/2021:01:47:05 +0000] "GET /\"a\"?b HTTP/1.1" 200 654 "-" "c\"d" 1234"#,
            r#"1611280025 192.0.2.7 www.example.com GET /\"a\" 200 654  c\"d 1234"#,
        ),
        (
            "%a %{%Y-%m-%d %H:%M:%S}t %m %U%q %s %b %{ms}T",
            "2001:db8::7 2021-01-22 01:47:05 GET /a?b 304 - 17",
            "1611280025 2001:db8::7  GET /a 304 0   17000",
        ),
        (
            "%h [%{%d/%b/%Y:%T}t.%{msec_frac}t %{%z}t] \"%r\" %>s",
            "192.0.2.7 [22/Jan/2021:02:47:05.123 +0100] \"\" 408",
            "1611280025 192.0.2.7    408 0   0",
        ),
        (
            r#"{ "time":"%{%Y-%m-%dT%H:%M:%S%z}t", "ip":"%a", "request":"%U", "query":"%q", "method":"%m", "status":"%>s", "agent":"%{User-agent}i" }"#,
            r#"{ "time":"2021-01-22T01:47:05+0000", "ip":"192.0.2.7", "request":"/a", "query":"", "method":"GET", "status":"200", "agent":"b\"c" }"#,
            r#"1611280025 192.0.2.7  GET /a 200 0  b"c 0"#,
        ),
        (
            "%{Referer}i -> %U %{sec}t",
            "- -> /a 1611280025",
            "1611280025    /a 0 0   0",
        ),
        (
            "%{usec}t %T %s",
            "1611280025000000 2 200",
            "1611280025     200 0   2000000",
        ),
    ] {
        assert_eq!(fields(format, line).unwrap(), expected, "{format}");
    }
}

#[test]
fn lines_that_do_not_match_have_reasons() {
    let format = "<$remote_addr> [$time_local] \"$request\" $status $body_bytes_sent $request_time";
    let line = "<::1> [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 5 0.1";
    assert!(fields(format, line).is_ok());
    for (part, by, expected) in [
        ("<", "(", Reason::UnknownFormat),
        ("> [", "> (", Reason::MissingField),
        ("22/Jan", "32/Jan", Reason::BadTimestamp),
        ("] \"", "]  \"", Reason::UnknownFormat),
        ("200", "2x0", Reason::BadStatus),
        (" 5 ", " five ", Reason::BadBytes),
        ("0.1", "soon", Reason::BadDuration),
        (" 200 5 0.1", "", Reason::MissingField),
    ] {
        let line = line.replacen(part, by, 1);
        assert_eq!(fields(format, &line), Err(expected), "{line}");
    }
}

#[test]
fn invalid_formats_are_refused_with_the_position() {
    let error = |format: &str| Format::parse(format).unwrap_err();
    assert_eq!(error("$remote_addr $status"), FormatError::NoTime);
    assert_eq!(error("%h %{%H:%M}t"), FormatError::NoTime);
    assert!(matches!(
        error("nonesuch"),
        FormatError::UnknownName { name, .. } if name == "nonesuch"
    ));
    assert_eq!(error(" "), FormatError::Empty);
    let adjacent = error("log_format x '[$time_local] '\n'$status$host'");
    assert_eq!(
        adjacent.to_string(),
        "there is no text between $status and $host (character 39), so the end of $status is ambiguous"
    );
    assert!(matches!(
        error("%t %r%Q"),
        FormatError::UnknownDirective { at: 6, .. }
    ));
    for format in [
        "$a",
        "%h %{x",
        "'a",
        "nonesuch",
        "",
        "$time_local$a$b",
        "%t %{%Q}t",
        "log_format a escape=b 'c'",
    ] {
        assert!(error(format).to_string().len() > 10);
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_compiler_panic(format in "[ a-z$%{}\"'\\\\;^<>\\[\\]:,A-Z0-9é\n]{0,60}") {
        let _ = Format::parse(&format);
        let _ = Format::parse(&format!("log_format {format}"));
        let _ = Format::parse(&format!("LogFormat {format}"));
    }

    #[test]
    fn no_line_makes_a_compiled_format_panic(
        parts in prop::collection::vec(prop::sample::select(vec![
            "$remote_addr", "$remote_user", "$request", "$status", "$http_referer", "$upstream_status", "$uri$is_args$args",
            " ", "\"", ":", " [", "] ", "{", "$time_local", "$msec", "$time_iso8601",
        ]), 1..12),
        line in prop::collection::vec(prop::sample::select(b" \"\\[]{}:/-+,0129GETx\0\xFF".to_vec()), 0..120),
    ) {
        if let Ok(format) = Format::parse(&(parts.concat() + " $msec")) {
            let _ = Parser::new(format).parse(&line);
        }
    }

    #[test]
    fn lines_written_in_a_format_are_parsed_back(
        user in "[a-z \\[\\]-]{1,12}",
        path in "/[a-z/\\\\]{0,20}",
        status in 100u16..1000,
        bytes in any::<u64>(),
        agent in "[ -!#-\\[\\]-~]{1,30}",
    ) {
        let line = format!(
            r#"192.0.2.7 - {user} [22/Jan/2021:01:47:05 +0000] "GET {path} HTTP/1.1" {status} {bytes} "-" "{agent}" "-" rt=0.125 urt="-""#
        );
        let agent = if agent == "-" { "" } else { &agent };
        let expected = format!("1611280025 192.0.2.7  GET {path} {status} {bytes}  {agent} 125000");
        prop_assert_eq!(fields(MAIN, &line).unwrap(), expected);
    }
}
