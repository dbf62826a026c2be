//! Well-behaved clients that connect over TLS and disconnect again.

use std::{collections::HashSet, net::SocketAddr, time::Duration};

use anyhow::Result;

use super::{Attack, Tally, count};
use crate::{
    live::{Target, visit},
    trust,
};

/// The time between two rounds.
const STROKE: Duration = Duration::from_millis(20);

pub(super) struct Connects {
    target: Target,
    certificates: HashSet<Vec<u8>>,
}

impl Connects {
    pub(super) fn new(address: SocketAddr) -> Result<Self> {
        Ok(Self {
            target: Target {
                address,
                path: "/echo",
                tls: Some(trust::anybody()),
            },
            certificates: HashSet::new(),
        })
    }
}

impl Attack for Connects {
    fn stroke(&mut self, tally: &mut Tally) -> Result<Duration> {
        count(tally, "connections", 1);
        match visit(&self.target) {
            Ok(Some(certificate)) if self.certificates.insert(certificate.clone()) => {
                count(tally, "certificates seen", 1);
            }
            Ok(_) => {}
            Err(_) => count(tally, "not served", 1),
        }
        Ok(STROKE)
    }
}
