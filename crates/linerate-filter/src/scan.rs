//! One pass over a payload, which finds what is wanted of it.

use crate::{
    json::Reader,
    value::Value,
    wanted::{ROOT, Wanted},
};

/// What a scan has found, by the places of what was wanted.
#[derive(Debug)]
pub(crate) struct Found<'v> {
    slots: Vec<Slot<'v>>,
    /// The number of the value that was found last.
    newest: usize,
}

/// What was found at one place. Of several fields of one name the last one counts, and what was found in those before
/// it does not: a value is there only if the one around it is still that in which it was found.
#[derive(Clone, Copy, Debug)]
struct Slot<'v> {
    value: Value<'v>,
    number: usize,
    /// The number of the value around it.
    within: usize,
}

impl<'v> Found<'v> {
    /// Scans a payload. What is found means nothing unless the payload is JSON.
    pub(crate) fn scan(wanted: &Wanted, payload: &'v [u8]) -> Self {
        let nothing = Slot {
            value: Value::Error,
            number: 0,
            within: 0,
        };
        let mut found = Self {
            slots: vec![nothing; wanted.len()],
            newest: 0,
        };
        let mut scan = Scan {
            wanted,
            reader: Reader::new(payload),
            found: &mut found,
        };
        scan.value(0, ROOT, 0);
        found
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
    reader: Reader<'v>,
    found: &'s mut Found<'v>,
}

impl<'v> Scan<'_, 'v> {
    /// Reads the value at `at`, which is wanted, or something in it.
    fn value(&mut self, at: usize, place: usize, within: usize) {
        let node = self.wanted.node(place);
        self.found.newest += 1;
        let number = self.found.newest;
        let value = match self.reader.first_byte(at) {
            (at, b'{') if !node.fields.is_empty() => {
                let close = self.object(place, number);
                Value::Map(self.reader.between(at, close))
            }
            (at, b'[') if !node.items.is_empty() => {
                let close = self.list(place, number);
                Value::List(self.reader.between(at, close))
            }
            (at, _) => self.reader.value(at),
        };
        self.found.slots[place] = Slot {
            value,
            number,
            within,
        };
    }

    /// Reads an object; returns where its closing bracket is.
    fn object(&mut self, place: usize, number: usize) -> usize {
        let fields = &self.wanted.node(place).fields;
        self.reader.enter();
        loop {
            match self.reader.next_key(|name| fields.may_have(name)) {
                Ok((key, at)) => {
                    if let Some(child) = fields.find(&key.decoded()) {
                        self.value(at, child, number);
                    }
                }
                Err(close) => return close,
            }
        }
    }

    /// Reads a list; returns where its closing bracket is.
    fn list(&mut self, place: usize, number: usize) -> usize {
        let (mut index, mut next) = (0, self.reader.first_element());
        for (wanted, child) in &self.wanted.node(place).items {
            while index < *wanted && next.is_ok() {
                next = self.reader.next_element();
                index += 1;
            }
            match next {
                Ok(at) => self.value(at, *child, number),
                Err(close) => return close,
            }
        }
        self.reader.skip()
    }
}
