//! JSON lines as servers write them.

use crate::format::Reason;

/// Caddy 2's access log.
const CADDY: &str = r#"{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"2001:db8::7","remote_port":"41342","client_ip":"192.0.2.9","proto":"HTTP/2.0","method":"GET","host":"localhost:2015","uri":"/a\/b?c=d","headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"],"Referer":["https://www.example.com/\"q\""]},"tls":{"resumed":false,"version":772}},"bytes_read": 0,"user_id":"","duration":0.000929675,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"],"Content-Type":["text/html; charset=utf-8"]}}"#;

/// Traefik's access log in JSON.
const TRAEFIK: &str = r#"{"ClientAddr":"192.0.2.7:51382","ClientHost":"192.0.2.7","ClientPort":"51382","ClientUsername":"-","DownstreamContentSize":19,"DownstreamStatus":404,"Duration":102480999,"OriginContentSize":19,"OriginDuration":79000,"OriginStatus":200,"Overhead":23480,"RequestAddr":"www.example.com:80","RequestContentSize":0,"RequestCount":12,"RequestHost":"www.example.com","RequestMethod":"POST","RequestPath":"/api/login?next=1","RequestPort":"80","RequestProtocol":"HTTP/1.1","RequestScheme":"http","RetryAttempts":0,"StartLocal":"2021-01-22T02:47:05.4+01:00","StartUTC":"2021-01-22T01:47:05.411Z","entryPointName":"web","level":"info","msg":"","request_Referer":"https://www.example.com/","request_User-Agent":"Mozilla/5.0","time":"2021-01-22T01:47:06Z"}"#;

/// An access log of Azure's Application Gateway, shortened:
/// learn.microsoft.com/en-us/azure/application-gateway/monitor-application-gateway-reference.
const AZURE: &str = r#"{"timeStamp":"2021-10-14T22:17:11+00:00","resourceId":"/SUBSCRIPTIONS/…","listenerName":"HTTP-Listener","operationName":"ApplicationGatewayAccess","category":"ApplicationGatewayAccessLog","properties":{"instanceId":"appgw_2","clientIP":"185.42.129.24","clientPort":45057,"httpMethod":"GET","originalRequestUriWithArgs":"\/","requestUri":"\/","requestQuery":"","userAgent":"Mozilla\/5.0 (Windows NT 6.1; WOW64)","httpStatus":200,"httpVersion":"HTTP\/1.1","receivedBytes":184,"sentBytes":466,"clientResponseTime":0,"timeTaken":0.034,"sslEnabled":"on","serverStatus":"200","serverResponseLatency":"0.028","originalHost":"20.110.30.194","host":"20.110.30.194"}}"#;

/// A request to a load balancer of Google Cloud, shortened:
/// <https://cloud.google.com/chronicle/docs/ingestion/default-parsers/gcp-loadbalancing>.
const GOOGLE: &str = r#"{"httpRequest":{"latency":"0.058927s","referer":"http://dummy_referer/console/","remoteIp":"198.51.100.1","requestMethod":"GET","requestSize":"257","requestUrl":"https://34.1.0.35/console/","responseSize":"1467","status":302,"userAgent":"Mozilla/5.0"},"insertId":"1vzs264g1u90hp5","resource":{"type":"http_load_balancer","labels":{"url_map_name":"a"}},"severity":"INFO","timestamp":"2021-01-22T01:47:05.411Z"}"#;

/// A typical `log_format … escape=json`.
const NGINX: &str = r#"{ "time_local": "22/Jan/2021:01:47:05 +0000", "remote_addr": "192.0.2.7", "remote_user": "", "request": "GET /\"a\"\u00e4?b HTTP/1.1", "status": "499", "body_bytes_sent":"0", "request_time":"0.003", "upstream_response_time":,"http_referrer": "", "http_user_agent": "\\x22\/", "http_x_forwarded_for": "198.51.100.1", "host":"www.example.com" }"#;

fn fields(line: &str) -> Result<String, Reason> {
    super::fields_of("json", line)
}

#[test]
fn caddy_nests_its_request() {
    assert_eq!(
        fields(CADDY).unwrap(),
        "1646861401 192.0.2.9 localhost GET /a/b 200 10900 https://www.example.com/\"q\" curl/7.82.0 Some(929)"
    );
}

