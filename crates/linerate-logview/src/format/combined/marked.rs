//! Lines whose quote positions are known.
//!
//! Most lines are in the form that servers write when no client does anything unusual: no user
//! name, nothing escaped. Those are parsed here; all others are left to [`super::parse`]. For lines
//! that both can parse, the results are the same; the tests compare them.

use super::super::fields::{present, without_port};
use super::super::{Record, RequestLine, number, timestamp};
use super::{STAMP_LEN, first_up_to_space};
use crate::lines::Marks;

/// The text between the address and the bracket of the timestamp if there is no user.
const NOBODY: &[u8; 5] = b" - - ";
/// The number of bytes from the end of the address to the opening quote of the request, inclusive.
const BEFORE_REQUEST: usize = NOBODY.len() + STAMP_LEN;

/// Parses one line that is not preceded by a virtual host. Returns `None` for a line that is not in
/// the most common form.
#[inline(always)]
pub(super) fn parse<'a>(
    clock: &mut timestamp::Reader,
    line: &'a [u8],
    marks: Marks<'_>,
) -> Option<Record<'a>> {
    let [opening, closing] = marks.first()?;
    let address = address(line, (opening + 1).checked_sub(BEFORE_REQUEST)?)?;
    let time = time(clock, line[address.len()..].first_chunk()?)?;
    let request = line.get(opening + 1..closing)?;
    let after: &[u8; 6] = line[closing..].first_chunk()?;
    let &[b'"', b' ', a, b, c, b' '] = after else {
        return None;
    };
    let status = number::three_digits([a, b, c])?;
    let (bytes_sent, [referrer, agent]) = rest(line, closing + after.len(), marks)?;
    let (method, path) = match RequestLine::parse(request) {
        Some(line) => (line.method, line.path()),
        None => (&b""[..], &b""[..]),
    };
    Some(Record {
        address,
        time,
        request,
        method,
        path,
        status,
        bytes_sent,
        referrer: present(referrer),
        agent: present(agent),
        ..Record::default()
    })
}

/// Parses one line that is preceded by a virtual host. Returns `None` like [`parse`].
#[inline(always)]
pub(super) fn parse_with_host<'a>(
    clock: &mut timestamp::Reader,
    line: &'a [u8],
    marks: Marks<'_>,
) -> Option<Record<'a>> {
    let host = address(line, first_up_to_space(line)?)?;
    let record = parse(clock, &line[host.len() + 1..], marks.behind(host.len() + 1))?;
    Some(Record {
        host: without_port(present(host)),
        ..record
    })
}

/// Returns the first field if it is exactly `len` bytes long, all of them printable.
#[inline(always)]
fn address(line: &[u8], len: usize) -> Option<&[u8]> {
    let is_it = len > 0 && first_up_to_space(line) == Some(len) && line[len] == b' ';
    is_it.then(|| &line[..len])
}

#[inline(always)]
fn time(clock: &mut timestamp::Reader, text: &[u8; BEFORE_REQUEST]) -> Option<i64> {
    let (nobody, text) = text.split_first_chunk()?;
    let (b"[", text) = text.split_first_chunk()? else {
        return None;
    };
    let (text, rest) = text.split_first_chunk()?;
    if nobody != NOBODY || rest != b"] \"" {
        return None;
    }
    clock.read(text)
}

/// Reads the bytes sent from an offset on, then the referrer and the agent, which may both be
/// missing.
#[inline(always)]
fn rest<'a>(line: &'a [u8], from: usize, marks: Marks<'_>) -> Option<(u64, [&'a [u8]; 2])> {
    if marks.len() == 2 {
        let (bytes_sent, _) = super::bytes_sent(line.get(from - 1..)?).ok()?;
        return Some((bytes_sent, [b"", b""]));
    }
    let [_, _, a, b, c, d] = marks.first()?;
    let bytes_sent = bytes_sent(line, from, a.checked_sub(1)?)?;
    let are_quotes = line[a - 1..a + 1] == *b" \""
        && line.get(b..c + 1) == Some(b"\" \"")
        && line.get(d) == Some(&b'"');
    if !are_quotes {
        return None;
    }
    Some((bytes_sent, [&line[a + 1..b], &line[c + 1..d]]))
}

