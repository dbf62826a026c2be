//! Publishes through the server API, over one connection.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

/// How long a connection is used. Servers close it after a minute of requests
/// (`request.connection_s`).
const USE_MAX: Duration = Duration::from_secs(30);

/// How long a connection may be idle. Servers close it if the next head does not arrive within ten
/// seconds (`request.head_s`).
const IDLE_MAX: Duration = Duration::from_secs(5);

pub(super) struct Publisher {
    server: SocketAddr,
    stream: BufReader<TcpStream>,
    since: Instant,
    /// When it was last used.
    used: Instant,
    channel: &'static str,
    key: &'static str,
}

impl Publisher {
    /// Connects, to publish in `channel` with the API key `key`.
    pub(super) fn connect(
        server: SocketAddr,
        channel: &'static str,
        key: &'static str,
    ) -> Result<Self> {
        Ok(Self {
            server,
            stream: connect(server)?,
            since: Instant::now(),
            used: Instant::now(),
            channel,
            key,
        })
    }

    /// Publishes JSON data.
    ///
    /// # Errors
    /// If the server does not accept the publication.
    pub(super) fn publish(&mut self, data: &str) -> Result<()> {
        if self.since.elapsed() > USE_MAX || self.used.elapsed() > IDLE_MAX {
            self.stream = connect(self.server)?;
            self.since = Instant::now();
        }
        let Self { channel, key, .. } = self;
        let body = format!(r#"{{"channel":"{channel}","data":{data}}}"#);
        let request = format!(
            "POST /api/publish HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.read_answer()?;
        self.used = Instant::now();
        Ok(())
    }

    fn read_answer(&mut self) -> Result<()> {
        let (mut line, mut length) = (String::new(), 0);
        self.stream.read_line(&mut line)?;
        ensure!(line.starts_with("HTTP/1.1 200 "), "publish failed: {line}");
        while !line.trim_end().is_empty() {
            line.clear();
            self.stream.read_line(&mut line)?;
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        let read = self.stream.read_exact(&mut body);
        read.context("response body is incomplete")?;
        let text = String::from_utf8_lossy(&body);
        ensure!(!text.contains(r#""error""#), "publish failed: {text}");
        Ok(())
    }
}

fn connect(server: SocketAddr) -> Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    Ok(BufReader::new(stream))
}
