//! One pass over a payload that finds the values that filters name.

use crate::{
    json::Reader,
    path_tree::{PathTree, ROOT},
    value::Value,
};

/// The values that a scan has found, by their positions in [`PathTree`].
#[derive(Debug)]
pub(crate) struct FoundValues<'v> {
    slots: Slots<'v>,
    /// The number of the value that was found most recently.
    newest: usize,
}

/// The number of slots that fit without a heap allocation.
const FEW: usize = 4;

#[derive(Debug)]
enum Slots<'v> {
    Few([Slot<'v>; FEW]),
    Many(Vec<Slot<'v>>),
}

/// What was found at one position. If several fields have the same name, the last one counts, and
/// values inside the earlier ones do not: a value is valid only while the value that encloses it is
/// still the one in which it was found.
#[derive(Clone, Copy, Debug)]
struct Slot<'v> {
    value: Value<'v>,
    number: usize,
    /// The number of the enclosing value.
    within: usize,
}

impl<'v> FoundValues<'v> {
    /// Creates an empty result with a slot for each wanted value.
    pub(crate) fn new(wanted: &PathTree) -> Self {
        let nothing = Slot {
            value: Value::Error,
            number: 0,
            within: 0,
        };
        Self {
            slots: match wanted.len() {
                0..=FEW => Slots::Few([nothing; FEW]),
                len => Slots::Many(vec![nothing; len]),
            },
            newest: 0,
        }
    }

    /// Scans a payload. Returns false if it is not exactly one value: a scalar, or a list or an
    /// object whose brackets match.
    pub(crate) fn scan(&mut self, wanted: &PathTree, payload: &'v [u8]) -> bool {
        let mut reader = Reader::new(payload);
        if !reader.begin() {
            return false;
        }
        let mut scan = Scan {
            wanted,
            found: self,
        };
        let end = scan.value(&mut reader, 0, ROOT, 0);
        reader.first_byte(end).0 == payload.len() && self.slot(ROOT).number > 0
    }

    /// Returns the value at a position.
    #[inline]
    pub(crate) fn value(&self, wanted: &PathTree, place: usize) -> &Value<'v> {
        let slot = self.slot(place);
        if slot.number == 0 {
            return &Value::Error;
        }
        let mut inner = (place, slot.within);
        while inner.0 != ROOT {
            let parent = wanted.node(inner.0).parent;
            let around = self.slot(parent);
            if around.number != inner.1 {
                return &Value::Error;
            }
            inner = (parent, around.within);
        }
        &slot.value
    }

    #[inline]
    fn slot(&self, place: usize) -> &Slot<'v> {
        match &self.slots {
            Slots::Few(slots) => &slots[place],
            Slots::Many(slots) => &slots[place],
        }
    }

    #[inline]
    fn slot_mut(&mut self, place: usize) -> &mut Slot<'v> {
        match &mut self.slots {
            Slots::Few(slots) => &mut slots[place],
            Slots::Many(slots) => &mut slots[place],
        }
    }
}

struct Scan<'s, 'v> {
    wanted: &'s PathTree,
    found: &'s mut FoundValues<'v>,
}

impl<'v> Scan<'_, 'v> {
    /// Reads the value at `at`, which is wanted or contains a wanted value. Returns its end.
    fn value(&mut self, reader: &mut Reader<'v>, at: usize, place: usize, within: usize) -> usize {
        let node = self.wanted.node(place);
        self.found.newest += 1;
        let number = self.found.newest;
        let (at, byte) = reader.first_byte(at);
        let end = match byte {
            b'{' if !node.fields.is_empty() => {
                let end = self.object(reader, place, number) + 1;
                self.found.slot_mut(place).value = Value::Map(reader.between(at, end));
                end
            }
            b'[' if !node.items.is_empty() => {
                let end = self.list(reader, place, number) + 1;
                self.found.slot_mut(place).value = Value::List(reader.between(at, end));
                end
            }
            // The value is written in place, because moving it would take longer than reading it.
            _ => reader.value(at, &mut self.found.slot_mut(place).value),
        };
        let slot = self.found.slot_mut(place);
        // A malformed value counts as missing, and so do the values found inside it.
        let is_whole = !matches!(slot.value, Value::Error) && reader.ends_value(end);
        slot.number = if is_whole { number } else { 0 };
        slot.within = within;
        end
    }

    /// Reads an object and returns the offset of its closing bracket.
    #[inline(never)]
    fn object(&mut self, reader: &mut Reader<'v>, place: usize, number: usize) -> usize {
        let fields = &self.wanted.node(place).fields;
        reader.enter();
        reader.fields(
            fields.lengths(),
            |raw, may_be_escaped| fields.find_key(raw, may_be_escaped),
            |reader, child, at| {
                self.value(reader, at, child, number);
            },
        )
    }

    /// Reads a list and returns the offset of its closing bracket.
    fn list(&mut self, reader: &mut Reader<'v>, place: usize, number: usize) -> usize {
        let (mut index, mut next) = (0, reader.first_element());
        for (wanted, child) in &self.wanted.node(place).items {
            while index < *wanted && next.is_ok() {
                next = reader.next_element();
                index += 1;
            }
            match next {
                Ok(at) => {
                    self.value(reader, at, *child, number);
                }
                Err(close) => return close,
            }
        }
        reader.skip()
    }
}
