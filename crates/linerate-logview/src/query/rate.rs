//! The question which clients exceed a limit of requests.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The longest window of a limit, a day.
pub const RATE_SECONDS_MAX: u32 = 86_400;
/// The most requests that a limit may allow.
pub const RATE_REQUESTS_MAX: u64 = 10_000_000;

/// A limit: at most `requests` in any `seconds` consecutive seconds.
///
/// ```
/// use linerate_logview::query::RateLimit;
///
/// let limit: RateLimit = "60/1m".parse()?;
/// assert_eq!((limit.requests(), limit.seconds()), (60, 60));
/// assert_eq!(limit.to_string(), "60/60s");
/// # Ok::<(), linerate_logview::query::RateLimitError>(())
/// ```
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "Unchecked")]
pub struct RateLimit {
    requests: u64,
    seconds: u32,
}

/// A limit as it is sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    requests: u64,
    seconds: u32,
}

/// Why a limit is invalid.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum RateLimitError {
    /// It allows no request, or more than [`RATE_REQUESTS_MAX`].
    #[error("the limit allows {requests} requests; 1 to {RATE_REQUESTS_MAX} are possible")]
    Requests {
        /// How many it allows.
        requests: u64,
    },
    /// Its window is empty, or longer than [`RATE_SECONDS_MAX`].
    #[error("the limit has a window of {seconds} s; 1 to {RATE_SECONDS_MAX} are possible")]
    Seconds {
        /// The length of the window.
        seconds: u32,
    },
    /// It is not written as a number, a slash and a time.
    #[error("expected a limit such as 60/60s, 10/1s, 300/5m or 1000/1h")]
    Syntax,
}

/// What the requests are counted by.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RateKey {
    /// The client's address.
    Address,
    /// The `User-Agent` header.
    Agent,
    /// The autonomous system of the address, by a database of the user.
    Asn,
    /// The network of the address: /24 of IPv4, /48 of IPv6.
    Network,
}

/// A program whose configuration can be written.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RuleFormat {
    /// A snippet of a Caddyfile.
    Caddy,
    /// Lines of a frontend, and a table.
    Haproxy,
    /// Directives of the block `http`.
    Nginx,
    /// A table with sets.
    Nftables,
}

/// Asks which clients exceed a limit.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RateQuery {
    /// The limit.
    pub limit: RateLimit,
    /// What the requests are counted by.
    pub by: RateKey,
    /// The program whose rules are wanted, if any.
    #[serde(default)]
    pub rules: Option<RuleFormat>,
}

impl RateLimit {
    /// Creates a limit of `requests` in any `seconds` consecutive seconds.
    ///
    /// # Errors
    /// Returns an error if either number is 0 or above its maximum.
    pub fn new(requests: u64, seconds: u32) -> Result<Self, RateLimitError> {
        if !(1..=RATE_REQUESTS_MAX).contains(&requests) {
            return Err(RateLimitError::Requests { requests });
        }
        if !(1..=RATE_SECONDS_MAX).contains(&seconds) {
            return Err(RateLimitError::Seconds { seconds });
        }
        Ok(Self { requests, seconds })
    }

    /// Returns the most requests that are allowed in a window.
    pub fn requests(self) -> u64 {
        self.requests
    }

    /// Returns the length of the window.
    pub fn seconds(self) -> u32 {
        self.seconds
    }
}

impl TryFrom<Unchecked> for RateLimit {
    type Error = RateLimitError;

    fn try_from(limit: Unchecked) -> Result<Self, RateLimitError> {
        Self::new(limit.requests, limit.seconds)
    }
}

impl FromStr for RateLimit {
    type Err = RateLimitError;

    fn from_str(text: &str) -> Result<Self, RateLimitError> {
        let (requests, time) = text.split_once('/').ok_or(RateLimitError::Syntax)?;
        let unit = time.chars().last().ok_or(RateLimitError::Syntax)?;
        let scale = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            _ => return Err(RateLimitError::Syntax),
        };
        let number = |text: &str| {
            let is_number = text.bytes().all(|it| it.is_ascii_digit());
            let number = text.parse::<u64>().ok().filter(|_| is_number);
            number.ok_or(RateLimitError::Syntax)
        };
        let seconds = number(&time[..time.len() - 1])?.saturating_mul(scale);
        Self::new(
            number(requests)?,
            u32::try_from(seconds).unwrap_or(u32::MAX),
        )
    }
}

impl Display for RateLimit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}s", self.requests, self.seconds)
    }
}

impl RateKey {
    /// Returns the name in the protocol and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Agent => "agent",
            Self::Asn => "asn",
            Self::Network => "network",
        }
    }
}

impl RuleFormat {
    /// Returns the name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Caddy => "Caddy",
            Self::Haproxy => "HAProxy",
            Self::Nginx => "nginx",
            Self::Nftables => "nftables",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RATE_REQUESTS_MAX, RATE_SECONDS_MAX, RateLimit, RateLimitError, RateQuery};

    #[test]
    fn limits_are_parsed_up_to_their_maxima() {
        let parsed = |text: &str| {
            let limit = text.parse::<RateLimit>()?;
            Ok((limit.requests(), limit.seconds()))
        };
        assert_eq!(parsed("60/60s"), Ok((60, 60)));
        assert_eq!(parsed("300/5m"), Ok((300, 300)));
        assert_eq!(parsed("10000000/24h"), Ok((RATE_REQUESTS_MAX, 86_400)));
        let requests = |requests| Err(RateLimitError::Requests { requests });
        assert_eq!(parsed("0/1s"), requests(0));
        assert_eq!(parsed("10000001/1s"), requests(RATE_REQUESTS_MAX + 1));
        let seconds = |seconds| Err(RateLimitError::Seconds { seconds });
        assert_eq!(parsed("1/0s"), seconds(0));
        assert_eq!(parsed("1/86401s"), seconds(RATE_SECONDS_MAX + 1));
        assert_eq!(parsed("1/99999999999h"), seconds(u32::MAX));
        for wrong in [
            "", "60", "60/", "60/60", "/60s", "60/s", "60/6d", "-1/6s", "+1/6s", "1/1€",
        ] {
            assert_eq!(parsed(wrong), Err(RateLimitError::Syntax), "{wrong}");
        }
    }

    #[test]
    fn questions_with_unknown_members_or_impossible_limits_are_refused() {
        let parsed = |text: &str| serde_json::from_str::<RateQuery>(text);
        let query = parsed(r#"{"limit":{"requests":5,"seconds":10},"by":"asn","rules":"haproxy"}"#)
            .unwrap();
        let json = serde_json::to_string(&query).unwrap();
        assert_eq!(parsed(&json).unwrap(), query);
        for (wrong, reason) in [
            (
                r#"{"limit":{"requests":0,"seconds":10},"by":"asn"}"#,
                "0 requests",
            ),
            (
                r#"{"limit":{"requests":1,"seconds":0},"by":"asn"}"#,
                "window of 0 s",
            ),
            (
                r#"{"limit":{"requests":1,"seconds":1,"x":1},"by":"asn"}"#,
                "`x`",
            ),
            (
                r#"{"limit":{"requests":1,"seconds":1},"by":"city"}"#,
                "`city`",
            ),
            (
                r#"{"limit":{"requests":1,"seconds":1},"by":"asn","rules":"ufw"}"#,
                "`ufw`",
            ),
        ] {
            let error = parsed(wrong).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
