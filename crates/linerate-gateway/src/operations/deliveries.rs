//! Delivery metrics of the hubs, by namespace, client protocol and transport.

use std::{collections::BTreeMap, sync::Arc};

use linerate_hub::hub::{DELAY_BOUNDS_S, Deliveries, MESSAGES_BOUNDS};

use super::figure::{Figure, Kind, Labels, Value, buckets};
use crate::{
    node::Node,
    protocol::{self, dialect::TAIL},
};

/// Returns the delivery metrics of all hubs together. Histograms are by namespace only, because
/// each consists of many series.
pub(super) fn figures(
    node: &Node,
    deliveries: impl IntoIterator<Item = Deliveries>,
) -> Vec<Figure> {
    let mut sums: BTreeMap<(u16, u8), Deliveries> = BTreeMap::new();
    let mut namespaces: BTreeMap<u16, Deliveries> = BTreeMap::new();
    for one in deliveries {
        let key = (one.label, one.encoding.0);
        add(&mut namespaces, one.label, &one);
        add(&mut sums, key, &one);
    }
    let sums: Vec<(Labels, Deliveries)> = sums
        .into_iter()
        .map(|((label, encoding), sum)| (labels(node.namespaces.name(label), encoding), sum))
        .collect();
    let namespaces: Vec<(Labels, Deliveries)> = namespaces
        .into_iter()
        .map(|(label, sum)| (vec![("namespace", node.namespaces.name(label))], sum))
        .collect();
    let counter = |name, help, count: fn(&Deliveries) -> u64| Figure {
        name,
        help,
        kind: Kind::Counter,
        values: numbers(&sums, count),
    };
    vec![
        counter(
            "deliveries",
            "Publications delivered to subscribers",
            |it| it.messages,
        ),
        counter(
            "delivered_bytes",
            "Encoded bytes delivered to subscribers",
            |it| it.bytes,
        ),
        counter(
            "delivered_blocks",
            "Blocks delivered to subscribers",
            |it| it.blocks,
        ),
        Figure {
            name: "subscriptions",
            help: "Current subscriptions",
            kind: Kind::Gauge,
            values: numbers(&sums, |it| it.subscriptions),
        },
        histogram(
            "delivery_seconds",
            "For each delivered block, time since its oldest publication arrived from the broker",
            &namespaces,
            delay,
        ),
        histogram(
            "block_messages",
            "For each delivered block, number of publications in it",
            &namespaces,
            messages,
        ),
    ]
}

fn add<K: Ord>(sums: &mut BTreeMap<K, Deliveries>, key: K, one: &Deliveries) {
    match sums.get_mut(&key) {
        Some(sum) => sum.add(one),
        None => _ = sums.insert(key, one.clone()),
    }
}

fn labels(namespace: Arc<str>, encoding: u8) -> Labels {
    let dialect = protocol::dialects().nth(usize::from(encoding));
    let (protocol, transport) = dialect.map_or(TAIL, |dialect| dialect.name);
    vec![
        ("namespace", namespace),
        ("protocol", protocol.into()),
        ("transport", transport.into()),
    ]
}

fn numbers(sums: &[(Labels, Deliveries)], count: fn(&Deliveries) -> u64) -> Vec<(Labels, Value)> {
    let number =
        |(labels, sum): &(Labels, Deliveries)| (labels.clone(), Value::Number(count(sum) as f64));
    sums.iter().map(number).collect()
}

fn histogram(
    name: &'static str,
    help: &'static str,
    namespaces: &[(Labels, Deliveries)],
    value: fn(&Deliveries) -> Value,
) -> Figure {
    let values = namespaces.iter();
    Figure {
        name,
        help,
        kind: Kind::Histogram,
        values: values
            .map(|(labels, sum)| (labels.clone(), value(sum)))
            .collect(),
    }
}

fn delay(sum: &Deliveries) -> Value {
    Value::Histogram {
        sum: sum.delay.as_secs_f64(),
        buckets: buckets(DELAY_BOUNDS_S, sum.by_delay),
    }
}

fn messages(sum: &Deliveries) -> Value {
    Value::Histogram {
        sum: sum.messages as f64,
        buckets: buckets(MESSAGES_BOUNDS.map(f64::from), sum.by_messages),
    }
}
