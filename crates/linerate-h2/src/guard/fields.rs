//! Checks whether a client's field blocks can be decoded (RFC 7541 §3, §5, §6).
//!
//! h2 decodes their contents. This module only detects a `#` in a path, because the code that makes
//! a URI of the path discards it and everything after it.

use super::{
    integer::Integer,
    table::{Field, Name, PATH, Table},
};
use linerate_http::huffman::Code;

/// How many bytes of a Huffman-coded string are decoded at a time.
const CODED_BYTES: usize = 32;

/// Maximum number of symbols in these bytes: each symbol has at least five bits, and fewer than
/// thirty bits may be left over from before.
const SYMBOLS_MAX: usize = (CODED_BYTES * 8 + 30) / 5;

/// Parses the field blocks of a connection from pieces of any size.
#[derive(Debug, Default)]
pub(super) struct Fields {
    table: Table,
    place: Place,
    field: Literal,
    /// True if nothing but changes of the table size has arrived in this block.
    is_begin: bool,
    has_fragment: bool,
}

/// The part of the block that comes next.
#[derive(Clone, Copy, Debug, Default)]
enum Place {
    /// A field, or a change of the table size.
    #[default]
    Field,
    /// More bytes of a number.
    Number(Number, Integer),
    /// The length of a part of a field.
    Length(Part),
    Text(Part, Text),
}

/// The meaning of a number.
#[derive(Clone, Copy, Debug)]
enum Number {
    /// The table index of a whole field.
    Field,
    /// The table index of a field's name.
    Name,
    Length {
        part: Part,
        is_coded: bool,
    },
    TableBytes,
}

/// A part of a literal field.
#[derive(Clone, Copy, Debug)]
enum Part {
    Name,
    Value,
}

/// The rest of a string.
#[derive(Clone, Copy, Debug)]
struct Text {
    bytes: u32,
    /// The decoder, if the string is Huffman-coded.
    code: Option<Code>,
}

/// A literal field, as far as it has arrived.
#[derive(Debug, Default)]
struct Literal {
    is_for_table: bool,
    field: Field,
    /// True if the name so far is a prefix of `:path`.
    may_be_path: bool,
}

impl Fields {
    /// Starts a block.
    pub(super) fn begin(&mut self) {
        self.is_begin = true;
        self.has_fragment = false;
    }

    /// Handles part of a block; returns `None` if it cannot be decoded.
    pub(super) fn handle_input(&mut self, mut input: &[u8]) -> Option<()> {
        while let Some((first, rest)) = input.split_first() {
            input = match self.place {
                Place::Field => {
                    self.handle_first(*first)?;
                    rest
                }
                Place::Number(number, integer) => {
                    self.handle_number(number, integer.push(*first)?)?;
                    rest
                }
                Place::Length(part) => {
                    let is_coded = first & 0x80 != 0;
                    let number = Number::Length { part, is_coded };
                    self.handle_number(number, Integer::begin(*first, 7))?;
                    rest
                }
                Place::Text(part, text) => self.handle_text(part, text, input)?,
            };
        }
        Some(())
    }

    /// Ends a block; returns whether it has a path with a `#`, or `None` if it ends in the middle
    /// of a field.
    pub(super) fn end(&mut self) -> Option<bool> {
        matches!(self.place, Place::Field).then_some(self.has_fragment)
    }

    /// Handles the first byte of a field or of a change of the table size (§6).
    fn handle_first(&mut self, first: u8) -> Option<()> {
        let (number, prefix_bits) = match first {
            0x80.. => (Number::Field, 7),
            0x40..=0x7f => (Number::Name, 6),
            // §4.2: "This dynamic table size update MUST occur at the beginning of the first header
            // block following the change".
            0x20..=0x3f if self.is_begin => (Number::TableBytes, 5),
            0x20..=0x3f => return None,
            0x00..=0x1f => (Number::Name, 4),
        };
        self.is_begin &= matches!(number, Number::TableBytes);
        self.field = Literal {
            is_for_table: prefix_bits == 6,
            ..Literal::default()
        };
        self.handle_number(number, Integer::begin(first, prefix_bits))
    }

