//! The replacement for TLS in a build without it: types without values.

use std::sync::Arc;

#[cfg(unix)]
use linerate_proto::portable::Writer;

#[cfg(unix)]
use super::outcome::SecretsUnavailable;
use super::outcome::{Alert, Failed, Processed, Sealed};
use crate::memory::pool::Pool;

#[derive(Debug)]
pub(crate) enum ServerConfig {}

/// The server that a client expects.
#[derive(Clone)]
pub(crate) enum Peer {}

pub(crate) enum Tls {}

impl Tls {
    pub(crate) fn server(config: &Arc<ServerConfig>) -> Result<Box<Self>, Failed> {
        match **config {}
    }

    pub(crate) fn client(peer: &Peer, _: &mut Sealed) -> Result<Box<Self>, Failed> {
        match *peer {}
    }

    pub(crate) fn handle_input(&mut self, _: &mut [u8], _: &mut Sealed, _: &mut Pool) -> Processed {
        match *self {}
    }

    pub(crate) fn seal<'a>(
        &mut self,
        _: impl Iterator<Item = &'a [u8]>,
        _: &mut Sealed,
    ) -> Result<(), Failed> {
        match *self {}
    }

    pub(crate) fn close(&mut self, _: Alert, _: &mut Sealed) {
        match *self {}
    }

    pub(crate) const fn is_open(&self) -> bool {
        match *self {}
    }

    pub(crate) const fn forget_handshake(&mut self) {
        match *self {}
    }

    #[cfg(unix)]
    pub(crate) fn export(&self, _: &mut Writer) -> Result<(), SecretsUnavailable> {
        match *self {}
    }

    pub(crate) fn give_memory(self, _: &mut Pool) {
        match self {}
    }
}

pub(crate) mod adopted {
    use super::super::{Tls, outcome::Outcome};

    #[derive(Debug)]
    pub(crate) enum TlsConnection {}

    pub(crate) struct AdoptedTls {
        pub(crate) tls: Box<Tls>,
        pub(crate) plaintext: Vec<u8>,
        pub(crate) unsent: Vec<u8>,
        pub(crate) outcome: Outcome,
    }

    impl TlsConnection {
        pub(crate) fn into_adopted(self) -> AdoptedTls {
            match self {}
        }
    }
}
