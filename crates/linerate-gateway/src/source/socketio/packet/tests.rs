//! Packets as the published packages write them: bytes of `@socket.io/redis-emitter` 5.1.0,
//! `@socket.io/redis-adapter` 8.3.0 and `@socket.io/redis-streams-adapter` 0.3.1.

use super::{EventJson, PacketError, Recipients, Wish, broadcast, entry, request};

const ROOMS_MAX: usize = 3;

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let digits = digits.map(|pair| std::str::from_utf8(pair).unwrap());
    digits
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

fn recipients(rooms: &[&str], except: &[&str]) -> Recipients {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Recipients {
        rooms: owned(rooms),
        except: owned(except),
    }
}

fn emit(to: Recipients, name: &str, payload: &str) -> Wish {
    Wish::Emit {
        to,
        event: EventJson {
            name: name.to_owned(),
            payload: payload.as_bytes().to_vec(),
        },
    }
}

#[test]
fn an_emitted_event_has_rooms_and_any_arguments() {
    let packet = bytes(
        "93a7656d697474657283a47479706502a4646174619ba16501ffcb3ff8000000000000a26101c0c0c3910181a1\
         6ba176cb7ff8000000000000a36e7370a12f83a5726f6f6d7392a16107a5666c61677381a8766f6c6174696c65\
         c3a665786365707491a162",
    );
    let payload = r#"{"event":"e","args":[1,-1,1.5,"a\u0001",null,null,true,[1],{"k":"v"},null]}"#;
    let expected = emit(recipients(&["a", "7"], &["b"]), "e", payload);
    assert_eq!(broadcast(&packet, "/", ROOMS_MAX).unwrap(), expected);
}

