//! Settings with invalid values (RFC 9113 §6.5.2).

use super::Maker;
use crate::{
    case::Row,
    http2::frame::{
        ENABLE_PUSH, FLOW_CONTROL_ERROR, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, PROTOCOL_ERROR,
        settings,
    },
};

pub(super) fn rows(maker: Maker<'_>) -> Vec<Row> {
    let case = |name: &str, setting: u16, value: u32, codes: &'static [u32]| {
        maker.fatal(name, settings(&[(setting, value)]), codes)
    };
    let protocol = &[PROTOCOL_ERROR];
    // Left to h2, the library of linerate and of many other servers.
    let flow = &[FLOW_CONTROL_ERROR, PROTOCOL_ERROR];
    vec![Row {
        id: "S20",
        title: "settings with invalid values",
        section: "RFC 9113 §6.5.2",
        required: "end the connection; PROTOCOL_ERROR in place of FLOW_CONTROL_ERROR, as h2 answers, \
            is accepted",
        cases: vec![
            case("push-2", ENABLE_PUSH, 2, protocol),
            case("push-most", ENABLE_PUSH, u32::MAX, protocol),
            case("window-beyond-the-most", INITIAL_WINDOW_SIZE, 1 << 31, flow),
            case("window-most", INITIAL_WINDOW_SIZE, u32::MAX, flow),
            case("frame-size-0", MAX_FRAME_SIZE, 0, protocol),
            case("frame-size-16383", MAX_FRAME_SIZE, 16_383, protocol),
            case("frame-size-2-24", MAX_FRAME_SIZE, 1 << 24, protocol),
        ],
    }]
}
