//! What a simulated client reads: lines of JSON, and the blocks of the native protocol.

use serde::{Deserialize, de::IgnoredAny};

/// A reply or a push.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    pub(super) id: u32,
    pub(super) connect: Option<IgnoredAny>,
    pub(super) subscribe: Option<Subscribed>,
    pub(super) error: Option<ErrorBody>,
    pub(super) push: Option<Push>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorBody {
    pub(super) code: u32,
    pub(super) temporary: bool,
}

/// The answer to a subscription.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Subscribed {
    pub(super) epoch: String,
    pub(super) offset: u64,
    pub(super) was_recovering: bool,
    pub(super) recovered: bool,
    pub(super) publications: Vec<Publication>,
    pub(super) id: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Push {
    pub(super) channel: String,
    #[serde(rename = "pub")]
    pub(super) publication: Option<Publication>,
    pub(super) unsubscribe: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Publication {
    /// The run of the stream, and the number of the publication in it.
    pub(super) data: (u64, u64),
    /// The offset; 0 without positions.
    #[serde(default)]
    pub(super) offset: u64,
}

/// A position from which a client recovers.
#[derive(Debug)]
pub(super) struct Position {
    pub(super) epoch: String,
    pub(super) offset: u64,
}

/// A frame of the native protocol.
#[derive(Debug)]
pub(super) enum Native {
    Block(Block),
    Lines(Vec<Line>),
}

/// A block of publications.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) channel: u64,
    /// The number of missed publications if the block reports a gap; `None` in it if unknown.
    pub(super) missed: Option<Option<u64>>,
    pub(super) publications: Vec<Publication>,
}

/// Removes the first line of what an SDK has received, if it is complete.
pub(super) fn sdk(rest: &mut &[u8]) -> Option<Line> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (line, behind) = rest.split_at(end);
    *rest = &behind[1..];
    Some(parse(line))
}

/// Removes the first frame of what a native client has received, if it is complete.
pub(super) fn native(rest: &mut &[u8]) -> Option<Native> {
    let (head, length) = match **rest {
        [_, length @ ..126, ..] => (2, usize::from(length)),
        [_, 126, high, low, ..] => (4, usize::from(u16::from_be_bytes([high, low]))),
        _ => return None,
    };
    if rest.len() < head + length {
        return None;
    }
    let (frame, behind) = rest.split_at(head + length);
    *rest = behind;
    let mut payload = &frame[head..];
    Some(match frame[0] {
        0x81 => Native::Lines(payload.split(|byte| *byte == b'\n').map(parse).collect()),
        0x82 => Native::Block(block(&mut payload)),
        other => panic!("unexpected frame {other:#x}"),
    })
}

fn parse(line: &[u8]) -> Line {
    serde_json::from_slice(line).expect("the server sends valid replies")
}

fn block(payload: &mut &[u8]) -> Block {
    let channel = varint(payload);
    let flags = varint(payload);
    let mut next = if flags & 0x01 != 0 {
        varint(payload)
    } else {
        0
    };
    let missed = (flags & 0x04 != 0).then(|| {
        let missed = varint(payload).checked_sub(1);
        _ = varint(payload); // the cause
        missed
    });
    assert_eq!(
        flags & !0x05,
        0,
        "no option of the simulation needs other flags"
    );
    let publications = (0..varint(payload)).map(|_| {
        let length = varint(payload) as usize;
        let (data, behind) = payload.split_at(length);
        *payload = behind;
        let offset = next;
        next += flags & 0x01;
        let data = serde_json::from_slice(data).expect("payloads are pairs of numbers");
        Publication { data, offset }
    });
    let publications = publications.collect();
    assert!(
        payload.is_empty(),
        "the encoder writes one block into a frame"
    );
    Block {
        channel,
        missed,
        publications,
    }
}

fn varint(payload: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (byte, behind) = payload.split_first().expect("a number is complete");
        *payload = behind;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return number;
        }
    }
}
