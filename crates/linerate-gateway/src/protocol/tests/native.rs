//! Native blocks.

use std::collections::BTreeMap;

use bytes::Bytes;
use linerate_hub::{Batch, Payloads, Publication};

use super::{bytes, channel, encode, full, publication, publications::frames};
use crate::protocol::native::{BLOCKS, Flags};

/// A block as a client decodes it.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Block {
    pub(super) channel_id: u64,
    pub(super) first_offset: Option<u64>,
    pub(super) conflated: u64,
    pub(super) gap: Option<(u64, u64)>,
    pub(super) publications: Vec<Found>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Found {
    pub(super) offset: Option<u64>,
    pub(super) source: Vec<u8>,
    pub(super) extras: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

impl Block {
    /// Decodes a block as `docs/gateway/protocols.md` specifies, independently of the encoder.
    pub(super) fn read(rest: &mut &[u8]) -> Self {
        let mut block = Self {
            channel_id: varint(rest),
            ..Self::default()
        };
        let flags = varint(rest) as u8;
        if flags & Flags::OFFSETS != 0 {
            block.first_offset = Some(varint(rest));
        }
        if flags & Flags::CONFLATED != 0 {
            block.conflated = varint(rest);
        }
        if flags & Flags::GAP != 0 {
            block.gap = Some((varint(rest), varint(rest)));
        }
        let mut offset = block.first_offset;
        for _ in 0..varint(rest) {
            let skipped = if flags & Flags::SPARSE != 0 {
                varint(rest)
            } else {
                0
            };
            offset = offset.map(|offset| offset + skipped);
            let source = if flags & Flags::SOURCES != 0 {
                taken(rest)
            } else {
                Vec::new()
            };
            let extras = if flags & Flags::EXTRAS != 0 {
                taken(rest)
            } else {
                Vec::new()
            };
            let payload = taken(rest);
            block.publications.push(Found {
                offset,
                source,
                extras,
                payload,
            });
            offset = offset.map(|offset| offset + 1);
        }
        block
    }
}

fn varint(rest: &mut &[u8]) -> u64 {
    let mut number = 0;
    for place in 0.. {
        let (byte, behind) = rest.split_first().unwrap();
        *rest = behind;
        number |= u64::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

fn taken(rest: &mut &[u8]) -> Vec<u8> {
    let length = varint(rest) as usize;
    let (taken, behind) = rest.split_at(length);
    *rest = behind;
    taken.to_vec()
}

/// Returns the examples of `docs/gateway/protocols.md`, keyed by the line that introduces them.
fn examples() -> BTreeMap<&'static str, Vec<u8>> {
    let text = include_str!("../../../../../docs/gateway/protocols.md");
    let examples = text.split("\n```hex\n").collect::<Vec<_>>();
    let pairs = examples.windows(2);
    pairs
        .map(|pair| {
            let title = pair[0].trim_end().rsplit('\n').next().unwrap();
            let code = pair[1].split("```").next().unwrap();
            let code = code.lines().map(|line| line.split('#').next().unwrap());
            (title, bytes(&code.collect::<String>()))
        })
        .collect()
}

#[test]
fn the_examples_of_the_documentation_are_what_is_written() {
    let mut examples = examples();
    let mut is_example = |title: &str, out: Vec<u8>| {
        let expected = examples
            .remove(title)
            .unwrap_or_else(|| panic!("no example {title:?}"));
        assert_eq!(out, expected, "{title}");
    };
    let batch = |publications: &[Publication], conflated| {
        let mut out = Vec::new();
        let batch = Batch {
            channel: &channel("ticks:AAPL"),
            channel_id: 7,
            publications,
            conflated,
            payloads: Payloads::Full,
            with_channel_id: false,
            with_positions: false,
        };
        (BLOCKS.encode)(&batch, &mut out).unwrap();
        out
    };
    let first = publication(b"{\"p\":1}", 300);
    let second = publication(b"\xff", 301);
    let fourth = publication(b"{\"p\":4}", 303);
    let plain = Publication::new(Bytes::from_static(b"Spam"));
    is_example("One publication without an offset:", batch(&[plain], 0));
    is_example(
        "Two with the offsets 300 and 301, the second of a single byte FF:",
        batch(&[first.clone(), second], 0),
    );
    is_example(
        "Offsets 300 and 303 after conflation, which left out two:",
        batch(&[first, fourth], 2),
    );
    is_example(
        "A publication in `ticks:A` for a subscription to a pattern, with tags and its publisher:",
        batch(&[full(b"1")], 0),
    );
    let mut gap = Vec::new();
    let ring_evicted = linerate_hub::Gap {
        missed: Some(3),
        cause: linerate_hub::GapCause::RingEvicted,
    };
    crate::protocol::native::append_gap(7, ring_evicted, &mut gap);
    is_example(
        "Three publications were missed, since the client was too slow:",
        gap,
    );
    assert!(examples.is_empty(), "{examples:?}");
}

#[test]
fn a_block_says_only_what_is_so() {
    let publications = [publication(b"a", 1), publication(b"b", 2)];
    let out = encode(&BLOCKS, "c", &publications).unwrap();
    // Channel 300, offsets from 1, two publications.
    assert_eq!(out, b"\x82\x09\xac\x02\x01\x01\x02\x01a\x01b");
}

#[test]
fn a_block_ends_where_offsets_go_back_or_come_or_go() {
    let plain = Publication::new(Bytes::from_static(b"x"));
    let publications = [
        publication(b"a", 5),
        publication(b"b", 1),
        publication(b"c", 1),
        plain.clone(),
        plain,
        publication(b"d", 9),
    ];
    let out = encode(&BLOCKS, "c", &publications).unwrap();
    let blocks = frames(&out).into_iter().map(|(_, mut payload)| {
        let block = Block::read(&mut payload);
        assert!(payload.is_empty());
        (block.first_offset, block.publications.len())
    });
    let expected = [
        (Some(5), 1),
        (Some(1), 1),
        (Some(1), 1),
        (None, 2),
        (Some(9), 1),
    ];
    assert_eq!(blocks.collect::<Vec<_>>(), expected);
}

#[test]
fn many_publications_are_several_blocks() {
    let publications = vec![Publication::new(vec![0; 0x8000].into()); 5];
    let out = encode(&BLOCKS, "c", &publications).unwrap();
    let counts = frames(&out)
        .into_iter()
        .map(|(_, mut payload)| Block::read(&mut payload).publications.len());
    // Twice 32 KiB exceeds the limit by one byte.
    assert_eq!(counts.collect::<Vec<_>>(), [1, 1, 1, 1, 1]);
    let publications = vec![Publication::new(vec![0; 0x7FFF].into()); 5];
    let out = encode(&BLOCKS, "c", &publications).unwrap();
    assert_eq!(frames(&out).len(), 3);
}
