//! The replication connection: TCP or a Unix socket, TLS, authentication (PostgreSQL documentation,
//! "Streaming Replication Protocol"), and frames of limited size.

use std::{io, sync::Arc, time::Duration};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use fallible_iterator::FallibleIterator;
use postgres_protocol::{
    authentication::{
        md5_hash,
        sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256},
    },
    escape::{escape_identifier, escape_literal},
    message::{
        backend::{ErrorFields, Header, Message},
        frontend,
    },
};
use rustls::ClientConfig;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
    tls::{MakeTlsConnect, TlsConnect},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{error::SourceError, lsn::Lsn, options::ChangeOptions};

/// The maximum time until a connection is authenticated.
pub(crate) const CONNECT_MAX: Duration = Duration::from_secs(10);

/// The maximum time until the server has taken what is sent to it.
const WRITE_MAX: Duration = Duration::from_secs(10);

/// The number of bytes of an oversized message that are read: enough to know what it is.
pub(crate) const HEAD_BYTES: usize = 64;

/// The SQLSTATE of a slot that another connection reads (object_in_use).
const IN_USE: &str = "55006";

pub(crate) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Socket for T {}

/// A connection in replication mode.
pub(crate) struct Connection {
    pub(crate) socket: Box<dyn Socket>,
    pub(crate) input: BytesMut,
    pub(crate) output: BytesMut,
    /// The bytes of an oversized message that are still to be skipped.
    pub(crate) skip: usize,
    pub(crate) message_bytes_max: usize,
}

/// What the server sent in a `CopyData` message.
pub(crate) enum Frame {
    /// The content of a message.
    Data(Bytes),
    /// The beginning of a message of `bytes` bytes, which is too large.
    Oversized { head: Bytes, bytes: usize },
}

impl Connection {
    /// Connects and authenticates.
    pub(crate) async fn open(
        server: &Config,
        tls: &Arc<ClientConfig>,
        message_bytes_max: usize,
    ) -> Result<Self, SourceError> {
        let opened = timeout(CONNECT_MAX, async {
            let socket = dial(server, tls).await?;
            let mut connection = Self {
                socket,
                input: BytesMut::new(),
                output: BytesMut::new(),
                skip: 0,
                message_bytes_max,
            };
            connection.authenticate(server).await?;
            Ok(connection)
        });
        let late = |_| Err(SourceError::no_answer(CONNECT_MAX));
        opened.await.unwrap_or_else(late)
    }

    async fn authenticate(&mut self, server: &Config) -> Result<(), SourceError> {
        let user = server.get_user().unwrap_or_default();
        let options = format!(
            "{} -c bytea_output=hex -c datestyle=ISO -c intervalstyle=iso_8601 -c wal_sender_timeout=10s",
            server.get_options().unwrap_or_default()
        );
        let parameters = [
            ("user", user),
            ("database", server.get_dbname().unwrap_or_default()),
            ("replication", "database"),
            ("client_encoding", "UTF8"),
            (
                "application_name",
                server.get_application_name().unwrap_or_default(),
            ),
            ("options", options.trim()),
        ];
        frontend::startup_message(parameters, &mut self.output)?;
        self.flush().await?;
        let password = server.get_password().unwrap_or_default();
        let mut scram = None;
        loop {
            match self.message().await? {
                Message::AuthenticationOk => {}
                Message::AuthenticationCleartextPassword => {
                    frontend::password_message(password, &mut self.output)?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let hash = md5_hash(user.as_bytes(), password, body.salt());
                    frontend::password_message(hash.as_bytes(), &mut self.output)?;
                }
                Message::AuthenticationSasl(body) => {
                    let is_known = body.mechanisms().any(|name| Ok(name == SCRAM_SHA_256))?;
                    if !is_known {
                        let reason = "the server offers no authentication that is supported";
                        return Err(SourceError::Connect(reason.to_owned()));
                    }
                    let state = ScramSha256::new(password, ChannelBinding::unsupported());
                    let first = state.message();
                    frontend::sasl_initial_response(SCRAM_SHA_256, first, &mut self.output)?;
                    scram = Some(state);
                }
                Message::AuthenticationSaslContinue(body) => {
                    let state = scram.as_mut().ok_or_else(unexpected)?;
                    state.update(body.data())?;
                    frontend::sasl_response(state.message(), &mut self.output)?;
                }
                Message::AuthenticationSaslFinal(body) => {
                    let state = scram.as_mut().ok_or_else(unexpected)?;
                    state.finish(body.data())?;
                }
                Message::ReadyForQuery(_) => return Ok(()),
                Message::ErrorResponse(body) => {
                    let (_, reason) = refusal(body.fields());
                    return Err(SourceError::Connect(reason));
                }
                Message::BackendKeyData(_)
                | Message::NoticeResponse(_)
                | Message::ParameterStatus(_) => {}
                _ => return Err(unexpected().into()),
            }
            self.flush().await?;
        }
    }

