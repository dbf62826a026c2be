//! Relaying: the output has the same frames as the input, however the input is split.

use linerate_proto::{
    Endpoint, Header, MaskKey, ProtocolError, Role,
    relay::{Pings, Relay, Step},
};
use linerate_testkit::{Cuts, Frame, Rng};

const ROLES: [Role; 2] = [Role::Client, Role::Server];

/// A sink that uses a different key for each frame, and counts the frames.
struct Sink {
    role: Role,
    keys: u32,
}

impl Endpoint for Sink {
    fn role(&self) -> Role {
        self.role
    }

    fn next_mask_key(&mut self) -> Option<MaskKey> {
        self.keys = self.keys.wrapping_add(0x9E37_79B9);
        (self.role == Role::Client).then(|| MaskKey(self.keys.to_be_bytes()))
    }
}

fn relay(source: Role, sink: Role, pings: Pings) -> Relay<Sink> {
    Relay::new(
        source,
        Sink {
            role: sink,
            keys: 0,
        },
        pings,
    )
}

/// The result of relaying an input.
#[derive(Debug, Default, Eq, PartialEq)]
struct Outcome {
    /// The bytes that the sink receives.
    sent: Vec<u8>,
    /// The payloads of Pings that the relay must answer.
    answers: Vec<Vec<u8>>,
    /// The code of the Close frame, if one was forwarded.
    close: Option<Option<u16>>,
}

