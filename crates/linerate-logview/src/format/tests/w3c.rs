//! Lines of IIS and CloudFront, as their documentation shows them.

use crate::format::{Format, Parser, Reason};

/// <https://learn.microsoft.com/en-us/previous-versions/iis/6.0-sdk/ms525807(v=vs.90)>
const IIS: &str = "\
#Software: Microsoft Internet Information Services 6.0
#Version: 1.0
#Date: 2002-05-24 20:18:01
#Fields: date time c-ip cs-username s-ip s-port cs-method cs-uri-stem cs-uri-query sc-status sc-bytes cs-bytes time-taken cs(User-Agent) cs(Referrer)
2002-05-24 20:18:01 172.224.24.114 - 206.73.118.24 80 GET /Default.htm - 200 7930 248 31 Mozilla/4.0+(compatible;+MSIE+5.01;+Windows+2000+Server) http://64.224.24.114/
";

/// docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html
const CLOUDFRONT: &str = "\
#Version: 1.0
#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version fle-status fle-encrypted-fields c-port time-to-first-byte x-edge-detailed-result-type sc-content-type sc-content-len sc-range-start sc-range-end
2019-12-04	21:02:31	LAX1	392	192.0.2.100	GET	d111111abcdef8.cloudfront.net	/index.html	200	-	Mozilla/5.0%20(Windows%20NT%2010.0;%20Win64;%20x64)%20AppleWebKit/537.36%20(KHTML,%20like%20Gecko)%20Chrome/78.0.3904.108%20Safari/537.36	-	-	Hit	SOX4xwn4XV6Q4rgb7XiVGOHms_BGlTAC4KyHmureZmBNrjGdRLiNIQ==	d111111abcdef8.cloudfront.net	https	23	0.001	-	TLSv1.2	ECDHE-RSA-AES128-GCM-SHA256	Hit	HTTP/2.0	-	-	11040	0.001	Hit	text/html	78	-	-
";

/// A line of IIS 10 with its default columns.
const DEFAULT: &str =
    "2021-01-22 01:47:05 10.0.0.4 GET /a b=1 443 - 192.0.2.7 curl/8.5.0 - 404 0 2 15";

fn fields_of(format: Format, line: &str) -> Result<String, Reason> {
    super::fields(&mut Parser::new(format), line)
}

/// Detects the format of a log and reads its last line.
fn last_of(log: &str) -> Result<String, Reason> {
    let format = Format::detect(log.as_bytes()).unwrap();
    assert_eq!(format.name(), "w3c");
    fields_of(format, log.lines().last().unwrap())
}

/// The expected times come from GNU `date -u -d … +%s`.
#[test]
fn a_directive_names_the_columns() {
    assert_eq!(
        last_of(IIS).unwrap(),
        "1022271481 172.224.24.114  GET /Default.htm 200 7930 http://64.224.24.114/ Mozilla/4.0 (compatible; MSIE 5.01; Windows 2000 Server) Some(31000)"
    );
    assert_eq!(
        last_of(CLOUDFRONT).unwrap(),
        "1575493351 192.0.2.100 d111111abcdef8.cloudfront.net GET /index.html 200 392  Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/78.0.3904.108 Safari/537.36 Some(1000)"
    );
    assert_eq!(
        last_of(DEFAULT).unwrap(),
        "1611280025 192.0.2.7  GET /a 404 0  curl/8.5.0 Some(15000)"
    );
}

#[test]
fn faults_have_reasons() {
    let parse = |line: &str| fields_of(Format::parse("w3c").unwrap(), line);
    assert!(parse(DEFAULT).is_ok());
    for (line, expected) in [
        ("#Version: 1.0".to_owned(), Reason::UnknownFormat),
        (String::new(), Reason::MissingField),
        (DEFAULT.replace(" 15", ""), Reason::MissingField),
        (format!("{DEFAULT} 1"), Reason::UnknownFormat),
        (DEFAULT.replace("404", "4o4"), Reason::BadStatus),
        (DEFAULT.replace(" 15", " soon"), Reason::BadDuration),
        (DEFAULT.replace("2021-01", "2021-13"), Reason::BadTimestamp),
        (DEFAULT.replace("01:47:05", "01:47"), Reason::BadTimestamp),
        (
            DEFAULT.replace("01:47:05", "01:47:05x"),
            Reason::BadTimestamp,
        ),
        (DEFAULT.replace("2021-01-22", "-"), Reason::BadTimestamp),
    ] {
        assert_eq!(parse(&line), Err(expected), "{line}");
    }
}

#[test]
fn escapes_that_are_cut_stay_as_they_are() {
    for (written, agent) in [
        ("a%2", "a%2"),
        ("%", "%"),
        ("%zz%41", "%zzA"),
        ("%25+", "%+"),
    ] {
        let log = format!(
            "#Fields: date time sc-status cs(User-Agent)\n2021-01-22\t01:47:05\t200\t{written}\n"
        );
        let expected = format!("1611280025     200 0  {agent} None");
        assert_eq!(last_of(&log).unwrap(), expected);
    }
}

#[test]
fn many_columns_are_not_read() {
    let log = format!(
        "#Fields: date time sc-status {}\n2021-01-22 01:47:05 200 {}\n",
        "x ".repeat(1_000),
        "- ".repeat(1_000)
    );
    assert!(Format::detect(log.as_bytes()).is_none());
}
