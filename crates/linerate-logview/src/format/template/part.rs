//! The parts of a format as its configuration writes them, in either notation.

use super::super::fields::Slot;
use super::strftime::Item;

/// A part of a format, as written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum TemplatePart {
    Text(String),
    Variable {
        kind: VariableKind,
        text: String,
        at: usize,
    },
}

impl TemplatePart {
    /// Appends a character to the last part if it is text, or else as a new part.
    pub(super) fn push_char(parts: &mut Vec<Self>, char: char) {
        match parts.last_mut() {
            Some(Self::Text(text)) => text.push(char),
            _ => parts.push(Self::Text(char.into())),
        }
    }

    /// Returns the meaning of a variable, or `None` for text.
    pub(super) fn kind(&self) -> Option<&VariableKind> {
        match self {
            Self::Text(_) => None,
            Self::Variable { kind, .. } => Some(kind),
        }
    }
}

/// The meaning of a variable.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum VariableKind {
    /// A field. If several fields fill the same slot, the one with the lowest rank is used.
    Field {
        slot: Slot,
        rank: u8,
    },
    /// Text from the client outside quotes, such as a user name. It may contain anything.
    FreeText,
    /// Values separated by commas or colons and spaces.
    List,
    ListField {
        slot: Slot,
        rank: u8,
    },
    /// A query string or its question mark, empty if there is none.
    Query,
    Skipped,
    Time(TimeText),
}

/// The notation of a time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum TimeText {
    Common,
    /// As `Common`, but with a fraction instead of the zone, which is taken to be UTC.
    CommonLocal,
    Epoch(u32),
    Iso,
    Pattern(Vec<Item>),
}

/// Returns the parts of a format, variables with their position.
#[cfg(test)]
pub(super) fn texts(
    format: &str,
    parts: impl Fn(&[super::source::PlacedChar]) -> Result<Vec<TemplatePart>, super::FormatError>,
) -> Result<Vec<String>, super::FormatError> {
    let source = super::source::read(format)?;
    let parts = parts(&source.chars)?.into_iter();
    let shown = parts.map(|part| match part {
        TemplatePart::Text(text) => text,
        TemplatePart::Variable { text, at, .. } => format!("{text}@{at}"),
    });
    Ok(shown.collect())
}
