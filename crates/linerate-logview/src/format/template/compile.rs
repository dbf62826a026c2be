//! Turns the parts of a format into fields, each with a way to find its end.

use super::super::FormatError;
use super::super::fields::Slot;
use super::part::{TemplatePart, TimeText, VariableKind};
use super::source::Escape;
use super::strftime;
use super::{Field, FieldEnd};

/// Merges a path and the query string that follows it into one variable.
pub(super) fn join_queries(parts: &mut Vec<TemplatePart>) {
    let mut joined: Vec<TemplatePart> = Vec::with_capacity(parts.len());
    for part in parts.drain(..) {
        let last = joined.last().and_then(TemplatePart::kind);
        let follows_target = last.is_some_and(begins_with_slash);
        if !follows_target || part.kind() != Some(&VariableKind::Query) {
            joined.push(part);
        }
    }
    *parts = joined;
}

/// Rejects a format that is ambiguous or has no time.
pub(super) fn check(parts: &[TemplatePart]) -> Result<(), FormatError> {
    refuse_adjacent(parts)?;
    refuse_timeless(parts)
}

fn refuse_adjacent(parts: &[TemplatePart]) -> Result<(), FormatError> {
    for pair in parts.windows(2) {
        let [
            TemplatePart::Variable {
                kind, text: first, ..
            },
            TemplatePart::Variable {
                kind: next,
                text: second,
                at,
            },
        ] = pair
        else {
            continue;
        };
        let ends_by_itself = matches!(kind, VariableKind::Time(_));
        if !(ends_by_itself || begins_with_slash(next)) {
            return Err(FormatError::Adjacent {
                first: first.clone(),
                second: second.clone(),
                at: *at,
            });
        }
    }
    Ok(())
}

fn begins_with_slash(kind: &VariableKind) -> bool {
    matches!(
        kind,
        VariableKind::Field {
            slot: Slot::Target,
            ..
        }
    )
}

/// Rejects a format that does not include the time of the request.
fn refuse_timeless(parts: &[TemplatePart]) -> Result<(), FormatError> {
    let mut items = Vec::new();
    for kind in parts.iter().filter_map(TemplatePart::kind) {
        match kind {
            VariableKind::Time(TimeText::Pattern(pattern)) => items.extend_from_slice(pattern),
            VariableKind::Time(_) => return Ok(()),
            _ => {}
        }
    }
    if strftime::has_a_date(&items) {
        Ok(())
    } else {
        Err(FormatError::NoTime)
    }
}

pub(super) fn fields(parts: &[TemplatePart], escape: Escape) -> Box<[Field]> {
    let best = best_ranks(parts);
    let text_at = |place: Option<usize>| match place.and_then(|place| parts.get(place)) {
        Some(TemplatePart::Text(text)) => text.as_str(),
        _ => "",
    };
    let mut fields = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        let Some(kind) = part.kind() else {
            continue;
        };
        let (before, after) = (text_at(place.checked_sub(1)), text_at(Some(place + 1)));
        let next = parts.get(place + if after.is_empty() { 1 } else { 2 });
        let next = next.and_then(TemplatePart::kind);
        let is_quoted = escape != Escape::None && before.ends_with('"') && after.starts_with('"');
        fields.push(Field {
            slot: slot(kind, &best, place),
            end: end(kind, is_quoted, after, next),
            after: after.as_bytes().into(),
        });
    }
    fields.into()
}

/// Returns which part fills each slot: the first one with the lowest rank.
fn best_ranks(parts: &[TemplatePart]) -> [Option<(u8, usize)>; Slot::COUNT] {
    let mut best = [None; Slot::COUNT];
    for (place, part) in parts.iter().enumerate() {
        if let TemplatePart::Variable {
            kind: VariableKind::Field { slot, rank } | VariableKind::ListField { slot, rank },
            ..
        } = part
        {
            let best = &mut best[slot.place()];
            *best = Some(best.map_or((*rank, place), |best: (u8, usize)| best.min((*rank, place))));
        }
    }
    best
}

fn slot(
    kind: &VariableKind,
    best: &[Option<(u8, usize)>; Slot::COUNT],
    place: usize,
) -> Option<Slot> {
    match kind {
        VariableKind::Field { slot, .. } | VariableKind::ListField { slot, .. } => {
            let is_best = best[slot.place()].is_some_and(|(_, best)| best == place);
            is_best.then_some(*slot)
        }
        _ => None,
    }
}

fn end(kind: &VariableKind, is_quoted: bool, after: &str, next: Option<&VariableKind>) -> FieldEnd {
    let precedes_time = matches!(next, Some(VariableKind::Time(_)));
    match kind {
        VariableKind::Time(text) => FieldEnd::Time(text.clone()),
        _ if is_quoted => FieldEnd::Quote,
        _ if after.is_empty() && next.is_some_and(begins_with_slash) => FieldEnd::Slash,
        VariableKind::FreeText if precedes_time => FieldEnd::BeforeTime,
        VariableKind::List | VariableKind::ListField { .. } if after.starts_with(' ') => {
            FieldEnd::List
        }
        VariableKind::Field {
            slot: Slot::Address | Slot::Host,
            ..
        } if after.starts_with(':') => FieldEnd::LastColon,
        _ => FieldEnd::After,
    }
}
