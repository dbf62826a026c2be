use super::*;
use crate::load::message::Message;

/// Compares `input`, split at every position, with `texts`. All splits must give the same result.
fn compare(input: &[u8], texts: &[&str]) -> Result<(u64, Vec<u8>), String> {
    let messages: Vec<Message> = texts
        .iter()
        .map(|text| Message::new(Opcode::Text, text.as_bytes(), None))
        .collect();
    let expected = |message: u64| messages.get(message as usize).map(Message::expected);
    let outcomes: Vec<Result<(u64, Vec<u8>), String>> = (0..=input.len())
        .map(|cut| {
            let mut control = Vec::new();
            let mut answers = Answers::new(Wire::WebSocket, Opcode::Text);
            let (first, second) = input.split_at(cut);
            answers
                .handle_input(first, &mut control, expected)
                .and_then(|()| answers.handle_input(second, &mut control, expected))
                .map_err(|error| error.to_string())?;
            Ok((answers.messages(), control))
        })
        .collect();
    assert!(
        outcomes.iter().all(|outcome| *outcome == outcomes[0]),
        "{outcomes:?}"
    );
    outcomes[0].clone()
}

/// Returns the number of messages that arrived correctly. No control frame may have to be answered.
fn count(input: &[u8], texts: &[&str]) -> Result<u64, String> {
    compare(input, texts).map(|(messages, control)| {
        assert_eq!(control, b"");
        messages
    })
}

#[test]
fn messages_count_when_they_are_whole() {
    assert_eq!(
        count(b"\x81\x04Spam\x81\x02am", &["Spam", "am", "x"]),
        Ok(2)
    );
    assert_eq!(count(b"\x81\x04Spam\x81\x02a", &["Spam", "am"]), Ok(1));
    assert_eq!(count(b"\x81\x00\x81\x01x", &["", "x"]), Ok(2));
}

#[test]
fn fragments_are_allowed() {
    let fragments = b"\x01\x02Sp\x80\x02am\x81\x02am";
    assert_eq!(count(fragments, &["Spam", "am"]), Ok(2));
    let empty = b"\x01\x00\x00\x04Spam\x80\x00\x81\x00";
    assert_eq!(count(empty, &["Spam", ""]), Ok(2));
}

#[test]
fn pings_are_answered_and_do_not_count() {
    let (messages, control) = compare(b"\x81\x01a\x89\x01!\x81\x01b", &["a", "b"]).unwrap();
    assert_eq!(messages, 2);
    assert_eq!(control, masked_frame(Opcode::Pong, b"!"));
}

#[test]
fn what_differs_is_told() {
    let error = |input: &[u8], texts: &[&str]| count(input, texts).unwrap_err();
    let differs = error(b"\x81\x04Spam\x81\x04Spxm", &["Spam", "Spam"]);
    assert_eq!(
        differs,
        "the server answered message 1 with other bytes: byte 2 is 0x78, expected 0x61"
    );
    // The same error in an answer that is parsed.
    assert_eq!(
        error(b"\x89\x00\x81\x04Spam\x81\x04Spxm", &["Spam", "Spam"]),
        differs
    );
    assert_eq!(
        error(b"\x81\x03Spa", &["Spam"]),
        "the server answered message 0 with 3 B, expected 4 B"
    );
    assert_eq!(
        error(b"\x82\x04Spam", &["Spam"]),
        "the server answered message 0 as binary, expected text"
    );
    assert_eq!(
        error(b"\x81\x01a\x81\x01a", &["a"]),
        "the server sent data that was not due, after message 1"
    );
    assert_eq!(
        error(b"\x88\x02\x03\xe9", &["a"]),
        "the server closed the connection before the load ended, with code 1001"
    );
    assert_eq!(
        error(b"\x81\x81\x00\x00\x00\x00a", &["a"]),
        "the server masked a frame of message 0"
    );
}

#[test]
fn an_answer_is_too_long_as_soon_as_that_is_known() {
    let mut answers = Answers::new(Wire::WebSocket, Opcode::Text);
    let message = Message::new(Opcode::Text, b"Spam", None);
    let expected = |_| Some(message.expected());
    let input = b"\x81\x7e\x02\x00";
    let error = answers.handle_input(input, &mut Vec::new(), expected);
    assert!(
        matches!(
            error,
            Err(LoadError::Long {
                message: 0,
                bytes: 512,
                expected: 4
            })
        ),
        "{error:?}"
    );
}

#[test]
fn a_raw_wire_has_no_other_way_to_say_it() {
    let message = Message::new(Opcode::Text, b"a", None);
    let expected = |number| (number < 2).then(|| message.expected_raw());
    let mut answers = Answers::new(Wire::Raw, Opcode::Text);
    let mut nothing = Vec::new();
    let mut take = |input: &[u8]| answers.handle_input(input, &mut nothing, expected);
    take(b"\x81\x01").unwrap();
    take(b"a\x81").unwrap();
    let error = take(b"\x7e").unwrap_err();
    assert!(
        matches!(
            error,
            LoadError::Differs {
                message: 1,
                byte: 1,
                expected: 1,
                found: 0x7e
            }
        ),
        "{error:?}"
    );
    take(b"\x01a").unwrap();
    let error = take(b"\x81").unwrap_err();
    assert!(matches!(error, LoadError::Unasked { message: 2 }));
}
