//! One pass over a payload, which finds what is wanted of it.

use crate::{
    json::{Invalid, JSON_DEPTH_MAX, Reader},
    text::Text,
    value::Value,
    wanted::{ROOT, Wanted},
};

/// What a scan has found, by the places of what was wanted.
#[derive(Debug)]
pub(crate) struct Found<'v> {
    slots: Vec<Slot<'v>>,
    /// The number of the value that was found last.
    newest: u32,
}

/// What was found at one place. Of several fields of one name the last one counts, and what was found in those before
/// it does not: a value is there only if the one around it is still that in which it was found.
#[derive(Clone, Copy, Debug)]
struct Slot<'v> {
    value: Value<'v>,
    number: u32,
    /// The number of the value around it.
    within: u32,
}

impl<'v> Found<'v> {
    /// Scans a payload. `None` if it is not JSON.
    pub(crate) fn scan(wanted: &Wanted, payload: &'v [u8]) -> Option<Self> {
        // Values have numbers of 32 bits.
        let text = std::str::from_utf8(payload)
            .ok()
            .filter(|text| u32::try_from(text.len()).is_ok())?;
        let nothing = Slot {
            value: Value::Error,
            number: 0,
            within: 0,
        };
        let mut found = Self {
            slots: vec![nothing; wanted.len()],
            newest: 0,
        };
        let mut reader = Reader::new(text);
        let mut scan = Scan {
            wanted,
            reader: &mut reader,
            found: &mut found,
        };
        scan.value(ROOT, 0, 0).ok()?;
        reader.next_token();
        reader.is_at_end().then_some(found)
    }

    /// Returns the value at a place.
    pub(crate) fn value(&self, wanted: &Wanted, place: usize) -> Value<'v> {
        let slot = &self.slots[place];
        if slot.number == 0 {
            return Value::Error;
        }
        let mut inner = (place, slot.within);
        while inner.0 != ROOT {
            let parent = wanted.node(inner.0).parent;
            let around = &self.slots[parent];
            if around.number != inner.1 {
                return Value::Error;
            }
            inner = (parent, around.within);
        }
        slot.value
    }
}

struct Scan<'s, 'v> {
    wanted: &'s Wanted,
    reader: &'s mut Reader<'v>,
    found: &'s mut Found<'v>,
}

impl<'v> Scan<'_, 'v> {
    /// Reads a value that is wanted, or something in it.
    fn value(&mut self, place: usize, within: u32, levels: usize) -> Result<(), Invalid> {
        let node = self.wanted.node(place);
        self.found.newest += 1;
        let number = self.found.newest;
        let first = self.reader.next_token();
        let from = self.reader.at();
        let value = match first {
            b'{' if !node.fields.is_empty() => {
                self.object(place, number, levels + 1)?;
                Value::Map(self.reader.since(from))
            }
            b'[' if !node.items.is_empty() => {
                self.list(place, number, levels + 1)?;
                Value::List(self.reader.since(from))
            }
            _ => self.reader.value(levels)?,
        };
        self.found.slots[place] = Slot {
            value,
            number,
            within,
        };
        Ok(())
    }

    fn object(&mut self, place: usize, number: u32, levels: usize) -> Result<(), Invalid> {
        let fields = &self.wanted.node(place).fields;
        self.open(levels)?;
        if self.is_closed(b'}') {
            return Ok(());
        }
        loop {
            let key: Text<'v> = self.reader.key()?;
            match fields.find(&key.decoded()) {
                Some(child) => self.value(child, number, levels)?,
                None => self.reader.skip(levels)?,
            }
            if self.is_over(b'}')? {
                return Ok(());
            }
        }
    }

    fn list(&mut self, place: usize, number: u32, levels: usize) -> Result<(), Invalid> {
        let mut items = self.wanted.node(place).items.iter().peekable();
        self.open(levels)?;
        if self.is_closed(b']') {
            return Ok(());
        }
        for index in 0.. {
            match items.next_if(|item| item.0 == index) {
                Some((_, child)) => self.value(*child, number, levels)?,
                None => self.reader.skip(levels)?,
            }
            if self.is_over(b']')? {
                break;
            }
        }
        Ok(())
    }

    #[inline]
    fn open(&mut self, levels: usize) -> Result<(), Invalid> {
        if levels > JSON_DEPTH_MAX {
            return Err(Invalid);
        }
        self.reader.step();
        Ok(())
    }

    /// Goes on behind the closing bracket if it is the next token.
    #[inline]
    fn is_closed(&mut self, bracket: u8) -> bool {
        let is_closed = self.reader.next_token() == bracket;
        if is_closed {
            self.reader.step();
        }
        is_closed
    }

    /// Goes on behind a comma, or behind the closing bracket, which is the end.
    #[inline]
    fn is_over(&mut self, bracket: u8) -> Result<bool, Invalid> {
        let next = self.reader.next_token();
        if next != bracket && next != b',' {
            return Err(Invalid);
        }
        self.reader.step();
        Ok(next == bracket)
    }
}
