//! The command line of a server, as README.md of the contenders specifies it.

use std::{env, path::PathBuf, str::FromStr};

use crate::Result;

const USAGE: &str = "usage: server --port PORT --threads N \
[--service echo|acknowledge|fanout] [--tls CERT.pem KEY.pem] [--deflate no-takeover|takeover]";

/// How a server was started.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// The port to listen on, on 127.0.0.1.
    pub port: u16,
    /// Threads that handle connections.
    pub threads: u16,
    /// What to do with messages.
    pub service: Service,
    /// Paths of the certificate chain and the private key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// How to compress messages; `None` to send them uncompressed.
    pub deflate: Option<Deflate>,
}

/// What is done with messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Service {
    /// Answers with the number of payload bytes.
    Acknowledge,
    /// Echoes them.
    Echo,
    /// Sends them to all connections.
    Fanout,
}

/// How messages are compressed (RFC 7692).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Deflate {
    /// Without context takeover in both directions.
    NoTakeover,
    /// With context takeover in both directions.
    Takeover,
}

impl Arguments {
    /// Parses the command line of the process.
    ///
    /// # Errors
    ///
    /// The command line does not follow the specification.
    pub fn from_command_line() -> Result<Self> {
        Self::parse(env::args().skip(1)).map_err(|error| format!("{error}\n{USAGE}").into())
    }

    /// Refuses compression, for a library without it.
    ///
    /// # Errors
    ///
    /// Compression was requested.
    pub fn without_deflate(self) -> Result<Self> {
        match self.deflate {
            None => Ok(self),
            Some(_) => Err("this library does not support permessage-deflate".into()),
        }
    }

    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let (mut port, mut threads) = (None, None);
        let (mut service, mut tls, mut deflate) = (Service::Echo, None, None);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} lacks a value"));
            match word.as_str() {
                "--deflate" => deflate = Some(value()?.parse()?),
                "--port" => port = Some(value()?.parse()?),
                "--service" => service = value()?.parse()?,
                "--threads" => threads = Some(value()?.parse()?),
                "--tls" => tls = Some((value()?.into(), value()?.into())),
                _ => return Err(format!("unknown argument {word:?}").into()),
            }
        }
        Ok(Self {
            port: port.ok_or("--port is missing")?,
            threads: threads.ok_or("--threads is missing")?,
            service,
            tls,
            deflate,
        })
    }
}

impl FromStr for Service {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        match name {
            "acknowledge" => Ok(Self::Acknowledge),
            "echo" => Ok(Self::Echo),
            "fanout" => Ok(Self::Fanout),
            _ => Err(format!("unknown service {name:?}")),
        }
    }
}

impl FromStr for Deflate {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        match name {
            "no-takeover" => Ok(Self::NoTakeover),
            "takeover" => Ok(Self::Takeover),
            _ => Err(format!("unknown kind of compression {name:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments> {
        Arguments::parse(line.split_whitespace().map(Into::into))
    }

    #[test]
    fn echo_without_tls_and_compression_is_the_default() {
        let arguments = parse("--port 9001 --threads 2").unwrap();
        assert_eq!((arguments.port, arguments.threads), (9001, 2));
        assert_eq!(arguments.service, Service::Echo);
        assert_eq!((arguments.tls, arguments.deflate), (None, None));
    }

    #[test]
    fn tls_takes_two_files() {
        let arguments = parse("--port 1 --threads 1 --tls a.pem b.pem --service fanout").unwrap();
        assert_eq!(arguments.tls, Some(("a.pem".into(), "b.pem".into())));
        assert_eq!(arguments.service, Service::Fanout);
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        let message = |line| parse(line).unwrap_err().to_string();
        assert_eq!(message("--threads 1"), "--port is missing");
        assert_eq!(message("--port 1"), "--threads is missing");
        assert_eq!(message("--port"), "--port lacks a value");
        assert_eq!(message("--tls a.pem"), "--tls lacks a value");
        assert_eq!(message("--service chat"), "unknown service \"chat\"");
        assert_eq!(message("-v"), "unknown argument \"-v\"");
    }

    #[test]
    fn compression_is_refused_for_a_library_without() {
        let arguments = parse("--port 1 --threads 1 --deflate takeover").unwrap();
        assert_eq!(arguments.deflate, Some(Deflate::Takeover));
        assert!(arguments.without_deflate().is_err());
    }
}
