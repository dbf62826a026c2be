//! Sessions of Pusher clients: handles what only they request.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `authorization` | checks the signatures of subscriptions |
//! | `client_event` | events that clients publish |
//! | `roster` | the users in a presence channel |
//! | `sign_in` | the user of a connection |
//! | `subscribe` | makes subscriptions |

mod authorization;
mod client_event;
mod roster;
mod sign_in;
mod subscribe;

use std::sync::Arc;

use linerate_hub::{ChannelName, ClientId, ClientInfo};

use super::{Context, Identity, Refusal, Session, Work, budget::Budget, work::PusherCompletion};
use crate::{
    channel_map::ChannelMap,
    protocol::{
        codes::ClientError,
        command::PusherRequest,
        reply::{PusherMessage, PusherSubscribeError, ServerMessage},
    },
};
use roster::Roster;

/// The state that only Pusher clients have.
#[derive(Debug, Default)]
pub(super) struct PusherState {
    /// The users in the presence channels of the client.
    rosters: ChannelMap<Roster>,
    /// `None` until the client sends an event.
    client_events: Option<Budget>,
}

impl PusherState {
    /// Returns whether another process can continue the session. It would not know the users in
    /// presence channels.
    pub(super) fn is_portable(&self) -> bool {
        self.rosters.len() == 0
    }

    /// Forgets a channel that the client has left.
    pub(super) fn leave(&mut self, channel: &ChannelName) {
        self.rosters.remove(channel);
    }
}

impl Session {
    /// Starts a request of a connected client. Returns the operation that completes it, if any.
    pub(super) fn begin_pusher(
        &mut self,
        context: Context,
        (identity, id): (Arc<Identity>, ClientId),
        request: PusherRequest,
    ) -> Result<Option<Work>, Refusal> {
        match request {
            PusherRequest::ClientEvent {
                event,
                channel,
                data,
            } => Ok(self.begin_client_event(context, (identity, id), (event, &channel, data))),
            PusherRequest::SignIn { auth, user_data } => {
                self.sign_in(&identity, id, &auth, user_data)?;
                Ok(None)
            }
            PusherRequest::Subscribe {
                channel,
                auth,
                channel_data,
            } => {
                let asked = authorization::Asked {
                    channel,
                    auth,
                    channel_data,
                };
                Ok(self.begin_pusher_subscribe(context, (&identity, id), &asked))
            }
            PusherRequest::Unknown => {
                self.say_error(None, "unknown event".to_owned());
                Ok(None)
            }
            PusherRequest::Unsubscribe { channel } => {
                if let Ok(channel) = context.gate.shared.settings().channel_name(&channel) {
                    self.leave(&channel);
                }
                Ok(None)
            }
        }
    }

    /// Completes a request.
    pub(super) fn finish_pusher(&mut self, completion: PusherCompletion) {
        match completion {
            PusherCompletion::Published(Ok(())) => {}
            PusherCompletion::Published(Err(Refusal::Disconnect(disconnect))) => {
                self.end(disconnect);
            }
            PusherCompletion::Published(Err(Refusal::Error(error))) => {
                self.say_error(None, error.message.into_owned());
            }
            PusherCompletion::Subscribed(channel, result) => {
                self.finish_pusher_subscribe(channel, result);
            }
        }
    }

    /// Refuses a request that exceeds the rate limit.
    pub(super) fn refuse_excess_pusher(&mut self, request: &PusherRequest) {
        let message = ClientError::TOO_MANY_REQUESTS.message.into_owned();
        match request.subscribed_channel() {
            Some(channel) => self.say_pusher(PusherMessage::SubscribeError(PusherSubscribeError {
                channel: channel.to_owned(),
                kind: "LimitReached",
                error: message,
                status: 429,
            })),
            None => self.say_error(None, message),
        }
    }

    /// Returns whether a client that joined or left a channel must not be reported: it is this
    /// client or another connection of a user who is present, or the list of users is not complete
    /// yet.
    pub(super) fn hides_move(
        &mut self,
        channel: &ChannelName,
        info: &ClientInfo,
        is_present: bool,
    ) -> bool {
        let pusher = self.protocol_state.pusher_mut();
        let rosters = pusher.map(|pusher| &mut pusher.rosters);
        let Some(roster) = rosters.and_then(|rosters| rosters.get_mut(channel)) else {
            return false;
        };
        // A client that leaves and returns at once is told of both later.
        let is_own = info.client == self.context.connection.who.client;
        is_own || !roster.moved(info, is_present)
    }

    /// Tells the client how many subscriptions a channel has, if it has not left the channel.
    pub(super) fn say_count(&mut self, channel: ChannelName, count: u64) {
        if self.has(&channel) {
            self.say_pusher(PusherMessage::SubscriptionCount { channel, count });
        }
    }

    fn say_pusher(&mut self, message: PusherMessage) {
        self.activity.say(ServerMessage::Pusher(message));
    }

    fn say_error(&mut self, code: Option<u16>, message: String) {
        self.say_pusher(PusherMessage::Error { code, message });
    }
}
