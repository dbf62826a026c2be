//! Any bytes as compressed messages from a client.
#![no_main]

use core::time::Duration;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use linerate_proto::{
    Config, Engine, Role,
    deflate::{Agreement, Context, Deflate, ThreadPool},
};
use linerate_testkit::{Cuts, Frame, TestEndpoint, feed};

const MESSAGE_BYTES_MAX: u64 = 70_000;

// The first byte chooses the window, the second where the payload is split into fragments; the rest
// is the payload of one message, and then of another. The result does not depend on how the bytes
// are split.
fuzz_target!(|data: &[u8]| {
    let [choice, cut, payload @ ..] = data else {
        return;
    };
    let context = Context {
        window_bits: 8 + choice % 8,
        takeover: choice & 8 != 0,
    };
    let (first, rest) = payload.split_at(usize::from(*cut).min(payload.len()));
    let frames = [
        Frame::new(2, first).with_rsv(4).with_fin(false),
        Frame::new(0, rest),
        Frame::new(1, payload).with_rsv(4),
    ];
    let wire: Vec<u8> = frames
        .into_iter()
        .flat_map(|frame| frame.to_role(Role::Server).to_bytes())
        .collect();
    let read = |cuts| {
        let mut config = Config::default();
        config.limits.message_bytes_max = MESSAGE_BYTES_MAX;
        let agreement = Agreement {
            sending: context,
            receiving: context,
        };
        let endpoint = TestEndpoint(Role::Server);
        let mut engine = Engine::new(endpoint, Arc::new(config), Duration::ZERO).with_deflate(
            agreement,
            &Deflate::default(),
            &ThreadPool,
        );
        feed(&mut engine, &wire, cuts)
    };
    let whole = read(Cuts::Whole);
    if let Some((_, bytes)) = &whole.unfinished {
        assert!(bytes.len() as u64 <= MESSAGE_BYTES_MAX);
    }
    for cuts in [Cuts::Every(1), Cuts::Random(u64::from(*choice))] {
        assert!(read(cuts) == whole, "{cuts:?}");
    }
});
