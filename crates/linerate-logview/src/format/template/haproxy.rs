//! Formats in HAProxy's notation: `log-format` (configuration manual §8.2.6).

use super::super::FormatError;
use super::super::fields::{Slot, Unit};
use super::part::{TemplatePart, TimeText, VariableKind};
use super::source::PlacedChar;

/// The variables whose values are not needed.
const SKIPPED: [&str; 50] = [
    "ac", "b", "bc", "bi", "bp", "bq", "CC", "CCL", "cp", "CS", "CSL", "f", "fc", "fd", "fi", "fp",
    "ft", "H", "hr", "hrl", "hs", "hsl", "HV", "ID", "lc", "ms", "P", "pid", "rc", "rt", "s", "sc",
    "si", "sp", "sq", "sslc", "sslv", "Tc", "Td", "Th", "Ti", "Tq", "TQ", "TR", "Tr", "tsc", "ts",
    "Tu", "Tw", "U",
];

/// Splits a format into its variables and the text between them.
pub(super) fn parts(chars: &[PlacedChar]) -> Result<Vec<TemplatePart>, FormatError> {
    let mut parts = Vec::new();
    let mut rest = chars;
    while let [(char, at), after @ ..] = rest {
        rest = match (*char, after) {
            ('%', [('%', _), after @ ..]) => {
                TemplatePart::push_char(&mut parts, '%');
                after
            }
            ('%', _) => push_variable(&mut parts, *at, after)?,
            (char, _) => {
                TemplatePart::push_char(&mut parts, char);
                after
            }
        };
    }
    Ok(parts)
}

/// Reads a variable such as `ci`, `{+Q}r` or `[ssl_fc_sni]` after its percent sign, and returns
/// what follows it.
fn push_variable<'a>(
    parts: &mut Vec<TemplatePart>,
    at: usize,
    chars: &'a [PlacedChar],
) -> Result<&'a [PlacedChar], FormatError> {
    let (flags, rest) = enclosed(chars, ['{', '}'])?;
    let (expression, mut rest) = enclosed(rest, ['[', ']'])?;
    let kind = match expression {
        Some(expression) => match &*expression {
            "src" => field(Slot::Address, 1),
            _ => VariableKind::Skipped,
        },
        None => {
            let is_name = |(char, _): &&PlacedChar| char.is_ascii_alphabetic();
            let len = rest.iter().take_while(is_name).count();
            let name: String = rest[..len].iter().map(|(char, _)| char).collect();
            rest = &rest[len..];
            kind(&name).ok_or_else(|| FormatError::UnknownDirective {
                directive: format!("%{}", text(&chars[..chars.len() - rest.len()])),
                at,
            })?
        }
    };
    let is_quoted = flags.is_some_and(|flags| flags.contains("+Q"));
    if is_quoted {
        TemplatePart::push_char(parts, '"');
    }
    parts.push(TemplatePart::Variable {
        kind,
        text: format!("%{}", text(&chars[..chars.len() - rest.len()])),
        at,
    });
    if is_quoted {
        TemplatePart::push_char(parts, '"');
    }
    Ok(rest)
}

/// Splits off text in braces or brackets, if it begins here.
fn enclosed(
    chars: &[PlacedChar],
    [open, close]: [char; 2],
) -> Result<(Option<String>, &[PlacedChar]), FormatError> {
    let Some(((_, at), inside)) = chars.split_first().filter(|((char, _), _)| *char == open) else {
        return Ok((None, chars));
    };
    let end = inside.iter().position(|(char, _)| *char == close);
    let end = end.ok_or(FormatError::Unclosed {
        opening: open,
        at: *at,
    })?;
    Ok((Some(text(&inside[..end])), &inside[end + 1..]))
}

fn text(chars: &[PlacedChar]) -> String {
    chars.iter().map(|(char, _)| char).collect()
}

fn field(slot: Slot, rank: u8) -> VariableKind {
    VariableKind::Field { slot, rank }
}

/// Returns what a variable means, or `None` if it does not exist.
fn kind(name: &str) -> Option<VariableKind> {
    let milliseconds = Slot::Duration(Unit::Milliseconds);
    Some(match name {
        "B" => field(Slot::Bytes, 0),
        "ci" => field(Slot::Address, 0),
        "HM" => field(Slot::Method, 0),
        "HP" | "HPO" => field(Slot::Target, 1),
        "HQ" => VariableKind::Query,
        "HU" => field(Slot::Target, 0),
        "r" => field(Slot::Request, 0),
        "ST" => field(Slot::Status, 0),
        "t" | "tr" => VariableKind::Time(TimeText::CommonLocal),
        "T" | "Tl" | "trg" | "trl" => VariableKind::Time(TimeText::Common),
        "Ta" => field(milliseconds, 0),
        "Ts" => VariableKind::Time(TimeText::Epoch(0)),
        "Tt" => field(milliseconds, 1),
        name if SKIPPED.contains(&name) => VariableKind::Skipped,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::part;
    use super::{FormatError, SKIPPED, kind, parts};

    fn texts(format: &str) -> Result<Vec<String>, FormatError> {
        part::texts(format, parts)
    }

    #[test]
    fn variables_are_distinguished_from_text() {
        assert_eq!(
            texts(r#"log-format "%ci:%cp %% %{+Q}r %[ssl_fc_sni,lower]""#).unwrap(),
            [
                "%ci@13",
                ":",
                "%cp@17",
                " % \"",
                "%{+Q}r@24",
                "\" ",
                "%[ssl_fc_sni,lower]@31"
            ]
        );
    }

    #[test]
    fn unknown_variables_are_reported_with_their_position() {
        let unknown = |directive: &str, at| FormatError::UnknownDirective {
            directive: directive.to_owned(),
            at,
        };
        assert_eq!(texts("%ci %XY"), Err(unknown("%XY", 5)));
        assert_eq!(texts("%ci %{+Q}o"), Err(unknown("%{+Q}o", 5)));
        assert_eq!(texts("%ci %"), Err(unknown("%", 5)));
        let opening = '[';
        assert_eq!(
            texts("%ci %[src"),
            Err(FormatError::Unclosed { opening, at: 6 })
        );
    }

    #[test]
    fn skipped_variables_have_no_other_meaning() {
        for name in SKIPPED {
            assert!(matches!(kind(name), Some(super::VariableKind::Skipped)));
        }
    }
}
