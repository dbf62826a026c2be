//! An event stream client that resumes at its last event, as a browser does.

use std::sync::Arc;

use linerate::tls::rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::{publisher::number, subscriber::Access};

/// An event stream, and the part of the next event that has arrived.
pub(crate) struct EventStream {
    stream: BufReader<Box<dyn Stream>>,
    event: Event,
}

/// A connection with or without TLS.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An event of a stream.
#[derive(Debug, Default)]
pub(crate) struct Event {
    /// The ID to resume with; empty if there is none.
    pub(crate) id: String,
    /// The type of the event; empty for a publication.
    pub(crate) name: String,
    data: String,
}

impl EventStream {
    /// Opens a stream, after the event with the ID `last` if given. Returns `None` if no node
    /// accepts the request.
    pub(crate) async fn open(access: &Access, channel: &str, last: Option<&str>) -> Option<Self> {
        let address = access.address;
        let stream = TcpStream::connect(address).await.ok()?;
        let stream: Box<dyn Stream> = match &access.tls {
            None => Box::new(stream),
            Some(config) => {
                let name = ServerName::from(address.ip());
                let connector = TlsConnector::from(Arc::clone(config));
                Box::new(connector.connect(name, stream).await.ok()?)
            }
        };
        let mut stream = BufReader::new(stream);
        let last = last.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"));
        // HTTP/1.0 responses do not use chunks.
        let request =
            format!("GET /sse?channel={channel} HTTP/1.0\r\nHost: {address}\r\n{last}\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut opened = Self {
            stream,
            event: Event::default(),
        };
        let status = opened.line().await?;
        while !opened.line().await?.is_empty() {}
        // A node that is starting or stopping responds with another status.
        status.contains(" 200 ").then_some(opened)
    }

    /// Returns the next event, or `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            let line = self.line().await?;
            match line.split_once(": ") {
                Some(("data", data)) => self.event.data += data,
                Some(("event", name)) => self.event.name = name.to_owned(),
                Some(("id", id)) => self.event.id = id.to_owned(),
                Some(_) => {}
                None if !self.event.data.is_empty() => {
                    return Some(std::mem::take(&mut self.event));
                }
                None => {}
            }
        }
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let bytes = self.stream.read_line(&mut line).await.ok()?;
        (bytes > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
    }
}

impl Event {
    /// Returns the number that was published.
    pub(crate) fn number(&self) -> u64 {
        number(&self.data).expect("a number")
    }
}
