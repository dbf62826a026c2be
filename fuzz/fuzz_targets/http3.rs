//! Any bytes on the streams of HTTP/3.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_h3::fuzzing as http3;
use linerate_proto::Role;
use linerate_testkit::Cuts;

// The result does not depend on how the bytes are split, and fields that we decode we also encode.
fuzz_target!(|data: &[u8]| {
    let Some((choice, data)) = data.split_first() else {
        return;
    };
    match choice % 5 {
        0 => {
            http3::field_section(data, 512);
        }
        1 => same(*choice, data, |pieces| {
            format!("{:?}", http3::frame_heads(pieces))
        }),
        2 => same(*choice, data, |pieces| {
            format!("{:?}", http3::qpack_streams(pieces))
        }),
        3 => same(*choice, data, |pieces| {
            http3::control_stream(Role::Server, pieces).join("\n")
        }),
        _ => same(*choice, data, |pieces| {
            http3::control_stream(Role::Client, pieces).join("\n")
        }),
    }
});

fn same(seed: u8, data: &[u8], read: impl Fn(Vec<&[u8]>) -> String) {
    let whole = read(vec![data]);
    for cuts in [Cuts::Every(1), Cuts::Random(u64::from(seed))] {
        let mut pieces = Vec::new();
        cuts.for_each_piece(data, |piece| pieces.push(piece.to_vec()));
        let cut = read(pieces.iter().map(Vec::as_slice).collect());
        assert_eq!(cut, whole, "{cuts:?}");
    }
}
