//! Maps channels to the masters of a cluster: slots, and the masters that serve them.

use std::{ops::Range, sync::LazyLock};

use ::redis::Value;

use super::address::Host;

/// The number of slots.
const SLOTS: u16 = 16_384;

/// The masters that serve the slots of a cluster.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct SlotMap {
    ranges: Vec<SlotRange>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct SlotRange {
    first: u16,
    last: u16,
    master: Host,
}

impl SlotMap {
    /// Parses the answer to `CLUSTER SLOTS` from the node `asked`. Returns `None` if it is
    /// malformed or empty.
    pub(super) fn parse(value: &Value, asked: &Host) -> Option<Self> {
        let ranges = list(value)?.iter().map(|range| range_of(range, asked));
        let ranges: Vec<SlotRange> = ranges.collect::<Option<_>>()?;
        (!ranges.is_empty()).then_some(Self { ranges })
    }

    /// Returns the masters, each of them once.
    pub(super) fn masters(&self) -> Vec<Host> {
        let mut masters: Vec<Host> = Vec::new();
        for range in &self.ranges {
            if !masters.contains(&range.master) {
                masters.push(range.master.clone());
            }
        }
        masters
    }

    /// Returns the master that serves a slot, or `None` while no master does.
    pub(super) fn master(&self, slot: u16) -> Option<&Host> {
        let mut ranges = self.ranges.iter();
        let range = ranges.find(|range| range.first <= slot && slot <= range.last)?;
        Some(&range.master)
    }
}

/// Returns the slot of a key or a sharded channel, which depends only on the hash tag if there is
/// one.
pub(super) fn slot(name: &[u8]) -> u16 {
    let hashed = hash_tag(name).map_or(name, |range| &name[range]);
    crc16(hashed) % SLOTS
}

/// Returns the range of the hash tag in a name, if it has one.
pub(super) fn hash_tag(name: &[u8]) -> Option<Range<usize>> {
    let start = name.iter().position(|&byte| byte == b'{')? + 1;
    let length = name[start..].iter().position(|&byte| byte == b'}')?;
    (length > 0).then_some(start..start + length)
}

/// Returns a number whose decimal digits, as a key, hash to a slot.
pub(super) fn number_in(slot: u16) -> u32 {
    static NUMBERS: LazyLock<Vec<u32>> = LazyLock::new(|| {
        let mut numbers = vec![None; usize::from(SLOTS)];
        let mut missing = numbers.len();
        for number in 0_u32.. {
            let place = &mut numbers[usize::from(self::slot(number.to_string().as_bytes()))];
            missing -= usize::from(place.is_none());
            place.get_or_insert(number);
            if missing == 0 {
                break;
            }
        }
        numbers.into_iter().flatten().collect()
    });
    NUMBERS[usize::from(slot)]
}

/// Returns the checksum that the Redis Cluster Specification names (CRC-16/XMODEM).
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, &byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ 0x1021
            }
        })
    })
}

fn range_of(value: &Value, asked: &Host) -> Option<SlotRange> {
    let [first, last, master, ..] = list(value)? else {
        return None;
    };
    let [name, port, ..] = list(master)? else {
        return None;
    };
    // A node that does not know its own name has the one at which it was asked.
    let name = match name {
        Value::BulkString(name) if !name.is_empty() => String::from_utf8(name.clone()).ok()?,
        Value::SimpleString(name) if !name.is_empty() => name.clone(),
        Value::BulkString(_) | Value::SimpleString(_) | Value::Nil => asked.name.clone(),
        _ => return None,
    };
    let port = number(port)?;
    Some(SlotRange {
        first: number(first)?,
        last: number(last)?,
        master: Host { name, port },
    })
}

fn list(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

fn number(value: &Value) -> Option<u16> {
    match value {
        Value::Int(number) => u16::try_from(*number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ::redis::Value;

    use super::{SlotMap, crc16, slot};
    use crate::redis::address::Host;

    #[test]
    fn slots_follow_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot(b"foo"), 12_182);
        assert_eq!(slot(b"{user1000}.following"), slot(b"user1000"));
        assert_eq!(slot(b"foo{}{bar}"), crc16(b"foo{}{bar}") % 16_384);
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
        assert_eq!(slot(b"foo{bar}{zap}"), slot(b"bar"));
    }

    fn host(name: &str, port: u16) -> Host {
        let name = name.to_owned();
        Host { name, port }
    }

    fn range(first: i64, last: i64, name: Value, port: i64) -> Value {
        let master = Value::Array(vec![name, Value::Int(port)]);
        Value::Array(vec![Value::Int(first), Value::Int(last), master])
    }

    #[test]
    fn a_map_gives_the_server_of_a_slot() {
        let named = Value::BulkString(b"10.0.0.1".to_vec());
        let value = Value::Array(vec![
            range(0, 99, named.clone(), 7_000),
            range(100, 100, Value::Nil, 7_001),
            range(200, 299, named, 7_000),
        ]);
        let map = SlotMap::parse(&value, &host("asked", 1)).unwrap();
        let (one, other) = (host("10.0.0.1", 7_000), host("asked", 7_001));
        assert_eq!(map.masters(), [one.clone(), other.clone()]);
        assert_eq!(map.master(99), Some(&one));
        assert_eq!(map.master(100), Some(&other));
        assert_eq!(map.master(101), None);
        assert_eq!(map.master(200), Some(&one));
    }

    #[test]
    fn a_malformed_map_is_refused() {
        let asked = host("asked", 1);
        for value in [
            Value::Nil,
            Value::Array(vec![]),
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![range(0, 70_000, Value::Nil, 1)]),
            Value::Array(vec![range(0, 1, Value::Int(1), 1)]),
        ] {
            assert_eq!(SlotMap::parse(&value, &asked), None);
        }
    }
}
