//! Pieces that are read into the memory of a text.

use bytes::BufMut;

use super::*;
use crate::utf8::TextBuf;

proptest! {
    #[test]
    fn pieces_make_up_the_same_text_as_pushes(
        bytes in prop_oneof![
            any::<String>().prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..40),
        ],
        cuts in prop::collection::vec(0_usize..40, 0..4),
    ) {
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut text = TextBuf::from_recycled(Vec::with_capacity(bytes.len()));
        let mut pushed = TextBuf::new();
        for (start, end) in cuts.iter().zip(&cuts[1..]) {
            let mut piece = text.piece();
            for byte in &bytes[*start..*end] {
                piece.put_u8(byte ^ KEY[0]);
            }
            for byte in piece.as_mut_slice() {
                *byte ^= KEY[0];
            }
            let finished = piece.finish();
            prop_assert_eq!(finished, pushed.push(&bytes[*start..*end]));
            prop_assert_eq!(text.as_bytes(), pushed.as_bytes());
            prop_assert_eq!(text.as_str(), pushed.as_str());
            if finished.is_err() {
                break;
            }
        }
    }
}

#[test]
fn a_piece_that_is_not_finished_adds_nothing() {
    let mut text = TextBuf::from_recycled(Vec::with_capacity(16));
    text.push(b"kept").expect("ASCII");
    let mut piece = text.piece();
    piece.put_slice(b"\xFF lost");
    drop(piece);
    assert_eq!(text.as_str(), Some("kept"));
    let mut piece = text.piece();
    piece.put_slice(b"\xFF forgotten");
    core::mem::forget(piece);
    assert_eq!(text.as_str(), Some(""));
}

#[test]
fn a_piece_takes_no_more_than_there_is_room_for() {
    let mut text = TextBuf::from_recycled(Vec::with_capacity(10));
    text.push(b"1234567").expect("ASCII");
    let room = text.capacity() - text.len();
    let mut piece = text.piece();
    assert_eq!(piece.remaining_mut(), room);
    piece.put_bytes(b'8', room);
    assert!(!piece.has_remaining_mut());
    assert_eq!(piece.chunk_mut().len(), 0);
    piece.finish().expect("ASCII");
    assert_eq!(text.len(), text.capacity());
}
