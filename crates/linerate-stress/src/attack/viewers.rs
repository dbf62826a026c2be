//! Viewers of an upload that ask for all of its lines and read nothing, and clients that guess the
//! names of uploads.

use std::{io::Write, net::SocketAddr, time::Duration};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::{
    Attack, Tally, count,
    peer::Peer,
    upload::{UPLOADS, random_lines},
};
use crate::websocket::{frame, read_frame, request};

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(5);

/// The number of names that are guessed in a round.
const GUESSES: u64 = 4;

/// The number of questions that each viewer sends in a round, if the server accepts them.
const QUESTIONS: u64 = 8;

const PATH: &str = "/logs/upload";
const SUBPROTOCOL: &str = "Sec-WebSocket-Protocol: linerate.logs.v1\r\n";

/// One upload, its viewers, and those who look for other uploads.
pub(super) struct Viewers {
    server: SocketAddr,
    /// Keeps the upload from being closed.
    _uploader: Peer,
    viewers: Vec<Peer>,
    asked: u64,
    guessed: u64,
}

impl Viewers {
    pub(super) fn new(server: SocketAddr, count: usize) -> Result<Self> {
        let (uploader, name) = upload(server)?;
        let view = json!({"type": "view", "name": name}).to_string();
        let viewers = (0..count).map(|_| -> Result<Peer> {
            let mut peer = Peer::connect_narrow(server)?;
            peer.stream
                .write_all(request(PATH, SUBPROTOCOL).as_bytes())?;
            peer.wait_for_open()?;
            say(&mut peer, &view)?;
            Ok(peer.unblock()?)
        });
        Ok(Self {
            server,
            viewers: viewers.collect::<Result<_>>()?,
            _uploader: uploader,
            asked: 0,
            guessed: 0,
        })
    }

    /// Asks for an upload that does not exist, and counts how the server answers.
    fn guess(&mut self, tally: &mut Tally) -> Result<()> {
        self.guessed += 1;
        let mut peer = Peer::ask(self.server, PATH, SUBPROTOCOL)?;
        peer.wait_for_open()?;
        let name = format!("{:032x}", self.guessed);
        say(
            &mut peer,
            &json!({"type": "view", "name": name}).to_string(),
        )?;
        let error = awaited(&mut peer, "error")?;
        let code = peer.close_code()?;
        let error = error["code"].as_str().unwrap_or_default();
        count(tally, &format!("{error} {code}"), 1);
        Ok(())
    }
}

impl Attack for Viewers {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        if self.asked == 0 {
            count(tally, UPLOADS, 1);
        }
        for peer in self.viewers.iter_mut().filter(|peer| !peer.is_lost) {
            if peer.unsent.is_empty() {
                for _ in 0..QUESTIONS {
                    self.asked += 1;
                    let rows = json!({
                        "type": "rows",
                        "seq": self.asked,
                        "query": {"filters": ["size(path) > 3"]},
                        "limit": 1_000,
                    });
                    peer.unsent
                        .extend(frame(0x1, rows.to_string().as_bytes()).to_bytes());
                }
            }
            peer.send();
        }
        for _ in 0..GUESSES {
            self.guess(tally)?;
        }
        Ok(STROKE)
    }
}

/// Uploads a log whose lines are kept; returns the connection and the name for viewers.
fn upload(server: SocketAddr) -> Result<(Peer, String)> {
    let lines = random_lines()?;
    let mut peer = Peer::ask(server, PATH, SUBPROTOCOL)?;
    peer.wait_for_open()?;
    let files = json!([{"name": "a.log", "size": lines.len()}]);
    let start = json!({"type": "start", "files": files, "rows": true});
    say(&mut peer, &start.to_string())?;
    let ready = awaited(&mut peer, "ready")?;
    let name = ready["view"].as_str().context("no name for viewers")?;
    peer.stream
        .write_all(&frame(0x2, lines.as_bytes()).to_bytes())?;
    say(&mut peer, r#"{"type":"finish"}"#)?;
    while awaited(&mut peer, "snapshot")?["final"] != true {}
    Ok((peer, name.to_owned()))
}

fn say(peer: &mut Peer, text: &str) -> Result<()> {
    let message = frame(0x1, text.as_bytes()).to_bytes();
    Ok(peer.stream.write_all(&message)?)
}

/// Reads up to a message of this type.
fn awaited(peer: &mut Peer, kind: &str) -> Result<Value> {
    loop {
        let (first, payload) = read_frame(&mut peer.stream)?;
        if first == 0x88 {
            bail!("closed before a message of the type {kind}");
        }
        if first == 0x81 {
            let message: Value = serde_json::from_slice(&payload)?;
            if message["type"] == kind {
                return Ok(message);
            }
        }
    }
}
