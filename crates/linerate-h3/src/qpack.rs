//! Encoding and decoding of header fields (RFC 9204), with the static table only.
//!
//! We do not allow the peer a dynamic table and do not use the peer's. Each field section can
//! therefore be decoded on its own and never waits for other streams.

mod integer;
mod table;

use crate::fault::{Code, Fault};
use crate::huffman;

/// What each field counts in addition to its name and value (RFC 9114 §4.2.2).
const FIELD_OVERHEAD_BYTES: usize = 32;

/// A name and a value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// The fields of a message.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Section {
    Fields(Vec<Field>),
    /// The fields exceed the limit.
    TooLarge,
}

/// Decodes a field section of at most `bytes_max` bytes, where each field counts 32 bytes more than
/// its name and value.
///
/// # Errors
/// Returns an error if the section is malformed or refers to the dynamic table, which is empty.
pub(crate) fn decode(mut input: &[u8], bytes_max: usize) -> Result<Section, Fault> {
    let fault = || Fault::connection(Code::QPACK_DECOMPRESSION_FAILED, "malformed field section");
    let input = &mut input;
    // The Required Insert Count and the Base, whose sign is bit 7 (§4.5.1).
    let (_, inserts) = integer::decode(input, 8).ok_or_else(fault)?;
    integer::decode(input, 7).ok_or_else(fault)?;
    if inserts != 0 {
        return Err(fault());
    }
    let mut fields = Vec::new();
    let mut bytes = 0;
    while let Some(first) = input.first() {
        let field = match first {
            0xc0.. => indexed(input),
            0x50..=0x5f | 0x70..=0x7f => named(input),
            0x20..=0x3f => literal(input),
            // All other representations refer to the dynamic table.
            _ => None,
        };
        let field = field.ok_or_else(fault)?;
        bytes += field.name.len() + field.value.len() + FIELD_OVERHEAD_BYTES;
        if bytes > bytes_max {
            return Ok(Section::TooLarge);
        }
        fields.push(field);
    }
    Ok(Section::Fields(fields))
}

/// Reads a reference to a field (§4.5.2).
fn indexed(input: &mut &[u8]) -> Option<Field> {
    let (_, index) = integer::decode(input, 6)?;
    let (name, value) = table::FIELDS.get(usize::try_from(index).ok()?)?;
    Some(Field {
        name: name.as_bytes().to_vec(),
        value: value.as_bytes().to_vec(),
    })
}

/// Reads a value whose name is a reference (§4.5.4).
fn named(input: &mut &[u8]) -> Option<Field> {
    let (_, index) = integer::decode(input, 4)?;
    let (name, _) = table::FIELDS.get(usize::try_from(index).ok()?)?;
    Some(Field {
        name: name.as_bytes().to_vec(),
        value: string(input, 7)?,
    })
}

/// Reads a name and a value (§4.5.6).
fn literal(input: &mut &[u8]) -> Option<Field> {
    Some(Field {
        name: string(input, 3)?,
        value: string(input, 7)?,
    })
}

/// Reads a string. The first byte holds the flag for Huffman coding, followed by the first
/// `prefix_bits` bits of the length (§4.1.2).
fn string(input: &mut &[u8], prefix_bits: u32) -> Option<Vec<u8>> {
    let (flags, length) = integer::decode(input, prefix_bits)?;
    let (bytes, rest) = input.split_at_checked(usize::try_from(length).ok()?)?;
    *input = rest;
    if flags & 1 == 0 {
        return Some(bytes.to_vec());
    }
    let mut text = Vec::new();
    let mut code = huffman::Code::default();
    for byte in bytes {
        code.push(*byte, |symbol| text.push(symbol))?;
    }
    code.is_padding().then_some(text)
}

