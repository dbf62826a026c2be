//! The supported access-log formats, and the parser for one line.
//!
//! [`Format::detect`] recognizes a format by the first lines of a log. [`Format::parse`] accepts
//! the name of a format, or the text of a configuration: `log_format` of nginx, `LogFormat` of
//! Apache httpd or `log-format` of HAProxy.
//!
//! `common` and `combined` are named as in Apache httpd and nginx; `combined` is the default of
//! nginx:
//!
//! ```text
//! address ident user [22/Jan/2021:01:47:05 +0000] "request" status bytes "referer" "agent"
//! ```
//!
//! `common` ends after the bytes. Fields that an administrator has appended to either are ignored.
//! `vhost_combined` and `vhost_common` are preceded by a virtual host, with or without a port.
//! `json` is one object per line, with the member names of nginx, Caddy, Traefik, or the load
//! balancers of Google and Azure. `w3c` has columns that a line `#Fields:` names, as in logs of IIS
//! and CloudFront. `alb`, `elb` and `s3` are those of Amazon; `envoy` and `squid` are
//! the defaults of these proxies, and `haproxy` is its HTTP log.

mod columns;
mod combined;
mod error;
mod escape;
mod fields;
mod fit;
mod haproxy;
mod json;
mod known;
mod moment;
mod number;
mod quoted;
mod reason;
mod request;
#[cfg(test)]
#[path = "format/tests/tabbed.rs"]
mod tabbed;
mod template;
mod timestamp;
mod w3c;

use crate::lines::Marks;
use combined::Combined;
pub use error::FormatError;
pub use fit::{FormatFit, RunnerUp};
use known::KnownFormat;
pub use reason::Reason;
pub use request::RequestLine;
use template::Template;

/// One line of an access log, as the server wrote it (including escapes).
///
/// The fields borrow from the line, or from the parser if they had to be decoded. A field that the
/// format does not have is empty.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Record<'a> {
    /// When the request was logged, in seconds since 1970-01-01 UTC.
    pub time: i64,
    /// The client: an IPv4 or IPv6 address, or a host name if the server looks names up.
    pub address: &'a [u8],
    /// The virtual host.
    pub host: &'a [u8],
    /// The request line, which may be empty, truncated or binary. Empty if the format has separate
    /// fields for method and path.
    pub request: &'a [u8],
    /// The method, or empty if there is no valid request line: see [`RequestLine::parse`]. A format
    /// may have a path but no method.
    pub method: &'a [u8],
    /// The path without its query string, or empty if there is no valid request line.
    pub path: &'a [u8],
    /// The status code, 0 to 999. 0 if the log does not record it.
    pub status: u16,
    /// The number of bytes sent. 0 if the log says `-`.
    pub bytes_sent: u64,
    /// The `Referer` header, or empty if none was sent.
    pub referrer: &'a [u8],
    /// The `User-Agent` header, or empty if none was sent.
    pub agent: &'a [u8],
    /// How long the request took, in microseconds.
    pub duration: Option<u64>,
}

/// The layout of the lines of a log. Defaults to `combined`.
///
/// ```
/// use linerate_logview::format::{Format, FormatError};
///
/// let format = Format::parse(r#"log_format timed '$remote_addr [$time_local] "$request" $request_time';"#)?;
/// assert_eq!(format.name(), "timed");
/// assert_eq!(Format::parse("combined")?, Format::default());
///
/// let error = Format::parse(r#"%h %t "%r" %Z"#).unwrap_err();
/// assert_eq!(error.to_string(), "unknown directive %Z at character 12");
/// # Ok::<(), FormatError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Format {
    layout: KnownFormat,
}

impl Format {
    /// Returns the format that nginx and Apache httpd call `combined`.
    pub fn combined() -> Self {
        Self::default()
    }

    /// Returns the format that nginx and Apache httpd call `common`: `combined` without referrer
    /// and agent.
    pub fn common() -> Self {
        Self {
            layout: KnownFormat::Combined(Combined::COMMON),
        }
    }

