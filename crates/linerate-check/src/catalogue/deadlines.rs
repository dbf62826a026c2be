//! Connections that stop halfway. No standard says how long to wait, but an endpoint that waits
//! forever keeps the resources of every abandoned connection (RFC 9112 §9.5, RFC 6455 §10.4).

use super::Wire;
use crate::{
    case::{Case, Expect, Opening, Row, Stage, Wait},
    frame::Frame,
    run::request,
};

pub(super) fn rows(wire: Wire) -> Vec<Row> {
    vec![heads(), frames(wire), silence(), closes(wire)]
}

/// How many connections claim each length.
const CLAIMS: usize = 4;

/// The claimed lengths in KiB. Most endpoints accept messages of the smaller lengths, some of the
/// larger ones.
const CLAIMED_KIB: [usize; 4] = [60, 900, 15 << 10, 60 << 10];

/// Creates an input that begins with these bytes, and then sends nothing but `drip`.
pub(super) fn left(name: impl Into<String>, opening: Opening, begin: Vec<u8>, drip: &[u8]) -> Case {
    let stage = |bytes| Stage {
        bytes,
        wait: Wait::Moment,
    };
    let stages = Some(begin).filter(|begin| !begin.is_empty()).map(stage);
    let expect = Expect::GivenUp {
        drip: drip.into(),
        may_wait: false,
    };
    Case::new(name, opening, stages.into_iter().collect(), expect)
}

fn heads() -> Row {
    let case =
        |name: &str, begin: &str, drip: &[u8]| left(name, Opening::Nothing, begin.into(), drip);
    // The whole request except the empty line.
    let request = request("");
    let fields = request.trim_end_matches("\r\n");
    let in_field = format!("{fields}X-More: ");
    Row {
        id: "H12",
        title: "requests that never end",
        section: "RFC 9112 §9.5; RFC 9110 §15.5.9",
        required: "end the connection within a deadline, even if single bytes arrive; 408 or no response",
        cases: vec![
            case("nothing", "", b""),
            case("in-the-first-line", "GET /", b""),
            case("in-a-field", &in_field, b""),
            case("before-the-last-line", fields, b""),
            case("value-byte-by-byte", &in_field, b"x"),
            case("fields-byte-by-byte", fields, b"X: y\r\n"),
            case("path-byte-by-byte", "GET /", b"x"),
        ],
    }
}

fn frames(wire: Wire) -> Row {
    let case =
        |name: &str, begin: Vec<u8>, drip: &[u8]| left(name, Opening::WebSocket, begin, drip);
    let whole = wire.bytes(&[Frame::new(0x2, vec![b'x'; 60_000])]);
    let cut = |bytes: usize| whole[..bytes].to_vec();
    let first = Frame::new(0x2, "x").unfinished();
    let last = wire.bytes(&[first, Frame::new(0x0, vec![b'x'; 60_000])]);
    let mut cases = vec![
        case("in-the-header", cut(1), b""),
        case("in-the-length", cut(3), b""),
        case("in-the-payload", cut(100), b""),
        case("payload-byte-by-byte", cut(100), b"x"),
        case("fragment-byte-by-byte", last[..100].to_vec(), b"x"),
    ];
    cases.extend(CLAIMED_KIB.into_iter().flat_map(|kib| {
        let begun = wire.bytes(&[Frame::new(0x2, "x").claiming((kib as u64) << 10)]);
        (1..=CLAIMS).map(move |n| case(&format!("claims-{kib}-kib-{n}"), begun.clone(), b""))
    }));
    Row {
        id: "R03",
        title: "frames that never end",
        section: "RFC 6455 §10.4, §7.2.2",
        required: "end the connection within a deadline, even if single bytes arrive",
        cases,
    }
}

/// Returns how many bytes an input of these rows claims to send.
pub(crate) fn claimed_bytes(case: &Case) -> usize {
    let kib = case.name.strip_prefix("claims-");
    let kib = kib.and_then(|rest| rest.split('-').next()?.parse::<usize>().ok());
    kib.unwrap_or(0) << 10
}

fn silence() -> Row {
    let mut case = left("from-the-start", Opening::WebSocket, Vec::new(), b"");
    case.expect = Expect::GivenUp {
        drip: Vec::new(),
        may_wait: true,
    };
    Row {
        id: "R04",
        title: "a WebSocket whose peer answers no Ping",
        section: "RFC 6455 §5.5.2, §5.5.3",
        required: "send a Ping, and end the connection if it is not answered",
        cases: vec![case],
    }
}

fn closes(wire: Wire) -> Row {
    let ping = wire.bytes(&[Frame::new(0x9, "")]);
    let unknown = || wire.bytes(&[Frame::new(0x3, "x")]);
    let not_text = wire.bytes(&[Frame::new(0x1, [0xFF])]);
    let close = || wire.bytes(&[Frame::new(0x8, 1000_u16.to_be_bytes())]);
    let case =
        |name: &str, begin: Vec<u8>, drip: &[u8]| left(name, Opening::WebSocket, begin, drip);
    Row {
        id: "R05",
        title: "closing handshakes that are not completed",
        section: "RFC 6455 §7.1.1, §7.1.7",
        required: "end the connection within a deadline, even if single bytes arrive",
        cases: vec![
            case("behind-an-error", unknown(), b""),
            case("behind-text-that-is-none", not_text, b""),
            case("behind-an-error-and-pings", unknown(), &ping),
            case("behind-both-close-frames", close(), b""),
            case("behind-both-close-frames-and-pings", close(), &ping),
        ],
    }
}
