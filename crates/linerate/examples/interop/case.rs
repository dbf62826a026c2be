//! The settings that vary in addition to the messages: the role, and the compression that each side
//! asks for.

use std::{fmt, time::Duration};

use linerate::{Client, CloseCode, Deflate, Options, Role, Server, WebSocket};
use tokio::{net::TcpListener, sync::mpsc, time::timeout};

use crate::{
    Result,
    exchange::{Counts, exchange},
    peer::{Ability, Program},
    traffic::Traffic,
};

/// How long a case may take before it counts as hanging, which is an error.
const TIME_MAX: Duration = Duration::from_secs(300);

/// Makes the peer fragment its messages. The size is a prime, so that the cuts fall everywhere.
const FRAGMENT: &str = "fragment=701";

/// True if our messages refer to earlier ones, the same for the peer's, and the window bits of
/// each.
const OURS: [(bool, bool, u8, u8); 6] = [
    (true, true, 12, 12),
    (false, true, 12, 12),
    (true, false, 12, 12),
    (false, false, 15, 15),
    (true, true, 15, 15),
    (true, true, 9, 10),
];

/// The settings of one test connection.
pub(crate) struct Case {
    role: Role,
    deflate: Option<Deflate>,
    peer: Vec<&'static str>,
}

impl Case {
    /// Returns the cases of a round, in both roles: without compression, with compression that the
    /// peer declines, and with the compression settings of each side. Rounds differ in how the
    /// settings of both sides are combined.
    pub(crate) fn all(ability: Ability, round: u64) -> Vec<Self> {
        let mut cases = Vec::new();
        for role in [Role::Client, Role::Server] {
            let mut add = |deflate, wish: &[&'static str]| {
                let mut peer = wish.to_vec();
                // Fragment every other case, and the other half in the next round.
                if (cases.len() as u64 + round).is_multiple_of(2) {
                    peer.push(FRAGMENT);
                }
                cases.push(Self {
                    role,
                    deflate,
                    peer,
                });
            };
            add(None, &[]);
            add(Some(Deflate::default()), &[]);
            if ability.is_empty() {
                continue;
            }
            add(None, ability[0]);
            for turn in 0..OURS.len().max(ability.len()) {
                let wish = ability[(turn + round as usize) % ability.len()];
                add(Some(deflate(turn)), wish);
            }
        }
        cases
    }

    /// Exchanges messages until we have sent `frames` frames.
    pub(crate) async fn run(&self, program: &Program, seed: u64, frames: u64) -> Result<Counts> {
        let traffic = Traffic::new(seed);
        let running = async {
            match self.role {
                Role::Client => self.call(program, traffic, frames).await,
                Role::Server => self.serve(program, traffic, frames).await,
            }
        };
        timeout(TIME_MAX, running).await?
    }

    /// Exchanges messages with the peer as a client.
    async fn call(&self, program: &Program, traffic: Traffic, frames: u64) -> Result<Counts> {
        let (_server, url) = program.serve(&self.peer).await?;
        let client = Client::new().without_proxy().with_options(self.options());
        let ws = client.connect(&url).await?;
        self.talk(ws, traffic, frames).await
    }

    /// Exchanges messages with the peer as a server.
    async fn serve(&self, program: &Program, traffic: Traffic, frames: u64) -> Result<Counts> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("ws://{}/", listener.local_addr()?);
        let (accepted, mut accepting) = mpsc::channel(1);
        let handler = move |ws: WebSocket, _| {
            let accepted = accepted.clone();
            async move {
                // Sending fails only if the case is over.
                _ = accepted.send(ws).await;
                Ok(())
            }
        };
        let server = Server::new().with_options(self.options());
        let serving = server.serve(listener, handler, std::future::pending());
        let talking = async {
            let mut peer = program.connect(&url, &self.peer)?;
            let ws = tokio::select! {
                ws = accepting.recv() => ws.ok_or("the server ended")?,
                status = peer.wait() => return Err(format!("the peer ended with {}", status?).into()),
            };
            let counts = self.talk(ws, traffic, frames).await?;
            let status = peer.wait().await?;
            match status.success() {
                true => Ok(counts),
                false => Err(format!("the peer ended with {status}").into()),
            }
        };
        tokio::select! {
            counts = talking => counts,
            ended = serving => Err(format!("the server ended: {ended:?}").into()),
        }
    }

    async fn talk(&self, mut ws: WebSocket, mut traffic: Traffic, frames: u64) -> Result<Counts> {
        self.check_agreement(&ws)?;
        let counts = exchange(&mut ws, &mut traffic, frames).await?;
        let closed = ws.close(CloseCode::NORMAL, "").await?;
        match closed.clean {
            true => Ok(counts),
            false => Err(format!("the closing handshake failed: {closed:?}").into()),
        }
    }

    /// Checks that the negotiated compression is what both sides asked for.
    fn check_agreement(&self, ws: &WebSocket) -> Result {
        let wishes = self.deflate.filter(|_| self.peer.contains(&"deflate=on"));
        let (ours, agreed) = match (wishes, ws.compression()) {
            (None, None) => return Ok(()),
            (Some(ours), Some(agreed)) => (ours, agreed),
            (_, agreed) => {
                return Err(format!("unexpected compression agreement: {agreed:?}").into());
            }
        };
        let side = match self.role {
            Role::Client => "client",
            Role::Server => "server",
        };
        let renounced = format!("{side}_no_context_takeover=on");
        let takeover = ours.takeover && !self.peer.contains(&&*renounced);
        let named = format!("{side}_max_window_bits=");
        let wished = self.peer.iter().find_map(|it| it.strip_prefix(&*named));
        let bits = wished.map_or(Ok(15), str::parse)?.min(ours.window_bits);
        if (agreed.takeover && !takeover) || agreed.window_bits > bits {
            return Err(format!("unexpected compression agreement: {agreed}").into());
        }
        Ok(())
    }

    fn options(&self) -> Options {
        let mut options = Options::default();
        options.deflate = self.deflate;
        options
    }
}

/// Returns our compression settings for a turn; the compression level also varies.
fn deflate(turn: usize) -> Deflate {
    let (takeover, peer_takeover, window_bits, peer_window_bits) = OURS[turn % OURS.len()];
    let mut deflate = Deflate::default();
    deflate.level = [4, 1, 9, 6][turn % 4];
    deflate.message_bytes_min = [64, 0][turn % 2];
    deflate.takeover = takeover;
    deflate.peer_takeover = peer_takeover;
    deflate.window_bits = window_bits;
    deflate.peer_window_bits = peer_window_bits;
    deflate
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "linerate as the {:?}, ", self.role)?;
        match &self.deflate {
            None => f.write_str("without compression")?,
            Some(ours) => write!(
                f,
                "wanting {} and {} bits, takeover {} and {}",
                ours.window_bits, ours.peer_window_bits, ours.takeover, ours.peer_takeover
            )?,
        }
        write!(f, "; the peer {:?}", self.peer)
    }
}