#[test]
fn traefik_uses_nanoseconds_and_its_own_names() {
    assert_eq!(
        fields(TRAEFIK).unwrap(),
        "1611280025 192.0.2.7 www.example.com POST /api/login 404 19 https://www.example.com/ Mozilla/5.0 Some(102480)"
    );
}

/// A line that Traefik 2 wrote for a request without a route.
const TRAEFIK_UNROUTED: &str = r#"{"ClientAddr":"172.16.100.61:49880","ClientHost":"172.16.100.61","ClientPort":"49880","ClientUsername":"-","DownstreamContentSize":19,"DownstreamStatus":404,"Duration":204055,"Overhead":204055,"RequestAddr":"172.16.100.61","RequestContentSize":0,"RequestCount":1,"RequestHost":"172.16.100.61","RequestMethod":"GET","RequestPath":"/","RequestPort":"-","RequestProtocol":"HTTP/1.1","RequestScheme":"http","RetryAttempts":0,"StartLocal":"2021-06-05T04:03:22.742209746Z","StartUTC":"2021-06-05T04:03:22.742209746Z","level":"info","msg":"","time":"2021-06-05T04:03:22Z"}"#;

#[test]
fn traefik_has_no_origin_without_a_route() {
    assert_eq!(
        fields(TRAEFIK_UNROUTED).unwrap(),
        "1622865802 172.16.100.61 172.16.100.61 GET / 404 19   Some(204)"
    );
}

#[test]
fn load_balancers_nest_the_request() {
    assert_eq!(
        fields(AZURE).unwrap(),
        "1634249831 185.42.129.24 20.110.30.194 GET / 200 466  Mozilla/5.0 (Windows NT 6.1; WOW64) Some(34000)"
    );
    assert_eq!(
        fields(GOOGLE).unwrap(),
        "1611280025 198.51.100.1 34.1.0.35 GET /console/ 302 1467 http://dummy_referer/console/ Mozilla/5.0 Some(58927)"
    );
}

#[test]
fn nginx_uses_the_names_of_its_variables() {
    assert_eq!(
        fields(NGINX).unwrap(),
        "1611280025 192.0.2.7 www.example.com GET /\"a\"ä 499 0  \\x22/ Some(3000)"
    );
}

#[test]
fn lines_that_are_not_requests_have_reasons() {
    for (line, expected) in [
        ("", Reason::BadJson),
        ("no object", Reason::BadJson),
        ("[1]", Reason::BadJson),
        ("{}", Reason::MissingField),
        (
            r#"{"ts":1,"msg":"serving initial configuration"}"#,
            Reason::MissingField,
        ),
        (r#"{"status":200,"uri":"/"}"#, Reason::MissingField),
        (r#"{"ts":"never","status":200}"#, Reason::BadTimestamp),
        (r#"{"ts":1,"status":"x"}"#, Reason::BadStatus),
        (r#"{"ts":1,"status":200,"size":-1}"#, Reason::BadBytes),
        (
            r#"{"ts":1,"status":200,"duration":"long"}"#,
            Reason::BadDuration,
        ),
        (r#"{"ts":1,"status":200} x"#, Reason::BadJson),
    ] {
        assert_eq!(fields(line), Err(expected), "{line}");
    }
}

#[test]
fn truncated_and_deep_lines_are_refused_without_recursion() {
    for end in 0..CADDY.len() {
        if CADDY.is_char_boundary(end) {
            assert_eq!(fields(&CADDY[..end]), Err(Reason::BadJson));
        }
    }
    let deep = r#"{"request":"#.repeat(100_000);
    assert_eq!(fields(&deep), Err(Reason::BadJson));
    let deep = format!(
        r#"{{"ts":1,"status":200,"x":{}{}}}"#,
        "[".repeat(30_000),
        "]".repeat(30_000)
    );
    assert!(fields(&deep).is_ok());
}

#[test]
fn first_of_equal_names_counts_and_absent_values_do_not() {
    let line = r#"{"ts":1,"time":"garbage","status":200,"status":500,"client_ip":"","remote_ip":"-","ip":"192.0.2.7"}"#;
    assert_eq!(fields(line).unwrap(), "1 192.0.2.7    200 0   None");
}