    /// Returns the format of the first lines of a log, or `None` if it is not one of the named
    /// formats.
    ///
    /// The last line may be incomplete. 64 KiB are enough.
    pub fn detect(head: &[u8]) -> Option<Self> {
        known::detect(head).map(|layout| Self { layout })
    }

    /// Returns the format of that name, or compiles the text of an nginx, Apache httpd or HAProxy
    /// configuration, with or without the directive's name, quotes and semicolon.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the text, and at which character.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let name = text.trim();
        let named = KnownFormat::named();
        let layout = match named.iter().find(|layout| layout.name() == name) {
            Some(layout) => layout.clone(),
            None if is_word(name) => {
                return Err(FormatError::UnknownName {
                    name: name.to_owned(),
                    known: named
                        .iter()
                        .map(|layout| layout.name().to_owned())
                        .collect(),
                });
            }
            None => KnownFormat::Template(Template::compile(text)?),
        };
        Ok(Self { layout })
    }

    /// Returns the most bytes of heap that the format holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.layout.memory_bytes()
    }

    /// Returns the display name: a name such as `combined`, the name from the configuration, or
    /// `custom`.
    pub fn name(&self) -> &str {
        self.layout.name()
    }
}

impl Default for Format {
    fn default() -> Self {
        Self {
            layout: KnownFormat::Combined(Combined::COMBINED),
        }
    }
}

/// Returns whether a text could be intended as the name of a format.
fn is_word(text: &str) -> bool {
    /// Longer than any name.
    const LEN_MAX: usize = 64;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=LEN_MAX).contains(&text.len()) && text.bytes().all(is_part)
}

/// Parses lines of one format.
///
/// It remembers the last timestamp, because consecutive lines often have the same one.
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
    /// The decoded parts of the current line, never longer than the line.
    scratch: Vec<u8>,
}

impl Parser {
    /// Creates a parser.
    pub fn new(format: Format) -> Self {
        Self {
            format,
            clock: timestamp::Reader::default(),
            scratch: Vec::new(),
        }
    }

    /// Returns the format of the lines.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// Parses one line, which must not include its line ending.
    ///
    /// # Errors
    ///
    /// Returns the reason why the line is not in the format.
    #[inline]
    pub fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Record<'a>, Reason> {
        let layout = &self.format.layout;
        layout.parse(&mut self.clock, &mut self.scratch, line)
    }

    /// Parses one line with the help of marks, if it is one of the many lines for which this is
    /// faster. The result is then the same as that of [`parse`](Self::parse). Otherwise returns
    /// `None`.
    #[inline(always)]
    pub(crate) fn parse_usual<'a>(
        &mut self,
        line: &'a [u8],
        marks: Marks<'_>,
    ) -> Option<Record<'a>> {
        let layout = &self.format.layout;
        layout.parse_usual(&mut self.clock, line, marks)
    }

    /// Returns whether marks make parsing this format faster.
    pub(crate) fn wants_marks(&self) -> bool {
        self.format.layout.wants_marks()
    }

    /// Returns how many bytes of heap the parser holds.
    pub fn memory_bytes(&self) -> usize {
        self.scratch.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::{Format, Parser, Reason};

    mod columns;
    mod custom;
    mod detection;
    mod haproxy;
    mod json_lines;
    mod odd_lines;
    mod reasons;
    mod registration;
    mod w3c;

    /// Parses a line of a format, and returns its fields as one text.
    fn fields_of(format: &str, line: &str) -> Result<String, Reason> {
        fields(&mut Parser::new(Format::parse(format).unwrap()), line)
    }

    /// Parses a line, and returns its fields as one text.
    fn fields(parser: &mut Parser, line: &str) -> Result<String, Reason> {
        let record = parser.parse(line.as_bytes())?;
        let text = |bytes| String::from_utf8_lossy(bytes);
        Ok(format!(
            "{} {} {} {} {} {} {} {} {} {:?}",
            record.time,
            text(record.address),
            text(record.host),
            text(record.method),
            text(record.path),
            record.status,
            record.bytes_sent,
            text(record.referrer),
            text(record.agent),
            record.duration
        ))
    }
}
