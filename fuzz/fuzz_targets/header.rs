//! Any bytes parsed as a frame header, and any header encoded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_proto::{
    Header, MaskKey, Opcode, ProtocolError, Role,
    frame::{BulkEncoder, FrameFactory, encode_in_place, head_room, listen},
};

fuzz_target!(|data: &[u8]| {
    let decoded = Header::decode(data);
    assert_eq!(decoded, naive(data));
    let Ok(Some((header, bytes))) = decoded else {
        return;
    };
    assert!(bytes <= Header::BYTES_MAX);
    for end in 0..bytes {
        // The first two bytes of a header reveal all its errors except those of its length.
        assert_eq!(Header::decode(&data[..end]), Ok(None));
    }
    let mut wire = [0; Header::BYTES_MAX];
    assert_eq!(header.encode(&mut wire), bytes);
    assert_eq!(wire[..bytes], data[..bytes], "only one form is legal");
    every_way_writes_the_same(header, &data[bytes..]);
});

/// Encodes a frame in all three ways, and decodes it again.
fn every_way_writes_the_same(header: Header, payload: &[u8]) {
    let (opcode, mask) = (header.opcode, header.mask);
    let room = head_room(payload.len(), mask.is_some());
    let mut in_place = vec![0; room];
    in_place.extend_from_slice(payload);
    let whole = 0..in_place.len();
    let at = room..in_place.len();
    assert_eq!(encode_in_place(&mut in_place, at, opcode, mask), whole);

    let mut made = vec![0; whole.end];
    let mut frame = FrameFactory::start(&mut made, opcode, payload.len(), mask).expect("it fits");
    frame.payload_mut().copy_from_slice(payload);
    assert_eq!(frame.finish(), whole.end);
    assert!(made == in_place, "factory");

    let mut bulk = vec![0; whole.end];
    let mut frames = BulkEncoder::new(&mut bulk);
    assert!(frames.push(opcode, payload, mask));
    assert!(frames.written() == in_place, "bulk encoder");
    assert!(!frames.push(opcode, b"", None), "the buffer is full");

    let role = if mask.is_some() {
        Role::Server
    } else {
        Role::Client
    };
    let mut read = Vec::new();
    let mut listener =
        |fin, rsv, seen, bytes: &mut [u8]| read.push((fin, rsv, seen, bytes.to_vec()));
    if !opcode.is_control() || payload.len() < 126 {
        assert_eq!(listen(role, &mut in_place, &mut listener), Ok(whole.end));
        assert_eq!(read, [(true, 0, opcode, payload.to_vec())]);
    }
}

/// Decodes a header bit by bit, as RFC 6455 §5.2 defines it.
fn naive(data: &[u8]) -> Result<Option<(Header, usize)>, ProtocolError> {
    let (Some(first), Some(second)) = (data.first(), data.get(1)) else {
        return Ok(None);
    };
    let bits = first & 15;
    let opcode = match bits {
        0 => Opcode::Continuation,
        1 => Opcode::Text,
        2 => Opcode::Binary,
        8 => Opcode::Close,
        9 => Opcode::Ping,
        10 => Opcode::Pong,
        opcode => return Err(ProtocolError::ReservedOpcode { opcode }),
    };
    let length_field = second % 128;
    if bits >= 8 && *first < 128 {
        return Err(ProtocolError::ControlFragmented { opcode });
    }
    if bits >= 8 && length_field > 125 {
        return Err(ProtocolError::ControlTooLong { length_field });
    }
    let extended = match length_field {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let Some(length) = data.get(2..2 + extended) else {
        return Ok(None);
    };
    let mut payload_bytes = length
        .iter()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    match extended {
        0 => payload_bytes = u64::from(length_field),
        8 if payload_bytes >= 1 << 63 => {
            return Err(ProtocolError::LengthOverflow {
                bytes: payload_bytes,
            });
        }
        2 if payload_bytes > 125 => {}
        8 if payload_bytes > 65_535 => {}
        _ => {
            return Err(ProtocolError::NonMinimalLength {
                bytes: payload_bytes,
            });
        }
    }
    let mut bytes = 2 + extended;
    let mut mask = None;
    if *second >= 128 {
        let Some(key) = data.get(bytes..bytes + 4) else {
            return Ok(None);
        };
        mask = Some(MaskKey([key[0], key[1], key[2], key[3]]));
        bytes += 4;
    }
    let header = Header {
        fin: *first >= 128,
        rsv: first / 16 % 8,
        opcode,
        mask,
        payload_bytes,
    };
    Ok(Some((header, bytes)))
}
