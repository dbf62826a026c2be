//! Gaps as JSON: `{"channel":…,"missed":…,"cause":…}`.

use linerate_hub::{ChannelName, Gap};
use serde::Serialize;

/// Appends a gap as a JSON object.
pub(super) fn append_json(channel: &ChannelName, gap: Gap, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Wire<'a> {
        channel: &'a str,
        missed: Option<u64>,
        cause: &'a str,
    }
    let wire = Wire {
        channel: channel.as_str(),
        missed: gap.missed,
        cause: gap.cause.as_str(),
    };
    serde_json::to_writer(out, &wire)
        .expect("serializing strings and numbers to a Vec cannot fail");
}
