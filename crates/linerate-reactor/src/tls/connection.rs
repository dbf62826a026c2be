//! One end of a TLS connection: the handshake, then a session.

use std::sync::Arc;

use rustls::{ClientConfig, pki_types::ServerName};

use super::{
    capture,
    handshake::{Handshake, Progress},
    info::TlsInfo,
    outcome::{Alert, Failed, Outcome, Plaintext, Processed, Sealed},
    record,
    session::Session,
};
use crate::memory::pool::Pool;

/// The configuration of a server.
pub(crate) type ServerConfig = rustls::ServerConfig;

/// The server that a client expects, and how the client verifies it.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

/// Maximum number of handshake bytes that wait for the remainder of a message. rustls accepts
/// messages of up to 64 KiB, which may arrive in records of a few bytes.
const HANDSHAKE_BYTES_MAX: usize = 128 << 10;

/// The TLS of one connection.
pub(crate) struct Tls {
    pub(super) stage: Stage,
    /// The start of a record that has not arrived completely; during the handshake, the bytes that
    /// rustls has not processed.
    pub(super) unfinished: Vec<u8>,
}

pub(super) enum Stage {
    Handshake(Box<Handshake>),
    Open(Box<Session>),
    /// Our side is closed; anything that the peer still sends is ignored.
    Closed,
}

impl Tls {
    /// Starts TLS as a server.
    pub(crate) fn server(config: &Arc<ServerConfig>) -> Result<Box<Self>, Failed> {
        Ok(Self::new(Handshake::server(config.clone())?))
    }

    /// Starts TLS as a client and adds the first message to `sealed`.
    pub(crate) fn client(peer: &Peer, sealed: &mut Sealed) -> Result<Box<Self>, Failed> {
        let mut handshake = Handshake::client(peer.config.clone(), peer.name.clone())?;
        handshake.advance(&mut Vec::new(), sealed)?;
        Ok(Self::new(handshake))
    }

    fn new(handshake: Handshake) -> Box<Self> {
        Box::new(Self {
            stage: Stage::Handshake(Box::new(handshake)),
            unfinished: Vec::new(),
        })
    }

    /// Processes input: decrypts the whole records and keeps the start of the next one. Responses
    /// of the TLS protocol itself are added to `sealed`.
    ///
    /// Must be called again with the input that was not processed.
    pub(crate) fn handle_input(
        &mut self,
        input: &mut [u8],
        sealed: &mut Sealed,
        pool: &mut Pool,
    ) -> Processed {
        match &mut self.stage {
            Stage::Handshake(_) => self.handle_handshake(input, sealed, pool),
            Stage::Open(_) if !self.unfinished.is_empty() => {
                self.finish_record(input, sealed, pool)
            }
            Stage::Open(session) => {
                let (bytes, plaintext, outcome) = session.open(input, sealed);
                let rest = &input[bytes..];
                if matches!(outcome, Outcome::Continues) && !rest.is_empty() {
                    pool.reserve(&mut self.unfinished, rest.len());
                    self.unfinished.extend_from_slice(rest);
                }
                Processed {
                    bytes: input.len(),
                    plaintext: Plaintext::InPlace(plaintext),
                    outcome,
                }
            }
            Stage::Closed => Processed::nothing(input.len(), Outcome::Continues),
        }
    }

