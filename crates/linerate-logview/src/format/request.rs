//! The request line in a log line (RFC 9112 §3).

use memchr::memrchr;

/// The parts of a valid request line.
///
/// ```
/// use linerate_logview::format::RequestLine;
///
/// let line = RequestLine::parse(b"GET /a/b?c=d HTTP/1.1").ok_or("not a request line")?;
/// assert_eq!((line.method, line.path()), (&b"GET"[..], &b"/a/b"[..]));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct RequestLine<'a> {
    /// The method: a token of 1 to 32 bytes.
    pub method: &'a [u8],
    /// The target, never empty: a path with its query string, an absolute URI, an authority, or
    /// `*`.
    pub target: &'a [u8],
}

/// The longest method in bytes: longer than any registered method (`UPDATEREDIRECTREF` has 17
/// bytes), but short enough to store.
const METHOD_BYTES_MAX: usize = 32;

impl<'a> RequestLine<'a> {
    /// Parses `method SP target SP HTTP/version`, or `method SP /target` as in HTTP/0.9.
    ///
    /// Spaces inside the target belong to it, because servers accept and log them. Returns `None`
    /// for what port scanners send: an empty line, a bare path, TLS or RDP bytes.
    #[inline]
    pub fn parse(request: &'a [u8]) -> Option<Self> {
        let end = method_len(request)?;
        let target = target(&request[end + 1..])?;
        Some(Self {
            method: &request[..end],
            target,
        })
    }

    /// Returns the target without its query string.
    #[inline]
    pub fn path(&self) -> &'a [u8] {
        let end = first_question_mark(self.target).unwrap_or(self.target.len());
        &self.target[..end]
    }
}

/// Returns the offset of the first question mark, examining eight bytes at a time. For texts as
/// short as most targets, this is faster than functions designed for long texts.
#[inline]
fn first_question_mark(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xFF;
    let hits = |word: &[u8; 8]| {
        let word = u64::from_le_bytes(*word) ^ (ONES * u64::from(b'?'));
        // Bytes of 0 borrow into their highest bit. A borrow from a lower byte can only cause hits
        // above the lowest true hit, and only the lowest hit counts.
        let hits = word.wrapping_sub(ONES) & !word & (ONES * 0x80);
        (hits != 0).then(|| hits.trailing_zeros() as usize / 8)
    };
    let Some(last) = text.last_chunk() else {
        return text.iter().position(|&byte| byte == b'?');
    };
    let words = text.as_chunks().0.iter().enumerate();
    words
        .filter_map(|(place, word)| Some(place * 8 + hits(word)?))
        .next()
        .or_else(|| Some(text.len() - 8 + hits(last)?))
}

/// Returns a method that is a separate field in the format, or an empty slice if it is invalid.
pub(super) fn method(text: &[u8]) -> &[u8] {
    let is_token = text.iter().all(|&byte| IS_TOKEN[usize::from(byte)]);
    let is_method = is_token && text.len() <= METHOD_BYTES_MAX && text != b"-";
    if is_method { text } else { b"" }
}

/// Returns the length of the method at the start of a request line.
#[inline]
fn method_len(request: &[u8]) -> Option<usize> {
    if request.starts_with(b"GET ") {
        return Some(3);
    }
    let head = &request[..request.len().min(METHOD_BYTES_MAX + 1)];
    let end = head.iter().position(|&byte| !IS_TOKEN[usize::from(byte)])?;
    (end > 0 && request[end] == b' ').then_some(end)
}

#[inline]
fn target(rest: &[u8]) -> Option<&[u8]> {
    const VERSION_LEN: usize = b" HTTP/1.1".len();
    if let Some((target, version)) = rest.split_last_chunk::<VERSION_LEN>()
        && version.starts_with(b" HTTP/")
        && !version[6..].contains(&b' ')
    {
        return Some(target).filter(|target| !target.is_empty());
    }
    other_target(rest)
}

