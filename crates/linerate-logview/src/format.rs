//! The access-log formats that are understood, and the parser of one line.
//!
//! `common` and `combined` are what Apache httpd and nginx call them; nginx's default is
//! `combined`:
//!
//! ```text
//! address ident user [22/Jan/2021:01:47:05 +0000] "request" status bytes "referer" "agent"
//! ```
//!
//! `common` ends after the bytes. What a server administrator appended after either is ignored.

mod combined;
mod quoted;
mod reason;
mod request;
mod timestamp;

pub use reason::Reason;
pub use request::RequestLine;

/// One line of an access log, as the server wrote it (escapes included).
///
/// It is lent from the line, or from the parser where a field had to be decoded. A field that the
/// format doesn't have is empty.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Record<'a> {
    /// When the request was logged, in seconds since 1970-01-01 UTC.
    pub time: i64,
    /// The client: an IPv4 or IPv6 address, or a host name where the server looks names up.
    pub address: &'a [u8],
    /// The virtual host.
    pub host: &'a [u8],
    /// The request line, which may be empty, cut short or binary; empty where the format gives
    /// method and path apart.
    pub request: &'a [u8],
    /// The method; empty if there is no valid request line: see [`RequestLine::parse`].
    pub method: &'a [u8],
    /// The path with its query cut off; empty if there is no valid request line.
    pub path: &'a [u8],
    /// The status code, 0 to 999; 0 where there is none.
    pub status: u16,
    /// The bytes sent; 0 where the log says `-`.
    pub bytes_sent: u64,
    /// The `Referer` header; empty where none was sent.
    pub referrer: &'a [u8],
    /// The `User-Agent` header; empty where none was sent.
    pub agent: &'a [u8],
    /// How long the request took, in microseconds.
    pub duration: Option<u64>,
}

/// How the lines of a log are built; `combined` by default.
///
/// ```
/// use linerate_logview::format::Format;
///
/// assert_eq!(Format::default(), Format::combined());
/// assert_eq!(Format::common().name(), "common");
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Format {
    layout: Layout,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
enum Layout {
    #[default]
    Combined,
    Common,
}

impl Format {
    /// Returns the format that nginx and Apache httpd call `combined`.
    pub fn combined() -> Self {
        Self::default()
    }

    /// Returns the format that they call `common`: `combined` without referrer and agent.
    pub fn common() -> Self {
        Self {
            layout: Layout::Common,
        }
    }

    /// Returns what to call it.
    pub fn name(&self) -> &str {
        match self.layout {
            Layout::Combined => "combined",
            Layout::Common => "common",
        }
    }
}

/// Parses lines of one format.
///
/// It remembers the last timestamp, since neighbouring lines tend to share theirs.
///
/// ```
/// use linerate_logview::format::{Format, Parser, Reason};
///
/// let mut parser = Parser::new(Format::default());
/// let line = br#"2001:db8::7 - - [22/Jan/2021:01:47:05 +0100] "GET /?a HTTP/1.1" 200 -"#;
/// let record = parser.parse(line)?;
/// assert_eq!((record.address, record.status), (&b"2001:db8::7"[..], 200));
/// assert_eq!((record.time, record.path), (1_611_276_425, &b"/"[..]));
/// assert_eq!(parser.parse(b"no log"), Err(Reason::BadTimestamp));
/// # Ok::<(), Reason>(())
/// ```
#[derive(Clone, Debug)]
pub struct Parser {
    format: Format,
    clock: timestamp::Reader,
}

impl Parser {
    /// Creates a parser.
    pub fn new(format: Format) -> Self {
        Self {
            format,
            clock: timestamp::Reader::default(),
        }
    }

    /// Returns the format that it parses.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// Parses one line, given without its line end.
    ///
    /// # Errors
    ///
    /// The reason why the line is not in the format.
    #[inline]
    pub fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Record<'a>, Reason> {
        combined::parse(&mut self.clock, line)
    }
}

#[cfg(test)]
mod tests {
    mod odd_lines;
    mod reasons;
}
