//! Subscriptions in the URL of a request, for clients that send no commands.

use std::time::Duration;

use http::{HeaderMap, header};
use linerate_hub::StreamPosition;

use super::{command::Subscribe, position};

/// Why a query is invalid.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum QueryError {
    /// The batch interval is not a number of milliseconds.
    #[error("batch_interval_ms must be a whole number of milliseconds")]
    BatchInterval,
    /// The value is neither `true` nor `false`.
    #[error("gaps must be true or false")]
    Gaps,
    /// A position is malformed.
    #[error("since must be a position like \"epoch:offset\"")]
    Position,
    /// The number of positions differs from the number of channels.
    #[error("{positions} positions for {channels} channels: there must be one for each, in order")]
    Positions { positions: usize, channels: usize },
    /// A parameter is unknown, or repeated although it may occur only once.
    #[error(
        "unknown or repeated parameter; known parameters are channel, token, channel_token, filter, batch_interval_ms, conflate, since and gaps"
    )]
    Parameter,
}

/// Parses the query of a URL, and the token and position that may be in headers.
pub(crate) fn read(query: &str, headers: &HeaderMap) -> Result<FixedRequest, QueryError> {
    let mut parsed = Parsed::default();
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        parsed.take(&key, &value)?;
    }
    let last_event_id = headers.get("last-event-id");
    if let Some(id) = last_event_id.and_then(|id| id.to_str().ok())
        && parsed.channels.len() == 1
        && let Some(position) = position::parse(id)
    {
        // More recent than the position in the URL, which the client has sent from the beginning.
        parsed.since = vec![position];
    }
    if parsed.token.is_none() {
        parsed.token = bearer(headers);
    }
    parsed.into_request()
}

/// The tokens and subscriptions of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct FixedRequest {
    /// The connection token; empty if there is none.
    pub(crate) token: String,
    /// The requested channels. If empty, the client gets the channels that its tokens name.
    pub(crate) subscriptions: Vec<Subscribe>,
    /// Tokens for some of the channels.
    pub(crate) channel_tokens: Vec<String>,
    /// True if the client asks to be told of gaps, where the protocol makes that optional.
    pub(crate) wants_gaps: bool,
}

#[derive(Debug, Default)]
struct Parsed {
    channels: Vec<String>,
    token: Option<String>,
    channel_tokens: Vec<String>,
    filter: Option<String>,
    batch_interval: Option<Duration>,
    conflate: Option<String>,
    since: Vec<StreamPosition>,
    wants_gaps: Option<bool>,
}

impl Parsed {
    fn take(&mut self, key: &str, value: &str) -> Result<(), QueryError> {
        match key {
            "channel" => self.channels.push(value.into()),
            "since" => self
                .since
                .push(position::parse(value).ok_or(QueryError::Position)?),
            "channel_token" => self.channel_tokens.push(value.into()),
            "token" => once(&mut self.token, value.into())?,
            "filter" => once(&mut self.filter, value.into())?,
            "conflate" => once(&mut self.conflate, value.into())?,
            "batch_interval_ms" => {
                let interval = value.parse().map_err(|_| QueryError::BatchInterval)?;
                once(&mut self.batch_interval, Duration::from_millis(interval))?;
            }
            "gaps" => {
                let wants_gaps = value.parse().map_err(|_| QueryError::Gaps)?;
                once(&mut self.wants_gaps, wants_gaps)?;
            }
            _ => return Err(QueryError::Parameter),
        }
        Ok(())
    }

    fn into_request(self) -> Result<FixedRequest, QueryError> {
        let (positions, channels) = (self.since.len(), self.channels.len());
        if positions > 0 && positions != channels {
            return Err(QueryError::Positions {
                positions,
                channels,
            });
        }
        let mut since = self.since.into_iter();
        let subscribe = |channel| Subscribe {
            channel,
            recover: since.next(),
            filter: self.filter.clone(),
            batch_interval: self.batch_interval,
            conflate: self.conflate.clone(),
            ..Subscribe::default()
        };
        Ok(FixedRequest {
            subscriptions: self.channels.into_iter().map(subscribe).collect(),
            token: self.token.unwrap_or_default(),
            channel_tokens: self.channel_tokens,
            wants_gaps: self.wants_gaps.unwrap_or_default(),
        })
    }
}

fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), QueryError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(QueryError::Parameter),
    }
}

/// Returns the token of `Authorization: Bearer …` (RFC 6750 §2.1).
fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    is_bearer.then(|| token.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<FixedRequest, QueryError> {
        read(query, &HeaderMap::new())
    }

    #[test]
    fn an_address_may_ask_for_several_channels_with_the_same_options() {
        let query =
            "channel=a%3Ab&channel=c&token=t&filter=x+%3E+1&batch_interval_ms=200&conflate=/k";
        let request = parse(query).unwrap();
        assert_eq!(request.token, "t");
        for (subscribe, channel) in request.subscriptions.iter().zip(["a:b", "c"]) {
            assert_eq!(subscribe.channel, channel);
            assert_eq!(subscribe.filter.as_deref(), Some("x > 1"));
            assert_eq!(subscribe.batch_interval, Some(Duration::from_millis(200)));
            assert_eq!(subscribe.conflate.as_deref(), Some("/k"));
            assert_eq!(subscribe.recover, None);
        }
        assert_eq!(request.subscriptions.len(), 2);
    }

    #[test]
    fn positions_belong_to_channels_in_order() {
        let request = parse("channel=a&channel=b&since=x:1&since=y:2").unwrap();
        let offsets = request
            .subscriptions
            .iter()
            .map(|one| one.recover.as_ref().unwrap().offset);
        assert_eq!(offsets.collect::<Vec<_>>(), [1, 2]);
        let error = parse("channel=a&channel=b&since=x:1").unwrap_err();
        assert!(
            error.to_string().starts_with("1 positions for 2"),
            "{error}"
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (query, error) in [
            (
                "channel=a&batch_interval_ms=fast",
                QueryError::BatchInterval,
            ),
            ("channel=a&batch_interval_ms=-1", QueryError::BatchInterval),
            ("channel=a&since=41", QueryError::Position),
            ("channel=a&since=x:-1", QueryError::Position),
            ("channel=a&gaps=1", QueryError::Gaps),
            ("chanel=a", QueryError::Parameter),
            ("channel=a&token=1&token=2", QueryError::Parameter),
        ] {
            assert_eq!(parse(query).unwrap_err(), error, "{query}");
        }
    }

    #[test]
    fn headers_say_what_a_browser_has_seen_and_who_asks() {
        let mut headers = HeaderMap::new();
        headers.insert("last-event-id", "x:41".parse().unwrap());
        headers.insert(header::AUTHORIZATION, "Bearer abc".parse().unwrap());
        let one = read("channel=a&since=x:7", &headers).unwrap();
        assert_eq!(one.token, "abc");
        assert_eq!(one.subscriptions[0].recover.as_ref().unwrap().offset, 41);
        let two = read("channel=a&channel=b&token=t", &headers).unwrap();
        assert_eq!(two.token, "t");
        assert!(two.subscriptions.iter().all(|one| one.recover.is_none()));
    }
}
