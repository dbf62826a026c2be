//! Lines that are not requests, and why.

use proptest::prelude::*;

use crate::format::combined::first_up_to_space;
use crate::format::{Format, Parser, Reason, RequestLine};

const LINE: &str =
    r#"192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 2326 "-" "curl""#;

fn reason(line: &str) -> Reason {
    let mut parser = Parser::new(Format::default());
    parser.parse(line.as_bytes()).expect_err(line)
}

/// Replaces a part of a valid line.
fn with(part: &str, by: &str) -> String {
    assert!(LINE.contains(part));
    LINE.replacen(part, by, 1)
}

#[test]
fn good_line_is_parsed() {
    assert!(
        Parser::new(Format::default())
            .parse(LINE.as_bytes())
            .is_ok()
    );
}

#[test]
fn addresses_are_not_empty_and_not_binary() {
    assert_eq!(reason(" - - [x]"), Reason::BadAddress);
    assert_eq!(reason(&with("192", "\0\0\u{0}192")), Reason::BadAddress);
    assert_eq!(reason(&with(" - -", "\t- -")), Reason::BadAddress);
}

#[test]
fn bytes_are_a_number() {
    for bytes in ["2326x", "-1", "--", "+1", "1.5", "18446744073709551616"] {
        assert_eq!(reason(&with("2326", bytes)), Reason::BadBytes, "{bytes}");
    }
    assert_eq!(reason(&with("2326 ", " ")), Reason::BadBytes);
}

#[test]
fn statuses_have_three_digits() {
    for status in ["20", "2000", "-", "2x0", "+20", ""] {
        let line = with(" 200 ", &format!(" {status} "));
        assert_eq!(reason(&line), Reason::BadStatus, "{status}");
    }
    assert_eq!(reason(&with("\" 200", "\"200")), Reason::BadStatus);
}

#[test]
fn timestamps_are_valid_times() {
    assert_eq!(reason(&with("10/Oct", "41/Oct")), Reason::BadTimestamp);
    assert_eq!(reason(&with("[10", "(10")), Reason::BadTimestamp);
    assert_eq!(
        reason(&with("13:55:36", "13:55:36.123")),
        Reason::BadTimestamp
    );
    assert_eq!(reason(&with("0700] ", "0700]")), Reason::BadTimestamp);
    let other_log = "2021-03-21T00:00:01.881Z host newsyslog[56965]: logfile turned over";
    assert_eq!(reason(other_log), Reason::BadTimestamp);
}

#[test]
fn formats_with_a_leading_virtual_host_are_unknown() {
    let line = with("192.0.2.7", "www.example.com:80 192.0.2.7");
    assert_eq!(reason(&line), Reason::UnknownFormat);
    let line = with("192.0.2.7", "www.example.com 2001:db8::7");
    assert_eq!(reason(&line), Reason::UnknownFormat);
}

#[test]
fn truncated_lines_have_a_reason() {
    for end in 0..LINE.len() {
        let cut = &LINE[..end];
        match Parser::new(Format::default()).parse(cut.as_bytes()) {
            Err(Reason::BadTimestamp) => assert!(end < LINE.find("GET").unwrap()),
            Err(reason) => assert_eq!(reason, cut_reason(end), "{cut}"),
            // A cut within or after the bytes leaves a line in the common format.
            Ok(record) => assert!(record.agent.is_empty() && end > LINE.find("2326").unwrap()),
        }
    }
}

/// Returns the reason for `LINE` cut at `end`, outside the timestamp.
fn cut_reason(end: usize) -> Reason {
    let status = LINE.find("200 ").unwrap();
    if (status + 1..status + 3).contains(&end) {
        Reason::BadStatus
    } else {
        Reason::MissingField
    }
}

#[test]
fn missing_ident_or_user_is_a_missing_field() {
    assert_eq!(reason(&with(" - - ", " - ")), Reason::MissingField);
    assert_eq!(reason(&with(" - - ", " ")), Reason::MissingField);
}

#[test]
fn reasons_have_distinct_names_and_sentences() {
    let all = [
        Reason::BadAddress,
        Reason::BadBytes,
        Reason::BadStatus,
        Reason::BadTimestamp,
        Reason::MissingField,
        Reason::TooLong,
        Reason::UnknownFormat,
    ];
    for (place, reason) in all.iter().enumerate() {
        for other in &all[..place] {
            assert_ne!(reason.name(), other.name());
            assert_ne!(reason.to_string(), other.to_string());
        }
    }
}

proptest! {
    #[test]
    fn end_of_the_address_is_that_of_a_byte_by_byte_search(
        text in prop::collection::vec(prop::sample::select(b"\0\x1F !\"a\x7F\x80\x9F\xA0\xA1\xFF".to_vec()), 0..40),
    ) {
        let naive = text.iter().position(|&byte| byte <= b' ');
        prop_assert_eq!(first_up_to_space(&text), naive);
        let printable: Vec<u8> = text.iter().map(|byte| byte | 0x21).collect();
        prop_assert_eq!(first_up_to_space(&printable), None);
        let last = [&printable[..], b" "].concat();
        prop_assert_eq!(first_up_to_space(&last), Some(printable.len()));
    }

    #[test]
    fn no_bytes_make_the_parser_panic(line in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Parser::new(Format::default()).parse(&line);
        let _ = RequestLine::parse(&line);
    }

    #[test]
    fn no_damage_to_a_line_makes_the_parser_panic(
        at in 0..LINE.len(),
        removed in 0usize..40,
        inserted in prop::collection::vec(prop::sample::select(b" \"\\[]:/-+0129\0\xFF".to_vec()), 0..6),
    ) {
        let end = (at + removed).min(LINE.len());
        let line = [&LINE.as_bytes()[..at], &inserted, &LINE.as_bytes()[end..]].concat();
        if let Ok(record) = Parser::new(Format::default()).parse(&line) {
            prop_assert!(!record.address.is_empty());
            prop_assert!(record.status < 1_000);
            let _ = RequestLine::parse(record.request);
        }
    }
}
