//! Limits on a head: H10 to H12.

use super::*;

/// Returns a valid request whose head has exactly this many bytes.
fn head_of(bytes: usize) -> Vec<u8> {
    let filler = bytes - with_line("X: ").len();
    with_line(format!("X: {}", "x".repeat(filler)))
}

/// Returns a valid request with exactly this many header lines.
fn head_with(headers: usize) -> Vec<u8> {
    with_line("a:b\r\n".repeat(headers - 5).trim_end())
}

#[test]
fn h10_a_head_is_taken_up_to_its_limit_and_refused_one_byte_beyond() {
    accepts(head_of(16 * 1024));
    refuses(
        head_of(16 * 1024 + 1),
        "431 Request Header Fields Too Large",
        "a head of 16385 bytes or more, at most 16384 allowed",
    );
}

#[test]
fn h10_a_giant_header_is_refused_at_the_limit_and_each_byte_scanned_once() {
    let limits = HandshakeLimits::default();
    let head = head_of(1 << 20);
    for piece in [1, 7, 1_400, 65_536] {
        let mut reader = RequestReader::new(limits);
        let mut fed = 0;
        let error = loop {
            let input = &head[fed..][..piece];
            fed += piece;
            match reader.handle_input(input) {
                Ok(found) => assert!(found.is_none()),
                Err(error) => break error,
            }
        };
        let head_bytes_max = limits.head_bytes_max;
        let head_bytes = head_bytes_max + 1;
        assert_eq!(
            error,
            HandshakeError::HeadTooLarge {
                head_bytes,
                head_bytes_max
            }
        );
        assert_eq!(fed, head_bytes.next_multiple_of(piece));
        assert_eq!(reader.steps(), head_bytes);
    }
}

#[test]
fn h10_a_giant_request_line_is_refused_in_the_same_way() {
    refuses(
        format!("GET /{}", "a".repeat(20_000)),
        "431 Request Header Fields Too Large",
        "a head of 16385 bytes or more, at most 16384 allowed",
    );
}

#[test]
fn h11_headers_are_taken_up_to_their_limit_and_refused_one_beyond() {
    accepts(head_with(100));
    for headers in [101, 1_000, 100_000] {
        refuses(
            head_with(headers),
            "431 Request Header Fields Too Large",
            "101 headers or more, at most 100 allowed",
        );
    }
}

#[test]
fn h11_the_caller_sets_the_limit() {
    let limits = HandshakeLimits {
        headers_max: 2_000,
        ..HandshakeLimits::default()
    };
    let head = head_with(2_000);
    let expected = Outcome::Accepted {
        wire: ACCEPTED.into(),
        rest: Vec::new(),
    };
    assert_eq!(outcome_within(&head, limits), expected);
    let limits = HandshakeLimits {
        headers_max: 0,
        ..limits
    };
    refuses_within(
        "GET / HTTP/1.1\r\na:b\r\n\r\n",
        limits,
        "431 Request Header Fields Too Large",
        "1 headers or more, at most 0 allowed",
    );
}

#[test]
fn h12_no_byte_moves_the_deadline_and_the_answer_is_408() {
    // The reader has no idle timer that a byte could reset: it either waits or is done. The caller
    // enforces the deadline, which is absolute.
    let mut reader = RequestReader::new(HandshakeLimits::default());
    for byte in &VALID.as_bytes()[..VALID.len() - 1] {
        assert!(
            reader
                .handle_input(core::slice::from_ref(byte))
                .unwrap()
                .is_none()
        );
    }
    let time_max = HandshakeLimits::default().time_max;
    let outcome = refused(HandshakeError::TimedOut { time_max }.into());
    let wire = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\
        Content-Type: text/plain; charset=utf-8\r\nContent-Length: 40\r\n\r\n\
        the handshake took longer than 10000 ms\n";
    assert_eq!(outcome, Outcome::Refused { wire: wire.into() });
}

#[test]
fn h12_an_end_reports_whether_a_request_had_begun() {
    let mut reader = RequestReader::new(HandshakeLimits::default());
    assert_eq!(reader.handle_eof(), Ok(()));
    assert_eq!(outcome(b""), Outcome::Waiting);
    let head = &VALID.as_bytes()[..VALID.len() - 1];
    assert_eq!(outcome(head), Outcome::Waiting);
    assert!(reader.handle_input(head).unwrap().is_none());
    let error = HandshakeError::HeadTruncated {
        head_bytes: VALID.len() - 1,
    };
    assert_eq!(reader.handle_eof(), Err(error));
    assert_eq!(error.status(), 400);
    // Between two requests, the end of the connection is not an error again.
    assert!(reader.handle_input(b"\n").unwrap().is_some());
    assert_eq!(reader.handle_eof(), Ok(()));
}
