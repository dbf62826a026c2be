//! What backends are asked, with the field names of Centrifugo's proxies.

use std::net::IpAddr;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use linerate_hub::ChannelName;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{AskError, ForwardedHeaders};
use crate::protocol::{
    command::{Connect, Subscribe},
    dialect::DialectName,
};

/// The client on whose behalf a backend is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    /// The ID of the connection.
    pub(crate) client: &'a str,
    /// The user; empty if anonymous.
    pub(crate) user: &'a str,
    pub(crate) dialect: &'static DialectName,
    /// The address of the client.
    pub(crate) peer: Option<IpAddr>,
    /// What only servers know about the client, as JSON.
    pub(crate) meta: Option<&'a Bytes>,
    pub(crate) headers: Option<&'a ForwardedHeaders>,
}

/// What a backend is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question<'a> {
    /// May the client connect, and as whom?
    Connect(&'a Connect),
    /// May the client publish this?
    Publish {
        channel: &'a ChannelName,
        data: &'a Bytes,
    },
    /// May the connection continue?
    Refresh,
    /// What does the method return?
    Rpc {
        method: &'a str,
        /// The channel that the client calls the method in, if it names one.
        channel: Option<&'a ChannelName>,
        data: &'a Bytes,
    },
    /// Takes a message of the client.
    Send { data: &'a Bytes },
    /// May the subscription continue?
    SubRefresh { channel: &'a ChannelName },
    /// May the client subscribe?
    Subscribe {
        channel: &'a ChannelName,
        wanted: &'a Subscribe,
    },
}

/// The kind of a question.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Event {
    Connect,
    Publish,
    Refresh,
    Rpc,
    Send,
    SubRefresh,
    Subscribe,
}

/// A question as it is sent. A field that has no value is left out.
#[derive(Debug, Default, Serialize)]
struct Document<'a> {
    client: &'a str,
    transport: &'a str,
    protocol: &'a str,
    encoding: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    channels: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b64data: Option<String>,
}

impl Event {
    /// Every kind, in the order of their numbers.
    pub(super) const ALL: [Self; 7] = [
        Self::Connect,
        Self::Publish,
        Self::Refresh,
        Self::Rpc,
        Self::Send,
        Self::SubRefresh,
        Self::Subscribe,
    ];

    /// Returns the name in URLs, metrics and logs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Publish => "publish",
            Self::Refresh => "refresh",
            Self::Rpc => "rpc",
            Self::Send => "send",
            Self::SubRefresh => "sub_refresh",
            Self::Subscribe => "subscribe",
        }
    }

    /// Returns whether asking twice does no more than asking once, so that a question may be
    /// repeated although the backend may have received it.
    pub(super) const fn is_idempotent(self) -> bool {
        match self {
            Self::Connect | Self::Refresh | Self::SubRefresh | Self::Subscribe => true,
            Self::Publish | Self::Rpc | Self::Send => false,
        }
    }
}

