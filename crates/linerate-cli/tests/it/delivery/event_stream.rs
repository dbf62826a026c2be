//! An event stream as a browser reads it, coming back where it was.

use std::sync::Arc;

use linerate::tls::rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::{publisher::number, subscriber::Access};

/// A stream, and what of its next event has come.
pub(crate) struct EventStream {
    stream: BufReader<Box<dyn Stream>>,
    event: Event,
}

/// A connection, by TLS or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// What a stream says.
#[derive(Debug, Default)]
pub(crate) struct Event {
    /// What to come back with; empty if there is none.
    pub(crate) id: String,
    /// What kind it is; empty for a publication.
    pub(crate) name: String,
    data: String,
}

impl EventStream {
    /// Opens a stream, behind the event with this id if there was one; `None` if there is nobody.
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
        // In the version without chunks.
        let request =
            format!("GET /sse?channel={channel} HTTP/1.0\r\nHost: {address}\r\n{last}\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut opened = Self {
            stream,
            event: Event::default(),
        };
        let status = opened.line().await?;
        while !opened.line().await?.is_empty() {}
        // Others are of a node that comes or goes.
        status.contains(" 200 ").then_some(opened)
    }

    /// Returns the next event; `None` at the end of the stream.
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
