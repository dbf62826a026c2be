//! The first bytes of compressed files.

/// The encoding that the first bytes of a file indicate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Magic {
    Gzip,
    Plain,
    /// The bytes may be the beginning of a compressed file.
    TooShort,
    /// Compressed by the named program.
    Unsupported(&'static str),
    Zstd,
}

const MAGICS: [(&[u8], Magic); 6] = [
    (b"\x1F\x8B\x08", Magic::Gzip),
    (b"\x28\xB5\x2F\xFD", Magic::Zstd),
    (b"\xFD7zXZ\0", Magic::Unsupported("xz")),
    (b"PK\x03\x04", Magic::Unsupported("zip")),
    (b"\x04\x22\x4D\x18", Magic::Unsupported("lz4")),
    // The fourth byte is the block size, 1 to 9.
    (b"BZh9\x31\x41\x59\x26\x53\x59", Magic::Unsupported("bzip2")),
];

/// Returns the encoding that the first bytes of a file indicate.
pub(super) fn find(head: &[u8]) -> Magic {
    for (magic, meaning) in MAGICS {
        let len = head.len().min(magic.len());
        let is_alike = magic[..len]
            .iter()
            .zip(head)
            .enumerate()
            .all(|(place, (a, b))| a == b || place == 3 && *a == b'9' && b.is_ascii_digit());
        if is_alike {
            return if len == magic.len() {
                meaning
            } else {
                Magic::TooShort
            };
        }
    }
    skippable_frame(head)
}

/// Recognizes a skippable Zstandard frame, with which the output of `pzstd` begins (RFC 8878
/// §3.1.2).
fn skippable_frame(head: &[u8]) -> Magic {
    match head {
        [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => Magic::Zstd,
        [] | [0x50..=0x5F] | [0x50..=0x5F, 0x2A] | [0x50..=0x5F, 0x2A, 0x4D] => Magic::TooShort,
        _ => Magic::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::{Magic, find};

    #[test]
    fn first_bytes_reveal_the_compression() {
        assert_eq!(find(b"\x1F\x8B\x08\0"), Magic::Gzip);
        assert_eq!(find(b"\x28\xB5\x2F\xFD"), Magic::Zstd);
        assert_eq!(find(b"\x50\x2A\x4D\x18\x04"), Magic::Zstd);
        assert_eq!(find(b"\xFD7zXZ\0\0"), Magic::Unsupported("xz"));
        assert_eq!(find(b"PK\x03\x04\x14"), Magic::Unsupported("zip"));
        assert_eq!(find(b"BZh11AY&SY"), Magic::Unsupported("bzip2"));
        assert_eq!(find(b"\x04\x22\x4D\x18"), Magic::Unsupported("lz4"));
    }

    #[test]
    fn logs_are_plain_once_they_differ_from_all_magic_bytes() {
        for head in [
            "192.0.2.7",
            "{",
            "\n",
            "PKI.example",
            "BZh.example",
            "BZh9 - - [",
            "Q*host",
            "\x1F\u{7F}",
        ] {
            assert_eq!(find(head.as_bytes()), Magic::Plain, "{head}");
        }
        for head in [
            &b""[..],
            b"B",
            b"BZh9",
            b"P",
            b"P*",
            b"\x1F\x8B",
            b"\x28\xB5\x2F",
            b"Q*M",
        ] {
            assert_eq!(find(head), Magic::TooShort, "{head:?}");
        }
    }
}
