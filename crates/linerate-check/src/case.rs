//! The parts of the catalogue: rows, their inputs, and the expected results.

use serde::Serialize;

use crate::{answers::Answer, http2::Fate, tls::Shape};

/// The area that a row belongs to. Its letter begins the ids of the rows.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Area {
    /// `V`: valid input that every endpoint has to accept.
    Valid,
    /// `F`: frames and their order, control frames, and the closing handshake.
    Framing,
    /// `U`: UTF-8 in text messages.
    Utf8,
    /// `H`: the opening handshake over HTTP/1.1.
    Handshake,
    /// `X`: permessage-deflate.
    Compression,
    /// `T`: TLS.
    Tls,
    /// `S`: HTTP/2.
    Http2,
    /// `C`: responses to a client's opening handshake, valid and invalid.
    Client,
    /// `R`: floods, decompression bombs, and peers that stall.
    Stress,
}

/// The areas in the order in which reports show them, with the letters that begin the ids of their
/// rows, and their names.
const AREAS: [(Area, u8, &str); 9] = [
    (Area::Valid, b'V', "valid"),
    (Area::Framing, b'F', "framing"),
    (Area::Utf8, b'U', "utf8"),
    (Area::Handshake, b'H', "handshake"),
    (Area::Compression, b'X', "compression"),
    (Area::Tls, b'T', "tls"),
    (Area::Http2, b'S', "http2"),
    (Area::Client, b'C', "client"),
    (Area::Stress, b'R', "stress"),
];

impl Area {
    /// Returns all areas, in the order in which reports show them.
    pub fn all() -> impl Iterator<Item = Self> {
        AREAS.into_iter().map(|(area, ..)| area)
    }

    /// Returns the area that the first letter of a row's id names.
    fn of(id: &str) -> Self {
        let area = AREAS
            .iter()
            .find(|(_, letter, _)| id.as_bytes().first() == Some(letter));
        area.map_or(Self::Valid, |(area, ..)| *area)
    }

    /// Returns the name of the area, as `--only` accepts it.
    pub const fn name(self) -> &'static str {
        AREAS[self as usize].2
    }
}

/// A rule, and the inputs that test it.
#[derive(Clone, Debug)]
pub struct Row {
    /// The id: a letter and two digits, such as `F04`.
    pub id: &'static str,
    /// A short description of the inputs, for people.
    pub title: &'static str,
    /// The sections that state the rule, such as `RFC 6455 §5.1`.
    pub section: &'static str,
    /// What the rule requires, in a few words.
    pub required: &'static str,
    /// The inputs.
    pub cases: Vec<Case>,
}

impl Row {
    /// Returns the area of the row.
    pub fn area(&self) -> Area {
        Area::of(self.id)
    }

    /// Returns whether `part` selects at least one of the row's inputs. `part` is the name of an
    /// area, the beginning of an id, or an id, a slash and the beginning of an input's name.
    pub fn is_meant_by(&self, part: &str) -> bool {
        self.cases.iter().any(|case| self.has_meant(case, part))
    }

    /// Returns whether any of its inputs consists of HTTP/2 frames.
    pub fn is_over_http2(&self) -> bool {
        self.cases
            .iter()
            .any(|case| case.input.opening.is_over_http2())
    }

    /// Returns whether any of its inputs stops halfway, to test the endpoint's deadlines.
    pub fn is_about_deadlines(&self) -> bool {
        let is_about = |case: &Case| matches!(case.expect, Expect::GivenUp { .. });
        self.cases.iter().any(is_about)
    }

    /// Keeps only the inputs that one of `parts` selects (see [`Row::is_meant_by`]).
    pub fn retain(&mut self, parts: &[String]) {
        let mut cases = std::mem::take(&mut self.cases);
        cases.retain(|case| parts.iter().any(|part| self.has_meant(case, part)));
        self.cases = cases;
    }

    fn has_meant(&self, case: &Case, part: &str) -> bool {
        let (id, name) = part.split_once('/').unwrap_or((part, ""));
        let begins = |prefix: &str| prefix.eq_ignore_ascii_case(id);
        self.area().name().eq_ignore_ascii_case(part)
            || self.id.get(..id.len()).is_some_and(begins) && case.name.starts_with(name)
    }
}

/// An input and its expected result.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name, which is unique within the row.
    pub name: String,
    /// The input to send.
    pub input: Input,
    /// The expected result.
    pub expect: Expect,
}

impl Case {
    pub(crate) fn new(
        name: impl Into<String>,
        opening: Opening,
        stages: Vec<Stage>,
        expect: Expect,
    ) -> Self {
        Self {
            name: name.into(),
            input: Input {
                opening,
                stages,
                ends: false,
            },
            expect,
        }
    }
}

/// How a connection begins, and what is sent on it.
#[derive(Clone, Debug)]
pub struct Input {
    /// How the connection begins.
    pub opening: Opening,
    /// What is sent after that, in this order.
    pub stages: Vec<Stage>,
    /// True if we end our direction after the last stage, so that the peer reads the end of the
    /// stream.
    pub ends: bool,
}

