//! Formats in Apache httpd's notation: `LogFormat` of mod_log_config.

use super::super::FormatError;
use super::super::fields::{Slot, Unit};
use super::part::{TemplatePart, TimeText, VariableKind};
use super::source::PlacedChar;
use super::strftime;

/// Splits a format into its directives and the text between them.
pub(super) fn parts(chars: &[PlacedChar]) -> Result<Vec<TemplatePart>, FormatError> {
    let mut parts = Vec::new();
    let mut rest = chars;
    while let [(char, at), after @ ..] = rest {
        rest = match (*char, after) {
            ('%', [('%', _), after @ ..]) => {
                TemplatePart::push_char(&mut parts, '%');
                after
            }
            ('%', _) => {
                let directive = Directive::read(*at, after)?;
                directive.push(&mut parts)?;
                &after[directive.len..]
            }
            (char, _) => {
                TemplatePart::push_char(&mut parts, char);
                after
            }
        };
    }
    Ok(parts)
}

/// A directive such as `%400,501!>{argument}^ti`.
struct Directive {
    /// As written, including the percent sign.
    text: String,
    at: usize,
    /// The letters, such as `h` or `^ti`.
    letters: String,
    argument: Option<String>,
    /// The number of characters after the percent sign.
    len: usize,
}

impl Directive {
    fn read(at: usize, chars: &[PlacedChar]) -> Result<Self, FormatError> {
        let mut argument = None;
        let mut place = 0;
        loop {
            match chars.get(place) {
                Some(('{', opening)) => {
                    let inside = &chars[place + 1..];
                    let unclosed = FormatError::Unclosed {
                        opening: '{',
                        at: *opening,
                    };
                    let end = inside
                        .iter()
                        .position(|(char, _)| *char == '}')
                        .ok_or(unclosed)?;
                    argument = Some(inside[..end].iter().map(|(char, _)| char).collect());
                    place += end + 2;
                }
                // Modifiers: only for some statuses, negation, first or last of internal redirects.
                Some((char, _)) if char.is_ascii_digit() || ",!<>".contains(*char) => place += 1,
                _ => break,
            }
        }
        let letters_len = match chars.get(place) {
            Some(('^', _)) => 3,
            _ => 1,
        };
        let end = (place + letters_len).min(chars.len());
        let text = |chars: &[PlacedChar]| chars.iter().map(|(char, _)| char).collect::<String>();
        Ok(Self {
            text: format!("%{}", text(&chars[..end])),
            at,
            letters: text(&chars[place..end]),
            argument,
            len: end,
        })
    }

    fn push(&self, parts: &mut Vec<TemplatePart>) -> Result<(), FormatError> {
        let variable = |kind| TemplatePart::Variable {
            kind,
            text: self.text.clone(),
            at: self.at,
        };
        if self.letters == "t" && self.argument.as_deref().is_none_or(str::is_empty) {
            TemplatePart::push_char(parts, '[');
            parts.push(variable(VariableKind::Time(TimeText::Common)));
            TemplatePart::push_char(parts, ']');
            return Ok(());
        }
        parts.push(variable(self.kind()?));
        Ok(())
    }

