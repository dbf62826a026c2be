//! How each protocol reports a gap.

use linerate_hub::{ChannelName, Gap, GapCause};

use crate::protocol::{event_stream, native, raw};

#[test]
fn each_protocol_reports_a_gap_in_its_own_form() {
    let ticks = ChannelName::new("ticks").unwrap();
    let gap = Gap {
        missed: Some(3),
        cause: GapCause::RingEvicted,
    };
    let mut out = Vec::new();
    native::append_gap(300, gap, &mut out);
    assert_eq!(out, b"\x82\x06\xac\x02\x04\x04\x05\x00");

    out.clear();
    raw::append_gap(&ticks, gap, &mut out);
    assert_eq!(
        out,
        b"\x81\x3d{\"gap\":{\"channel\":\"ticks\",\"missed\":3,\"cause\":\"ring_evicted\"}}"
    );

    out.clear();
    let gap = Gap {
        missed: None,
        cause: GapCause::LinkLost,
    };
    event_stream::append_gap(&ticks, gap, &mut out);
    assert_eq!(
        out,
        b"event: gap\ndata: {\"channel\":\"ticks\",\"missed\":null,\"cause\":\"link_lost\"}\n\n"
    );
}
