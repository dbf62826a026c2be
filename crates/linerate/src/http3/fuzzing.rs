//! What a peer says on the streams of HTTP/3, for fuzzers; compiled only for them.

use linerate_proto::{Role, handshake::HandshakeLimits};

use super::{
    control::{ControlReader, DecoderChecker, check_encoder},
    frame::{Head, HeadReader},
    message::{RequestHead, ResponseHead},
    qpack::{self, Section},
    varint,
};

/// Reads a field section: decodes it, encodes what it says and reads that again, and makes a request and a response
/// of it. Returns what came of it, written out.
pub fn field_section(input: &[u8], bytes_max: usize) -> String {
    let fields = match qpack::decode(input, bytes_max) {
        Ok(Section::Fields(fields)) => fields,
        Ok(Section::TooLarge) => return "too large".into(),
        Err(fault) => return fault.to_string(),
    };
    let bytes: usize = fields
        .iter()
        .map(|field| field.name.len() + field.value.len() + 32)
        .sum();
    assert!(bytes <= bytes_max);
    let names: Option<Vec<&str>> = fields
        .iter()
        .map(|field| std::str::from_utf8(&field.name).ok())
        .collect();
    if let Some(names) = names {
        let values = fields.iter().map(|field| &*field.value);
        let again = qpack::encode(names.into_iter().zip(values));
        let decoded = qpack::decode(&again, bytes_max).expect("what we write is legal");
        assert_eq!(decoded, Section::Fields(fields.clone()));
    }
    let request = RequestHead::of(fields.clone()).map(|head| {
        let request = head.request(HandshakeLimits::default());
        format!(
            "{:?}",
            request.as_ref().map(|request| request.websocket().is_ok())
        )
    });
    let response = ResponseHead::of(fields).map(|head| {
        assert!(head.status < 1_000);
        (head.status, head.fields().count())
    });
    format!("{request:?} {response:?}")
}

/// Reads a control stream that arrives in these pieces. Returns what it says, written out.
pub fn control_stream<'a>(role: Role, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut reader = ControlReader::new(role);
    let mut said = Vec::new();
    for mut piece in pieces {
        loop {
            match reader.handle_input(&mut piece) {
                Ok(Some(found)) => said.push(format!("{found:?}")),
                Ok(None) => break,
                Err(fault) => {
                    said.push(fault.to_string());
                    return said;
                }
            }
        }
        assert!(piece.is_empty(), "all of it is taken");
    }
    said
}

/// Reads the heads of frames, whose payloads are passed over, in bytes that arrive in these pieces.
pub fn frame_heads<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<(u64, u64)> {
    let mut reader = HeadReader::default();
    let mut heads = Vec::new();
    for mut piece in pieces {
        while let Some(head) = reader.take(&mut piece) {
            check_head(head);
            heads.push((head.kind, head.payload_bytes));
        }
        assert!(piece.is_empty(), "all of it is taken");
    }
    heads
}

/// Judges what the peer says on its QPACK streams, which arrives in these pieces.
pub fn qpack_streams<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (bool, bool) {
    let mut decoder = DecoderChecker::default();
    let (mut is_encoder_legal, mut is_decoder_legal) = (true, true);
    for piece in pieces {
        is_encoder_legal &= check_encoder(piece).is_ok();
        is_decoder_legal = is_decoder_legal && decoder.handle_input(piece).is_ok();
    }
    (is_encoder_legal, is_decoder_legal)
}

/// What is written of a head is what was read.
fn check_head(head: Head) {
    let mut wire = Vec::new();
    head.encode(&mut wire);
    let (kind, bytes) = varint::decode(&wire).expect("it is whole");
    assert_eq!(kind, head.kind);
    let (payload_bytes, more) = varint::decode(&wire[bytes..]).expect("it is whole");
    assert_eq!(
        (payload_bytes, bytes + more),
        (head.payload_bytes, wire.len())
    );
}
