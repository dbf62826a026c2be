//! Any publications in every encoding: they arrive unchanged, or cannot be encoded.

use bytes::Bytes;
use linerate_hub::{
    Batch, ChannelName, Encode, Epoch, Gap, GapCause, Payloads, Publication, StreamPosition,
    Unencodable, fossil,
};
use linerate_proto::{Opcode, frame::Header};
use serde_json::{Value, value::RawValue};

use crate::protocol::{
    self, Dialect,
    dialect::{GapNotice, Transport},
    native::{self, Flags},
    position,
    socketio::namespace,
};

/// The client that does not receive some of the publications.
const CLIENT: &str = "1.2";

/// Encodes publications to the channel that the first line of `data` names. Each begins with its
/// length and a byte that says which attributes it has.
pub fn publications(data: &[u8]) {
    let mut parts = data.splitn(2, |&byte| byte == b'\n');
    let name = parts.next().and_then(|name| std::str::from_utf8(name).ok());
    let Some(channel) = name.and_then(|name| ChannelName::new(name).ok()) else {
        return;
    };
    let publications = read(parts.next().unwrap_or_default(), &channel);
    if publications.is_empty() {
        return;
    }
    for dialect in protocol::dialects() {
        check(dialect, &channel, &publications);
        if dialect.has_deltas() {
            check_deltas(dialect, &channel, &publications, None);
            let (first, others) = publications.split_at(1);
            check_deltas(dialect, &channel, others, first.first());
        }
    }
    check_gap(publications.len() as u64);
}