    /// Handles a number if it is complete.
    fn handle_number(&mut self, number: Number, integer: Integer) -> Option<()> {
        let Some(value) = integer.value() else {
            self.place = Place::Number(number, integer);
            return Some(());
        };
        self.place = match number {
            Number::Field => {
                self.has_fragment |= self.table.field(value)?.has_fragment;
                Place::Field
            }
            Number::Name if value == 0 => {
                self.field.may_be_path = true;
                Place::Length(Part::Name)
            }
            Number::Name => {
                self.field.field.name = self.table.field(value)?.name;
                Place::Length(Part::Value)
            }
            Number::Length { part, is_coded } => {
                let text = Text {
                    bytes: value,
                    code: is_coded.then(Code::default),
                };
                return self.go_on(part, text);
            }
            Number::TableBytes => {
                self.table.resize(value)?;
                Place::Field
            }
        };
        Some(())
    }

    /// Handles as much of a string as there is; returns the input after it.
    fn handle_text<'a>(&mut self, part: Part, mut text: Text, input: &'a [u8]) -> Option<&'a [u8]> {
        let (bytes, rest) = input.split_at(input.len().min(text.bytes as usize));
        text.bytes -= bytes.len() as u32;
        match &mut text.code {
            None => self.field.handle(part, bytes),
            Some(code) => {
                for coded in bytes.chunks(CODED_BYTES) {
                    let mut symbols = [0; SYMBOLS_MAX];
                    let mut count = 0;
                    for byte in coded {
                        code.push(*byte, |symbol| {
                            symbols[count] = symbol;
                            count += 1;
                        })?;
                    }
                    self.field.handle(part, &symbols[..count]);
                }
            }
        }
        self.go_on(part, text)?;
        Some(rest)
    }

    /// Sets the place to the rest of a string, or to what follows a complete one.
    fn go_on(&mut self, part: Part, text: Text) -> Option<()> {
        if text.bytes > 0 {
            self.place = Place::Text(part, text);
            return Some(());
        }
        if text.code.is_some_and(|code| !code.is_padding()) {
            return None;
        }
        self.place = match part {
            Part::Name => {
                let literal = &mut self.field;
                let is_whole = literal.field.name.bytes as usize == PATH.len();
                literal.field.name.is_path = literal.may_be_path && is_whole;
                Place::Length(Part::Value)
            }
            Part::Value => {
                let field = self.field.field;
                self.has_fragment |= field.has_fragment;
                if self.field.is_for_table {
                    self.table.insert(field);
                }
                Place::Field
            }
        };
        Some(())
    }
}

