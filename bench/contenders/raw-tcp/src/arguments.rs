//! The command line.

use std::fmt;
use std::str::FromStr;

/// The options of the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Arguments {
    pub(crate) port: u16,
    pub(crate) threads: usize,
    pub(crate) service: Service,
}

/// What is done with received bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Service {
    /// The first eight bytes are a length, little-endian; one acknowledgement is sent after each
    /// message of that length.
    Acknowledge,
    /// They are echoed.
    Echo,
    /// They are sent to all connections.
    Fanout,
}

impl Arguments {
    pub(crate) const USAGE: &str =
        "usage: server --port PORT --threads N [--service echo|acknowledge|fanout]";

    /// Parses the arguments after the program's name.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, UsageError> {
        let (mut port, mut threads, mut service) = (None, None, Service::Echo);
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().unwrap_or_default();
            match name.as_str() {
                "--port" => port = Some(number(name, value)?),
                "--threads" => threads = Some(number(name, value)?),
                "--service" => {
                    service = match value.as_str() {
                        "acknowledge" => Service::Acknowledge,
                        "echo" => Service::Echo,
                        "fanout" => Service::Fanout,
                        _ => return Err(UsageError::Value { name, value }),
                    }
                }
                _ => return Err(UsageError::Unknown { name }),
            }
        }
        Ok(Self {
            port: port.ok_or(UsageError::Missing { name: "--port" })?,
            threads: match threads {
                Some(0) => return Err(UsageError::NoThreads),
                Some(threads) => threads,
                None => return Err(UsageError::Missing { name: "--threads" }),
            },
            service,
        })
    }
}

fn number<T: FromStr>(name: String, value: String) -> Result<T, UsageError> {
    value.parse().map_err(|_| UsageError::Value { name, value })
}

/// Why the arguments are invalid.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum UsageError {
    Missing { name: &'static str },
    NoThreads,
    Unknown { name: String },
    Value { name: String, value: String },
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name } => write!(f, "{name} is missing"),
            Self::NoThreads => f.write_str("--threads must be at least 1"),
            Self::Unknown { name } => write!(f, "unknown option {name:?}"),
            Self::Value { name, value } => write!(f, "{name} cannot be {value:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, UsageError> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn echo_is_the_default_service() {
        let arguments = Arguments {
            port: 9001,
            threads: 2,
            service: Service::Echo,
        };
        assert_eq!(parse("--port 9001 --threads 2"), Ok(arguments));
        let fanout = Arguments {
            service: Service::Fanout,
            ..arguments
        };
        assert_eq!(
            parse("--service fanout --threads 2 --port 9001"),
            Ok(fanout)
        );
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let value = |name: &str, value: &str| {
            Err(UsageError::Value {
                name: name.into(),
                value: value.into(),
            })
        };
        assert_eq!(
            parse("--threads 2"),
            Err(UsageError::Missing { name: "--port" })
        );
        assert_eq!(
            parse("--port 1"),
            Err(UsageError::Missing { name: "--threads" })
        );
        assert_eq!(parse("--port 1 --threads 0"), Err(UsageError::NoThreads));
        assert_eq!(parse("--port 70000"), value("--port", "70000"));
        assert_eq!(parse("--threads"), value("--threads", ""));
        assert_eq!(parse("--service chat"), value("--service", "chat"));
        let name = "--tls".to_owned();
        assert_eq!(parse("--tls a b"), Err(UsageError::Unknown { name }));
    }
}