fn read(mut rest: &[u8], channel: &ChannelName) -> Vec<Publication> {
    let mut publications = Vec::new();
    let mut offset = 0;
    while let [length, how, behind @ ..] = rest {
        let (payload, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        // Some offsets go back or skip some, as after a reset of the stream.
        offset = match how & 3 {
            0 => offset + 1,
            1 => offset + 5,
            2 => 1,
            _ => offset,
        };
        let mut build = Publication::build(Bytes::from(payload.repeat(1 + usize::from(how >> 5))));
        if how & 4 != 0 {
            let epoch = Epoch::new("e");
            build = build.with_position(StreamPosition { epoch, offset });
        }
        if how & 8 != 0 {
            build = build.with_source(channel.clone());
        }
        if how & 16 != 0 {
            let value = String::from_utf8_lossy(payload).into_owned();
            let mut tags = vec![("event".into(), value)];
            if length & 1 != 0 {
                tags.push(("except".into(), CLIENT.into()));
            }
            build = build.with_tags(tags);
        }
        publications.push(build.finish());
        rest = behind;
    }
    publications
}

fn check(dialect: &'static Dialect, channel: &ChannelName, publications: &[Publication]) {
    let batch = Batch {
        channel,
        channel_id: 300,
        publications,
        conflated: 0,
        payloads: Payloads::Full,
        with_channel_id: false,
        with_positions: false,
    };
    let mut out = b"before".to_vec();
    let encoded = (dialect.encode)(&batch, &mut out);
    assert!(out.starts_with(b"before"));
    let is_json = publications.iter().all(|one| one.line().is_some());
    let is_text = publications.iter().all(Publication::is_text);
    let needs = match dialect.name.0 {
        "centrifuge-json" => is_json,
        "pusher" | "sse" => is_text,
        _ => true,
    };
    assert_eq!(encoded, if needs { Ok(()) } else { Err(Unencodable) });
    if !needs {
        return;
    }
    let out = &out[b"before".len()..];
    match dialect.name {
        ("centrifuge-json", "http_stream") => pushes(&lines(out, "", "\n"), publications),
        ("centrifuge-json", "sse") => pushes(&lines(out, "data: ", "\n\n"), publications),
        ("centrifuge-json", "websocket") => {
            let frames = frames(out);
            let text = frames.iter().map(|(_, bytes)| str(bytes));
            let lines: Vec<&str> = text.flat_map(|text| text.split('\n')).collect();
            pushes(&lines, publications);
        }
        ("centrifuge-protobuf", "http_stream") => {}
        ("centrifuge-protobuf", "websocket") => {
            let frames = frames(out);
            assert!(frames.iter().all(|(kind, _)| *kind == Opcode::Binary));
        }
        ("linerate.v1", _) => blocks(&frames(out), publications),
        ("raw", _) => {
            let payloads: Vec<Vec<u8>> = frames(out).into_iter().map(|(_, bytes)| bytes).collect();
            let published = publications.iter().map(|one| one.payload().to_vec());
            let published: Vec<Vec<u8>> = published.collect();
            assert_eq!(payloads, published);
        }
        ("phoenix", _) => broadcasts(&frames(out), channel, publications),
        ("pusher", _) => pusher_events(&frames(out), channel, publications),
        ("socketio", _) => socketio_events(&frames(out), channel, publications),
        ("sse", _) => events(str(out), publications),
        name => panic!("{name:?} is not checked"),
    }
    if let Transport::WebSocket(websocket) = &dialect.transport
        && websocket.has_exceptions
    {
        exceptions(dialect, &batch, out);
    }
}

/// A client does not receive the publications that name it, and other clients receive all.
fn exceptions(dialect: &'static Dialect, batch: &Batch<'_>, expected: &[u8]) {
    let mut out = Vec::new();
    dialect
        .encode(batch, &mut out)
        .expect("it was encoded before");
    let block = dialect.seal(out.into(), batch, None);
    let no_channels = || &[];
    assert_eq!(block.bytes(), expected);
    assert!(block.for_client("2.1", no_channels).is_none());
    let is_own = |one: &Publication| one.tags().iter().any(|(key, _)| key == "except");
    let own: Vec<_> = batch.publications.iter().map(is_own).collect();
    let Some(rest) = block.for_client(CLIENT, no_channels) else {
        return assert!(!own.contains(&true));
    };
    let mut left = own.iter();
    let mut is_own = false;
    let mut others = frames(expected);
    // A text frame begins a publication, and its attachments follow.
    others.retain(|(kind, _)| {
        if *kind == Opcode::Text {
            is_own = *left.next().expect("a text frame for each publication");
        }
        !is_own
    });
    assert_eq!(frames(rest.bytes()), others);
    let count = own.iter().filter(|is_own| !**is_own).count();
    assert_eq!(rest.messages(), count as u64);
}

/// Each frame is a broadcast, whose payload is that of the publication.
fn broadcasts(frames: &[(Opcode, Vec<u8>)], channel: &ChannelName, publications: &[Publication]) {
    assert_eq!(frames.len(), publications.len());
    for ((kind, frame), publication) in frames.iter().zip(publications) {
        let Some(payload) = publication.line() else {
            assert_eq!(*kind, Opcode::Binary);
            assert!(frame.ends_with(publication.payload()));
            continue;
        };
        assert_eq!(*kind, Opcode::Text);
        let message: [&RawValue; 5] = serde_json::from_slice(frame).expect("five elements");
        let [join_ref, reference, topic, event, broadcast] = message.map(RawValue::get);
        assert_eq!((join_ref, reference), ("null", "null"));
        let topic: String = serde_json::from_str(topic).expect("a string");
        assert_eq!(topic, channel.as_str());
        let event: String = serde_json::from_str(event).expect("a string");
        assert!(!event.starts_with("phx_") && event.len() <= 255);
        assert_eq!(broadcast.as_bytes(), payload.trim_ascii());
    }
}

/// Each frame is an event, whose data is the payload.
fn pusher_events(
    frames: &[(Opcode, Vec<u8>)],
    channel: &ChannelName,
    publications: &[Publication],
) {
    assert_eq!(frames.len(), publications.len());
    for ((kind, frame), publication) in frames.iter().zip(publications) {
        assert_eq!(*kind, Opcode::Text);
        let event: Value = serde_json::from_slice(frame).expect("it is JSON");
        assert_eq!(event["channel"], channel.as_str());
        assert_eq!(event["data"].as_str(), Some(str(publication.payload())));
        let mut tags = publication.tags().iter();
        let name = tags.find(|(key, _)| key == "event");
        assert_eq!(
            event["event"],
            name.map_or("message", |(_, name)| name.as_str())
        );
    }
}

/// Each text frame is an event in the namespace of the channel, and is followed by its attachments.
fn socketio_events(
    frames: &[(Opcode, Vec<u8>)],
    channel: &ChannelName,
    publications: &[Publication],
) {
    let mut frames = frames.iter();
    for publication in publications {
        let (kind, packet) = frames.next().expect("one for each");
        assert_eq!(*kind, Opcode::Text);
        let (count, rest) = match str(packet).strip_prefix("45") {
            Some(rest) => rest.split_once('-').expect("a number of attachments"),
            None => ("0", str(packet).strip_prefix("42").expect("an event")),
        };
        let rest = match namespace::split(channel.as_str()).0 {
            namespace::MAIN => rest,
            name => rest
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix(','))
                .expect("the namespace"),
        };
        let event: Vec<&RawValue> = serde_json::from_str(rest).expect("an array");
        let name: String = serde_json::from_str(event[0].get()).expect("a name");
        assert!(name != "connect" && name != "disconnect");
        let count: usize = count.parse().expect("a number");
        assert!(count <= 10);
        let attachments: Vec<_> = frames.by_ref().take(count).collect();
        assert_eq!(attachments.len(), count);
        assert!(attachments.iter().all(|(kind, _)| *kind == Opcode::Binary));
        if !publication.is_text() {
            assert_eq!(attachments[0].1, publication.payload()[..]);
        }
    }
    assert!(frames.next().is_none());
}