impl Literal {
    /// Handles a few bytes of a part.
    fn handle(&mut self, part: Part, bytes: &[u8]) {
        let count = bytes.len() as u32;
        match part {
            Part::Name => {
                let Name { bytes: before, .. } = &mut self.field.name;
                let expected = PATH.as_bytes().get(*before as usize..);
                self.may_be_path &= expected.is_some_and(|expected| expected.starts_with(bytes));
                *before = before.saturating_add(count);
            }
            Part::Value => {
                self.field.has_fragment |= self.field.name.is_path && bytes.contains(&b'#');
                self.field.value_bytes = self.field.value_bytes.saturating_add(count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a block in one piece; returns the result of its end.
    fn read(fields: &mut Fields, block: &[u8]) -> Option<bool> {
        fields.begin();
        fields.handle_input(block)?;
        fields.end()
    }

    /// Reads the blocks of one connection byte by byte and split in two at every position. Returns
    /// the result of the last block, which must not depend on how the input is split.
    fn judged(blocks: &[&[u8]]) -> Option<bool> {
        let longest = blocks.iter().map(|block| block.len()).max().unwrap();
        let mut ends = (0..=longest).map(|at| {
            let mut fields = Fields::default();
            let mut end = None;
            for block in blocks {
                let (first, second) = block.split_at(at.min(block.len()));
                fields.begin();
                fields.handle_input(first)?;
                fields.handle_input(second)?;
                end = Some(fields.end()?);
            }
            end
        });
        let end = ends.next().unwrap();
        assert!(ends.all(|other| other == end), "{blocks:?}");
        end
    }

    #[test]
    fn the_table_is_as_large_as_in_the_examples_of_the_rfc() {
        // RFC 7541 appendices C.3 and C.4: the same requests without and with Huffman coding.
        let plain: [&[u8]; 3] = [
            b"\x82\x86\x84\x41\x0fwww.example.com",
            b"\x82\x86\x84\xbe\x58\x08no-cache",
            b"\x82\x87\x85\xbf\x40\x0acustom-key\x0ccustom-value",
        ];
        let coded: [&[u8]; 3] = [
            b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
            b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf",
            b"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf",
        ];
        for blocks in [plain, coded] {
            let mut fields = Fields::default();
            for (block, bytes) in blocks.iter().zip([57, 110, 164]) {
                assert_eq!(read(&mut fields, block), Some(false));
                assert_eq!(fields.table.bytes(), bytes);
            }
            assert_eq!(judged(&blocks), Some(false));
        }
    }

    #[test]
    fn s25_blocks_that_can_not_be_decoded_are_none() {
        for block in [
            &b"\x80"[..],
            b"\xbe",
            b"\xff\xff\xff\x7f",
            b"\x7e\x01a",
            b"\xff\xff\xff\xff\xff\xff",
            b"\xff",
            b"\x00",
            b"\x00\x05a",
            b"\x00\x01a",
            b"\x00\x01a\x05b",
            b"\x00\xff\xff\xff\xff\xff",
            b"\x00\x83\x64\x02\xff\x01a",
            b"\x00\x81\x00\x01a",
            b"\x00\x84\xff\xff\xff\xff\x01a",
            b"\x3f\xff\xff\xff\x07",
            b"\x3f\xe2\x1f",
            b"\x82\x20",
        ] {
            assert_eq!(judged(&[block]), None, "{block:?}");
            assert_eq!(judged(&[b"\x82\x86", block]), None, "{block:?}");
        }
    }

    #[test]
    fn blocks_with_anything_that_may_be_can_be_decoded() {
        let long = [&b"\x40\x01a\x7f\x85\x1e"[..], &[b'v'; 3_972]].concat();
        for block in [
            &b""[..],
            b"\xbd",
            b"\x00\x00\x00",
            b"\x10\x80\x80",
            b"\x20\x3f\xe1\x1f\x82",
            b"\x0f\x2e\x01x",
            &long,
        ] {
            assert_eq!(judged(&[block]), Some(false), "{block:?}");
        }
    }

    #[test]
    fn a_change_of_the_size_of_the_table_gives_up_fields() {
        let add = b"\x40\x01a\x01b";
        assert_eq!(judged(&[add, b"\xbe"]), Some(false));
        assert_eq!(judged(&[add, b"\x20\xbe"]), None);
        assert_eq!(judged(&[add, b"\x20", b"\xbe"]), None);
        assert_eq!(judged(&[add, b"\x3f\x03\xbe"]), Some(false));
    }

    #[test]
    fn s11_a_number_sign_is_found_in_paths_only() {
        for block in [
            &b"\x04\x02/#"[..],
            b"\x15\x02/#",
            b"\x44\x01#",
            b"\x00\x05:path\x02#a",
            b"\x82\x04\x83\x63\xfe\xbf\x86",
            b"\x00\x84\xb9\x58\xd3\x3f\x02/#",
        ] {
            assert_eq!(judged(&[block]), Some(true), "{block:?}");
        }
        for block in [
            &b"\x04\x02/a"[..],
            b"\x01\x02/#",
            b"\x00\x06:patha\x01#",
            b"\x00\x04:pat\x01#",
            b"\x00\x05:pats\x01#",
            b"\x00\x00\x01#",
        ] {
            assert_eq!(judged(&[block]), Some(false), "{block:?}");
        }
        let (added, used) = (b"\x44\x02/#", b"\x82\xbe");
        assert_eq!(judged(&[added, used]), Some(true));
        assert_eq!(judged(&[added, b"\x82"]), Some(false));
        // The name is in the table, but the value is a different one.
        assert_eq!(judged(&[b"\x40\x05:path\x01/", b"\x7e\x01#"]), Some(true));
        assert_eq!(judged(&[added, b"\x7e\x01a"]), Some(false));
    }
}
