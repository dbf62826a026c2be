//! Entry points for fuzzing the parsers of HTTP/3; compiled only for fuzzing.

use linerate_proto::{Role, handshake::HandshakeLimits};

use crate::{
    control::{ControlReader, DecoderChecker, check_encoder},
    frame::{Head, HeadReader},
    message::{RequestHead, ResponseHead},
    qpack::{self, Section},
    varint,
};

/// Decodes a field section, encodes and decodes the result again, and converts it to a request and
/// a response. Returns the results as text.
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
        let decoded = qpack::decode(&again, bytes_max).expect("our own encoding is valid");
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

/// Reads a control stream that arrives in these pieces. Returns its messages as text.
pub fn control_stream<'a>(role: Role, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut reader = ControlReader::new(role);
    let mut events = Vec::new();
    for mut piece in pieces {
        loop {
            match reader.handle_input(&mut piece) {
                Ok(Some(found)) => events.push(format!("{found:?}")),
                Ok(None) => break,
                Err(fault) => {
                    events.push(fault.to_string());
                    return events;
                }
            }
        }
        assert!(piece.is_empty(), "all input is consumed");
    }
    events
}

/// Reads the frame headers in bytes that arrive in these pieces, and skips the payloads.
pub fn frame_heads<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<(u64, u64)> {
    let mut reader = HeadReader::default();
    let mut heads = Vec::new();
    for mut piece in pieces {
        while let Some(head) = reader.take(&mut piece) {
            check_head(head);
            heads.push((head.kind, head.payload_bytes));
        }
        assert!(piece.is_empty(), "all input is consumed");
    }
    heads
}

/// Checks bytes of the peer's two QPACK streams, which arrive in these pieces. Returns whether they
/// are legal on the encoder stream and on the decoder stream.
pub fn qpack_streams<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (bool, bool) {
    let mut decoder = DecoderChecker::default();
    let (mut is_encoder_legal, mut is_decoder_legal) = (true, true);
    for piece in pieces {
        is_encoder_legal &= check_encoder(piece).is_ok();
        is_decoder_legal = is_decoder_legal && decoder.handle_input(piece).is_ok();
    }
    (is_encoder_legal, is_decoder_legal)
}

/// Checks that a frame header is encoded as it was decoded.
fn check_head(head: Head) {
    let mut wire = Vec::new();
    head.encode(&mut wire);
    let (kind, bytes) = varint::decode(&wire).expect("the integer is complete");
    assert_eq!(kind, head.kind);
    let (payload_bytes, more) = varint::decode(&wire[bytes..]).expect("the integer is complete");
    assert_eq!(
        (payload_bytes, bytes + more),
        (head.payload_bytes, wire.len())
    );
}
