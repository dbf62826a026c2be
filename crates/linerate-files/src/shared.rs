//! What all connections of a service share.

use std::sync::Arc;

use crate::{Limits, Store, registry::Registry};

pub(crate) struct Shared<S: Store> {
    pub(crate) store: S,
    pub(crate) limits: Limits,
    pub(crate) registry: Arc<Registry<S::File>>,
}