    /// Returns the timeline of the server.
    pub(crate) async fn timeline(&mut self) -> Result<u32, SourceError> {
        frontend::query("IDENTIFY_SYSTEM", &mut self.output)?;
        self.flush().await?;
        let mut timeline = None;
        loop {
            match self.message().await? {
                Message::DataRow(row) => {
                    let range = row.ranges().nth(1)?.flatten();
                    let text = range.and_then(|range| row.buffer().get(range));
                    let text = text.and_then(|text| std::str::from_utf8(text).ok());
                    timeline = text.and_then(|text| text.parse().ok());
                }
                Message::ErrorResponse(body) => {
                    return Err(SourceError::Refused(refusal(body.fields()).1));
                }
                Message::ReadyForQuery(_) => return timeline.ok_or_else(|| unexpected().into()),
                _ => {}
            }
        }
    }

    /// Begins to read the slot, after `from` or after what it has confirmed, whichever is later.
    pub(crate) async fn start(
        &mut self,
        options: &ChangeOptions,
        from: Lsn,
    ) -> Result<(), SourceError> {
        let messages = if options.messages {
            ", messages 'true'"
        } else {
            ""
        };
        let names = escape_identifier(&options.publication);
        let command = format!(
            "START_REPLICATION SLOT \"{}\" LOGICAL {from} (proto_version '1', publication_names {}{messages})",
            options.slot,
            escape_literal(&names),
        );
        frontend::query(&command, &mut self.output)?;
        self.flush().await?;
        loop {
            let header = self.header().await?;
            if header.tag() == b'W' {
                self.input.advance(header.len() as usize + 1);
                return Ok(());
            }
            if let Message::ErrorResponse(body) = self.message().await? {
                let (code, reason) = refusal(body.fields());
                return Err(match code == IN_USE {
                    true => SourceError::Active,
                    false => SourceError::Refused(reason),
                });
            }
        }
    }

    /// Returns the next `CopyData` message. Can be cancelled and called again.
    pub(crate) async fn frame(&mut self) -> Result<Frame, SourceError> {
        loop {
            while self.skip > 0 {
                let bytes = self.skip.min(self.input.len());
                self.input.advance(bytes);
                self.skip -= bytes;
                if self.skip > 0 {
                    self.fill().await?;
                }
            }
            let Some(header) = Header::parse(&self.input)? else {
                self.fill().await?;
                continue;
            };
            let (bytes, wanted) = (header.len() as usize - 4, self.message_bytes_max);
            if header.tag() == b'd' && bytes > wanted {
                while self.input.len() < 5 + HEAD_BYTES.min(bytes) {
                    self.fill().await?;
                }
                let head = Bytes::copy_from_slice(&self.input[5..5 + HEAD_BYTES.min(bytes)]);
                self.skip = bytes + 5;
                return Ok(Frame::Oversized { head, bytes });
            }
            while self.input.len() < bytes + 5 {
                self.fill().await?;
            }
            if header.tag() == b'd' {
                self.input.advance(5);
                return Ok(Frame::Data(self.input.split_to(bytes).freeze()));
            }
            match Message::parse(&mut self.input)? {
                Some(Message::ErrorResponse(body)) => {
                    return Err(SourceError::Refused(refusal(body.fields()).1));
                }
                Some(Message::CopyDone) => return Err(unexpected().into()),
                _ => {}
            }
        }
    }

