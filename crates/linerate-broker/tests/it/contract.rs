//! The contract that all brokers fulfil. Each broker's tests provide a [`Service`] and call
//! `contract!`.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use linerate_broker::{Broker, BrokerOptions, Publish, Published, StreamOptions};
use linerate_hub::ChannelName;

use crate::recorder::Recorder;

pub(crate) mod history;
pub(crate) mod live;
pub(crate) mod occupancy;
pub(crate) mod presence;
pub(crate) mod service;

/// A broker that nodes can be attached to.
pub(crate) trait Service: Sized {
    /// True if several nodes see each other's publications.
    const IS_SHARED: bool;
    /// A pattern, a channel that matches it, and one that does not.
    const PATTERN: (&'static str, &'static str, &'static str);

    /// Attaches a node.
    async fn node(&self, options: BrokerOptions, recorder: Arc<Recorder>) -> Arc<dyn Broker>;
}

/// A node under test.
pub(crate) struct Node {
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) recorder: Arc<Recorder>,
}

impl Node {
    pub(crate) async fn of(service: &impl Service) -> Self {
        Self::with(service, BrokerOptions::default()).await
    }

    /// Attaches a node and waits until its link is up.
    pub(crate) async fn with(service: &impl Service, options: BrokerOptions) -> Self {
        let recorder = Recorder::new();
        let broker = service.node(options, Arc::clone(&recorder)).await;
        recorder.link(true).await;
        Self { broker, recorder }
    }

    pub(crate) async fn subscribe(&self, channel: &str, options: StreamOptions) {
        let subscribed = self.broker.subscribe(&name(channel), options).await;
        subscribed.unwrap();
    }

    pub(crate) async fn publish(
        &self,
        channel: &str,
        payload: impl Into<Bytes>,
        options: StreamOptions,
    ) -> Published {
        let publish = publish(payload, options);
        self.broker.publish(&name(channel), publish).await.unwrap()
    }
}

pub(crate) const PLAIN: StreamOptions = StreamOptions {
    is_durable: false,
    size_max: 100,
    ttl: Duration::from_secs(60),
};

pub(crate) const DURABLE: StreamOptions = StreamOptions {
    is_durable: true,
    ..PLAIN
};

pub(crate) const BARE: StreamOptions = StreamOptions {
    is_durable: false,
    size_max: 0,
    ttl: Duration::ZERO,
};

pub(crate) fn name(channel: &str) -> ChannelName {
    ChannelName::new(channel).unwrap()
}

pub(crate) fn publish(payload: impl Into<Bytes>, options: StreamOptions) -> Publish {
    Publish {
        payload: payload.into(),
        info: None,
        tags: Vec::new(),
        idempotency_key: None,
        options,
    }
}

/// Creates a test for each rule of the contract, for the service that `$service` starts. The tests
/// are skipped if it is `None`. With `together`, there is one test, in which `$service` is called
/// once for each rule.
macro_rules! contract {
    ($service:expr) => {
        $crate::contract::contract!(@promises each $service);
    };
    (together $service:expr) => {
        $crate::contract::contract!(@promises together $service);
    };
    (@promises $mode:ident $service:expr) => {
        $crate::contract::contract!(@$mode $service;
            live: payloads_arrive_byte_for_byte,
            live: publications_arrive_in_the_order_of_publishing,
            live: only_subscribed_channels_arrive,
            live: what_was_unsubscribed_arrives_no_more,
            live: a_channel_can_be_subscribed_again,
            live: patterns_deliver_what_matches_and_say_where_it_came_from,
            live: a_payload_that_is_too_long_is_refused_with_both_numbers,
            live: many_channels_are_subscribed_at_once,
            live: two_publishers_do_not_mix_up_the_order_of_offsets,
            history: positions_count_up_in_one_epoch,
            history: a_channel_without_history_has_no_positions,
            history: history_returns_what_follows_a_position,
            history: history_is_limited_and_reversed_as_requested,
            history: a_position_of_another_epoch_recovers_nothing,
            history: a_stream_that_was_cut_off_is_not_contiguous,
            history: what_is_too_old_is_gone,
            history: removing_history_does_not_reset_offsets,
            history: a_durable_publication_says_its_position,
            history: who_published_and_tags_survive_in_durable_channels,
            history: tags_survive_in_plain_channels,
            history: a_key_publishes_once,
            history: no_name_reaches_what_another_channel_holds,
            history: a_key_and_a_name_do_not_run_into_each_other,
            service: nodes_receive_each_others_publications,
            service: control_messages_reach_all_nodes,
            service: a_control_message_to_one_node_reaches_only_that_node,
            service: nodes_are_registered_until_they_leave,
            service: a_node_that_falls_silent_is_forgotten,
            presence: presence_is_that_of_all_nodes,
            presence: presence_that_is_too_large_is_refused,
            presence: a_node_that_resets_its_presence_leaves_that_of_others,
            presence: the_presence_of_a_silent_node_disappears,
            occupancy: the_first_node_occupies_a_name_and_the_last_vacates_it,
            occupancy: one_of_several_nodes_that_change_a_name_at_once_is_the_first,
            occupancy: the_names_of_a_silent_node_become_vacant,
            service: what_is_kept_is_there_for_nodes_that_start_later,
            service: a_value_is_taken_once,
            service: any_node_recovers_a_durable_channel,
            service: a_broker_that_was_shut_down_says_so,
            service: dropping_a_publishing_future_breaks_nothing,
        );
    };
    (@each $service:expr; $($topic:ident: $promise:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                if let Some(service) = $service {
                    $crate::contract::$topic::$promise(&service).await;
                }
            }
        )*
    };
    (@together $service:expr; $($topic:ident: $promise:ident,)*) => {
        tokio::join!($(async {
            $crate::contract::$topic::$promise(&$service).await;
        },)*)
    };
}
pub(crate) use contract;
