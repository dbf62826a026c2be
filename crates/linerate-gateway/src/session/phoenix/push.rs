//! Events that Phoenix clients send: calls of the application, or publications.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;

use super::super::{
    Completion, Context, Identity, Refusal, Session, Work, work::PhoenixCompletion,
};
use crate::protocol::{
    codes::ClientError, command::PhoenixPlace, event_name, phoenix::is_reserved,
    reply::PhoenixError,
};

/// Phoenix's own words.
const UNMATCHED: PhoenixError = PhoenixError {
    code: None,
    reason: Cow::Borrowed("unmatched topic"),
};

impl Session {
    /// Starts to handle an event, or tells the client why it is refused. It is a call of the method
    /// with its name if calls in the channel have a backend, and a publication otherwise.
    pub(super) fn begin_push(
        &mut self,
        context: Context,
        identity: Arc<Identity>,
        place: PhoenixPlace,
        (event, payload): (String, Bytes),
    ) -> Option<Work> {
        let Some(channel) = self.joined(&place) else {
            self.answer(place, Err(UNMATCHED));
            return None;
        };
        if is_reserved(&event) {
            let message = format!("bad request: event {event:?} is reserved");
            let error = ClientError::BAD_REQUEST.with_message(message);
            self.answer(place, Err(error.into()));
            return None;
        }
        let settings = context.gate.shared.settings_full();
        let backend = &settings.channel(&channel).rpc_backend;
        if let Some(backend) = settings.backends.find(backend) {
            return Some(Box::pin(async move {
                let handled = context.handle_push(backend, &identity, &channel, (&event, &payload));
                handled_as(place, handled.await)
            }));
        }
        let tags = event_name::tags(&event, None);
        match self.publishing(context, identity, channel.as_str(), (payload, tags)) {
            Ok(publishing) => Some(Box::pin(async move {
                let published = publishing.await;
                handled_as(place, published.map(|_| Bytes::new()))
            })),
            Err(refusal) => {
                self.finish_answer(place, Err(refusal));
                None
            }
        }
    }
}

fn handled_as(place: PhoenixPlace, result: Result<Bytes, Refusal>) -> Completion {
    Completion::Phoenix(PhoenixCompletion::Handled(place, result))
}
