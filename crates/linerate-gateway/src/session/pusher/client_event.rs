//! Events that clients publish in private and presence channels.

use std::sync::Arc;

use bytes::Bytes;
use linerate_broker::Publish;
use linerate_hub::{ChannelName, ClientId, ClientInfo};

use super::super::{
    Completion, Context, Identity, Session, Work,
    budget::{Budget, Verdict},
    work::PusherCompletion,
};
use crate::{
    clock::now,
    config::{PusherAccess, PusherKind},
    protocol::{
        event_name,
        pusher::{self, EVENT_BYTES_MAX},
    },
};

/// Why an event of a client is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
enum Rejected {
    #[error("client events are only possible in private and presence channels")]
    Channel,
    #[error("event has {bytes} bytes of data; at most {bytes_max} are allowed")]
    Data { bytes: usize, bytes_max: usize },
    #[error("client events are not enabled (pusher.client_events)")]
    Disabled,
    #[error("name of the event has {bytes} bytes; at most {EVENT_BYTES_MAX} are allowed")]
    Name { bytes: usize },
    #[error("client sends more than {per_second_max} events per second")]
    Rate { per_second_max: u32 },
    #[error("client is not subscribed to the channel")]
    Unsubscribed,
}

impl Session {
    /// Starts to publish an event, or tells the client why it is refused.
    pub(super) fn begin_client_event(
        &mut self,
        context: Context,
        (identity, id): (Arc<Identity>, ClientId),
        (event, channel, data): (String, &str, Bytes),
    ) -> Option<Work> {
        let channel = match self.check_client_event(&event, channel, data.len()) {
            Ok(channel) => channel,
            Err(rejected) => {
                let code = Some(pusher::CLIENT_EVENT_REJECTED);
                self.say_error(code, rejected.to_string());
                return None;
            }
        };
        let settings = context.gate.shared.settings_full();
        let options = settings.channel(&channel);
        let info = sender(&context, &identity, id, &channel);
        let publish = Publish {
            payload: data,
            tags: event_name::tags(&event, Some(&info.client)),
            info: Some(info),
            idempotency_key: None,
            options: options.stream(),
        };
        let backend = settings.backends.find(&options.publish_backend);
        let asking = backend.map(|backend| (backend, identity));
        Some(Box::pin(async move {
            let published = context.publish(channel, publish, asking).await;
            Completion::Pusher(PusherCompletion::Published(published.map(drop)))
        }))
    }

    fn check_client_event(
        &mut self,
        event: &str,
        channel: &str,
        data_bytes: usize,
    ) -> Result<ChannelName, Rejected> {
        let settings = self.context.gate.shared.settings_full();
        let options = &settings.config.pusher;
        if !options.client_events {
            return Err(Rejected::Disabled);
        }
        let kind = PusherKind::of(channel);
        if !matches!(kind.access, PusherAccess::Presence | PusherAccess::Private) {
            return Err(Rejected::Channel);
        }
        let name = settings.channel_name(channel).ok();
        let name = name.filter(|name| self.subscriptions.contains_key(name));
        let name = name.ok_or(Rejected::Unsubscribed)?;
        if event.len() > EVENT_BYTES_MAX {
            return Err(Rejected::Name { bytes: event.len() });
        }
        let (bytes, bytes_max) = (data_bytes, options.event_bytes_max);
        if bytes > bytes_max {
            return Err(Rejected::Data { bytes, bytes_max });
        }
        let per_second_max = options.client_events_per_second_max;
        let pusher = self.protocol_state.begin_pusher();
        let budget = pusher
            .client_events
            .get_or_insert_with(|| Budget::new(per_second_max, now()));
        match budget.spend(now()) {
            Verdict::Granted => Ok(name),
            Verdict::Excessive | Verdict::Refused => Err(Rejected::Rate { per_second_max }),
        }
    }
}

/// Returns the client as others see it in the channel.
fn sender(
    context: &Context,
    identity: &Identity,
    id: ClientId,
    channel: &ChannelName,
) -> ClientInfo {
    let delivery = context.gate.worker.delivery(id, channel);
    let present = delivery.and_then(|delivery| delivery.presence);
    ClientInfo::clone(&present.unwrap_or_else(|| identity.who.clone()))
}