/// Reads a number or a dash.
#[inline(always)]
fn bytes_sent(line: &[u8], from: usize, until: usize) -> Option<u64> {
    match line.get(from..until)? {
        b"-" => Some(0),
        _ => number::decimal_within(line, from..until),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::format::{Format, Parser};
    use crate::lines::{Line, LineSplitter};

    /// Parses the lines of a text with and without marks, and returns how many were parsed here.
    #[track_caller]
    fn read_here(format: &str, text: &[u8]) -> usize {
        let format = Format::parse(format).unwrap();
        let (mut plain, mut marked) = (Parser::new(format.clone()), Parser::new(format));
        assert!(marked.wants_marks());
        let mut splitter = LineSplitter::new(1 << 10);
        let mut count = 0;
        splitter.handle_marked_input(text, |line, marks| {
            let (Line::Whole(line), Some(marks)) = (line, marks) else {
                panic!("the text must consist of whole lines");
            };
            if let Some(record) = marked.parse_usual(line, marks) {
                let shown = line.escape_ascii().to_string();
                assert_eq!(plain.parse(line), Ok(record), "{shown}");
                count += 1;
            }
        });
        count
    }

    const USUAL: [&str; 8] = [
        r#"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] "GET /a?b HTTP/1.1" 200 654 "-" "b c""#,
        r#"2001:db8::7 - - [22/Jan/2021:01:48:60 -0130] "" 400 - "" "-" "more" 7"#,
        r#"a - - [22/Jan/2021:01:47:05 +0000] "x" 999 0 "http://a/" "" rest"#,
        r#"a.example - - [22/Jan/2021:01:47:05 +0000] "POST / HTTP/2.0" 000 18446744073709551615 "-" "-""#,
        r#"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 12345678 "-" "-""#,
        r#"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 123456789 "-" "-""#,
        r#"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] "HEAD /a b HTTP/1.1" 304 -"#,
        r#"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] "GET /" 304 7 more"#,
    ];

    #[test]
    fn usual_lines_are_parsed_by_the_fast_path() {
        for line in USUAL {
            let text = format!("{line}\n");
            assert_eq!(read_here("combined", text.as_bytes()), 1, "{line}");
            let text = format!("a.example:80 {line}\n");
            assert_eq!(read_here("vhost_combined", text.as_bytes()), 1, "{line}");
        }
    }

    #[test]
    fn other_lines_are_left_to_the_general_parser() {
        for line in [
            "",
            "\"",
            "\"\"",
            r#"a - bob [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 654 "-" "b""#,
            r#" - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 654 "-" "b""#,
            r#"a b - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 654 "-" "b""#,
            r#"a - - [32/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 654 "-" "b""#,
            r#"a - - [22/Jan/2021:01:47:05 +0000] "GET /\x22 HTTP/1.1" 200 654 "-" "b""#,
            r#"a - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 2x0 654 "-" "b""#,
            r#"a - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 6 4 "-" "b""#,
            r#"a - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 "" "-" "b""#,
            r#"a - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 654 "-"  "b""#,
            r#"a - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 654 "-" "b"#,
            r#"a - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 654 "-" "b\"#,
            r#"a - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 654 "\\" "b""#,
            r#"a - - [22/Jan/2021:01:47:05 +0000] "GET / HTTP/1.1" 200 18446744073709551616 "-" "b""#,
        ] {
            let text = format!("{line}\n");
            assert_eq!(read_here("combined", text.as_bytes()), 0, "{line}");
        }
    }

    #[test]
    fn every_changed_byte_is_parsed_as_by_the_general_parser() {
        for line in USUAL {
            for at in 0..line.len() {
                for byte in *b"\n \"\\[-0\0\xFF" {
                    let mut text = format!("{line}\n").into_bytes();
                    text[at] = byte;
                    read_here("combined", &text);
                    read_here("vhost_combined", &text);
                    text.remove(at);
                    read_here("combined", &text);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn text_is_parsed_as_by_the_general_parser(
            parts in prop::collection::vec(
                prop_oneof![
                    Just("a"), Just(" - - "), Just("[22/Jan/2021:01:47:05 +0000]"), Just(" \""), Just("\""),
                    Just(" "), Just("200"), Just("-"), Just("\\"), Just("\n"), Just("GET / HTTP/1.1"),
                    Just("a - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 "),
                    Just("7 \"-\" \"-\"\n"),
                ],
                0..40,
            ),
        ) {
            let text = parts.concat() + "\n";
            read_here("combined", text.as_bytes());
            read_here("vhost_common", text.as_bytes());
        }
    }
}