/// Encodes a field section. Names must be in lower case.
pub(crate) fn encode<'a>(fields: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut section = vec![0, 0];
    for (name, value) in fields {
        match table::find(name, value) {
            Some((index, true)) => integer::encode(&mut section, 0xc0, 6, index),
            Some((index, false)) => {
                integer::encode(&mut section, 0x50, 4, index);
                integer::encode(&mut section, 0, 7, value.len());
                section.extend_from_slice(value);
            }
            None => {
                integer::encode(&mut section, 0x20, 3, name.len());
                section.extend_from_slice(name.as_bytes());
                integer::encode(&mut section, 0, 7, value.len());
                section.extend_from_slice(value);
            }
        }
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, value: &[u8]) -> Field {
        Field {
            name: name.as_bytes().to_vec(),
            value: value.to_vec(),
        }
    }

    fn fields(section: &[u8]) -> Vec<Field> {
        match decode(section, 10_000).unwrap() {
            Section::Fields(fields) => fields,
            Section::TooLarge => panic!("too large"),
        }
    }

    #[test]
    fn the_example_of_the_rfc_is_read() {
        let section = b"\x00\x00\x51\x0b/index.html";
        assert_eq!(fields(section), [field(":path", b"/index.html")]);
        assert_eq!(encode([(":path", &b"/index.html"[..])]), section);
    }

    #[test]
    fn what_ls_qpack_writes_is_read() {
        let section =
            b"\x00\x00\xcf\x2f\x00\xb9\x5d\x87\x49\xc8\x7a\x3f\x87\xf0\x58\xd0\x72\x75\x2a\x7f\
            \xd7\x51\x89\x60\x93\x8d\x3f\xe5\x87\x3d\x30\x07\x50\x88\x2f\x91\xd3\x5d\x05\x5c\
            \x87\xa7\x2f\x08\x41\x48\xb7\x82\xc6\x83\x93\xa9\x52\xb7\x72\xd8\x83\x1e\xaf\x02\
            \x31\x33\x22\x78\x2d\x0b\x67\x72\xc3\xb6\xc3\x9f\x65\x72\x20\x00\xff";
        let expected = [
            field(":method", b"CONNECT"),
            field(":protocol", b"websocket"),
            field(":scheme", b"https"),
            field(":path", b"/chat?room=1"),
            field(":authority", b"example.com"),
            field("sec-websocket-version", b"13"),
            field("x-", b"gr\xc3\xb6\xc3\x9fer \0\xff"),
        ];
        assert_eq!(fields(section), expected);
    }

    #[test]
    fn what_is_encoded_comes_back() {
        let long = "v".repeat(1_000);
        let written = [
            (":status", "200"),
            (":status", "429"),
            ("x-frame-options", "deny"),
            ("x-frame-options", "other"),
            ("a", ""),
            ("a-name-that-is-longer-than-the-prefix", &long),
        ];
        let section = encode(written.map(|(name, value)| (name, value.as_bytes())));
        let expected = written.map(|(name, value)| field(name, value.as_bytes()));
        assert_eq!(fields(&section), expected);
        for end in 2..section.len() {
            // A shortened section ends in the middle of a field or between two fields; whole fields
            // must be the same.
            if let Ok(Section::Fields(fields)) = decode(&section[..end], 10_000) {
                assert_eq!(fields, expected[..fields.len()]);
            }
        }
    }

    #[test]
    fn s11_fields_count_with_what_they_cost() {
        let section = encode([("name", &b"value"[..])]);
        assert!(matches!(decode(&section, 41), Ok(Section::Fields(_))));
        assert_eq!(decode(&section, 40), Ok(Section::TooLarge));
        // Each reference of two bytes stands for more than a hundred bytes.
        let references = [&[0, 0][..], &[0xff, 0x16].repeat(1_000)].concat();
        assert_eq!(decode(&references, 30_000), Ok(Section::TooLarge));
    }

    #[test]
    fn references_to_the_dynamic_table_are_faults() {
        for section in [
            &b""[..],
            b"\x00",
            b"\x01\x00",
            b"\x00\x00\x80",
            b"\x00\x00\x10",
            b"\x00\x00\x40\x00",
            b"\x00\x00\x00\x00",
            b"\x00\x00\xff\x24",
            b"\x00\x00\x51\x0b/index",
        ] {
            let fault = decode(section, 1_000).unwrap_err();
            assert_eq!(fault.code, Code::QPACK_DECOMPRESSION_FAILED, "{section:?}");
        }
    }
}
