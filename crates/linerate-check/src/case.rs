//! What the catalogue is made of: rows, their inputs, and what has to come back.

use serde::Serialize;

use crate::{http2::Fate, tls::Shape};

/// What an input is about; the letter that the ids of its rows begin with.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Area {
    /// `V`: what every endpoint has to take.
    Valid,
    /// `F`: frames and their order, control frames, closing.
    Framing,
    /// `U`: text.
    Utf8,
    /// `H`: the opening handshake over HTTP/1.1.
    Handshake,
    /// `X`: permessage-deflate.
    Compression,
    /// `T`: TLS.
    Tls,
    /// `S`: HTTP/2.
    Http2,
    /// `C`: answers of a server that a client must not take.
    Client,
    /// `R`: floods, bombs, and peers that take their time.
    Stress,
}

impl Area {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 9] = [
        Self::Valid,
        Self::Framing,
        Self::Utf8,
        Self::Handshake,
        Self::Compression,
        Self::Tls,
        Self::Http2,
        Self::Client,
        Self::Stress,
    ];

    /// Returns the area of a row's id.
    fn of(id: &str) -> Self {
        match id.as_bytes().first() {
            Some(b'F') => Self::Framing,
            Some(b'U') => Self::Utf8,
            Some(b'H') => Self::Handshake,
            Some(b'X') => Self::Compression,
            Some(b'T') => Self::Tls,
            Some(b'S') => Self::Http2,
            Some(b'C') => Self::Client,
            Some(b'R') => Self::Stress,
            _ => Self::Valid,
        }
    }

    /// Returns its name, as `--only` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Framing => "framing",
            Self::Utf8 => "utf8",
            Self::Handshake => "handshake",
            Self::Compression => "compression",
            Self::Tls => "tls",
            Self::Http2 => "http2",
            Self::Client => "client",
            Self::Stress => "stress",
        }
    }
}

/// A rule, and the inputs that show whether it is kept.
#[derive(Clone, Debug)]
pub struct Row {
    /// A letter and two digits.
    pub id: &'static str,
    /// What the inputs are, for people.
    pub title: &'static str,
    /// Where the rule stands.
    pub section: &'static str,
    /// What it requires, in a few words.
    pub required: &'static str,
    /// The inputs.
    pub cases: Vec<Case>,
}

impl Row {
    /// Returns the area that its id tells.
    pub fn area(&self) -> Area {
        Area::of(self.id)
    }

    /// Returns whether `part` means it or inputs of it: an area, the beginning of an id, or an id, a
    /// slash and the beginning of an input's name.
    pub fn is_meant_by(&self, part: &str) -> bool {
        self.cases.iter().any(|case| self.has_meant(case, part))
    }

    /// Returns whether its inputs are frames of HTTP/2.
    pub fn is_over_http2(&self) -> bool {
        let is_over = |case: &Case| {
            matches!(
                case.input.opening,
                Opening::Http2 { .. } | Opening::Http2Nothing
            )
        };
        self.cases.iter().any(is_over)
    }

    /// Returns whether its inputs leave a connection in the middle of something.
    pub fn is_about_deadlines(&self) -> bool {
        let is_about = |case: &Case| matches!(case.expect, Expect::GivenUp { .. });
        self.cases.iter().any(is_about)
    }

