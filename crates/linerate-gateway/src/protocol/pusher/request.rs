//! The messages of Pusher clients: `{"event":…,"channel":…,"data":…}`.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::protocol::{
    centrifuge::json::depth_of,
    command::{Command, PusherRequest, Request},
    decode::{DecodeError, Limits},
};

/// What events of clients begin with.
const CLIENT: &str = "client-";

#[derive(Deserialize)]
struct WireEvent<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow, default)]
    channel: Cow<'a, str>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct WireSubscription {
    channel: String,
    #[serde(default)]
    auth: Option<String>,
    #[serde(default)]
    channel_data: Option<String>,
}

#[derive(Deserialize)]
struct WireSignIn {
    auth: String,
    user_data: String,
}

/// Decodes the event in a frame.
pub(super) fn decode(frame: &[u8], limits: &Limits) -> Result<Vec<Command>, DecodeError> {
    let depth_max = limits.depth_max;
    if depth_of(frame) > depth_max {
        return Err(DecodeError::TooDeep { nth: 1, depth_max });
    }
    let wire: WireEvent<'_> = parse(frame)?;
    let request = match &*wire.event {
        "pusher:ping" => Request::Ping,
        "pusher:pong" => Request::Pong,
        "pusher:signin" => {
            let WireSignIn { auth, user_data } = wire.content()?;
            pusher(PusherRequest::SignIn { auth, user_data })
        }
        "pusher:subscribe" => {
            let wanted: WireSubscription = wire.content()?;
            pusher(PusherRequest::Subscribe {
                channel: wanted.channel,
                auth: wanted.auth.unwrap_or_default(),
                channel_data: wanted.channel_data,
            })
        }
        "pusher:unsubscribe" => {
            let WireSubscription { channel, .. } = wire.content()?;
            pusher(PusherRequest::Unsubscribe { channel })
        }
        event if event.starts_with(CLIENT) => pusher(PusherRequest::ClientEvent {
            event: event.to_owned(),
            channel: wire.channel.clone().into_owned(),
            data: wire.text()?.into_owned().into(),
        }),
        _ => pusher(PusherRequest::Unknown),
    };
    Ok(vec![Command { id: 0, request }])
}

fn pusher(request: PusherRequest) -> Request {
    Request::Pusher(Box::new(request))
}

fn parse<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, DecodeError> {
    serde_json::from_slice(json).map_err(|error| DecodeError::Json {
        nth: 1,
        at: error.column(),
    })
}

impl WireEvent<'_> {
    /// Returns the data of an event of a client: that of a string is its text, because a string is
    /// how Pusher's messages carry data. Other JSON is its text as it is.
    fn text(&self) -> Result<Cow<'_, str>, DecodeError> {
        match self.data.map(RawValue::get) {
            None => Ok(Cow::Borrowed("")),
            Some(string) if string.starts_with('"') => {
                parse::<String>(string.as_bytes()).map(Cow::Owned)
            }
            Some(json) => Ok(Cow::Borrowed(json)),
        }
    }

    /// Parses the data, which is JSON or a string that contains JSON.
    fn content<T: for<'a> Deserialize<'a>>(&self) -> Result<T, DecodeError> {
        parse(self.text()?.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::decode;
    use crate::protocol::{
        command::{PusherRequest, Request},
        decode::{DecodeError, Limits},
    };

    fn request(frame: &str) -> Request {
        let commands = decode(frame.as_bytes(), &Limits::default()).unwrap();
        let [command] = commands.try_into().unwrap();
        assert_eq!(command.id, 0);
        command.request
    }

    fn pusher(frame: &str) -> PusherRequest {
        match request(frame) {
            Request::Pusher(request) => *request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_events_of_clients_are_requests() {
        assert_eq!(
            request(r#"{"event":"pusher:ping","data":{}}"#),
            Request::Ping
        );
        assert_eq!(request(r#"{"event":"pusher:pong"}"#), Request::Pong);
        let wanted = |auth: &str, channel_data: Option<&str>| PusherRequest::Subscribe {
            channel: "a".into(),
            auth: auth.into(),
            channel_data: channel_data.map(Into::into),
        };
        let subscribe =
            |data: &str| pusher(&format!(r#"{{"event":"pusher:subscribe","data":{data}}}"#));
        assert_eq!(subscribe(r#"{"channel":"a"}"#), wanted("", None));
        assert_eq!(
            subscribe(r#"{"channel":"a","auth":null}"#),
            wanted("", None)
        );
        let presence = r#"{"channel":"a","auth":"k:s","channel_data":"{}"}"#;
        assert_eq!(subscribe(presence), wanted("k:s", Some("{}")));
        assert_eq!(subscribe(r#""{\"channel\":\"a\"}""#), wanted("", None));
        let unsubscribe = pusher(r#"{"event":"pusher:unsubscribe","data":{"channel":"a"}}"#);
        assert_eq!(
            unsubscribe,
            PusherRequest::Unsubscribe {
                channel: "a".into()
            }
        );
        let sign_in = pusher(r#"{"event":"pusher:signin","data":{"auth":"k:s","user_data":"{}"}}"#);
        let (auth, user_data) = ("k:s".into(), "{}".into());
        assert_eq!(sign_in, PusherRequest::SignIn { auth, user_data });
        assert_eq!(pusher(r#"{"event":"other"}"#), PusherRequest::Unknown);
    }

    #[test]
    fn the_data_of_a_client_event_is_its_text() {
        let data = |json: &str| {
            let frame = format!(r#"{{"event":"client-a","channel":"c","data":{json}}}"#);
            match pusher(&frame) {
                PusherRequest::ClientEvent {
                    event,
                    channel,
                    data,
                } => {
                    assert_eq!((&*event, &*channel), ("client-a", "c"));
                    String::from_utf8(data.to_vec()).unwrap()
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(data(r#"{"a": [1]}"#), r#"{"a": [1]}"#);
        assert_eq!(data(r#""{\"a\":1}""#), r#"{"a":1}"#);
        assert_eq!(data("null"), "");
        assert_eq!(data("7"), "7");
    }

    #[test]
    fn malformed_messages_are_refused() {
        for frame in [
            "",
            "null",
            "[]",
            "{}",
            r#"{"event":7}"#,
            r#"{"event":"pusher:subscribe"}"#,
            r#"{"event":"pusher:subscribe","data":{}}"#,
            r#"{"event":"pusher:subscribe","data":{"channel":7}}"#,
            r#"{"event":"pusher:subscribe","data":"{"}"#,
            r#"{"event":"pusher:signin","data":{"auth":"a"}}"#,
            r#"{"event":"client-a","data":"\ud800"}"#,
            "{\"event\":\"client-a\",\"data\":\"\u{1}\"}",
        ] {
            let error = decode(frame.as_bytes(), &Limits::default()).unwrap_err();
            assert!(matches!(error, DecodeError::Json { nth: 1, .. }), "{frame}");
        }
        assert!(decode(b"{\"event\":\"client-\xff\"}", &Limits::default()).is_err());
        let deep = format!(r#"{{"event":"client-a","data":{}}}"#, "[".repeat(65));
        let error = decode(deep.as_bytes(), &Limits::default()).unwrap_err();
        assert_eq!(
            error,
            DecodeError::TooDeep {
                nth: 1,
                depth_max: 64
            }
        );
    }
}
