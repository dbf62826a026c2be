//! Turns the pieces of a format into fields, each with a way to find its end.

use super::super::FormatError;
use super::super::fields::Slot;
use super::piece::{Kind, Piece, TimeText};
use super::source::Escape;
use super::strftime;
use super::{End, Field};

/// Merges a path and the query string that follows it into one variable.
pub(super) fn join_queries(pieces: &mut Vec<Piece>) {
    let mut joined: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces.drain(..) {
        let follows_target = matches!(
            joined.last(),
            Some(Piece::Variable {
                kind: Kind::Field {
                    slot: Slot::Target,
                    ..
                },
                ..
            })
        );
        if !(follows_target
            && matches!(
                piece,
                Piece::Variable {
                    kind: Kind::Query,
                    ..
                }
            ))
        {
            joined.push(piece);
        }
    }
    *pieces = joined;
}

/// Rejects a format that is ambiguous or has no time.
pub(super) fn check(pieces: &[Piece]) -> Result<(), FormatError> {
    refuse_adjacent(pieces)?;
    refuse_timeless(pieces)
}

fn refuse_adjacent(pieces: &[Piece]) -> Result<(), FormatError> {
    for pair in pieces.windows(2) {
        let [
            Piece::Variable {
                kind, text: first, ..
            },
            Piece::Variable {
                kind: next,
                text: second,
                at,
            },
        ] = pair
        else {
            continue;
        };
        let ends_by_itself = matches!(kind, Kind::Time(_));
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

fn begins_with_slash(kind: &Kind) -> bool {
    matches!(
        kind,
        Kind::Field {
            slot: Slot::Target,
            ..
        }
    )
}

/// Rejects a format that does not include the time of the request.
fn refuse_timeless(pieces: &[Piece]) -> Result<(), FormatError> {
    let mut items = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Variable {
                kind: Kind::Time(TimeText::Pattern(pattern)),
                ..
            } => items.extend_from_slice(pattern),
            Piece::Variable {
                kind: Kind::Time(_),
                ..
            } => return Ok(()),
            _ => {}
        }
    }
    if strftime::has_a_date(&items) {
        Ok(())
    } else {
        Err(FormatError::NoTime)
    }
}

pub(super) fn fields(pieces: &[Piece], escape: Escape) -> Box<[Field]> {
    let best = best_ranks(pieces);
    let text_at = |place: Option<usize>| match place.and_then(|place| pieces.get(place)) {
        Some(Piece::Text(text)) => text.as_str(),
        _ => "",
    };
    let mut fields = Vec::new();
    for (place, piece) in pieces.iter().enumerate() {
        let Piece::Variable { kind, .. } = piece else {
            continue;
        };
        let (before, after) = (text_at(place.checked_sub(1)), text_at(Some(place + 1)));
        let next = pieces.get(place + if after.is_empty() { 1 } else { 2 });
        let is_quoted = escape != Escape::None && before.ends_with('"') && after.starts_with('"');
        fields.push(Field {
            slot: slot(kind, &best, place),
            end: end(kind, is_quoted, after, next),
            after: after.as_bytes().into(),
        });
    }
    fields.into()
}

/// Returns which piece fills each slot: the first one with the lowest rank.
fn best_ranks(pieces: &[Piece]) -> [Option<(u8, usize)>; Slot::COUNT] {
    let mut best = [None; Slot::COUNT];
    for (place, piece) in pieces.iter().enumerate() {
        if let Piece::Variable {
            kind: Kind::Field { slot, rank } | Kind::ListField { slot, rank },
            ..
        } = piece
        {
            let best = &mut best[slot.place()];
            *best = Some(best.map_or((*rank, place), |best: (u8, usize)| best.min((*rank, place))));
        }
    }
    best
}

fn slot(kind: &Kind, best: &[Option<(u8, usize)>; Slot::COUNT], place: usize) -> Option<Slot> {
    match kind {
        Kind::Field { slot, .. } | Kind::ListField { slot, .. } => {
            let is_best = best[slot.place()].is_some_and(|(_, best)| best == place);
            is_best.then_some(*slot)
        }
        _ => None,
    }
}

fn end(kind: &Kind, is_quoted: bool, after: &str, next: Option<&Piece>) -> End {
    let precedes_time = matches!(
        next,
        Some(Piece::Variable {
            kind: Kind::Time(_),
            ..
        })
    );
    match kind {
        Kind::Time(text) => End::Time(text.clone()),
        _ if is_quoted => End::Quote,
        _ if after.is_empty()
            && next.is_some_and(
                |next| matches!(next, Piece::Variable { kind, .. } if begins_with_slash(kind)),
            ) =>
        {
            End::Slash
        }
        Kind::FreeText if precedes_time => End::BeforeTime,
        Kind::List | Kind::ListField { .. } if after.starts_with(' ') => End::List,
        Kind::Field {
            slot: Slot::Address | Slot::Host,
            ..
        } if after.starts_with(':') => End::LastColon,
        _ => End::After,
    }
}