/// Feeds `wire` to `relay` as an I/O loop does.
fn fed(
    relay: &mut Relay<Sink>,
    wire: &[u8],
    cuts: Cuts,
    by_frame: bool,
) -> Result<Outcome, ProtocolError> {
    let mut outcome = Outcome::default();
    let mut held = Vec::new();
    let mut result = Ok(());
    cuts.for_each_piece(wire, |piece| {
        held.extend_from_slice(piece);
        let mut input = std::mem::take(&mut held);
        let mut at = 0;
        loop {
            let step = match by_frame {
                true => relay.next_frame(&mut input[at..]),
                false => relay.next(&mut input[at..]),
            };
            match step {
                Ok(Some(step)) => at += taken(step, &input[at..], &mut outcome),
                Ok(None) => break,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
            if by_frame && !relay.is_in_place() {
                continue;
            }
            assert!(!by_frame || relay.is_between_frames() || at == input.len());
        }
        held.extend_from_slice(&input[at..]);
        let is_bounded = held.len() <= Relay::<Sink>::HELD_BYTES_MAX;
        assert!(is_bounded || relay.is_closed() || result.is_err());
    });
    result.map(|()| outcome)
}

/// Performs `step`; returns how many bytes of the input it used.
fn taken(step: Step, input: &[u8], outcome: &mut Outcome) -> usize {
    match step {
        Step::Answer { bytes, ping } => {
            outcome
                .answers
                .extend(ping.map(|ping| input[ping.start..ping.end].to_vec()));
            bytes
        }
        Step::Close {
            bytes,
            header,
            code,
        } => {
            let replaced = header.map_or(0, |header| header.replaced());
            outcome
                .sent
                .extend(header.iter().flat_map(|header| header.as_slice()));
            outcome.sent.extend_from_slice(&input[replaced..bytes]);
            assert_eq!(outcome.close.replace(code), None);
            bytes
        }
        Step::Forward { bytes } => {
            outcome.sent.extend_from_slice(&input[..bytes]);
            bytes
        }
        Step::Header { bytes, header } => {
            assert_eq!(header.replaced(), bytes);
            outcome.sent.extend_from_slice(header.as_slice());
            bytes
        }
    }
}

/// The first byte of a frame and its unmasked payload.
type Seen = (u8, Vec<u8>);

/// Returns the frames and their keys.
fn parsed(mut wire: &[u8], receiver: Role) -> (Vec<Seen>, Vec<[u8; 4]>) {
    let (mut frames, mut keys) = (Vec::new(), Vec::new());
    while !wire.is_empty() {
        let (header, bytes) = Header::decode(wire)
            .expect("the frames are legal")
            .expect("a whole header");
        assert_eq!(header.mask.is_some(), receiver == Role::Server);
        let end = bytes + header.payload_bytes as usize;
        let MaskKey(key) = header.mask.unwrap_or_default();
        keys.push(key);
        let payload = wire[bytes..end].iter().zip(key.iter().cycle());
        frames.push((wire[0], payload.map(|(byte, key)| byte ^ key).collect()));
        wire = &wire[end..];
    }
    (frames, keys)
}

/// Returns the role of our peer.
fn peer(role: Role) -> Role {
    match role {
        Role::Client => Role::Server,
        Role::Server => Role::Client,
    }
}

/// Frames of all kinds, with lengths around those where the header changes, and with reserved bits.
fn frames(rng: &mut Rng) -> Vec<Seen> {
    (0..40)
        .map(|_| {
            let first = [0x81, 0x82, 0x01, 0x80, 0x00, 0xC1, 0xF2, 0x89, 0x8A][rng.below(9)];
            let lengths = [0, 1, 3, 4, 125, 126, 200, 65_535, 65_536];
            let lengths = if first & 8 == 0 {
                &lengths[..]
            } else {
                &lengths[..5]
            };
            let length = lengths[rng.below(lengths.len())];
            (first, (0..length).map(|at| (at * 7 + 3) as u8).collect())
        })
        .collect()
}

fn wire(frames: &[Seen], to: Role) -> Vec<u8> {
    let encoded = frames.iter().enumerate().map(|(number, (first, payload))| {
        let frame = Frame::new(first & 0xF, payload)
            .with_fin(first & 0x80 != 0)
            .with_rsv(first >> 4 & 7);
        let key = [number as u8, 0xA5, 0, 77];
        frame
            .with_mask((to == Role::Server).then_some(key))
            .to_bytes()
    });
    encoded.collect::<Vec<_>>().concat()
}

#[test]
fn frames_are_relayed_unchanged_for_all_roles_and_splits() {
    let mut rng = Rng::new(6);
    for round in 0..3 {
        let frames = frames(&mut rng);
        for (source, sink) in ROLES.iter().flat_map(|a| ROLES.map(|b| (*a, b))) {
            let input = wire(&frames, source);
            for by_frame in [false, true] {
                for cuts in [Cuts::Whole, Cuts::Random(round), Cuts::Every(4_096)] {
                    let mut relay = relay(source, sink, Pings::Forward);
                    let outcome =
                        fed(&mut relay, &input, cuts, by_frame).expect("the frames are legal");
                    assert!(relay.is_between_frames());
                    assert_eq!(parsed(&outcome.sent, peer(sink)).0, frames);
                    assert_eq!(outcome.answers, Vec::<Vec<u8>>::new());
                }
            }
        }
    }
}

#[test]
fn every_split_of_a_short_input_gives_the_same_result() {
    let frames = [
        (0x01, b"He".to_vec()),
        (0x89, b"ping".to_vec()),
        (0x80, vec![b'x'; 130]),
        (0x8A, b"".to_vec()),
        (0x88, b"\x03\xe8bye".to_vec()),
    ];
    for (source, sink) in ROLES.iter().flat_map(|a| ROLES.map(|b| (*a, b))) {
        for pings in [Pings::Answer, Pings::Forward] {
            let input = wire(&frames, source);
            let whole = fed(&mut relay(source, sink, pings), &input, Cuts::Whole, false);
            let whole = whole.expect("the frames are legal");
            assert_eq!(whole.close, Some(Some(1000)));
            for at in 0..=input.len() {
                let mut relay = relay(source, sink, pings);
                let cut =
                    fed(&mut relay, &input, Cuts::At(at), false).expect("the frames are legal");
                assert_eq!(cut, whole, "cut at {at}");
            }
        }
    }
}

#[test]
fn answered_pings_are_not_relayed_but_messages_around_them_are() {
    let frames = [
        (0x01, b"He".to_vec()),
        (0x89, b"are you there?".to_vec()),
        (0x80, b"llo".to_vec()),
        (0x8A, b"unasked".to_vec()),
        (0x89, b"".to_vec()),
    ];
    let mut relay = relay(Role::Server, Role::Client, Pings::Answer);
    let input = wire(&frames, Role::Server);
    let outcome = fed(&mut relay, &input, Cuts::Every(3), false).expect("the frames are legal");
    let expected = [frames[0].clone(), frames[2].clone()];
    assert_eq!(parsed(&outcome.sent, Role::Server).0, expected);
    assert_eq!(outcome.answers, [b"are you there?".to_vec(), b"".to_vec()]);
}

#[test]
fn c05_every_frame_to_a_server_gets_a_new_key() {
    let frames = vec![(0x82, b"same".to_vec()); 100];
    for source in ROLES {
        let mut relay = relay(source, Role::Client, Pings::Forward);
        let outcome = fed(&mut relay, &wire(&frames, source), Cuts::Whole, false)
            .expect("the frames are legal");
        let (_, mut keys) = parsed(&outcome.sent, Role::Server);
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 100);
    }
}

