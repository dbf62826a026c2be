//! Fields that HTTP/2 forbids, and field blocks that cannot be decoded (RFC 9113 §8.2, RFC 7541).

use super::{Maker, headers};
use crate::{
    case::Row,
    http2::{
        FRAME_BYTES_MAX, Fate, Fields,
        frame::{COMPRESSION_ERROR, CONTINUATION, END_HEADERS, HEADERS, PROTOCOL_ERROR, frame},
        hpack::block,
    },
};

pub(super) fn rows(maker: Maker<'_>) -> Vec<Row> {
    vec![
        of_connections(maker),
        characters(maker),
        blocks(maker),
        long(maker),
    ]
}

fn of_connections(maker: Maker<'_>) -> Row {
    let cases = [
        ("connection", "connection", "upgrade"),
        ("connection-keep-alive", "connection", "keep-alive"),
        ("upgrade", "upgrade", "websocket"),
        ("keep-alive", "keep-alive", "timeout=5"),
        ("proxy-connection", "proxy-connection", "keep-alive"),
        ("transfer-encoding", "transfer-encoding", "chunked"),
        ("te-gzip", "te", "gzip"),
        ("te-trailers-and-gzip", "te", "trailers, gzip"),
    ];
    let malformed = |(name, field, value)| maker.malformed(name, &maker.with(field, value));
    Row {
        id: "S24",
        title: "connection-specific fields",
        section: "RFC 9113 §8.2.2",
        required: "reset the stream with PROTOCOL_ERROR, or answer 400",
        cases: cases.into_iter().map(malformed).collect(),
    }
}

fn characters(maker: Maker<'_>) -> Row {
    let with = |name: &[u8], value: &[u8]| -> Fields {
        let mut fields = maker.0.connect();
        fields.push((name.into(), value.into()));
        fields
    };
    let mut cases = Vec::new();
    for (name, bytes) in [
        ("empty", &b""[..]),
        ("upper-case", b"Cookie"),
        ("upper-case-last", b"cookiE"),
        ("space", b"a b"),
        ("space-first", b" a"),
        ("space-last", b"a "),
        ("tab", b"a\tb"),
        ("colon", b"a:b"),
        ("line-break", b"a\r\nb"),
        ("nul", b"a\0b"),
        ("del", b"a\x7f"),
        ("not-ascii", b"a\xc3\xa4"),
    ] {
        cases.push(maker.malformed(format!("name-with-{name}"), &with(bytes, b"c")));
    }
    for (name, bytes) in [
        ("line-break", &b"a\r\nb: c"[..]),
        ("lf", b"a\nb"),
        ("cr", b"a\rb"),
        ("nul", b"a\0b"),
        ("nul-alone", b"\0"),
        ("space-first", b" a"),
        ("space-last", b"a "),
        ("tab-first", b"\ta"),
        ("tab-last", b"a\t"),
    ] {
        cases.push(maker.malformed(format!("value-with-{name}"), &with(b"a", bytes)));
    }
    for (name, bytes) in [
        ("space", &b"/a b"[..]),
        ("line-break", b"/\r\na: b"),
        ("nul", b"/\0"),
        ("no-slash", b"a"),
    ] {
        cases.push(maker.malformed(format!("path-with-{name}"), &maker.with(":path", bytes)));
    }
    let fragment = maker.with(":path", format!("{}#a", maker.0.path));
    // Left to h2, the library of linerate and of many other servers, which cuts fragments off.
    // Over HTTP/1.1, they are accepted as well (H22).
    let fate = Fate::MalformedOrOpened;
    let request = headers(1, &fragment);
    cases.push(maker.beside("path-with-fragment", vec![request], vec![fate]));
    for (name, bytes) in [
        ("space", &b"a b"[..]),
        ("line-break", b"a\r\nb: c"),
        ("nul", b"a\0"),
    ] {
        cases.push(maker.malformed(
            format!("authority-with-{name}"),
            &maker.with(":authority", bytes),
        ));
    }
    Row {
        id: "S11",
        title: "fields with invalid characters",
        section: "RFC 9113 §8.2.1, §8.3.1, §10.3",
        required: "reset the stream with PROTOCOL_ERROR, or answer 400; the fragment of a path may \
            be cut off, as h2 does",
        cases,
    }
}

fn blocks(maker: Maker<'_>) -> Row {
    let case = |(name, rest): (&str, &[u8])| {
        let bytes = [&block(&maker.0.connect()), rest].concat();
        let request = frame(HEADERS, END_HEADERS, 3, bytes);
        // Left to h2, the library of linerate and of many other servers.
        maker.fatal(name, request, &[COMPRESSION_ERROR, PROTOCOL_ERROR])
    };
    let cases: [(&str, &[u8]); 14] = [
        ("index-0", b"\x80"),
        ("index-beyond-the-table", b"\xbe"),
        ("index-far-beyond", b"\xff\xff\xff\x7f"),
        ("name-beyond-the-table", b"\x7e\x01a"),
        (
            "number-without-end",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ),
        ("number-cut", b"\xff"),
        ("name-cut", b"\x00\x05a"),
        ("value-missing", b"\x00\x01a"),
        ("value-cut", b"\x00\x01a\x05b"),
        (
            "length-without-end",
            b"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ),
        ("huffman-padded-with-a-byte", b"\x00\x83\x64\x02\xff\x01a"),
        ("huffman-padded-with-zeros", b"\x00\x81\x00\x01a"),
        ("huffman-end-of-string", b"\x00\x84\xff\xff\xff\xff\x01a"),
        ("table-larger-than-allowed", b"\x3f\xff\xff\xff\x07"),
    ];
    Row {
        id: "S25",
        title: "field blocks that cannot be decoded",
        section: "RFC 9113 §4.3; RFC 7541 §2.3.3, §4.2, §5.1, §5.2, §6.1, §6.3",
        required: "end the connection with COMPRESSION_ERROR; PROTOCOL_ERROR, as h2 answers, is \
            accepted",
        cases: cases.into_iter().map(case).collect(),
    }
}

/// More fields than any server should accept, in more bytes than a frame can carry.
fn long(maker: Maker<'_>) -> Row {
    let continued = |fields: &Fields| {
        let block = block(fields);
        let parts: Vec<&[u8]> = block.chunks(FRAME_BYTES_MAX).collect();
        let last = parts.len() - 1;
        let frames = parts.iter().enumerate().map(|(index, part)| {
            let kind = if index == 0 { HEADERS } else { CONTINUATION };
            frame(kind, if index == last { END_HEADERS } else { 0 }, 1, part)
        });
        frames.collect::<Vec<_>>().concat()
    };
    let one = maker.with("a", vec![b'x'; 64 << 10]);
    let mut many = maker.0.connect();
    many.extend((0..2_000).map(|index| (format!("a{index}").into_bytes(), b"b".to_vec())));
    let case = |name: &str, request: Vec<u8>| {
        maker.beside(name, vec![request], vec![Fate::Refused(&[431])])
    };
    Row {
        id: "S26",
        title: "too many or too large fields",
        section: "RFC 9113 §10.5.1; RFC 6585 §5",
        required: "answer 431, and keep serving other streams",
        cases: vec![
            case("one-of-64-kib", continued(&one)),
            case("2000", continued(&many)),
            case(
                "one-of-40-kb-behind-others",
                continued(&maker.with("b", vec![b'x'; 40_000])),
            ),
            maker.beside(
                "none-at-all",
                vec![headers(1, &Fields::new())],
                vec![Fate::Malformed],
            ),
        ],
    }
}
