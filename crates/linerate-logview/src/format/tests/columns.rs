//! Lines of load balancers, proxies and object storage, as their documentation shows them.

use super::fields_of;
use crate::format::{Format, Parser, Reason};

/// docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html
const ALB: &str = r#"http 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 "GET http://www.example.com:80/ HTTP/1.1" "curl/7.46.0" - - arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 "Root=1-58337262-36d228ad5d99923122bbe354" "-" "-" 0 2018-07-02T22:22:48.364000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-""#;

/// <https://docs.aws.amazon.com/elasticloadbalancing/latest/classic/access-log-collection.html>
const ELB: &str = r#"2015-05-13T23:39:43.945958Z my-loadbalancer 192.168.131.39:2817 10.0.0.1:80 0.000073 0.001048 0.000057 200 200 0 29 "GET http://www.example.com:80/ HTTP/1.1" "curl/7.38.0" - -"#;

/// <https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage>
const ENVOY: &str = r#"[2016-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.2.1:80""#;

/// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html>
const S3: &str = r#"79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be amzn-s3-demo-bucket1 [06/Feb/2019:00:00:38 +0000] 192.0.2.3 79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be 3E57427F3EXAMPLE REST.GET.VERSIONING - "GET /amzn-s3-demo-bucket1?versioning HTTP/1.1" 200 - 113 - 7 - "-" "S3Console/0.4" - s9lzHYrFp76ZVxRcpX9+5cjAnEH2ROuNkd2BHfIa6UkFVdtjf5mKR3/eTPFvsiP/XV/VLi31234= SigV4 ECDHE-RSA-AES128-GCM-SHA256 AuthHeader amzn-s3-demo-bucket1.s3.us-west-1.amazonaws.com TLSV1.2 arn:aws:s3:us-west-1:123456789012:accesspoint/example-AP Yes"#;

/// A line with the number of spaces that Squid writes (`src/log/FormatSquidNative.cc`).
const SQUID: &str = "1201172176.719   1190 127.0.0.1 TCP_MISS/200 529 GET http://www.blogger.com/status.g? - DIRECT/72.14.221.191 application/xml";

/// A line of Squid in the manual of Lire, `Lire::Proxy::SquidAccessDlfConverter(3pm)`.
const SQUID_CACHED: &str = "979992041.366 502 192.168.1.160 TCP_IMS_HIT/304 216 GET http://example.com/home2.html - NONE/- text/html";

const ALL: [(&str, &str); 5] = [
    ("alb", ALB),
    ("elb", ELB),
    ("envoy", ENVOY),
    ("s3", S3),
    ("squid", SQUID),
];

/// The expected times come from GNU `date -u -d … +%s`.
#[test]
fn published_lines_are_read() {
    for ((name, line), expected) in ALL.into_iter().zip([
        "1530570180 192.168.131.39 www.example.com GET / 200 366  curl/7.46.0 Some(1000)",
        "1431560383 192.168.131.39 www.example.com GET / 200 29  curl/7.38.0 Some(1048)",
        "1460751420 10.0.35.28 locations POST /api/v1/locations 204 0  nsq2http Some(226000)",
        "1549411238 192.0.2.3 amzn-s3-demo-bucket1.s3.us-west-1.amazonaws.com GET /amzn-s3-demo-bucket1 200 113  S3Console/0.4 Some(7000)",
        "1201172176 127.0.0.1 www.blogger.com GET /status.g 200 529   Some(1190000)",
    ]) {
        assert_eq!(fields_of(name, line).unwrap(), expected, "{name}");
        let head = format!("{line}\n{line}\n");
        assert_eq!(Format::detect(head.as_bytes()).unwrap().name(), name);
    }
}

/// Columns that Amazon has appended since.
#[test]
fn columns_that_were_added_later_are_ignored() {
    let alb = format!(r#"{ALB} TID_1234abcd5678ef90 "-" "-" "-""#);
    assert_eq!(fields_of("alb", &alb), fields_of("alb", ALB));
    let s3 = format!("{S3} us-east-1");
    assert_eq!(fields_of("s3", &s3), fields_of("s3", S3));
}

#[test]
fn cached_answers_of_squid_are_read() {
    assert_eq!(
        fields_of("squid", SQUID_CACHED).unwrap(),
        "979992041 192.168.1.160 example.com GET /home2.html 304 216   Some(502000)"
    );
}

#[test]
fn a_format_refuses_the_lines_of_the_others() {
    let named = [
        "combined",
        "common",
        "vhost_combined",
        "vhost_common",
        "haproxy",
        "json",
    ];
    let named = named.into_iter().chain(ALL.map(|(name, _)| name));
    for format in named {
        let mut parser = Parser::new(Format::parse(format).unwrap());
        for (name, line) in ALL {
            let is_read = parser.parse(line.as_bytes()).is_ok();
            assert_eq!(is_read, name == format, "{name} as {format}");
        }
    }
}

#[test]
fn a_line_that_is_cut_is_refused_or_read() {
    for (name, line) in ALL {
        let whole = fields_of(name, line).unwrap();
        for end in 0..line.len() {
            if let Ok(fields) = fields_of(name, &line[..end]) {
                let start = |text: &str| text.split(' ').next().map(str::to_owned);
                assert_eq!(start(&fields), start(&whole), "{name}, {end} bytes");
            }
        }
    }
}

#[test]
fn values_that_are_absent_are_not_errors() {
    let failed = ALB
        .replace("0.000 0.001 0.000 200 200", "-1 -1 -1 503 -")
        .replace("curl/7.46.0", "-");
    let fields = fields_of("alb", &failed).unwrap();
    assert_eq!(
        fields,
        "1530570180 192.168.131.39 www.example.com GET / 503 366   None"
    );
    let expired = S3
        .replace(
            "\"GET /amzn-s3-demo-bucket1?versioning HTTP/1.1\" 200",
            "- -",
        )
        .replace("\"-\" \"S3Console/0.4\"", "- -");
    assert_eq!(fields_of("s3", &expired), Err(Reason::MissingField));
}

#[test]
fn faults_have_reasons() {
    for (name, line, expected) in [
        (
            "alb",
            ALB.replace("2018-07-02T", "2018-17-02T"),
            Reason::BadTimestamp,
        ),
        (
            "alb",
            ALB.replace(" 200 200 34", " 2x0 200 34"),
            Reason::BadStatus,
        ),
        ("alb", ALB.replace(" 366 ", " 36k "), Reason::BadBytes),
        ("alb", ALB.replace("0.001", "fast"), Reason::BadDuration),
        ("alb", ALB.replace("\"GET ", "GET "), Reason::UnknownFormat),
        (
            "squid",
            SQUID.replace("TCP_MISS/", "TCP_MISS"),
            Reason::BadStatus,
        ),
        (
            "envoy",
            ENVOY.replace(".310Z]", ".310Z"),
            Reason::MissingField,
        ),
        (
            "envoy",
            ENVOY.replace(" \"locations\" \"tcp://10.0.2.1:80\"", ""),
            Reason::MissingField,
        ),
    ] {
        assert_eq!(fields_of(name, &line), Err(expected), "{line}");
    }
}
