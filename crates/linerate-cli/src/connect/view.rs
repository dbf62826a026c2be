//! How a conversation looks on a terminal: marks for directions, colours, and JSON with one value
//! per line. Text of the server is escaped, so that it cannot control the terminal, and its lines
//! after the first one are indented, so that they cannot pass for another message or a note.

use linerate::{Closed, Initiator, Message};
use time::{OffsetDateTime, format_description::BorrowedFormatItem, macros::format_description};

use super::pretty::{Token, pretty};
use crate::terminal::{has_colors, printable};

/// The longest text, in bytes, that is shown as pretty JSON, with its white space and colours.
const PRETTY_BYTES_MAX: usize = 1 << 20;

const TIME: &[BorrowedFormatItem<'_>] =
    format_description!("[hour]:[minute]:[second].[subsecond digits:3]Z ");

/// Indents the lines of a message after the first one.
const INDENT: &str = "\n  ";

#[derive(Clone, Copy, Debug)]
pub(super) struct View {
    pub(super) has_colors: bool,
    pub(super) has_timestamps: bool,
    pub(super) is_pretty: bool,
}

/// Colours by the codes of ECMA-48, §8.3.117.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Color {
    Blue = 34,
    Cyan = 36,
    Gray = 90,
    Green = 32,
    Magenta = 35,
    Red = 31,
    Yellow = 33,
}

impl View {
    /// Creates a view with colours if standard output may have them.
    pub(super) fn new(has_timestamps: bool, is_pretty: bool) -> Self {
        Self {
            has_colors: has_colors(&std::io::stdout()),
            has_timestamps,
            is_pretty,
        }
    }

    /// Returns a message that arrived, or with `preview` the description of a binary one.
    pub(super) fn received(self, message: &Message, preview: impl Fn(&[u8]) -> String) -> String {
        let text = match message {
            Message::Binary(bytes) => preview(bytes),
            Message::Text(text) => self.text(text),
        };
        format!("{}{} {text}", self.time(), self.paint(Color::Cyan, "<"))
    }

    /// Returns something that is not a message, such as how the connection ended.
    pub(super) fn note(self, text: &str) -> String {
        let text = format!("* {}", printable(text, &[]));
        format!("{}{}", self.time(), self.paint(Color::Gray, &text))
    }

    /// Returns an error that does not end the conversation.
    pub(super) fn failure(self, text: &str) -> String {
        self.paint(Color::Red, &format!("! {}", printable(text, &[])))
    }

    fn text(self, text: &str) -> String {
        let paint = |token, text: &str, pretty: &mut String| {
            let text = printable(text, &[]);
            match color(token) {
                Some(color) => pretty.push_str(&self.paint(color, &text)),
                None => pretty.push_str(&text),
            }
        };
        let pretty = match self.is_pretty {
            true => pretty(text, PRETTY_BYTES_MAX, paint),
            false => None,
        };
        let text = pretty.unwrap_or_else(|| printable(text, &['\n', '\t']));
        text.replace('\n', INDENT)
    }

    fn time(self) -> String {
        if !self.has_timestamps {
            return String::new();
        }
        // These parts of a time can always be written.
        let time = OffsetDateTime::now_utc().format(TIME).unwrap_or_default();
        self.paint(Color::Gray, &time)
    }

    fn paint(self, color: Color, text: &str) -> String {
        match self.has_colors {
            true => format!("\x1b[{}m{text}\x1b[0m", color as u8),
            false => text.to_owned(),
        }
    }
}

/// Returns the colour of a token of JSON.
const fn color(token: Token) -> Option<Color> {
    match token {
        Token::Name => Some(Color::Blue),
        Token::Number => Some(Color::Yellow),
        Token::Punctuation => None,
        Token::Text => Some(Color::Green),
        Token::Word => Some(Color::Magenta),
    }
}