    fn kind(&self) -> Result<VariableKind, FormatError> {
        let argument = self.argument.as_deref().unwrap_or_default();
        let field = |slot, rank| Ok(VariableKind::Field { slot, rank });
        match &*self.letters {
            "h" => field(Slot::Address, 1),
            "a" if argument == "c" => field(Slot::Address, 2),
            "a" => field(Slot::Address, 0),
            "r" => field(Slot::Request, 0),
            "m" => field(Slot::Method, 0),
            "U" => field(Slot::Target, 0),
            "q" => Ok(VariableKind::Query),
            "s" => field(Slot::Status, 0),
            "b" | "B" => field(Slot::Bytes, 0),
            "O" => field(Slot::Bytes, 1),
            "v" => field(Slot::Host, 0),
            "V" => field(Slot::Host, 1),
            "D" => field(Slot::Duration(Unit::Microseconds), 0),
            "T" => field(
                Slot::Duration(seconds_unit(argument)),
                if argument == "us" { 0 } else { 1 },
            ),
            "t" => self.time(argument),
            "u" | "l" => Ok(VariableKind::FreeText),
            "i" => Ok(header(argument)),
            "A" | "c" | "C" | "e" | "f" | "H" | "I" | "k" | "L" | "n" | "o" | "p" | "P" | "R"
            | "S" | "X" | "x" | "^FB" | "^ti" | "^to" => Ok(VariableKind::Skipped),
            _ => Err(FormatError::UnknownDirective {
                directive: self.text.clone(),
                at: self.at,
            }),
        }
    }

    fn time(&self, argument: &str) -> Result<VariableKind, FormatError> {
        let pattern = argument
            .trim_start_matches("begin:")
            .trim_start_matches("end:");
        Ok(VariableKind::Time(match pattern {
            "sec" => TimeText::Epoch(0),
            "msec" => TimeText::Epoch(3),
            "usec" => TimeText::Epoch(6),
            "msec_frac" | "usec_frac" => return Ok(VariableKind::Skipped),
            "" => TimeText::Common,
            pattern => {
                let unknown = |letter| FormatError::UnknownTimeDirective {
                    letter,
                    at: self.at,
                };
                TimeText::Pattern(strftime::compile(pattern).map_err(unknown)?)
            }
        }))
    }
}

fn seconds_unit(argument: &str) -> Unit {
    match argument {
        "ms" => Unit::Milliseconds,
        "us" => Unit::Microseconds,
        _ => Unit::Seconds,
    }
}

fn header(name: &str) -> VariableKind {
    let (slot, rank) = match &*name.to_ascii_lowercase() {
        "referer" => (Slot::Referrer, 0),
        "user-agent" => (Slot::Agent, 0),
        "host" => (Slot::Host, 2),
        "x-real-ip" => (Slot::Address, 3),
        "x-forwarded-for" => {
            return VariableKind::ListField {
                slot: Slot::Address,
                rank: 4,
            };
        }
        _ => return VariableKind::Skipped,
    };
    VariableKind::Field { slot, rank }
}

#[cfg(test)]
mod tests {
    use super::super::part;
    use super::{FormatError, parts};

    fn texts(format: &str) -> Result<Vec<String>, FormatError> {
        part::texts(format, parts)
    }

    #[test]
    fn directives_are_distinguished_from_text() {
        assert_eq!(
            texts(r#"%h 100%% %t "%r" %>s %400,501{User-Agent}i %!200s%^FB"#).unwrap(),
            [
                "%h@1",
                " 100% [",
                "%t@10",
                "] \"",
                "%r@14",
                "\" ",
                "%>s@18",
                " ",
                "%400,501{User-Agent}i@22",
                " ",
                "%!200s@44",
                "%^FB@50"
            ]
        );
    }

    #[test]
    fn unknown_directives_are_reported_with_their_position() {
        let unknown = |directive: &str, at| FormatError::UnknownDirective {
            directive: directive.to_owned(),
            at,
        };
        assert_eq!(texts("%h %Z"), Err(unknown("%Z", 4)));
        assert_eq!(texts("%h %{a}Z b"), Err(unknown("%{a}Z", 4)));
        assert_eq!(texts("%h %"), Err(unknown("%", 4)));
        assert_eq!(texts("LogFormat \"%h %^ab %t\""), Err(unknown("%^ab", 15)));
        assert_eq!(
            texts("%h %{Referer"),
            Err(FormatError::Unclosed {
                opening: '{',
                at: 5
            })
        );
        assert_eq!(
            texts("%h %{%Y-%Q}t"),
            Err(FormatError::UnknownTimeDirective { letter: 'Q', at: 4 })
        );
    }
}
