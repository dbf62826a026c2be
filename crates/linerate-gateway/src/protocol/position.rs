//! Positions in streams as text, `epoch:offset`: IDs of events, and the parameter `since`.

use linerate_hub::{Epoch, StreamPosition};

/// Returns the position that a text stands for; `None` if this server did not write the text.
pub(crate) fn parse(text: &str) -> Option<StreamPosition> {
    let (epoch, offset) = text.rsplit_once(':')?;
    let offset = offset.parse().ok()?;
    is_word(epoch).then(|| StreamPosition {
        epoch: Epoch::new(epoch),
        offset,
    })
}

/// Appends a position. Returns `false`, having appended nothing, if its epoch cannot be written on
/// one line.
pub(super) fn append(position: &StreamPosition, out: &mut Vec<u8>) -> bool {
    let epoch = position.epoch.as_str();
    if !is_word(epoch) {
        return false;
    }
    out.extend_from_slice(epoch.as_bytes());
    out.push(b':');
    serde_json::to_writer(out, &position.offset)
        .expect("serializing a number to a Vec cannot fail");
    true
}

fn is_word(epoch: &str) -> bool {
    !epoch.is_empty() && epoch.bytes().all(|byte| byte.is_ascii_graphic())
}
