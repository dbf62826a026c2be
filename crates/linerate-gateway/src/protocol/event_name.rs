//! Publications that are events: the tag `event` is the name, for the clients of all protocols that
//! know events.

use linerate_hub::Publication;

/// The tag with the name of an event.
pub(super) const TAG: &str = "event";

/// The name of an event without that tag.
pub(super) const MESSAGE: &str = "message";

/// Returns the name of the event that a publication is, if it has one.
pub(super) fn of(publication: &Publication) -> Option<&str> {
    let mut tags = publication.tags().iter();
    let tag = tags.find(|(key, _)| key == TAG);
    tag.map(|(_, name)| name.as_str())
}
