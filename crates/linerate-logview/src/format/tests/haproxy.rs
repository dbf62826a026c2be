//! Lines of HAProxy, as its configuration manual shows them (§8.2.3, §8.2.5 and §8.5 of version
//! 2.6, <https://docs.haproxy.org/2.6/configuration.html>).

use super::fields_of;
use crate::format::{Format, Reason};

const HTTP: &str = r#"Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1""#;
const HTTPS: &str = r#"Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] https-in~ static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1" 0/0/0/0/0 1wt.eu/TLSv1.3/TLS_AES_256_GCM_SHA384"#;
/// `option logasap`, and a client that was too slow.
const EARLY: &str = r#"haproxy[18113]: 127.0.0.1:34549 [15/Oct/2003:15:19:06.103] px-http px-http/<NOSRV> -1/-1/-1/-1/+50001 408 +2750 - - cR-- 2/2/2/0/+2 0/0 "<BADREQ>""#;
/// A server that did not answer, without captured headers.
const FAILED: &str = r#"haproxy[18989]: 127.0.0.1:34552 [15/Oct/2003:15:26:31.462] px-http px-http/srv1 3183/-1/-1/-1/11215 503 0 - - SC-- 205/202/202/115/3 0/0 "HEAD / HTTP/1.0""#;
/// `option tcplog`.
const TCP: &str = "Feb  6 12:12:56 localhost haproxy[14387]: 10.0.1.2:33313 [06/Feb/2009:12:12:51.443] fnt bck/srv1 0/0/5007 212 -- 0/0/0/0/3 0/0";
const ERROR: &str = "Dec  3 18:27:14 localhost haproxy[6103]: 127.0.0.1:56059 [03/Dec/2012:17:35:10.380] frt/f1: Connection error during SSL handshake";

fn fields(line: &str) -> Result<String, Reason> {
    fields_of("haproxy", line)
}

/// The expected times come from GNU `date -u -d … +%s`.
#[test]
fn published_lines_are_read() {
    let usual = "1233922454 10.0.1.2  GET /index.html 200 2750   Some(109000)";
    for (line, expected) in [
        (HTTP, usual),
        (HTTPS, usual),
        (EARLY, "1066231146 127.0.0.1    408 2750   Some(50001000)"),
        (
            FAILED,
            "1066231591 127.0.0.1  HEAD / 503 0   Some(11215000)",
        ),
    ] {
        assert_eq!(fields(line).unwrap(), expected, "{line}");
        let head = format!("{line}\n{line}\n");
        assert_eq!(Format::detect(head.as_bytes()).unwrap().name(), "haproxy");
    }
}

/// The format of `option httplog`, as the manual writes it.
const HTTPLOG: &str = r#"log-format "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r""#;

#[test]
fn log_format_describes_other_lines() {
    let (_, body) = HTTP.split_once("]: ").unwrap();
    assert_eq!(fields_of(HTTPLOG, body), fields(HTTP));
    let spaces = body.replace("{1wt.eu} {}", "{a b|c} {d e}");
    assert_eq!(fields_of(HTTPLOG, &spaces), fields(HTTP));
    let line = "::1 1233922454 PUT /a?b -1 +17";
    assert_eq!(
        fields_of("%ci %Ts %HM %HU %ST %Tt", line).unwrap(),
        "1233922454 ::1  PUT /a 0 0   Some(17000)"
    );
}

#[test]
fn any_prefix_of_syslog_may_precede_or_none() {
    let (_, body) = HTTP.split_once("]: ").unwrap();
    let expected = fields(HTTP);
    for prefix in [
        "",
        "<134>Mar  4 10:35:10 Ubuntu haproxy[27811]: ",
        "<134>1 2020-03-04T10:35:10Z host haproxy 27811 - [meta x=\"[1] \"] ",
        "2020-03-04T10:35:10.553+01:00 host [x] haproxy: ",
    ] {
        assert_eq!(fields(&format!("{prefix}{body}")), expected, "{prefix}");
    }
}

#[test]
fn addresses_lose_their_port() {
    for (client, address) in [
        ("2001:db8::7:33317", "2001:db8::7"),
        ("::1:33317", "::1"),
        ("unix:1", "unix"),
    ] {
        let read = fields(&HTTP.replace("10.0.1.2:33317", client)).unwrap();
        assert_eq!(read.split(' ').nth(1), Some(address));
    }
}

#[test]
fn captured_headers_cannot_forge_the_request() {
    // HAProxy writes a quote as #22.
    let line = HTTP.replace("{1wt.eu}", r"{#22GET /a HTTP/1.1#22 200 [x] } {|");
    assert_eq!(fields(&line), fields(HTTP));
}

#[test]
fn faults_have_reasons() {
    for (line, expected) in [
        (TCP.to_owned(), Reason::UnknownFormat),
        (ERROR.to_owned(), Reason::UnknownFormat),
        (String::new(), Reason::BadTimestamp),
        (HTTP.replace("14.655]", "14]"), Reason::BadTimestamp),
        (HTTP.replace("14.655]", "14.6x5]"), Reason::BadTimestamp),
        (
            HTTP.replace("06/Feb/2009", "31/Feb/2009"),
            Reason::BadTimestamp,
        ),
        (HTTP.replace(" 200 2750", " 2x0 2750"), Reason::BadStatus),
        (HTTP.replace(" 200 2750", " 200 2k"), Reason::BadBytes),
        (HTTP.replace("/109 ", "/soon "), Reason::BadDuration),
        (HTTP.replace('"', ""), Reason::MissingField),
    ] {
        assert_eq!(fields(&line), Err(expected), "{line}");
    }
}

#[test]
fn a_line_that_is_cut_is_refused_or_read() {
    let whole = fields(HTTP).unwrap();
    let start = whole.split(" GET").next().unwrap();
    for end in 0..HTTP.len() {
        if let Ok(cut) = fields(&HTTP[..end]) {
            assert!(cut.starts_with(start), "{end} bytes: {cut}");
        }
    }
}
