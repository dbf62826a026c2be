//! The user of a connection, whom the backend of the app has signed.

use std::sync::Arc;

use linerate_hub::{ClientId, ClientInfo};
use serde::Deserialize;

use super::{
    super::{Identity, Refusal, Session, Stage},
    authorization::check_user,
};
use crate::protocol::{codes::Disconnect, pusher::TERMINATED, reply::PusherMessage};

#[derive(Deserialize)]
struct UserData {
    id: String,
}

impl Session {
    /// Makes the connection that of a user.
    ///
    /// # Errors
    /// The signature is wrong, there is no valid user, the connection has another user, or the user
    /// has too many connections.
    pub(super) fn sign_in(
        &mut self,
        identity: &Arc<Identity>,
        id: ClientId,
        auth: &str,
        user_data: String,
    ) -> Result<(), Refusal> {
        let settings = self.context.gate.shared.settings_full();
        let parts = [&*identity.who.client, &*user_data];
        let app = settings.pusher.as_ref();
        if !app.is_some_and(|app| app.authorizes(auth, "::user::", &parts)) {
            return Err(unauthorized("signature of the user is wrong"));
        }
        let user = serde_json::from_str(&user_data).map(|UserData { id }| id);
        let user = user.ok().filter(|user| !user.is_empty());
        let user = user.ok_or_else(|| unauthorized("user_data has no valid id"))?;
        check_user(&user).map_err(|error| unauthorized(&error.to_string()))?;
        if !identity.is_anonymous() && identity.user() != user {
            return Err(unauthorized("connection has another user"));
        }
        self.identify(identity, id, &user)?;
        self.say_pusher(PusherMessage::SignedIn { user_data });
        Ok(())
    }

    fn identify(
        &mut self,
        identity: &Arc<Identity>,
        id: ClientId,
        user: &str,
    ) -> Result<(), Refusal> {
        let who = Arc::new(ClientInfo {
            user: user.into(),
            ..ClientInfo::clone(&identity.who)
        });
        let connection = &mut self.context.connection;
        Arc::make_mut(connection).who = who.clone();
        self.context.gate.worker.identify(id, connection.clone());
        let identity = Arc::new(Identity {
            who,
            ..Identity::clone(identity)
        });
        self.context.gate.check_user(&identity)?;
        if let Stage::Connected {
            identity: current, ..
        } = &mut self.stage
        {
            *current = identity;
        }
        Ok(())
    }
}

fn unauthorized(reason: &str) -> Refusal {
    let disconnect = Disconnect {
        reason: reason.to_owned().into(),
        ..TERMINATED
    };
    Refusal::Disconnect(disconnect)
}