    /// Encrypts the `slices`, one after the other, in records that are as full as possible. Does
    /// nothing once our side is closed.
    ///
    /// # Errors
    /// If the handshake is not complete, or no more records may be encrypted.
    pub(crate) fn seal<'a>(
        &mut self,
        slices: impl Iterator<Item = &'a [u8]>,
        sealed: &mut Sealed,
    ) -> Result<(), Failed> {
        match &mut self.stage {
            Stage::Handshake(_) => Err(Failed::default()),
            Stage::Open(session) => session.seal(slices, sealed),
            Stage::Closed => Ok(()),
        }
    }

    /// Closes our side: tells the peer that no more data follows, or why, and discards the keys.
    pub(crate) fn close(&mut self, alert: Alert, sealed: &mut Sealed) {
        if let Stage::Open(session) = &mut self.stage {
            session.alert(alert, sealed);
        }
        self.stage = Stage::Closed;
    }

    /// Returns whether output can be encrypted.
    pub(crate) const fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open(_))
    }

    /// Returns what the handshake has negotiated, once it is complete.
    pub(crate) fn info(&self) -> Option<TlsInfo<'_>> {
        match &self.stage {
            Stage::Open(session) => Some(session.info()),
            Stage::Handshake(_) | Stage::Closed => None,
        }
    }

    /// Frees what is known of the handshake only until the connection has opened.
    pub(crate) fn forget_handshake(&mut self) {
        if let Stage::Open(session) = &mut self.stage {
            session.forget_handshake();
        }
    }

    /// Returns a record with the given content type.
    #[cfg(test)]
    pub(super) fn seal_as(&mut self, kind: rustls::ContentType, content: &[u8]) -> Vec<u8> {
        match &mut self.stage {
            Stage::Open(session) => session.seal_as(kind, content),
            Stage::Handshake(_) | Stage::Closed => panic!("the session is not open"),
        }
    }

    /// Replaces our keys without telling the peer.
    #[cfg(all(test, unix))]
    pub(super) fn update_sending(&mut self) {
        match &mut self.stage {
            Stage::Open(session) => session.change_keys(&mut Sealed::new()),
            Stage::Handshake(_) | Stage::Closed => panic!("the session is not open"),
        }
        .expect("the version is TLS 1.3");
    }

    /// Returns how much memory is held for unfinished records.
    #[cfg(test)]
    pub(super) fn unfinished_capacity(&self) -> usize {
        self.unfinished.capacity()
    }

    /// Gives the memory to the pool.
    pub(crate) fn give_memory(self, pool: &mut Pool) {
        pool.give(self.unfinished);
    }

    /// Takes the missing bytes of a handshake record.
    fn handle_handshake(
        &mut self,
        input: &mut [u8],
        sealed: &mut Sealed,
        pool: &mut Pool,
    ) -> Processed {
        let Stage::Handshake(handshake) = &mut self.stage else {
            return Processed::nothing(0, Outcome::Continues);
        };
        let (bytes, is_whole) =
            record::join(&mut self.unfinished, handshake.seen_bytes(), input, pool);
        if let Err(failed) = handshake.look_at(&input[..bytes], sealed) {
            return Processed::nothing(bytes, Outcome::Failed(failed));
        }
        if self.unfinished.len() > HANDSHAKE_BYTES_MAX {
            return Processed::nothing(bytes, Outcome::Failed(Failed::default()));
        }
        if !is_whole {
            return Processed::nothing(bytes, Outcome::Continues);
        }
        let outcome = match handshake.advance(&mut self.unfinished, sealed) {
            Ok(Progress::Goes) => Outcome::Continues,
            Ok(Progress::Ended) => Outcome::Ended,
            Ok(Progress::Done) => self.start_session(pool),
            Err(failed) => Outcome::Failed(failed),
        };
        Processed::nothing(bytes, outcome)
    }

    /// Continues after the handshake.
    fn start_session(&mut self, pool: &mut Pool) -> Outcome {
        let Stage::Handshake(handshake) = std::mem::replace(&mut self.stage, Stage::Closed) else {
            return Outcome::Continues;
        };
        pool.give(std::mem::take(&mut self.unfinished));
        match handshake.into_session() {
            Ok(session) => {
                self.stage = Stage::Open(Box::new(session));
                Outcome::Continues
            }
            Err(failed) => Outcome::Failed(failed),
        }
    }

    /// Takes the missing bytes of the record that is arriving in pieces.
    fn finish_record(
        &mut self,
        input: &mut [u8],
        sealed: &mut Sealed,
        pool: &mut Pool,
    ) -> Processed {
        let (bytes, is_whole) = record::join(&mut self.unfinished, 0, input, pool);
        let Stage::Open(session) = &mut self.stage else {
            return Processed::nothing(bytes, Outcome::Continues);
        };
        if !is_whole {
            return Processed::nothing(bytes, Outcome::Continues);
        }
        let mut record = std::mem::take(&mut self.unfinished);
        let (_, plaintext, outcome) = session.open(&mut record, sealed);
        Processed {
            bytes,
            plaintext: Plaintext::Joined(record, plaintext),
            outcome,
        }
    }
}

impl Processed {
    const fn nothing(bytes: usize, outcome: Outcome) -> Self {
        Self {
            bytes,
            plaintext: Plaintext::InPlace(0),
            outcome,
        }
    }
}

/// Returns the configuration with the settings that the reactor requires.
pub(crate) fn prepare_server(config: &ServerConfig) -> Arc<ServerConfig> {
    let mut config = config.clone();
    keep_http1(&mut config.alpn_protocols);
    prepare_adoptable(config)
}

/// Like [`prepare_server`], for connections that may use another application protocol unless the
/// reactor adopts them.
pub(super) fn prepare_adoptable(mut config: ServerConfig) -> Arc<ServerConfig> {
    config.enable_secret_extraction = true;
    config.key_log = capture::capturing(config.key_log);
    config.max_early_data_size = 0;
    config.send_half_rtt_data = false;
    Arc::new(config)
}

/// Returns the configuration with the settings that the reactor requires.
pub(crate) fn prepare_client(config: &ClientConfig) -> Arc<ClientConfig> {
    let mut config = config.clone();
    config.enable_secret_extraction = true;
    config.enable_early_data = false;
    keep_http1(&mut config.alpn_protocols);
    Arc::new(config)
}

/// Reduces the protocols to HTTP/1.1, unless there are none.
fn keep_http1(protocols: &mut Vec<Vec<u8>>) {
    if !protocols.is_empty() {
        *protocols = vec![b"http/1.1".to_vec()];
    }
}