#[test]
fn between_unmasked_peers_nothing_is_changed() {
    let frames = frames(&mut Rng::new(1));
    let input = wire(&frames, Role::Client);
    let mut relay = relay(Role::Client, Role::Server, Pings::Forward);
    assert!(relay.is_in_place());
    let mut passed = input.clone();
    let step = relay.next(&mut passed).expect("the frames are legal");
    assert_eq!(step, Some(Step::Forward { bytes: input.len() }));
    assert_eq!(passed, input);
}

#[test]
fn nothing_is_relayed_after_a_close_frame() {
    for (payload, code) in [
        (&b""[..], None),
        (b"\x03\xe9why", Some(1001)),
        (b"\x00", None),
    ] {
        let frames = [(0x88, payload.to_vec()), (0x81, b"late".to_vec())];
        for (source, sink) in ROLES.iter().flat_map(|a| ROLES.map(|b| (*a, b))) {
            let mut relay = relay(source, sink, Pings::Forward);
            assert!(!relay.is_closed());
            let outcome = fed(&mut relay, &wire(&frames, source), Cuts::Whole, false)
                .expect("the frames are legal");
            assert_eq!(parsed(&outcome.sent, peer(sink)).0, frames[..1]);
            assert_eq!(outcome.close, Some(code));
            assert!(relay.is_closed());
        }
    }
}

#[test]
fn headers_without_a_frame_end_are_refused_after_the_valid_frames() {
    let good = Frame::new(0x2, b"good");
    for source in ROLES {
        let wrong_side = peer(source);
        for (bad, error) in [
            (
                Frame::new(0x3, b"").to_role(source),
                ProtocolError::ReservedOpcode { opcode: 3 },
            ),
            (
                Frame::new(0x2, b"")
                    .with_claimed_bytes(1 << 63)
                    .to_role(source),
                ProtocolError::LengthOverflow { bytes: 1 << 63 },
            ),
            (
                Frame::new(0x2, b"x").to_role(wrong_side),
                match source {
                    Role::Client => ProtocolError::MaskedFrame,
                    Role::Server => ProtocolError::UnmaskedFrame,
                },
            ),
        ] {
            let good = good.clone().to_role(source).to_bytes();
            let mut input = [&good[..], &bad.to_bytes()].concat();
            let mut relay = relay(source, peer(source), Pings::Forward);
            let bytes = good.len();
            assert_eq!(relay.next(&mut input), Ok(Some(Step::Forward { bytes })));
            assert_eq!(relay.next(&mut input[bytes..]), Err(error));
            assert!(relay.is_between_frames());
        }
    }
}

/// A frame of eight exabytes is forwarded as it arrives: nothing depends on its length.
#[test]
fn c04_a_huge_length_does_not_allocate_memory() {
    let bomb = Frame::new(0x2, b"").with_claimed_bytes(i64::MAX as u64);
    let mut input = bomb.to_role(Role::Server).to_bytes();
    let mut relay = relay(Role::Server, Role::Client, Pings::Answer);
    let bytes = input.len();
    assert_eq!(relay.next(&mut input), Ok(Some(Step::Forward { bytes })));
    for _ in 0..100 {
        let step = relay.next(&mut [0; 1_000]).expect("the frames are legal");
        assert_eq!(step, Some(Step::Forward { bytes: 1_000 }));
    }
    assert!(!relay.is_between_frames());
}

/// All headers by their first two bytes, followed by any bytes: up to the first error, the outcome
/// does not depend on how the input is split.
#[test]
fn any_bytes_are_relayed_or_refused_the_same_however_they_are_split() {
    let mut rng = Rng::new(9);
    for head in 0..=u16::MAX {
        let (source, sink) = (ROLES[usize::from(head & 1)], ROLES[rng.below(2)]);
        let pings = [Pings::Answer, Pings::Forward][rng.below(2)];
        let mut wire = head.to_be_bytes().to_vec();
        // Masked and unmasked frames: about half of the headers are masked correctly for this role.
        if source == Role::Server {
            wire[1] |= 0x80;
        }
        wire.extend((0..rng.below(60)).map(|_| rng.below(256) as u8));
        let whole = fed(&mut relay(source, sink, pings), &wire, Cuts::Whole, false);
        let cuts = Cuts::Random(u64::from(head));
        let cut = fed(&mut relay(source, sink, pings), &wire, cuts, false);
        assert_eq!(cut, whole, "{wire:02x?}, {source:?} to {sink:?}, {pings:?}");
    }
}