/// Encodes publications for clients that received `previous` and apply deltas to it.
fn check_deltas(
    dialect: &Dialect,
    channel: &ChannelName,
    publications: &[Publication],
    previous: Option<&Publication>,
) {
    let batch = Batch {
        channel,
        channel_id: 300,
        publications,
        conflated: 0,
        payloads: Payloads::Deltas { previous },
        with_channel_id: false,
        with_positions: false,
    };
    let mut out = Vec::new();
    let is_encoded = (dialect.encode)(&batch, &mut out).is_ok();
    let mut payload = previous.map_or_else(Vec::new, |previous| previous.payload().to_vec());
    for (publication, delta) in batch.payloads.of(publications) {
        if let Some(delta) = delta {
            assert!(delta.len() < publication.payload().len());
            let applied = fossil::apply(&payload, &delta, publication.payload().len());
            assert_eq!(applied.as_ref(), Ok(&publication.payload().to_vec()));
            assert!(!publication.is_text() || std::str::from_utf8(&delta).is_ok());
        }
        payload = publication.payload().to_vec();
    }
    let is_json = publications.iter().all(|one| one.line().is_some());
    assert_eq!(is_encoded, is_json || dialect.name.0 != "centrifuge-json");
    if dialect.name == ("centrifuge-json", "http_stream") && is_encoded {
        let previous = previous.map_or_else(Vec::new, |previous| previous.payload().to_vec());
        check_texts(&lines(&out, "", "\n"), publications, previous);
    }
}

/// Each line is a push of one publication whose data is a string: its payload, or a delta from the
/// one before it.
fn check_texts(lines: &[&str], publications: &[Publication], mut payload: Vec<u8>) {
    assert_eq!(lines.len(), publications.len());
    for (line, publication) in lines.iter().zip(publications) {
        let push: Value = serde_json::from_str(line).expect("it is JSON");
        let publication_json = &push["push"]["pub"];
        let data = publication_json["data"].as_str().expect("it is a string");
        payload = match publication_json["delta"].as_bool() {
            Some(true) => fossil::apply(&payload, data.as_bytes(), publication.payload().len())
                .expect("it is a delta from what the client has"),
            _ => data.as_bytes().to_vec(),
        };
        assert_eq!(payload, publication.payload()[..]);
    }
}

fn str(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it is text")
}

/// Parses frames like a client.
fn frames(mut wire: &[u8]) -> Vec<(Opcode, Vec<u8>)> {
    let mut frames = Vec::new();
    while !wire.is_empty() {
        let decoded = Header::decode(wire).expect("a valid header");
        let (header, header_bytes) = decoded.expect("a complete header");
        assert!(header.fin && header.mask.is_none());
        let payload_bytes = usize::try_from(header.payload_bytes).expect("it is in memory");
        let (payload, behind) = wire[header_bytes..].split_at(payload_bytes);
        if header.opcode == Opcode::Text {
            assert!(std::str::from_utf8(payload).is_ok());
        }
        frames.push((header.opcode, payload.to_vec()));
        wire = behind;
    }
    frames
}

