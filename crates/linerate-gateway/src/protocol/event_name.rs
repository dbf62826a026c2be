//! Publications that are events: the tag `event` is the name, for the clients of all protocols that
//! know events.

use linerate_hub::Publication;

use super::exceptions;

/// The tag with the name of an event.
pub(crate) const TAG: &str = "event";

/// The name of an event without that tag.
pub(crate) const MESSAGE: &str = "message";

/// Returns the tags of a publication that is the event `name`. The client `except` does not receive
/// it.
pub(crate) fn tags(name: &str, except: Option<&str>) -> Vec<(String, String)> {
    let name = (TAG.to_owned(), name.to_owned());
    let except = except.map(|client| (exceptions::TAG.to_owned(), client.to_owned()));
    [name].into_iter().chain(except).collect()
}

/// Returns the name of the event that a publication is, if it has one.
pub(super) fn of(publication: &Publication) -> Option<&str> {
    let mut tags = publication.tags().iter();
    let tag = tags.find(|(key, _)| key == TAG);
    tag.map(|(_, name)| name.as_str())
}