    /// Keeps the inputs that one of `parts` means.
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

/// One input, and what has to come back.
#[derive(Clone, Debug)]
pub struct Case {
    /// What tells it from the others of its row.
    pub name: String,
    /// What is sent.
    pub input: Input,
    /// What has to come back.
    pub expect: Expect,
}

/// What is sent, in this order.
#[derive(Clone, Debug)]
pub struct Input {
    /// How the connection begins.
    pub opening: Opening,
    /// What is sent then.
    pub stages: Vec<Stage>,
    /// Whether our direction ends behind the last stage, so that the other one reads an end.
    pub ends: bool,
}

/// How a connection begins.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Opening {
    /// With a WebSocket that has no extension.
    WebSocket,
    /// With a WebSocket, if this extension is agreed on.
    Extended(&'static str),
    /// Likewise, and if messages of ours may refer to those before them (RFC 7692 §7.1.1.2).
    Takeover(&'static str),
    /// With nothing: the stages are what the server gets first.
    Nothing,
    /// With HTTP/2, as far as settings go: the stages are frames of it.
    Http2 {
        /// What the server may send on each stream, until a stage says that it may send more; `None` if what
        /// has come makes room by itself.
        window: Option<u32>,
    },
    /// With nothing, where HTTP/2 is spoken.
    Http2Nothing,
    /// With nothing but TCP, where TLS is spoken.
    Tcp,
    /// With a WebSocket over TLS that is cut so.
    Tls(Shape),
}

impl Opening {
    /// Returns the extension that is offered.
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

/// Bytes that are sent in one go.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The bytes. In a handshake, `{host}` and `{path}` stand for those of the server under test, and
    /// `{more}` for the fields that the person adds.
    pub bytes: Vec<u8>,
    /// What comes before the next stage.
    pub wait: Wait,
}

/// What comes between two stages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wait {
    /// An answer, or a time in which a judgement could have come.
    Answer,
    /// A moment, so that the stages arrive apart.
    Moment,
}

/// A message or a Pong that has to come back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// 1 for text, 2 for binary, 10 for a Pong.
    pub opcode: u8,
    /// What it carries.
    pub payload: Vec<u8>,
}

/// What has to come back.
#[derive(Clone, Debug)]
pub enum Expect {
    /// One of these alerts of TLS, then the end of the connection; if there are none, the end, however.
    Alert(&'static [u8]),
    /// These answers, and the connection goes on.
    Answers(Vec<Answer>),
    /// A GOAWAY with one of these codes, then the end of the connection (RFC 9113 §5.4.1).
    ConnectionError(&'static [u32]),
    /// A flood over HTTP/2: a GOAWAY, or this stream gives an answer behind it; others are served afterwards in
    /// any case.
    Endure(u32),
    /// Each of these streams of HTTP/2 comes to this.
    Streams(Vec<(u32, Fate)>),
    /// A Close frame that answers ours, with one of these codes (0 for none), then the end.
    Close {
        /// What fits best.
        codes: Vec<u16>,
        /// What has to come before it.
        before: Vec<Answer>,
    },
    /// A WebSocket without the extension that was offered, or a refusal.
    Decline,
    /// The end of the connection, however: there is nobody left to tell.
    End {
        /// What to think where it does not end.
        otherwise: Verdict,
    },
    /// A Close frame with one of these codes, then the end (RFC 6455 §7.1.7).
    Fail {
        /// The codes that fit.
        codes: &'static [u16],
        /// What may come before it: answers to what was in order.
        before: Vec<Answer>,
        /// How many stages may have been sent until then.
        stages: usize,
        /// Whether waiting for more is no fault.
        may_wait: bool,
    },
    /// These answers, or the end of the connection with or without a code; others are served
    /// afterwards in any case.
    Survive(Vec<Answer>),
    /// The end of the connection before long, because nothing gets on: with the status 408, a Close frame, an
    /// alert, or without a word.
    GivenUp {
        /// What is sent meanwhile, a byte each second, over and over.
        drip: Vec<u8>,
        /// Whether to wait for ever breaks no rule.
        may_wait: bool,
    },
    /// A WebSocket, which then gives these answers.
    Open(Vec<Answer>),
    /// A WebSocket, a refusal, or an answer to a request for something else.
    OpenOrRefuse,
    /// The end of the connection of a client, with nothing sent.
    Reject,
    /// An answer of HTTP that is not 101.
    Refuse {
        /// The statuses that fit.
        statuses: &'static [u16],
        /// Fields that have to be there, in lower case, with a token of theirs.
        fields: &'static [(&'static str, &'static str)],
        /// Whether what follows must not be answered as a request of its own.
        alone: bool,
        /// Whether to ignore it, and to open a WebSocket without it, breaks no rule.
        may_ignore: bool,
    },
}

/// How good it is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// What the standard requires and advises.
    Right,
    /// It breaks no rule, but is not what the standard advises.
    Permitted,
    /// It breaks a rule.
    Wrong,
    /// It breaks a rule in a way that harms others, or the server is gone.
    Dangerous,
    /// It could not be looked at, because of how the endpoint is configured.
    #[serde(rename = "not applicable")]
    NotApplicable,
}

impl Verdict {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 5] = [
        Self::Right,
        Self::Permitted,
        Self::Wrong,
        Self::Dangerous,
        Self::NotApplicable,
    ];

    /// Returns it in words.
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
