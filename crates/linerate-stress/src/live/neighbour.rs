//! A client that uploads a log line by line, while others upload theirs.

use std::{
    net::SocketAddr,
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, ensure};

use super::{PATIENCE, wire::Wire};
use crate::{cores, waits::p99, websocket::frame};

/// The time between two lines.
const INTERVAL: Duration = Duration::from_millis(5);

const LINE: &[u8] = b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n";

/// An upload that behaves well.
pub(crate) struct Neighbour {
    wire: Wire,
}

impl Neighbour {
    /// Starts an upload from an address that has no other uploads.
    pub(crate) fn open(server: SocketAddr) -> Result<Self> {
        let more = "Sec-WebSocket-Protocol: linerate.logs.v1\r\nX-Forwarded-For: 198.51.100.1\r\n";
        let mut neighbour = Self {
            wire: Wire::open(server, None, PATIENCE, "/logs/upload", more)?,
        };
        neighbour.send(
            0x1,
            br#"{"type":"start","files":[{"name":"a.log","size":null}]}"#,
        )?;
        neighbour.wait_for("ready")?;
        Ok(neighbour)
    }

    /// Sends lines for `duration`, and returns the 99th percentile of the time until a line is
    /// parsed.
    pub(crate) fn p99(&mut self, duration: Duration) -> Result<Duration> {
        let _bound = cores::borrow_last()?;
        let mut waits = Vec::new();
        let started = Instant::now();
        while started.elapsed() < duration {
            let sent = SystemTime::now();
            self.send(0x2, LINE)?;
            self.wait_for("ack")?;
            waits.push(self.wire.stamp().duration_since(sent).unwrap_or_default());
            thread::sleep(INTERVAL);
        }
        Ok(p99(&mut waits))
    }

    fn send(&mut self, opcode: u8, payload: &[u8]) -> Result<()> {
        Ok(self.wire.write(&frame(opcode, payload).to_bytes())?)
    }

    /// Reads until a message of this type arrives.
    fn wait_for(&mut self, kind: &str) -> Result<()> {
        let wanted = format!(r#"{{"type":"{kind}""#);
        loop {
            let read = self.wire.read_frame();
            let (_, text) = read.context("well-behaved upload was not served")?;
            ensure!(
                !text.starts_with(br#"{"type":"error""#),
                "well-behaved upload was ended: {}",
                text.escape_ascii()
            );
            if text.starts_with(wanted.as_bytes()) {
                return Ok(());
            }
        }
    }
}