    /// Tells the server that everything up to `confirmed` has been published.
    pub(crate) async fn confirm(&mut self, confirmed: Lsn) -> Result<(), SourceError> {
        let mut status = BytesMut::with_capacity(34);
        status.put_u8(b'r');
        for _ in ["written", "flushed", "applied"] {
            status.put_u64(confirmed.0);
        }
        // The time of this machine, which servers only display.
        status.put_u64(0);
        status.put_u8(0);
        frontend::CopyData::new(status.freeze())?.write(&mut self.output);
        let late = |_| Err(SourceError::no_answer(WRITE_MAX));
        timeout(WRITE_MAX, self.flush()).await.unwrap_or_else(late)
    }

    async fn header(&mut self) -> Result<Header, SourceError> {
        loop {
            if let Some(header) = Header::parse(&self.input)? {
                let bytes = header.len() as usize;
                if bytes > self.message_bytes_max {
                    return Err(unexpected().into());
                }
                if self.input.len() > bytes {
                    return Ok(header);
                }
            }
            self.fill().await?;
        }
    }

    async fn message(&mut self) -> Result<Message, SourceError> {
        self.header().await?;
        Message::parse(&mut self.input)?.ok_or_else(|| unexpected().into())
    }

    async fn fill(&mut self) -> Result<(), SourceError> {
        self.input.reserve(8 << 10);
        match self.socket.read_buf(&mut self.input).await? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            _ => Ok(()),
        }
    }

    async fn flush(&mut self) -> Result<(), SourceError> {
        while self.output.has_remaining() {
            self.socket.write_buf(&mut self.output).await?;
        }
        Ok(self.socket.flush().await?)
    }
}

async fn dial(server: &Config, tls: &Arc<ClientConfig>) -> Result<Box<dyn Socket>, SourceError> {
    let failed = |error: io::Error| SourceError::Connect(error.to_string());
    let port = server.get_ports().first().copied().unwrap_or(5432);
    let name = match server.get_hosts() {
        [Host::Tcp(name)] => name,
        #[cfg(unix)]
        [Host::Unix(path)] => {
            let path = path.join(format!(".s.PGSQL.{port}"));
            let socket = tokio::net::UnixStream::connect(path).await;
            return Ok(Box::new(socket.map_err(failed)?));
        }
        _ => return Err(SourceError::Connect("the URL names no host".to_owned())),
    };
    let mut tcp = match server.get_hostaddrs() {
        [address] => TcpStream::connect((*address, port)).await,
        _ => TcpStream::connect((name.as_str(), port)).await,
    }
    .map_err(failed)?;
    tcp.set_nodelay(true).map_err(failed)?;
    if server.get_ssl_mode() == SslMode::Disable {
        return Ok(Box::new(tcp));
    }
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    tcp.write_all(&request).await.map_err(failed)?;
    match tcp.read_u8().await.map_err(failed)? {
        b'S' => {
            let mut make = MakeRustlsConnect::new((**tls).clone());
            let connect = MakeTlsConnect::<TcpStream>::make_tls_connect(&mut make, name);
            let secured = connect.map_err(|error| SourceError::Connect(error.to_string()))?;
            let secured = secured.connect(tcp).await;
            let secured = secured.map_err(|error| SourceError::Connect(error.to_string()))?;
            Ok(Box::new(secured))
        }
        _ if server.get_ssl_mode() == SslMode::Require => {
            let reason = "the server does not support TLS, which sslmode=require demands";
            Err(SourceError::Connect(reason.to_owned()))
        }
        _ => Ok(Box::new(tcp)),
    }
}

/// Returns the SQLSTATE and the text of a refusal.
fn refusal(mut fields: ErrorFields<'_>) -> (String, String) {
    let (mut code, mut text) = (String::new(), "unknown error".to_owned());
    while let Ok(Some(field)) = fields.next() {
        let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => code = value,
            b'M' => text = value,
            _ => {}
        }
    }
    (code, text)
}

fn unexpected() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "unexpected message")
}
