//! A metric with values that were counted elsewhere.

use std::{fmt, iter, sync::Arc};

use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

/// A metric: its name without the prefix, and its values by label.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: Kind,
    pub(super) values: Vec<(Labels, Value)>,
}

/// The labels of a value; empty if it is the only one.
pub(super) type Labels = Vec<(&'static str, Arc<str>)>;

#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Histogram {
        sum: f64,
        /// Upper bounds, and the number of values up to each bound but above the previous one.
        buckets: Vec<(f64, u64)>,
    },
}

impl Figure {
    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
        };
        let mut metric = encoder.encode_descriptor(self.name, self.help, None, kind)?;
        if let [(labels, value)] = &self.values[..]
            && labels.is_empty()
        {
            return self.encode_value(metric, value);
        }
        for (labels, value) in &self.values {
            self.encode_value(metric.encode_family(labels)?, value)?;
        }
        Ok(())
    }

    fn encode_value(&self, mut metric: MetricEncoder<'_>, value: &Value) -> fmt::Result {
        match (value, self.kind) {
            (Value::Number(number), Kind::Counter) => ConstCounter::new(*number).encode(metric),
            (Value::Number(number), _) => ConstGauge::new(*number).encode(metric),
            (Value::Histogram { sum, buckets }, _) => {
                let count = buckets.iter().map(|(_, count)| count).sum();
                metric.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
            }
        }
    }
}

/// Pairs the counts of a histogram with their upper bounds. The last bound is infinity.
pub(super) fn buckets(
    bounds: impl IntoIterator<Item = f64>,
    counts: impl IntoIterator<Item = u64>,
) -> Vec<(f64, u64)> {
    let bounds = bounds.into_iter().chain(iter::once(f64::INFINITY));
    bounds.zip(counts).collect()
}