/// Returns the target before a version of unusual length, or without a version.
#[cold]
fn other_target(rest: &[u8]) -> Option<&[u8]> {
    if let Some(space) = memrchr(b' ', rest)
        && rest[space..].starts_with(b" HTTP/")
    {
        return Some(&rest[..space]).filter(|target| !target.is_empty());
    }
    rest.starts_with(b"/").then_some(rest)
}

/// The `tchar` of RFC 9110 §5.6.2.
static IS_TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let marks = b"!#$%&'*+-.^_`|~";
    let mut mark = 0;
    while mark < marks.len() {
        table[marks[mark] as usize] = true;
        mark += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::{RequestLine, first_question_mark, method};

    fn parts(request: &[u8]) -> Option<[&[u8]; 3]> {
        RequestLine::parse(request).map(|line| [line.method, line.target, line.path()])
    }

    #[test]
    fn request_lines_are_split() {
        let cases = [
            ("GET / HTTP/1.1", ["GET", "/", "/"]),
            ("GET /a?b HTTP/2.0", ["GET", "/a?b", "/a"]),
            ("GET /?a?b HTTP/2", ["GET", "/?a?b", "/"]),
            ("GET ?a HTTP/1.0", ["GET", "?a", ""]),
            ("OPTIONS * HTTP/1.1", ["OPTIONS", "*", "*"]),
            (
                "CONNECT a.b:443 HTTP/1.1",
                ["CONNECT", "a.b:443", "a.b:443"],
            ),
            (
                "GET http://a/b?c HTTP/1.1",
                ["GET", "http://a/b?c", "http://a/b"],
            ),
            ("GET /a b HTTP/1.1", ["GET", "/a b", "/a b"]),
            (
                "GET /a HTTP/1 b HTTP/1.1",
                ["GET", "/a HTTP/1 b", "/a HTTP/1 b"],
            ),
            ("GET /old", ["GET", "/old", "/old"]),
        ];
        for (request, expected) in cases {
            assert_eq!(parts(request.as_bytes()), Some(expected.map(str::as_bytes)));
        }
    }

    #[test]
    fn question_mark_is_found_at_every_offset_of_every_length() {
        for len in 0..40 {
            for other in [b'x', b'>', b'@', 0, 0xBF, 0xFF] {
                let mut text = vec![other; len];
                assert_eq!(first_question_mark(&text), None);
                for at in (0..len).rev() {
                    text[at] = b'?';
                    assert_eq!(first_question_mark(&text), Some(at));
                }
            }
        }
    }

    #[test]
    fn invalid_request_lines_are_refused() {
        let cases: [&[u8]; 12] = [
            b"",
            b" ",
            b"-",
            b"GET",
            b"GET ",
            b"GET  HTTP/1.1",
            b"GET x",
            b"/tmp/gpon80&ipv=0",
            b" /a HTTP/1.1",
            br"\x16\x03\x01\x02\x00 / HTTP/1.1",
            b"\x16\x03\x01 / HTTP/1.1",
            br"\x03\x00\x00/*\xE0\x00\x00\x00\x00\x00Cookie: mstshash=Administr",
        ];
        for request in cases {
            assert_eq!(parts(request), None, "{}", request.escape_ascii());
        }
    }

    #[test]
    fn methods_apart_from_a_line_obey_the_same_rules() {
        assert_eq!(method(b"GET"), b"GET");
        assert_eq!(method(&[b'M'; 32]), [b'M'; 32]);
        for text in [&b""[..], b"-", b"GET /", b"G\xFF", &[b'M'; 33]] {
            assert_eq!(method(text), b"");
        }
    }

    #[test]
    fn method_of_32_bytes_is_accepted_and_of_33_refused() {
        let longest = [&[b'M'; 32][..], b" / HTTP/1.1"].concat();
        assert_eq!(parts(&longest).map(|[method, ..]| method.len()), Some(32));
        let longer = [&[b'M'; 33][..], b" / HTTP/1.1"].concat();
        assert_eq!(parts(&longer), None);
    }
}
