//! Checks the signatures with which the backend of an app lets a client subscribe.

use std::sync::Arc;

use linerate_hub::ClientInfo;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    auth::PusherApp,
    config::{PusherAccess, PusherKind},
};

/// The maximum length of a user ID, in bytes.
const USER_BYTES_MAX: usize = 128;

/// The maximum size of what others see of a user, in bytes.
const INFO_BYTES_MAX: usize = 1_024;

/// A subscription that a client asks for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) channel: String,
    pub(super) auth: String,
    pub(super) channel_data: Option<String>,
}

/// Why a client may not subscribe.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum Unauthorized {
    /// `channel_data` is not what a presence channel needs.
    #[error("channel_data has no valid user_id")]
    ChannelData,
    /// What others see of the user is too long.
    #[error("user_info has {bytes} bytes; at most {INFO_BYTES_MAX} are allowed")]
    Info { bytes: usize },
    /// The name has characters that the names of such channels cannot have.
    #[error(
        "name of a channel with a signature has other characters than A-Z a-z 0-9 _ - = @ , . ;"
    )]
    Name,
    /// The client is not signed in as the user of the channel.
    #[error("connection is not signed in as the user of this channel")]
    OtherUser,
    /// The signature is missing or wrong.
    #[error("signature is missing or wrong")]
    Signature,
    /// The ID of the user is too long.
    #[error("user_id has {bytes} bytes; at most {USER_BYTES_MAX} are allowed")]
    User { bytes: usize },
}

/// A subscription that was checked.
#[derive(Clone, Debug)]
pub(super) struct Authorized {
    pub(super) kind: PusherKind,
    /// The client as others see it in the channel.
    pub(super) who: Arc<ClientInfo>,
}

impl Asked {
    /// Checks that a client may subscribe. For public channels, the options of the channel decide
    /// later.
    ///
    /// # Errors
    /// The client may not subscribe.
    pub(super) fn authorize(
        &self,
        app: &PusherApp,
        who: &Arc<ClientInfo>,
    ) -> Result<Authorized, Unauthorized> {
        let kind = PusherKind::of(&self.channel);
        match kind.access {
            PusherAccess::Public => {}
            PusherAccess::User => {
                let is_own = PusherKind::user_of(&self.channel) == Some(&*who.user);
                if who.user.is_empty() || !is_own {
                    return Err(Unauthorized::OtherUser);
                }
            }
            PusherAccess::Encrypted | PusherAccess::Presence | PusherAccess::Private => {
                self.check_signature(app, &who.client)?;
            }
        }
        let who = match kind.access {
            PusherAccess::Presence => self.member(who)?,
            _ => who.clone(),
        };
        Ok(Authorized { kind, who })
    }

    fn check_signature(&self, app: &PusherApp, socket: &str) -> Result<(), Unauthorized> {
        // A colon could otherwise be in the name, or between the name and `channel_data`, and the
        // signature for one channel would be valid for another.
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-=@,.;".contains(&byte);
        if !self.channel.bytes().all(is_allowed) {
            return Err(Unauthorized::Name);
        }
        let mut parts = vec![socket, &self.channel];
        parts.extend(self.channel_data.as_deref());
        match app.authorizes(&self.auth, ":", &parts) {
            true => Ok(()),
            false => Err(Unauthorized::Signature),
        }
    }

    /// Returns the client as others see it in a presence channel: as the user that the signature
    /// names, or that the connection is signed in as.
    fn member(&self, who: &Arc<ClientInfo>) -> Result<Arc<ClientInfo>, Unauthorized> {
        let Some(data) = &self.channel_data else {
            return match who.user.is_empty() {
                true => Err(Unauthorized::ChannelData),
                false => Ok(who.clone()),
            };
        };
        let data: ChannelData =
            serde_json::from_str(data).map_err(|_| Unauthorized::ChannelData)?;
        let user = user_id(data.user_id).ok_or(Unauthorized::ChannelData)?;
        let info = data.user_info.map(|info| info.get().to_owned());
        check_user(&user)?;
        let bytes = info.as_ref().map_or(0, String::len);
        if bytes > INFO_BYTES_MAX {
            return Err(Unauthorized::Info { bytes });
        }
        Ok(Arc::new(ClientInfo {
            user: user.into(),
            client: who.client.clone(),
            connection: None,
            channel: info.map(|info| info.into_bytes().into()),
        }))
    }
}

/// Checks the length of a user ID.
pub(super) fn check_user(user: &str) -> Result<(), Unauthorized> {
    let bytes = user.len();
    match bytes <= USER_BYTES_MAX {
        true => Ok(()),
        false => Err(Unauthorized::User { bytes }),
    }
}

/// Returns an ID that is a string or a number, as a string that is not empty.
fn user_id(id: Value) -> Option<String> {
    match id {
        Value::String(id) if !id.is_empty() => Some(id),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

#[derive(Deserialize)]
struct ChannelData {
    user_id: Value,
    #[serde(default)]
    user_info: Option<Box<RawValue>>,
}
