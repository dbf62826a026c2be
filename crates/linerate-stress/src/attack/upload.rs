//! Uploads of compressed logs that are small on the wire and large once they are decompressed.

use std::{
    fmt::Write as _,
    io::{ErrorKind, Read, Write as _},
    net::SocketAddr,
    time::Duration,
};

use anyhow::{Result, bail};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use zstd::stream::raw::CParameter;

use super::{Abuse, Attack, Tally, count, peer::Peer};
use crate::websocket::{frame, whole_frame};

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(5);

/// The size of the random lines in bytes, and how often they are repeated.
const ROWS_BYTES: usize = 4 << 20;
const ROWS_TIMES: usize = 100;

/// The decompressed size of a bomb, in bytes.
const BOMB_BYTES: usize = 3 << 30;

/// The number of uploads that one address may have.
const PER_ADDRESS: usize = 8;

/// The tally's name for uploads.
pub(crate) const UPLOADS: &str = "uploads";

/// Opens uploads. Bombs are uploaded again after they have ended.
pub(super) struct Uploads {
    abuse: Abuse,
    server: SocketAddr,
    /// The encoded messages of an upload.
    script: Vec<u8>,
    peers: Vec<Uploader>,
}

struct Uploader {
    peer: Peer,
    address: usize,
    sent: usize,
    arrived: Vec<u8>,
    /// The code of the last error that the server has reported.
    error: String,
    has_ended: bool,
}

