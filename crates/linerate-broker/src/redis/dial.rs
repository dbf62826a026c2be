//! Opens a connection that can subscribe: TCP, TLS, authentication.

use std::{fmt, io, sync::Arc, time::Duration};

use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::{
    address::{Host, Login},
    input::{Input, Item},
    resp::{Reply, RespError},
    stream::Stream,
    tls::Trust,
};

/// Opens connections.
#[derive(Clone)]
pub(super) struct Dialer {
    pub(super) login: Login,
    pub(super) trust: Option<Arc<Trust>>,
    pub(super) timeout: Duration,
    pub(super) payload_bytes_max: usize,
}

/// The reason why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum DialError {
    #[error("{host} rejected the user or the password: {}", shortened(reason))]
    Authentication { host: Host, reason: Vec<u8> },
    #[error("cannot connect to {host}: {source}")]
    Connect { host: Host, source: io::Error },
    #[error("{host} closed the connection")]
    Eof { host: Host },
    #[error("name of {host} is not valid in a TLS certificate")]
    Name {
        host: Host,
        source: InvalidDnsNameError,
    },
    #[error("{host} is not a Redis server: {source}")]
    Resp { host: Host, source: RespError },
    #[error("{host} did not answer within {after:?}")]
    Timeout { host: Host, after: Duration },
    #[error("TLS handshake with {host} failed: {source}")]
    Tls { host: Host, source: io::Error },
}

impl Dialer {
    /// Connects and authenticates.
    pub(super) async fn dial(&self, host: &Host) -> Result<(Stream, Input), DialError> {
        let after = self.timeout;
        let dialled = timeout(after, self.dial_without_deadline(host)).await;
        dialled.unwrap_or_else(|_| {
            let host = host.clone();
            Err(DialError::Timeout { host, after })
        })
    }

    async fn dial_without_deadline(&self, host: &Host) -> Result<(Stream, Input), DialError> {
        let mut stream = self.connect(host).await?;
        let mut input = Input::new(self.payload_bytes_max);
        if let Some(password) = &self.login.password {
            let mut command = vec![&b"AUTH"[..]];
            command.extend(self.login.user.as_deref().map(str::as_bytes));
            command.push(password.as_bytes());
            let mut out = Vec::new();
            write_command(&command, &mut out);
            let eof = |_| DialError::Eof { host: host.clone() };
            stream.write_all(&out).await.map_err(eof)?;
            authenticated(host, &mut stream, &mut input).await?;
        }
        Ok((stream, input))
    }

    async fn connect(&self, host: &Host) -> Result<Stream, DialError> {
        let failed = |source| DialError::Connect {
            host: host.clone(),
            source,
        };
        let tcp = TcpStream::connect((host.name.as_str(), host.port));
        let tcp = tcp.await.map_err(failed)?;
        tcp.set_nodelay(true).map_err(failed)?;
        let Some(trust) = &self.trust else {
            return Ok(Stream::Plain(tcp));
        };
        let name = ServerName::try_from(host.name.clone()).map_err(|source| DialError::Name {
            host: host.clone(),
            source,
        })?;
        let tls = TlsConnector::from(Arc::clone(&trust.config)).connect(name, tcp);
        let tls = tls.await.map_err(|source| DialError::Tls {
            host: host.clone(),
            source,
        })?;
        Ok(Stream::Tls(Box::new(tls)))
    }
}

/// Appends a command.
pub(super) fn write_command(words: &[&[u8]], out: &mut Vec<u8>) {
    write_length(b'*', words.len(), out);
    for word in words {
        write_length(b'$', word.len(), out);
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

fn write_length(kind: u8, length: usize, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(length.to_string().as_bytes());
    out.extend_from_slice(b"\r\n");
}

async fn authenticated(
    host: &Host,
    stream: &mut Stream,
    input: &mut Input,
) -> Result<(), DialError> {
    let host = || host.clone();
    loop {
        let item = input.next();
        match item.map_err(|source| DialError::Resp {
            host: host(),
            source,
        })? {
            Some(Item::Reply(Reply::Simple(b"OK"))) => return Ok(()),
            Some(Item::Reply(Reply::Error(reason))) => {
                let reason = reason.to_vec();
                return Err(DialError::Authentication {
                    host: host(),
                    reason,
                });
            }
            Some(_) => {
                let source = RespError::Reply;
                return Err(DialError::Resp {
                    host: host(),
                    source,
                });
            }
            None => {}
        }
        match stream.read(input.space()).await {
            Ok(0) | Err(_) => return Err(DialError::Eof { host: host() }),
            Ok(count) => input.filled(count),
        }
    }
}

/// Returns the beginning of a message from a server, without control characters that a terminal
/// could interpret.
pub(super) fn shortened(text: &[u8]) -> impl fmt::Display {
    let text = String::from_utf8_lossy(&text[..text.len().min(200)]);
    let text: String = text.chars().filter(|char| !char.is_control()).collect();
    text
}
