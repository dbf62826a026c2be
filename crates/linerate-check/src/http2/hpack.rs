//! Encoding and decoding of header fields (RFC 7541). Our fields are sent as literals, and the
//! server is not allowed a dynamic table.

use super::{Fields, huffman::decoded};

/// The static table (RFC 7541 Appendix A).
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// Encodes fields as literals without indexing (RFC 7541 §6.2.2).
pub(crate) fn block(fields: &[(impl AsRef<[u8]>, impl AsRef<[u8]>)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0x00);
        push_text(&mut block, name.as_ref());
        push_text(&mut block, value.as_ref());
    }
    block
}

/// Appends a string literal (RFC 7541 §5.2).
pub(crate) fn push_text(block: &mut Vec<u8>, text: &[u8]) {
    let length = text.len();
    if length < 127 {
        block.push(length as u8);
    } else {
        block.push(127);
        let mut rest = length - 127;
        while rest >= 128 {
            block.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        block.push(rest as u8);
    }
    block.extend(text);
}

/// Decodes the fields of a block.
///
/// # Errors
/// Describes the fault if the block cannot be decoded, or uses the dynamic table, which we do not
/// allow.
pub(crate) fn fields(mut block: &[u8]) -> Result<Fields, &'static str> {
    let input = &mut block;
    let mut fields = Fields::new();
    while let Some(first) = input.first().copied() {
        let prefix_bits = match first {
            0x80.. => 7,
            0x40.. => 6,
            0x20.. => 5,
            _ => 4,
        };
        let index = integer(input, prefix_bits).ok_or("a field block with a malformed integer")?;
        if prefix_bits == 5 {
            if index != 0 || !fields.is_empty() {
                return Err(
                    "a field block that changes the size of the dynamic table, which we do not allow",
                );
            }
            continue;
        }
        let known = match index {
            0 => None,
            _ => Some(
                STATIC
                    .get(index - 1)
                    .ok_or("a field of the dynamic table, which we do not allow")?,
            ),
        };
        let broken = "a field block with a malformed string";
        fields.push(match (known, prefix_bits) {
            (None, 7) => return Err("a field with the index 0"),
            (Some((name, value)), 7) => ((*name).into(), (*value).into()),
            (Some((name, _)), _) => ((*name).into(), text(input).ok_or(broken)?),
            (None, _) => (text(input).ok_or(broken)?, text(input).ok_or(broken)?),
        });
    }
    Ok(fields)
}

/// Decodes an integer (RFC 7541 §5.1). Those with more than three continuation bytes are rejected.
fn integer(input: &mut &[u8], prefix_bits: u8) -> Option<usize> {
    let (first, mut rest) = input.split_first()?;
    let most = (1_usize << prefix_bits) - 1;
    let mut value = usize::from(*first) & most;
    let mut shift = 0;
    let mut more = value == most;
    while more {
        let byte;
        (byte, rest) = rest.split_first()?;
        value += usize::from(byte & 0x7F) << shift;
        shift += 7;
        more = byte & 0x80 != 0;
        if shift > 21 {
            return None;
        }
    }
    *input = rest;
    Some(value)
}

fn text(input: &mut &[u8]) -> Option<Vec<u8>> {
    let is_coded = input.first()? & 0x80 != 0;
    let length = integer(input, 7)?;
    let (bytes, rest) = input.split_at_checked(length)?;
    *input = rest;
    if is_coded {
        decoded(bytes)
    } else {
        Some(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let long = "x".repeat(300);
        let written = [(":path", "/chat"), ("a", ""), ("b", &*long)];
        let read = fields(&block(&written)).unwrap();
        let expected = written.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(read, expected);
    }

    #[test]
    fn the_examples_of_the_standard_are_read() {
        // RFC 7541 §C.6.1 after a change of the table size to 0. The example itself uses the table.
        let coded = b"\x20\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b";
        let read = fields(coded).unwrap();
        assert_eq!(read[0], (b":status".to_vec(), b"302".to_vec()));
        assert_eq!(read[1], (b"cache-control".to_vec(), b"private".to_vec()));
        assert_eq!(fields(b"\x88").unwrap()[0].1, b"200");
    }

    #[test]
    fn a_table_is_not_allowed() {
        assert!(fields(b"\xbe").is_err());
        assert!(fields(b"\x3f\xe1\x1f").is_err());
        assert!(fields(b"\x80").is_err());
        assert!(fields(b"\x00\x05a").is_err());
        assert!(fields(b"\xff\xff\xff\xff\xff\xff").is_err());
    }
}