#[test]
fn a_packet_of_another_namespace_is_ignored() {
    let packet = b"\x93\xa0\x83\xa4type\x02\xa4data\x91\xa1e\xa3nsp\xa2/a\x80";
    assert_eq!(broadcast(packet, "/", ROOMS_MAX).unwrap(), Wish::Other);
    let expected = emit(recipients(&[], &[]), "e", r#"{"event":"e","args":[]}"#);
    assert_eq!(broadcast(packet, "/a", ROOMS_MAX).unwrap(), expected);
}

#[test]
fn an_argument_that_names_an_event_is_not_a_payload_of_its_own() {
    let packet = b"\x93\xa0\x82\xa4type\x02\xa4data\x92\xa1e\x81\xa5event\xa1x\x80";
    let payload = r#"{"event":"e","args":[{"event":"x"}]}"#;
    let expected = emit(recipients(&[], &[]), "e", payload);
    assert_eq!(broadcast(packet, "/", ROOMS_MAX).unwrap(), expected);
}

#[test]
fn bytes_and_times_become_json() {
    let packet = bytes(
        "93a7656d697474657283a47479706502a46461746195a165c402010281a164d7ff01ab3f0059682f00d6ff0000\
         0000c70cff3b8b87c0ffffffffffffffffa36e7370a12f83a5726f6f6d7390a5666c61677380a6657863657074\
         90",
    );
    let payload = concat!(
        r#"{"event":"e","args":[{"_placeholder":true,"base64":"AQI="},"#,
        r#"{"d":"2017-07-14T02:40:00.007Z"},"1970-01-01T00:00:00.000Z","1969-12-31T23:59:59.999Z"]}"#,
    );
    let expected = emit(recipients(&[], &[]), "e", payload);
    assert_eq!(broadcast(&packet, "/", ROOMS_MAX).unwrap(), expected);
}

#[test]
fn numbers_can_be_names() {
    let packet = bytes(
        "93a7656d697474657283a47479706502a464617461950781a13501cf0000010000000000d3ffffff0000000000\
         cf0000000000000000a36e7370a12f83a5726f6f6d7390a5666c61677380a665786365707490",
    );
    let payload = r#"{"event":"7","args":[{"5":1},1099511627776,-1099511627776,0]}"#;
    let expected = emit(recipients(&[], &[]), "7", payload);
    assert_eq!(broadcast(&packet, "/", ROOMS_MAX).unwrap(), expected);
    // A key that is a number, which notepack.io does not write: `["", {type: 2, data: [1, {2: 3}]},
    // {}]`.
    let packet = b"\x93\xa0\x82\xa4type\x02\xa4data\x92\x01\x81\x02\x03\x80";
    let expected = emit(recipients(&[], &[]), "1", r#"{"2":3}"#);
    assert_eq!(broadcast(packet, "/", ROOMS_MAX).unwrap(), expected);
}

#[test]
fn undefined_and_other_extensions_become_json() {
    let packet = b"\x93\xa0\x82\xa4type\x02\xa4data\x95\xa1e\xd4\x00\x00\xd4\x05\x07\xd6\x00abcd\
        \xc7\x03\xffabc\x80";
    let payload = concat!(
        r#"{"event":"e","args":[null,{"_placeholder":true,"base64":"Bw=="},"#,
        r#"{"_placeholder":true,"base64":"YWJjZA=="},null]}"#,
    );
    let expected = emit(recipients(&[], &[]), "e", payload);
    assert_eq!(broadcast(packet, "/", ROOMS_MAX).unwrap(), expected);
}

#[test]
fn requests_name_clients_and_rooms() {
    let options = r#""opts":{"rooms":["a"],"except":["b"]}"#;
    let decoded = |rest: &str| {
        let json = format!("{{{options},{rest}}}");
        request(json.as_bytes(), ROOMS_MAX).unwrap()
    };
    let whom = || recipients(&["a"], &["b"]);
    let rooms = vec!["c".to_owned(), "7".to_owned()];
    assert_eq!(
        decoded(r#""type":2,"rooms":["c",7]"#),
        Wish::Join {
            whom: whom(),
            rooms: rooms.clone()
        }
    );
    assert_eq!(
        decoded(r#""uid":"u","type":3,"rooms":["c","7"]"#),
        Wish::Leave {
            whom: whom(),
            rooms
        }
    );
    let disconnect = |is_connection| Wish::Disconnect {
        whom: whom(),
        is_connection,
    };
    assert_eq!(decoded(r#""type":4,"close":true"#), disconnect(true));
    assert_eq!(decoded(r#""type":4,"close":false"#), disconnect(false));
}

#[test]
fn requests_for_servers_are_ignored() {
    for json in [
        r#"{"uid":"u","requestId":"r","type":1}"#,
        r#"{"uid":"u","requestId":"r","type":5,"opts":{"rooms":[],"except":[]}}"#,
        r#"{"uid":"emitter","type":6,"data":["hello"]}"#,
        r#"{"requestId":"r","type":2,"sid":"a","room":"b"}"#,
        r#"{"type":200}"#,
    ] {
        assert_eq!(request(json.as_bytes(), ROOMS_MAX).unwrap(), Wish::Other);
    }
    let with_acknowledgement = bytes(
        "85a3756964a175a9726571756573744964a172a47479706507a67061636b657483a47479706502a46461746192\
         a165c40101a36e7370a12fa46f70747383a5726f6f6d7390a665786365707490a5666c61677380",
    );
    let ignored = request(&with_acknowledgement, ROOMS_MAX).unwrap();
    assert_eq!(ignored, Wish::Other);
    // The streams adapter publishes such a request where the other one publishes events.
    let ephemeral = bytes(
        "84a47479706503a3756964a175a36e7370a12fa46461746183a67061636b657483a47479706502a46461746191\
         a165a36e7370a12fa9726571756573744964a172a46f70747383a5726f6f6d7390a665786365707490a5666c61\
         677380",
    );
    assert_eq!(broadcast(&ephemeral, "/", ROOMS_MAX).unwrap(), Wish::Other);
}

#[test]
fn entries_of_streams_are_json_or_message_pack() {
    let binary =
        "gqZwYWNrZXSDpHR5cGUCpGRhdGGSoWXEAgECo25zcKEvpG9wdHODpXJvb21zkaFhpmV4Y2VwdJClZmxhZ3OA";
    let payload = r#"{"_placeholder":true,"base64":"AQI="}"#;
    assert_eq!(
        entry(b"3", binary.as_bytes(), ROOMS_MAX).unwrap(),
        emit(recipients(&["a"], &[]), "e", payload)
    );
    let options = r#""opts":{"rooms":["a"],"except":[],"flags":{}}"#;
    let decoded = |kind: &str, rest: &str| {
        let json = format!("{{{options}{rest}}}");
        entry(kind.as_bytes(), json.as_bytes(), ROOMS_MAX).unwrap()
    };
    let packet = r#","packet":{"type":2,"data":["e",1.5],"nsp":"/"}"#;
    let payload = "1.5";
    assert_eq!(
        decoded("3", packet),
        emit(recipients(&["a"], &[]), "e", payload)
    );
    let wants_answers = format!(r#"{packet},"requestId":"r""#);
    assert_eq!(decoded("3", &wants_answers), Wish::Other);
    let (whom, rooms) = (recipients(&["a"], &[]), vec!["c".to_owned()]);
    assert_eq!(
        decoded("4", r#","rooms":["c"]"#),
        Wish::Join { whom, rooms }
    );
    let (whom, rooms) = (recipients(&["a"], &[]), vec!["c".to_owned()]);
    assert_eq!(
        decoded("5", r#","rooms":["c"]"#),
        Wish::Leave { whom, rooms }
    );
    assert_eq!(
        decoded("6", r#","close":true"#),
        Wish::Disconnect {
            whom: recipients(&["a"], &[]),
            is_connection: true
        }
    );
    assert_eq!(entry(b"2", b"", ROOMS_MAX).unwrap(), Wish::Other);
}

#[test]
fn too_many_rooms_are_refused() {
    let packet = b"\x93\xa0\x82\xa4type\x02\xa4data\x91\xa1e\x81\xa5rooms\x94\x01\x02\x03\x04";
    let error = broadcast(packet, "/", ROOMS_MAX).unwrap_err();
    let message = "packet names 4 rooms; at most 3 are allowed";
    assert_eq!(error.to_string(), message);
    assert!(broadcast(packet, "/", 4).is_ok());
}

#[test]
fn malformed_packets_are_refused() {
    let deep = |levels: usize| {
        let mut packet = b"\x93\xa0\x82\xa4type\x02\xa4data\x92\xa1e".to_vec();
        packet.extend(vec![0x91; levels]);
        packet.extend_from_slice(b"\x01\x80");
        packet
    };
    assert!(broadcast(&deep(50), "/", ROOMS_MAX).is_ok());
    let packets: [&[u8]; 9] = [
        b"",
        b"\x90",
        b"\xc1",
        b"\x93\xa0\xc0\x80",
        b"\x93\xa0\x82\xa4type\x02\xa4data\x90\x80",
        b"\x93\xa0\x82\xa4type\x02\xa4data\x91\xc0\x80",
        b"\x93\xa0\x82\xa4type\x02\xa4data\xdd\xff\xff\xff\xff",
        b"\x93\xa0\x82\xa4type\x02\xa4data\x92\xa1e\xc6\xff\xff\xff\xff",
        &deep(70),
    ];
    for packet in packets {
        let error = broadcast(packet, "/", ROOMS_MAX).unwrap_err();
        assert!(matches!(error, PacketError::MessagePack(_)), "{packet:?}");
    }
    assert!(matches!(
        request(b"{", ROOMS_MAX),
        Err(PacketError::Json(_))
    ));
    assert!(matches!(
        entry(b"3", b"?", ROOMS_MAX),
        Err(PacketError::Base64(_))
    ));
}
