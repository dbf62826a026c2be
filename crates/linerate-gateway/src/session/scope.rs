//! The channels whose publications reach a pattern subscriber.
//!
//! Each publication is checked against the current configuration of the namespace it was published
//! in: the namespace must allow patterns, and the subscriber must have a token for the pattern or
//! be allowed to subscribe in that namespace.

use std::sync::Arc;

use linerate_hub::{ChannelName, Scope};

use super::Identity;
use crate::{config::ChannelOptions, node::Node};

/// What a subscriber's rights depend on. All subscribers of one kind see the same publications.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Anonymous,
    /// A token names the pattern, or the application subscribed the client.
    Granted,
    User,
}

/// The channels whose publications reach subscribers of one kind.
#[derive(Debug)]
struct Readable {
    kind: Kind,
    node: Arc<Node>,
}

/// Returns the scope of a subscription to a pattern.
pub(super) fn of_pattern(
    node: &Arc<Node>,
    identity: &Identity,
    is_granted: bool,
) -> Arc<dyn Scope> {
    let kind = match (is_granted, identity.is_anonymous()) {
        (true, _) => Kind::Granted,
        (false, true) => Kind::Anonymous,
        (false, false) => Kind::User,
    };
    let node = Arc::clone(node);
    Arc::new(Readable { kind, node })
}

/// Returns the scope with this name, or `None` if there is none.
pub(super) fn of_name(node: &Arc<Node>, name: &str) -> Option<Arc<dyn Scope>> {
    let mut kinds = [Kind::Anonymous, Kind::Granted, Kind::User].into_iter();
    let kind = kinds.find(|kind| kind.name() == name)?;
    let node = Arc::clone(node);
    Some(Arc::new(Readable { kind, node }))
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Granted => "granted",
            Self::User => "user",
        }
    }

    fn may_read(self, options: &ChannelOptions) -> bool {
        let may_subscribe = match self {
            Self::Anonymous => options.allow_subscribe && options.is_open_to(true),
            Self::Granted => true,
            Self::User => options.allow_subscribe && options.is_open_to(false),
        };
        may_subscribe && options.allow_pattern
    }
}

impl Scope for Readable {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn admits(&self, source: Option<&ChannelName>) -> bool {
        // A publication without a channel name belongs to no namespace that could allow it.
        source.is_some_and(|source| {
            self.kind
                .may_read(self.node.namespaces.current().options(source))
        })
    }
}
