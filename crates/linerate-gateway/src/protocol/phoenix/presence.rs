//! Who is in a topic, in the form of `Phoenix.Presence`: users, with the description of each of
//! their connections.

use std::collections::BTreeMap;

use linerate_hub::ClientInfo;
use serde::Serialize;
use serde_json::{Map, Value};

/// The users in a topic.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub(super) struct State<'a>(BTreeMap<&'a str, User<'a>>);

/// Who has joined or left.
#[derive(Debug, Default, Serialize)]
pub(super) struct Diff<'a> {
    joins: State<'a>,
    leaves: State<'a>,
}

#[derive(Debug, Default, Serialize)]
struct User<'a> {
    metas: Vec<Meta<'a>>,
}

/// The description of a connection: what is known about the client, with its ID.
#[derive(Debug, Serialize)]
struct Meta<'a> {
    #[serde(flatten)]
    fields: Map<String, Value>,
    /// The information about the client if it is not an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    info: Option<Value>,
    phx_ref: &'a str,
}

impl<'a> State<'a> {
    /// Returns the users of these clients. An anonymous client is a user of its own.
    pub(super) fn of(clients: impl IntoIterator<Item = &'a ClientInfo>) -> Self {
        let mut users = BTreeMap::<_, User<'_>>::new();
        for info in clients {
            let user = if info.user.is_empty() {
                &info.client
            } else {
                &info.user
            };
            users
                .entry(user.as_str())
                .or_default()
                .metas
                .push(info.into());
        }
        Self(users)
    }
}

impl<'a> Diff<'a> {
    pub(super) fn joined(info: &'a ClientInfo) -> Self {
        Self {
            joins: State::of([info]),
            ..Self::default()
        }
    }

    pub(super) fn left(info: &'a ClientInfo) -> Self {
        Self {
            leaves: State::of([info]),
            ..Self::default()
        }
    }
}

impl<'a> From<&'a ClientInfo> for Meta<'a> {
    fn from(client: &'a ClientInfo) -> Self {
        let about = client.channel.as_deref().or(client.connection.as_deref());
        let about = about.and_then(|json| serde_json::from_slice(json).ok());
        let (mut fields, info) = match about {
            Some(Value::Object(fields)) => (fields, None),
            other => (Map::new(), other),
        };
        fields.remove("phx_ref");
        Self {
            fields,
            info,
            phx_ref: &client.client,
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_hub::ClientInfo;

    use super::State;

    fn client(user: &str, client: &str, info: Option<&'static [u8]>) -> ClientInfo {
        ClientInfo {
            user: user.into(),
            client: client.into(),
            connection: info.map(Into::into),
            channel: None,
        }
    }

    #[test]
    fn connections_are_grouped_by_user() {
        let clients = [
            client("bob", "c1", None),
            client("ann", "c2", Some(br#"{"phx_ref":"c1","age":7}"#)),
            client("ann", "c3", Some(b"[1]")),
            client("", "c4", None),
        ];
        let state = serde_json::to_value(State::of(&clients)).unwrap();
        let expected = serde_json::json!({
            "ann": {"metas": [{"age": 7, "phx_ref": "c2"}, {"info": [1], "phx_ref": "c3"}]},
            "bob": {"metas": [{"phx_ref": "c1"}]},
            "c4": {"metas": [{"phx_ref": "c4"}]},
        });
        assert_eq!(state, expected);
    }
}