impl Uploads {
    pub(super) fn new(abuse: Abuse, server: SocketAddr, count: usize) -> Result<Self> {
        let file = match abuse {
            Abuse::UploadBombs => bomb()?,
            _ => rows()?,
        };
        let rows = abuse != Abuse::UploadBombs;
        let start = format!(
            r#"{{"type":"start","files":[{{"name":"a.zst","size":{}}}],"rows":{rows}}}"#,
            file.len()
        );
        let mut script = frame(0x1, start.as_bytes()).to_bytes();
        script.extend(frame(0x2, &file).to_bytes());
        script.extend(frame(0x1, br#"{"type":"finish"}"#).to_bytes());
        let mut uploads = Self {
            abuse,
            server,
            script,
            peers: Vec::new(),
        };
        for number in 0..count {
            let address = match abuse {
                Abuse::UploadRows => 0,
                _ => number / PER_ADDRESS,
            };
            uploads.peers.push(uploads.open(address)?);
        }
        Ok(uploads)
    }

    fn open(&self, address: usize) -> Result<Uploader> {
        let more = format!(
            "Sec-WebSocket-Protocol: linerate.logs.v1\r\nX-Forwarded-For: 192.0.2.{}\r\n",
            address + 1
        );
        let mut peer = Peer::ask(self.server, "/logs/upload", &more)?;
        peer.wait_for_open()?;
        Ok(Uploader {
            peer: peer.unblock()?,
            address,
            sent: 0,
            arrived: Vec::new(),
            error: String::new(),
            has_ended: false,
        })
    }
}

impl Attack for Uploads {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        for at in 0..self.peers.len() {
            let uploader = &mut self.peers[at];
            if uploader.has_ended {
                continue;
            }
            if uploader.sent == 0 {
                count(tally, UPLOADS, 1);
            }
            uploader.continue_upload(&self.script, tally)?;
            if uploader.has_ended && self.abuse == Abuse::UploadBombs {
                let address = uploader.address;
                self.peers[at] = self.open(address)?;
            }
        }
        Ok(STROKE)
    }
}

impl Uploader {
    /// Sends as much as the server accepts, and processes its messages.
    fn continue_upload(&mut self, script: &[u8], tally: &mut Tally) -> Result<()> {
        while self.sent < script.len() {
            match self.peer.stream.write(&script[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                // The server may close the connection at any time; its last messages are read
                // below.
                Err(_) => break,
            }
        }
        let mut buffer = [0; 64 << 10];
        loop {
            match self.peer.stream.read(&mut buffer) {
                Ok(0) => {
                    count(tally, "cut off without a word", 1);
                    self.has_ended = true;
                    return Ok(());
                }
                Ok(bytes) => self.arrived.extend(&buffer[..bytes]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    count(tally, "reset", 1);
                    self.has_ended = true;
                    return Ok(());
                }
            }
        }
        while let Some((opcode, payload)) = take_frame(&mut self.arrived) {
            self.handle_frame(opcode, &payload, tally)?;
        }
        Ok(())
    }

    fn handle_frame(&mut self, opcode: u8, payload: &[u8], tally: &mut Tally) -> Result<()> {
        match (opcode, payload) {
            (0x8, [high, low, ..]) => {
                let code = u16::from_be_bytes([*high, *low]);
                count(tally, &format!("{} {code}", self.error), 1);
                self.has_ended = true;
            }
            (0x1, _) if payload.starts_with(br#"{"type":"error""#) => {
                let error: serde_json::Value = serde_json::from_slice(payload)?;
                self.error = error["code"].as_str().unwrap_or_default().to_owned();
            }
            (0x1, _) if payload.starts_with(br#"{"type":"snapshot","final":true"#) => {
                count(tally, "finished", 1);
            }
            (0x1 | 0x9, _) => {}
            _ => bail!("upload answered with an unexpected frame, opcode {opcode:#x}"),
        }
        Ok(())
    }
}

/// Removes the next frame of the server, if it is complete, and returns its opcode and payload.
fn take_frame(arrived: &mut Vec<u8>) -> Option<(u8, Vec<u8>)> {
    let (first, place) = whole_frame(arrived)?;
    let frame: Vec<u8> = arrived.drain(..place.end).collect();
    Some((first & 0xF, frame[place].to_vec()))
}

/// Returns some 3 MB that decompress to 4 MiB of random lines, repeated.
fn rows() -> Result<Vec<u8>> {
    // The window is large enough to refer to the previous copy of the lines.
    compress(random_lines()?.as_bytes(), ROWS_TIMES, 23)
}

/// Returns 4 MiB of random lines.
pub(super) fn random_lines() -> Result<String> {
    let mut random = SmallRng::seed_from_u64(16);
    let mut lines = String::with_capacity(ROWS_BYTES + 512);
    while lines.len() < ROWS_BYTES {
        let address: [u8; 4] = random.random();
        let [a, b, c, d] = address;
        let words: Vec<String> = (0..12).map(|_| random_word(&mut random)).collect();
        writeln!(
            lines,
            "{a}.{b}.{c}.{d} - - [22/Jan/2021:01:47:05 +0000] \"GET /{} HTTP/1.1\" 200 {} \"-\" \"{}\"",
            words[..6].concat(),
            random.random::<u16>(),
            words[6..].concat(),
        )?;
    }
    Ok(lines)
}

/// Returns random letters and digits, which hardly compress.
fn random_word(random: &mut SmallRng) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let letter = |_| char::from(LETTERS[usize::from(random.random::<u8>()) % LETTERS.len()]);
    (0..16).map(letter).collect()
}

/// Returns some 288 KB that decompress to 3 GiB.
fn bomb() -> Result<Vec<u8>> {
    let line =
        "192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654 \"-\" \"curl\"\n";
    let lines = line.repeat((4 << 20) / line.len());
    compress(lines.as_bytes(), BOMB_BYTES / lines.len(), 20)
}

fn compress(bytes: &[u8], times: usize, window_log: u32) -> Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1)?;
    encoder.set_parameter(CParameter::WindowLog(window_log))?;
    encoder.set_parameter(CParameter::EnableLongDistanceMatching(true))?;
    for _ in 0..times {
        encoder.write_all(bytes)?;
    }
    Ok(encoder.finish()?)
}

#[cfg(test)]
mod tests {
    use super::{rows, take_frame};

    #[test]
    fn frames_are_taken_when_they_are_whole() {
        let mut arrived = b"\x81\x04Spam\x82\x7e\x01\0".to_vec();
        assert_eq!(take_frame(&mut arrived), Some((1, b"Spam".to_vec())));
        assert_eq!(take_frame(&mut arrived), None);
        arrived.extend([b'x'; 300]);
        assert_eq!(take_frame(&mut arrived), Some((2, vec![b'x'; 256])));
        assert_eq!(arrived.len(), 44);
    }

    #[test]
    fn repeated_lines_take_no_room_but_once() {
        let file = rows().unwrap();
        assert!((2 << 20..4 << 20).contains(&file.len()), "{}", file.len());
    }
}
