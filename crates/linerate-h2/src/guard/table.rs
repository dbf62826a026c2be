//! The dynamic table of a client's encoder, without the contents of the fields (RFC 7541 §2.3, §4).

use std::collections::VecDeque;

/// Maximum size of the table in bytes. It is the default, because we do not send a setting for it
/// (RFC 9113 §6.5.2).
const TABLE_BYTES_MAX: u32 = 4_096;

/// What each entry counts in addition to its name and value (RFC 7541 §4.1).
const ENTRY_OVERHEAD_BYTES: u32 = 32;

/// What is kept of a field's name.
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
    /// True if the field is a path with a `#`.
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
    /// The fields, newest first.
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
    /// Changes the maximum size of the table; returns `None` if it exceeds what we allow (§6.3).
    pub(super) fn resize(&mut self, bytes_max: u32) -> Option<()> {
        if bytes_max > TABLE_BYTES_MAX {
            return None;
        }
        self.bytes_max = bytes_max;
        self.evict(bytes_max);
        Some(())
    }

    /// Adds a field. §4.4: one "larger than the maximum size causes the table to be emptied of all
    /// existing entries" and is not added.
    pub(super) fn insert(&mut self, field: Field) {
        let bytes = field.bytes();
        self.evict(self.bytes_max.saturating_sub(bytes));
        if bytes <= self.bytes_max {
            self.bytes += bytes;
            self.fields.push_front(field);
        }
    }

    /// Drops the oldest fields until the table has at most `bytes_max` bytes.
    fn evict(&mut self, bytes_max: u32) {
        while self.bytes > bytes_max
            && let Some(field) = self.fields.pop_back()
        {
            self.bytes -= field.bytes();
        }
    }

    /// Returns the size of the table in bytes, as both sides count it.
    #[cfg(test)]
    pub(super) const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Returns the field with this index, or `None` if there is none.
    pub(super) fn field(&self, index: u32) -> Option<Field> {
        let place = (index as usize).checked_sub(1)?;
        let Some(name) = STATIC_NAMES.get(place) else {
            return self.fields.get(place - STATIC_NAMES.len()).copied();
        };
        let name = Name {
            bytes: name.len() as u32,
            is_path: *name == PATH,
        };
        // The value does not matter: the entry is not in the dynamic table and contains no `#`.
        Some(Field {
            name,
            ..Field::default()
        })
    }
}

/// The name of the field that must not contain a fragment.
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
