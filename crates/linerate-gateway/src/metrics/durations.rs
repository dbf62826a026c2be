//! Histograms of durations by label.

use std::{sync::Arc, time::Duration};

use linerate_hub::hub::DELAY_BOUNDS_S;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, histogram::Histogram},
    registry::Registry,
};

/// Durations by labels. Recording one takes two short locks, which is acceptable for each request
/// or command, but not for each delivery.
pub(crate) type Durations<L> = Family<L, Histogram, fn() -> Histogram>;

/// Time that the broker took to publish, by namespace and result.
#[derive(Clone, Debug)]
pub(crate) struct PublishDurations(Durations<PublishLabels>);

/// The namespace and the result.
type PublishLabels = (
    [(&'static str, Arc<str>); 1],
    [(&'static str, &'static str); 1],
);

impl PublishDurations {
    /// Registers the metric under its name, without the prefix.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let help =
            "Time that the broker took to publish messages from the server API and from clients";
        registry.register("publish_seconds", help, self.0.clone());
    }

    pub(crate) fn observe(&self, namespace: Arc<str>, is_ok: bool, took: Duration) {
        let result = if is_ok { "ok" } else { "error" };
        let labels = ([("namespace", namespace)], [("result", result)]);
        let histogram = self.0.get_or_create(&labels);
        histogram.observe(took.as_secs_f64());
    }
}

impl Default for PublishDurations {
    fn default() -> Self {
        Self(durations())
    }
}

/// Returns an empty family of duration histograms.
pub(super) fn durations<L>() -> Durations<L>
where
    L: Clone + Eq + std::hash::Hash + EncodeLabelSet,
{
    Family::new_with_constructor(|| Histogram::new(DELAY_BOUNDS_S))
}