fn lines<'a>(out: &'a [u8], before: &str, behind: &str) -> Vec<&'a str> {
    let pieces = str(out).split_terminator(behind);
    pieces
        .map(|line| line.strip_prefix(before).expect("each line has it"))
        .collect()
}

/// Each line is a push of one publication, in order.
fn pushes(lines: &[&str], publications: &[Publication]) {
    assert_eq!(lines.len(), publications.len());
    for (line, publication) in lines.iter().zip(publications) {
        assert!(!line.contains(['\n', '\r']));
        if publication.value().is_none() {
            // A number that is too large for any machine is still JSON (RFC 8259 §6).
            let payload = publication.line().expect("it is JSON");
            assert!(line.contains(str(payload)), "{line}");
            continue;
        }
        let push: Value = serde_json::from_str(line).expect("it is JSON");
        let data = &push["push"]["pub"]["data"];
        assert_eq!(Some(data), publication.value(), "{line}");
    }
}

/// HTML Standard §9.2.6: lines of data are joined by LF, and an empty line ends an event.
fn events(text: &str, publications: &[Publication]) {
    let mut events = text.split_terminator("\n\n");
    for publication in publications {
        let event = events.next().expect("one for each");
        let mut data = Vec::new();
        for line in event.split('\n') {
            match line.split_once(": ") {
                Some(("data", line)) => data.push(line),
                Some(("id", id)) => {
                    assert_eq!(position::parse(id).as_ref(), publication.position())
                }
                _ => panic!("{line:?}"),
            }
        }
        let payload = str(publication.payload())
            .replace("\r\n", "\n")
            .replace('\r', "\n");
        assert_eq!(data.join("\n"), payload);
    }
    assert_eq!(events.next(), None);
}

/// Parses native blocks as documented in `docs/gateway/protocols.md`.
fn blocks(frames: &[(Opcode, Vec<u8>)], publications: &[Publication]) {
    let mut expected = publications.iter();
    for (_, block) in frames {
        let mut rest = &block[..];
        assert_eq!(varint(&mut rest), 300);
        let flags = varint(&mut rest) as u8;
        let mut offset = match flags & Flags::OFFSETS {
            0 => None,
            _ => Some(varint(&mut rest)),
        };
        for _ in 0..varint(&mut rest) {
            let publication = expected.next().expect("not more than were published");
            if flags & Flags::SPARSE != 0 {
                let skipped = varint(&mut rest);
                offset = offset.map(|offset| offset + skipped);
            }
            assert_eq!(
                offset,
                publication.position().map(|position| position.offset)
            );
            if flags & Flags::SOURCES != 0 {
                let source = publication.source().map_or("", |source| source.as_str());
                assert_eq!(taken(&mut rest), source.as_bytes());
            }
            if flags & Flags::EXTRAS != 0 {
                let extras = taken(&mut rest);
                let is_some = !publication.tags().is_empty();
                assert_eq!(serde_json::from_slice::<Value>(extras).is_ok(), is_some);
            }
            assert_eq!(taken(&mut rest), publication.payload());
            offset = offset.map(|offset| offset + 1);
        }
        assert!(rest.is_empty());
    }
    assert!(expected.next().is_none(), "all of them");
}

fn check_gap(missed: u64) {
    for cause in GapCause::ALL {
        let mut out = Vec::new();
        let missed = (missed & 1 == 0).then_some(missed);
        let GapNotice::ById(append) = native::BLOCKS.gaps else {
            panic!("native blocks report gaps by ID");
        };
        append(300, Gap { missed, cause }, &mut out);
        assert_eq!(frames(&out).len(), 1);
    }
}

fn varint(rest: &mut &[u8]) -> u64 {
    let mut number = 0;
    for place in 0..10 {
        let (byte, behind) = rest.split_first().expect("it is whole");
        *rest = behind;
        number |= u64::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

fn taken<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let length = varint(rest) as usize;
    let (taken, behind) = rest.split_at(length);
    *rest = behind;
    taken
}
