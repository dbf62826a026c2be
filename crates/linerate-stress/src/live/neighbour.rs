//! A client that uploads a log line by line, while others upload theirs.

use std::{
    net::SocketAddr,
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, ensure};
use linerate_testkit::Frame;

use super::{PATIENCE, Target, wire::Wire};
use crate::cores::OnLast;

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
        let mut wire = Wire::connect(server, None, PATIENCE)?;
        let more = "Sec-WebSocket-Protocol: linerate.logs.v1\r\nX-Forwarded-For: 198.51.100.1\r\n";
        wire.write(Target::request("/logs/upload", more).as_bytes())?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(wire.read_byte()?);
        }
        ensure!(head.starts_with(b"HTTP/1.1 101 "), "upload refused");
        let mut neighbour = Self { wire };
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
        let _bound = OnLast::take()?;
        let mut waits = Vec::new();
        let started = Instant::now();
        while started.elapsed() < duration {
            let sent = SystemTime::now();
            self.send(0x2, LINE)?;
            self.wait_for("ack")?;
            waits.push(self.wire.stamp().duration_since(sent).unwrap_or_default());
            thread::sleep(INTERVAL);
        }
        let place = waits.len() * 99 / 100;
        Ok(*waits.select_nth_unstable(place).1)
    }

    fn send(&mut self, opcode: u8, payload: &[u8]) -> Result<()> {
        let frame = Frame::new(opcode, payload).with_mask(Some([0; 4]));
        Ok(self.wire.write(&frame.to_bytes())?)
    }

    /// Reads until a message of this type arrives.
    fn wait_for(&mut self, kind: &str) -> Result<()> {
        let wanted = format!(r#"{{"type":"{kind}""#);
        loop {
            let text = self.read().context("well-behaved upload was not served")?;
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

    fn read(&mut self) -> Result<Vec<u8>> {
        _ = self.wire.read_byte()?;
        let length = match self.wire.read_byte()? {
            126 => self.read_length(2)?,
            127 => self.read_length(8)?,
            length => u64::from(length),
        };
        let payload = (0..length).map(|_| self.wire.read_byte());
        Ok(payload.collect::<std::io::Result<_>>()?)
    }

    fn read_length(&mut self, bytes: usize) -> Result<u64> {
        let mut length = 0;
        for _ in 0..bytes {
            length = length << 8 | u64::from(self.wire.read_byte()?);
        }
        Ok(length)
    }
}