/// Returns how the connection ended, with the name of the code.
pub(super) fn ending(closed: &Closed) -> String {
    let side = match closed.initiator {
        Some(Initiator::Peer) => "closed by the server",
        _ => "closed",
    };
    let code = match closed.received {
        Some(_) => closed.code,
        None => Closed::ABNORMAL,
    };
    let mut text = match (code, code_name(code)) {
        (Closed::NO_STATUS, _) => format!("{side} without a code"),
        (Closed::ABNORMAL, _) => "closed without a Close frame from the server".to_owned(),
        (code, Some(name)) => format!("{side}: {code} ({name})"),
        (code, None) => format!("{side}: {code}"),
    };
    if code != Closed::ABNORMAL && !closed.reason().is_empty() {
        text.push(' ');
        text.push_str(closed.reason());
    }
    text
}

/// Returns what a close code means (RFC 6455 §7.4.1 and the IANA registry).
const fn code_name(code: u16) -> Option<&'static str> {
    Some(match code {
        1000 => "normal closure",
        1001 => "going away",
        1002 => "protocol error",
        1003 => "unsupported data",
        1007 => "invalid payload data",
        1008 => "policy violation",
        1009 => "message too big",
        1010 => "mandatory extension",
        1011 => "internal error",
        1012 => "service restart",
        1013 => "try again later",
        1014 => "bad gateway",
        3000 => "unauthorized",
        3003 => "forbidden",
        3008 => "timeout",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::View;

    const PLAIN: View = View {
        has_colors: false,
        has_timestamps: false,
        is_pretty: true,
    };

    fn shown(view: View, text: &str) -> String {
        view.received(&text.into(), |_| unreachable!())
    }

    #[test]
    fn messages_are_pretty_and_marked() {
        assert_eq!(shown(PLAIN, "hi"), "< hi");
        assert_eq!(shown(PLAIN, "{\"a\":1}"), "< {\n    \"a\": 1\n  }");
        assert_eq!(shown(PLAIN, "{\"a\":1"), "< {\"a\":1");
        let unchanged = View {
            is_pretty: false,
            ..PLAIN
        };
        assert_eq!(shown(unchanged, "{\"a\":1}"), "< {\"a\":1}");
        let timed = View {
            has_timestamps: true,
            ..PLAIN
        };
        let text = shown(timed, "hi");
        assert_eq!(
            (text.len(), &text[12..]),
            ("12:34:56.789Z < hi".len(), "Z < hi")
        );
    }

    #[test]
    fn colors_surround_tokens() {
        let view = View {
            has_colors: true,
            ..PLAIN
        };
        assert_eq!(
            shown(view, "[\"a\",null]"),
            "\x1b[36m<\x1b[0m [\n    \x1b[32m\"a\"\x1b[0m,\n    \x1b[35mnull\x1b[0m\n  ]"
        );
        assert_eq!(view.note("n"), "\x1b[90m* n\x1b[0m");
        assert_eq!(view.failure("n"), "\x1b[31m! n\x1b[0m");
    }

    #[test]
    fn a_message_cannot_control_the_terminal_or_pass_for_something_else() {
        let hostile = "a\x1b[2J\r\u{9b}0m\u{202e}\x07\x08\n> typed\n* closed: 1000";
        let text = "< a\\u{1b}[2J\\u{d}\\u{9b}0m\\u{202e}\\u{7}\\u{8}\n  > typed\n  * closed: 1000";
        assert_eq!(shown(PLAIN, hostile), text);
        let json = "[\"\u{9b}0m\u{7f}\u{2066}\"]";
        assert_eq!(
            shown(PLAIN, json),
            "< [\n    \"\\u{9b}0m\\u{7f}\\u{2066}\"\n  ]"
        );
        assert_eq!(PLAIN.note("a\n\x1b"), "* a\\u{a}\\u{1b}");
        assert_eq!(PLAIN.failure("a\n\x1b"), "! a\\u{a}\\u{1b}");
    }

    #[test]
    fn long_json_is_shown_as_it_is() {
        let long = format!("[{}1]", "1,".repeat(super::PRETTY_BYTES_MAX / 2));
        assert_eq!(shown(PLAIN, &long), format!("< {long}"));
    }
}
