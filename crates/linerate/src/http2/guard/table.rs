//! The table of fields that a client compresses with, without the fields (RFC 7541 §2.3, §4).

use std::collections::VecDeque;

/// The most that we allow a table to have: what there is unless a setting says otherwise, and we say
/// nothing (RFC 9113 §6.5.2).
const TABLE_BYTES_MAX: u32 = 4_096;

/// What an entry counts beside its name and its value (RFC 7541 §4.1).
const ENTRY_OVERHEAD_BYTES: u32 = 32;

/// What is kept of the name of a field.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Name {
    pub(super) bytes: u32,
    pub(super) is_path: bool,
}

/// What is kept of a field.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Field {
    pub(super) name: Name,
    pub(super) value_bytes: u32,
    /// It is a path with a `#`.
    pub(super) has_fragment: bool,
}

impl Field {
    const fn bytes(self) -> u32 {
        (self.name.bytes.saturating_add(self.value_bytes)).saturating_add(ENTRY_OVERHEAD_BYTES)
    }
}

/// What is kept of a client's table.
#[derive(Debug)]
pub(super) struct Table {
    /// The newest is the first.
    fields: VecDeque<Field>,
    bytes: u32,
    bytes_max: u32,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            fields: VecDeque::new(),
            bytes: 0,
            bytes_max: TABLE_BYTES_MAX,
        }
    }
}

impl Table {
    /// Changes how much the table may have; `None` if that is more than we allow (§6.3).
    pub(super) fn resize(&mut self, bytes_max: u32) -> Option<()> {
        if bytes_max > TABLE_BYTES_MAX {
            return None;
        }
        self.bytes_max = bytes_max;
        self.evict(bytes_max);
        Some(())
    }

    /// Adds a field. §4.4: one "larger than the maximum size causes the table to be emptied of all existing
    /// entries", and is not in it.
    pub(super) fn insert(&mut self, field: Field) {
        let bytes = field.bytes();
        self.evict(self.bytes_max.saturating_sub(bytes));
        if bytes <= self.bytes_max {
            self.bytes += bytes;
            self.fields.push_front(field);
        }
    }

    /// Makes the table no larger than this.
    fn evict(&mut self, bytes_max: u32) {
        while self.bytes > bytes_max
            && let Some(field) = self.fields.pop_back()
        {
            self.bytes -= field.bytes();
        }
    }

    /// Returns how many bytes the table has, as both sides count them.
    #[cfg(test)]
    pub(super) const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Returns the field with this index; `None` if there is none.
    pub(super) fn field(&self, index: u32) -> Option<Field> {
        let place = (index as usize).checked_sub(1)?;
        let Some(name) = STATIC_NAMES.get(place) else {
            return self.fields.get(place - STATIC_NAMES.len()).copied();
        };
        let name = Name {
            bytes: name.len() as u32,
            is_path: *name == PATH,
        };
        // Its value is of no interest: it is in no table that can change, and has no `#`.
        Some(Field {
            name,
            ..Field::default()
        })
    }
}

/// The name of the field that must not have a fragment.
pub(super) const PATH: &str = ":path";

/// The names of the static table (Appendix A).
const STATIC_NAMES: [&str; 61] = [
    ":authority",
    ":method",
    ":method",
    PATH,
    PATH,
    ":scheme",
    ":scheme",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "accept",
    "access-control-allow-origin",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "link",
    "location",
    "max-forwards",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "refresh",
    "retry-after",
    "server",
    "set-cookie",
    "strict-transport-security",
    "transfer-encoding",
    "user-agent",
    "vary",
    "via",
    "www-authenticate",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name_bytes: u32, value_bytes: u32) -> Field {
        let name = Name {
            bytes: name_bytes,
            is_path: false,
        };
        Field {
            name,
            value_bytes,
            has_fragment: false,
        }
    }

    #[test]
    fn the_newest_field_is_behind_the_static_ones() {
        let mut table = Table::default();
        table.insert(field(1, 2));
        table.insert(field(3, 4));
        assert_eq!(table.field(0), None);
        assert!(table.field(4).unwrap().name.is_path);
        assert_eq!(table.field(61).unwrap().name.bytes, 16);
        assert_eq!(table.field(62), Some(field(3, 4)));
        assert_eq!(table.field(63), Some(field(1, 2)));
        assert_eq!(table.field(64), None);
        assert_eq!(table.field(u32::MAX), None);
    }

    #[test]
    fn a_full_table_gives_up_its_oldest_fields() {
        let mut table = Table::default();
        for _ in 0..128 {
            table.insert(field(0, 0));
        }
        assert_eq!((table.bytes, table.fields.len()), (4_096, 128));
        table.insert(field(1, 0));
        assert_eq!((table.bytes, table.fields.len()), (4_065, 127));
        table.insert(field(1, 4_063));
        assert_eq!((table.bytes, table.fields.len()), (4_096, 1));
        table.insert(field(1, 4_064));
        assert_eq!((table.bytes, table.fields.len()), (0, 0));
    }

    #[test]
    fn a_table_is_as_large_as_the_client_says_and_we_allow() {
        let mut table = Table::default();
        (0..4).for_each(|_| table.insert(field(0, 0)));
        assert_eq!(table.resize(65), Some(()));
        assert_eq!((table.bytes, table.fields.len()), (64, 2));
        assert_eq!(table.resize(0), Some(()));
        table.insert(field(0, 0));
        assert_eq!(table.fields.len(), 0);
        assert_eq!(table.resize(4_096), Some(()));
        assert_eq!(table.resize(4_097), None);
    }
}