impl Question<'_> {
    /// Returns the kind of the question.
    pub(crate) const fn event(&self) -> Event {
        match self {
            Self::Connect(_) => Event::Connect,
            Self::Publish { .. } => Event::Publish,
            Self::Refresh => Event::Refresh,
            Self::Rpc { .. } => Event::Rpc,
            Self::Send { .. } => Event::Send,
            Self::SubRefresh { .. } => Event::SubRefresh,
            Self::Subscribe { .. } => Event::Subscribe,
        }
    }

    /// Returns the question as JSON. Payloads become base64 if `is_binary`.
    ///
    /// # Errors
    /// A payload is not JSON, and `is_binary` is false.
    pub(crate) fn encode(
        &self,
        asker: &Asker<'_>,
        is_binary: bool,
        with_meta: bool,
    ) -> Result<Vec<u8>, AskError> {
        let (protocol, transport) = *asker.dialect;
        let mut document = Document {
            client: asker.client,
            transport,
            protocol: protocol.strip_prefix("centrifuge-").unwrap_or(protocol),
            encoding: if is_binary { "binary" } else { "json" },
            ..Document::default()
        };
        if !matches!(self, Self::Connect(_)) {
            document.user = Some(asker.user);
            let meta = asker.meta.filter(|_| with_meta);
            // A token or a backend has given it, so that it is JSON.
            document.meta = meta.and_then(|meta| serde_json::from_slice(meta).ok());
        }
        let data = self.describe(&mut document);
        match data {
            Some(data) if is_binary => document.b64data = Some(STANDARD.encode(data)),
            Some(data) => {
                let data = serde_json::from_slice(data);
                document.data = Some(data.map_err(|_| AskError::NotJson)?);
            }
            None => {}
        }
        serde_json::to_vec(&document).map_err(|error| AskError::Invalid(error.to_string()))
    }

    /// Sets the fields that depend on the question, and returns its payload.
    fn describe<'a>(&'a self, document: &mut Document<'a>) -> Option<&'a Bytes> {
        match self {
            Self::Connect(connect) => {
                document.name = (!connect.name.is_empty()).then_some(&connect.name);
                document.version = (!connect.version.is_empty()).then_some(&connect.version);
                document.namespace = connect.namespace.as_deref();
                let before = connect.subscriptions.iter();
                document.channels = before.map(|one| one.channel.as_str()).collect();
                connect.data.as_ref()
            }
            Self::Publish { channel, data } => {
                document.channel = Some(channel.as_str());
                Some(data)
            }
            Self::Refresh => None,
            Self::Rpc {
                method,
                channel,
                data,
            } => {
                document.method = Some(method);
                document.channel = channel.map(ChannelName::as_str);
                (!data.is_empty()).then_some(*data)
            }
            Self::Send { data } => Some(data),
            Self::SubRefresh { channel } => {
                document.channel = Some(channel.as_str());
                None
            }
            Self::Subscribe { channel, wanted } => {
                document.channel = Some(channel.as_str());
                wanted.data.as_ref()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKER: Asker<'_> = Asker {
        client: "c1",
        user: "ann",
        dialect: &("centrifuge-json", "websocket"),
        peer: None,
        meta: None,
        headers: None,
    };

    fn encode(question: &Question<'_>) -> String {
        let encoded = question.encode(&ASKER, false, true).unwrap();
        String::from_utf8(encoded).unwrap()
    }

    #[test]
    fn questions_have_the_fields_of_centrifugos_proxies() {
        let connect = Connect {
            data: Some(Bytes::from_static(b"{\"a\":1}")),
            subscriptions: vec![Subscribe {
                channel: "news".into(),
                ..Subscribe::default()
            }],
            name: "js".into(),
            ..Connect::default()
        };
        assert_eq!(
            encode(&Question::Connect(&connect)),
            "{\"client\":\"c1\",\"transport\":\"websocket\",\"protocol\":\"json\",\"encoding\":\"json\",\
             \"name\":\"js\",\"channels\":[\"news\"],\"data\":{\"a\":1}}"
        );
        let head = "{\"client\":\"c1\",\"transport\":\"websocket\",\"protocol\":\"json\",\
                    \"encoding\":\"json\",\"user\":\"ann\"";
        let channel = &ChannelName::new("chat:1").unwrap();
        let data = &Bytes::from_static(b"[1, 2]");
        let wanted = &Subscribe::default();
        for (question, rest) in [
            (Question::Refresh, "}"),
            (
                Question::Subscribe { channel, wanted },
                ",\"channel\":\"chat:1\"}",
            ),
            (Question::SubRefresh { channel }, ",\"channel\":\"chat:1\"}"),
            (
                Question::Publish { channel, data },
                ",\"channel\":\"chat:1\",\"data\":[1, 2]}",
            ),
            (
                Question::Rpc {
                    method: "sum",
                    channel: None,
                    data,
                },
                ",\"method\":\"sum\",\"data\":[1, 2]}",
            ),
            (
                Question::Rpc {
                    method: "sum",
                    channel: Some(channel),
                    data,
                },
                ",\"channel\":\"chat:1\",\"method\":\"sum\",\"data\":[1, 2]}",
            ),
            (Question::Send { data }, ",\"data\":[1, 2]}"),
        ] {
            assert_eq!(encode(&question), format!("{head}{rest}"));
        }
    }

    #[test]
    fn binary_payloads_are_base64_and_others_must_be_json() {
        let data = &Bytes::from_static(b"\xff\x00");
        let question = Question::Send { data };
        assert_eq!(
            question.encode(&ASKER, false, false),
            Err(AskError::NotJson)
        );
        let encoded = question.encode(&ASKER, true, false).unwrap();
        let text = String::from_utf8(encoded).unwrap();
        assert!(text.contains("\"encoding\":\"binary\""), "{text}");
        assert!(text.ends_with(",\"b64data\":\"/wA=\"}"), "{text}");
    }

    #[test]
    fn only_backends_that_want_it_receive_what_servers_know() {
        let meta = Bytes::from_static(b"{\"plan\":\"pro\"}");
        let asker = Asker {
            meta: Some(&meta),
            ..ASKER
        };
        let encode = |with_meta| {
            let encoded = Question::Refresh.encode(&asker, false, with_meta).unwrap();
            String::from_utf8(encoded).unwrap()
        };
        assert!(encode(true).ends_with(",\"meta\":{\"plan\":\"pro\"}}"));
        assert!(!encode(false).contains("meta"));
    }
}