/// How a connection begins.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Opening {
    /// With a WebSocket without extensions.
    WebSocket,
    /// With a WebSocket on which the peer has accepted this extension offer.
    Extended(&'static str),
    /// Like [`Opening::Extended`], where our messages may also refer to earlier ones
    /// (RFC 7692 §7.1.1.2).
    Takeover(&'static str),
    /// With nothing: the stages are the first bytes that the peer gets.
    Nothing,
    /// With HTTP/2 and an exchange of settings: the stages are HTTP/2 frames.
    Http2 {
        /// The initial window of each stream in bytes, which only the stages enlarge. With `None`,
        /// the window is replenished as data arrives.
        window: Option<u32>,
    },
    /// With nothing, on a connection for HTTP/2.
    Http2Nothing,
    /// With plain TCP, to an endpoint that expects TLS.
    Tcp,
    /// With a WebSocket over TLS that is cut into pieces of this shape.
    Tls(Shape),
}

impl Opening {
    /// Returns whether the stages are HTTP/2 frames.
    pub(crate) const fn is_over_http2(&self) -> bool {
        matches!(self, Self::Http2 { .. } | Self::Http2Nothing)
    }

    /// Returns the extension offer, if there is one.
    pub const fn offer(&self) -> Option<&'static str> {
        match self {
            Self::Extended(offer) | Self::Takeover(offer) => Some(offer),
            Self::Http2 { .. }
            | Self::Http2Nothing
            | Self::Nothing
            | Self::Tcp
            | Self::Tls(_)
            | Self::WebSocket => None,
        }
    }
}

/// Bytes that are sent at once.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The bytes. In a handshake, `{host}` and `{path}` stand for those of the server under test,
    /// and `{more}` for the header fields that the user adds.
    pub bytes: Vec<u8>,
    /// What to wait for before the next stage.
    pub wait: Wait,
}

/// What to wait for between two stages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wait {
    /// An answer, or a pause that is long enough for the peer to react.
    Answer,
    /// A moment, so that the stages arrive in separate segments.
    Moment,
}

/// The expected result of an input.
#[derive(Clone, Debug)]
pub enum Expect {
    /// One of these TLS alerts, then the end of the connection. If the list is empty, the end of
    /// the connection in any form.
    Alert(&'static [u8]),
    /// These answers, with the connection still open.
    Answers(Vec<Answer>),
    /// A GOAWAY with one of these codes, then the end of the connection (RFC 9113 §5.4.1).
    ConnectionError(&'static [u32]),
    /// After a flood over HTTP/2: a GOAWAY, or an answer on this stream. Other clients are served
    /// afterwards in either case.
    Endure(u32),
    /// The given fate for each of these HTTP/2 streams.
    Streams(Vec<(u32, Fate)>),
    /// A Close frame that answers ours, with one of these codes (0 for none), then the end of the
    /// connection.
    Close {
        /// The codes that fit.
        codes: Vec<u16>,
        /// The answers that have to come before it.
        before: Vec<Answer>,
    },
    /// A WebSocket without the extension that was offered, or a refusal.
    Decline,
    /// The end of the connection, in any form. Our direction has ended by then, so the endpoint
    /// need not send a reason.
    End {
        /// The verdict if the connection does not end.
        otherwise: Verdict,
    },
    /// A Close frame with one of these codes, then the end of the connection (RFC 6455 §7.1.7).
    Fail {
        /// The codes that fit.
        codes: &'static [u16],
        /// The answers that may come before it, to the valid part of the input.
        before: Vec<Answer>,
        /// How many stages may have been sent when it comes. A later Close frame is only permitted.
        stages: usize,
        /// True if waiting for more data is permitted.
        may_wait: bool,
    },
    /// These answers, or the end of the connection with or without a close code. Other clients are
    /// served afterwards in either case.
    Survive(Vec<Answer>),
    /// The end of the connection within the deadline, because it makes no progress: with the status
    /// 408, a Close frame, an alert, or nothing at all.
    GivenUp {
        /// What is sent meanwhile, one byte per second, over and over.
        drip: Vec<u8>,
        /// True if waiting forever breaks no rule.
        may_wait: bool,
    },
    /// A WebSocket that then gives these answers.
    Open(Vec<Answer>),
    /// A WebSocket, a refusal, or the response to an ordinary HTTP request.
    OpenOrRefuse,
    /// The client ends the connection and sends nothing.
    Reject,
    /// An HTTP response with a status other than 101.
    Refuse {
        /// The statuses that fit.
        statuses: &'static [u16],
        /// Header fields that have to be present: the name in lower case, and a token of the value.
        fields: &'static [(&'static str, &'static str)],
        /// True if the bytes that follow must not be answered as a separate request.
        alone: bool,
        /// True if opening a WebSocket and ignoring the faulty field breaks no rule.
        may_ignore: bool,
    },
}

/// How the reaction of an endpoint to an input is judged.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The endpoint does what the standard requires and recommends.
    Right,
    /// The endpoint breaks no rule, but does not do what the standard recommends.
    Permitted,
    /// The endpoint breaks a rule.
    Wrong,
    /// The endpoint breaks a rule in a way that harms others, or stops serving.
    Dangerous,
    /// The input could not be tested, because of how the endpoint is configured.
    #[serde(rename = "not applicable")]
    NotApplicable,
}

impl Verdict {
    /// All verdicts, in the order in which reports show them.
    pub const ALL: [Self; 5] = [
        Self::Right,
        Self::Permitted,
        Self::Wrong,
        Self::Dangerous,
        Self::NotApplicable,
    ];

    /// Returns the name of the verdict.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Permitted => "permitted",
            Self::Wrong => "wrong",
            Self::Dangerous => "dangerous",
            Self::NotApplicable => "not applicable",
        }
    }

    /// Returns whether a rule is broken.
    pub const fn is_bad(self) -> bool {
        matches!(self, Self::Wrong | Self::Dangerous)
    }
}
