use super::*;

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u16).to_be_bytes();
    [&[kind, 3, 1], &length[..], content].concat()
}

/// Returns a hello with this version and these extensions.
fn hello(version: u16, extensions: &[u8]) -> Vec<u8> {
    let mut body = version.to_be_bytes().to_vec();
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 0x01, 1, 0]);
    if !extensions.is_empty() {
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
    }
    let length = (body.len() as u32).to_be_bytes();
    [&[1], &length[1..], &body].concat()
}

/// Passes an input in pieces of each size; checks that the outcome is always the same.
fn take(input: &[u8]) -> Result<bool, HelloError> {
    let outcomes = (1..=input.len()).map(|bytes| {
        let mut reader = HelloReader::new();
        for piece in input.chunks(bytes) {
            match reader.handle_input(piece) {
                Ok(false) => {}
                over => return over,
            }
        }
        Ok(false)
    });
    let outcomes: Vec<_> = outcomes.collect();
    assert!(outcomes.windows(2).all(|pair| pair[0] == pair[1]));
    outcomes[0]
}

#[test]
fn a_current_hello_passes_and_later_bytes_are_not_read() {
    let hello = hello(0x0303, &[]);
    assert_eq!(take(&record(22, &hello)), Ok(true));
    let then = [record(22, &hello), record(99, b"x")].concat();
    assert_eq!(take(&then), Ok(true));
    let whole = record(22, &hello);
    assert_eq!(take(&whole[..whole.len() - 1]), Ok(false));
    let in_records: Vec<u8> = hello.chunks(7).flat_map(|part| record(22, part)).collect();
    assert_eq!(take(&in_records), Ok(true));
}

#[test]
fn t10_versions_that_must_not_be_spoken_are_refused_with_protocol_version() {
    for version in [0x0300, 0x0301, 0x0302] {
        let refused = Err(HelloError::Version { version });
        assert_eq!(take(&record(22, &hello(version, &[]))), refused);
        let other = [0, 23, 0, 0];
        assert_eq!(take(&record(22, &hello(version, &other))), refused);
    }
    let record = HelloError::Version { version: 0x0301 }.record();
    assert_eq!(record.as_ref(), Some(b"\x15\x03\x03\x00\x02\x02\x46"));
}

#[test]
fn listed_versions_override_the_legacy_field() {
    let listed = [0, 23, 0, 0, 0, 43, 0, 3, 2, 3, 4];
    assert_eq!(take(&record(22, &hello(0x0301, &listed))), Ok(true));
    // The TLS library reports a malformed hello.
    let cut = [0, 23, 0, 9];
    assert_eq!(take(&record(22, &hello(0x0301, &cut))), Ok(true));
    assert_eq!(take(&record(22, &[1, 0, 0, 1, 3])), Ok(true));
}

#[test]
fn t10_more_than_255_bytes_of_extensions_are_parsed() {
    let padding = [&[0, 21, 1, 44][..], &[0; 300]].concat();
    let refused = Err(HelloError::Version { version: 0x0301 });
    assert_eq!(take(&record(22, &hello(0x0301, &padding))), refused);
    // If the length were read wrongly, these would end where a part of the padding looks like
    // extensions.
    let listed = [&padding[..], &[0, 43, 0, 3, 2, 3, 4, 0, 35, 0, 1, 0]].concat();
    assert_eq!(take(&record(22, &hello(0x0301, &listed))), Ok(true));
}

#[test]
fn a_hello_ends_at_its_length_whatever_follows_in_the_record() {
    let listed = [0, 43, 0, 3, 2, 3, 4];
    for hello in [
        hello(0x0301, &listed),
        hello(0x0303, &listed),
        vec![1, 0, 0, 2, 3, 3],
    ] {
        assert_eq!(take(&record(22, &[&hello[..], b"Spam"].concat())), Ok(true));
    }
    assert_eq!(take(&record(22, &[1, 0, 0, 2])), Ok(false));
}

#[test]
fn errors_report_their_numbers() {
    let shown = [
        (HelloError::Interrupted { record_type: 99 }, &["99"][..]),
        (
            HelloError::TooLong {
                bytes: 70_000,
                bytes_max: 65_535,
            },
            &["70000", "65535"],
        ),
        (HelloError::Version { version: 0x0301 }, &["0x0301"]),
    ];
    for (error, numbers) in shown {
        let text = error.to_string();
        assert!(numbers.iter().all(|number| text.contains(number)), "{text}");
    }
}

#[test]
fn t02_an_alert_ends_the_connection_without_an_answer() {
    assert_eq!(take(&record(21, &[1, 0])), Err(HelloError::Alerted));
    let hello = hello(0x0303, &[]);
    let within = [record(22, &hello[..9]), record(21, &[1, 0])].concat();
    assert_eq!(take(&within), Err(HelloError::Alerted));
    assert_eq!(HelloError::Alerted.record(), None);
}

#[test]
fn t04_nothing_stands_between_the_parts_of_a_hello() {
    let hello = hello(0x0303, &[]);
    for record_type in [20, 23, 24, 99] {
        let bytes = [record(22, &hello[..9]), record(record_type, b"Spam")].concat();
        let refused = HelloError::Interrupted { record_type };
        assert_eq!(take(&bytes), Err(refused));
        assert_eq!(refused.alert(), Some(10));
        assert_eq!(take(&record(record_type, b"Spam")), Ok(true));
    }
}

#[test]
fn t11_a_length_over_the_limit_is_refused_by_the_header_alone() {
    let at_limit = [&[22, 3, 1, 0x40, 0, 1, 0, 0xFF, 0xFF, 3, 3][..], &[7; 50]].concat();
    assert_eq!(take(&at_limit), Ok(false));
    let refused = HelloError::TooLong {
        bytes: 0x1_0000,
        bytes_max: HelloReader::BYTES_MAX,
    };
    assert_eq!(take(b"\x16\x03\x01\x00\x04\x01\x01\x00\x00"), Err(refused));
    assert_eq!(refused.alert(), Some(50));
}

#[test]
fn other_messages_than_a_hello_are_passed_on() {
    assert_eq!(take(b"GET / HTTP/1.1\r\n"), Ok(true));
    assert_eq!(take(&record(22, &[2, 0, 0, 2, 3, 3])), Ok(true));
    assert_eq!(take(&record(22, &[1, 0, 0, 0])), Ok(true));
    let empty = record(22, &[]).repeat(100);
    assert_eq!(take(&empty), Ok(false));
}

#[test]
fn t01_memory_is_only_for_received_bytes() {
    let mut reader = HelloReader::new();
    let begun = [&[22, 3, 1, 0x40, 0, 1, 0, 0xFF, 0xFF, 3, 1][..], &[7; 50]].concat();
    assert_eq!(reader.handle_input(&begun), Ok(false));
    assert!(
        reader.message.capacity() < 256,
        "an old hello is buffered as it arrives"
    );
    let mut reader = HelloReader::new();
    let begun = [
        &[22, 3, 1, 0x40, 0, 1, 0, 0xFF, 0xFF, 3, 3][..],
        &vec![7; 9_000],
    ]
    .concat();
    assert_eq!(reader.handle_input(&begun), Ok(false));
    assert!(
        reader.message.capacity() < 64,
        "a modern hello is not buffered"
    );
}
