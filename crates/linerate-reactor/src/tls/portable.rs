//! Exports the TLS of a server's connection between two pieces of input, and continues it.
//!
//! The state has the cipher suite, the secrets, and the sequence numbers of both directions, and
//! the start of the record that is arriving. Records that were encrypted and not written are output
//! of the connection.

use linerate_proto::portable::{ImportError, Reader, Writer};
use rustls::{CipherSuite, SupportedCipherSuite, crypto::CryptoProvider};
use zeroize::Zeroizing;

use super::{
    connection::{Stage, Tls},
    outcome::SecretsUnavailable,
    record::{self, Opener, Sealer},
    schedule::Schedule,
    session::{IDLE_RECORDS_MAX, Secrets, Session, WARNINGS_MAX},
};

/// Sequence numbers never become larger, because keys are replaced long before.
const SEQUENCE_MAX: u64 = 1 << 62;

/// The longest secret: a TLS 1.3 hash, or a key and a nonce.
const SECRET_BYTES_MAX: usize = 64;

impl Tls {
    /// Appends the state, whose last part is the secrets.
    ///
    /// # Errors
    /// If the handshake is not complete, or rustls keeps the secrets.
    pub(crate) fn export(&self, state: &mut Writer) -> Result<(), SecretsUnavailable> {
        let session = match &self.stage {
            Stage::Handshake(_) => return Err(SecretsUnavailable),
            Stage::Open(session) => session,
            Stage::Closed => {
                state.flag(false);
                return Ok(());
            }
        };
        let Secrets::Server(schedule) = &session.secrets else {
            return Err(SecretsUnavailable);
        };
        state.flag(true);
        state.bytes(&self.unfinished);
        state.u16(schedule.suite().suite().into());
        state.u64(session.opener.sequence());
        state.u64(session.sealer.sequence());
        state.u8(session.idle_records);
        state.u8(session.warnings);
        // The secrets are written at once and last: growing memory would leave copies behind.
        let (receiving, sending) = schedule.secrets();
        let mut secrets = Zeroizing::new([0; 2 * SECRET_BYTES_MAX]);
        let length = receiving.len() + sending.len();
        secrets[..receiving.len()].copy_from_slice(receiving);
        secrets[receiving.len()..length].copy_from_slice(sending);
        state.bytes(&secrets[..length]);
        Ok(())
    }

    /// Continues exported TLS with the ciphers of `provider`.
    ///
    /// # Errors
    /// If the provider does not have the cipher suite, or no connection can be in this state.
    pub(crate) fn import(
        state: &mut Reader<'_>,
        provider: &CryptoProvider,
    ) -> Result<Box<Self>, ImportError> {
        if !state.flag("open TLS")? {
            return Ok(Box::new(Self {
                stage: Stage::Closed,
                unfinished: Vec::new(),
            }));
        }
        let unfinished = state.bytes("unfinished record", record::BYTES_MAX)?;
        match record::length(unfinished) {
            Ok(None) => {}
            Ok(Some(bytes)) if bytes > unfinished.len() => {}
            _ => return Err(invalid("unfinished record", unfinished.len() as u64)),
        }
        Ok(Box::new(Self {
            stage: Stage::Open(Box::new(import_session(state, provider)?)),
            unfinished: unfinished.into(),
        }))
    }
}

fn import_session(
    state: &mut Reader<'_>,
    provider: &CryptoProvider,
) -> Result<Session, ImportError> {
    let number = state.u16("cipher suite")?;
    let suites = || provider.cipher_suites.iter().copied();
    let suite = suites().find(|suite| suite.suite() == CipherSuite::from(number));
    let suite = suite.ok_or(invalid("cipher suite", number.into()))?;
    let received = limited(
        state.u64("records received")?,
        SEQUENCE_MAX,
        "records received",
    )?;
    let sent = limited(state.u64("records sent")?, SEQUENCE_MAX, "records sent")?;
    let idle_records = limited(state.u8("idle records")?, IDLE_RECORDS_MAX, "idle records")?;
    let warnings = limited(state.u8("warnings")?, WARNINGS_MAX, "warnings")?;
    let secrets = state.bytes("secrets", 2 * SECRET_BYTES_MAX)?;
    let (receiving, sending) = secrets.split_at(secrets.len() / 2);
    let schedule = Schedule::from_secrets(suite, receiving, sending);
    let schedule = schedule.ok_or(invalid("secrets", secrets.len() as u64))?;
    // The keys of TLS 1.3 are derived when the first record needs them: when many clients move at
    // once, the others do not wait for that.
    let mut sealer = Sealer::without_keys(sent);
    let mut opener = Opener::without_keys(received);
    if let SupportedCipherSuite::Tls12(_) = suite {
        let any = suites().find_map(|suite| match suite {
            SupportedCipherSuite::Tls12(_) => None,
            SupportedCipherSuite::Tls13(suite) => Some(suite),
        });
        let unsupported = |_| invalid("cipher suite", number.into());
        let keys = schedule.receiving_keys(any).map_err(unsupported)?;
        opener = Opener::new(suite, received, keys);
        let keys = schedule.sending_keys(any).map_err(unsupported)?;
        sealer = Sealer::new(suite, sent, keys);
    }
    Ok(Session {
        sealer,
        opener,
        secrets: Secrets::Server(schedule),
        details: None,
        idle_records,
        warnings,
    })
}

/// Returns `value` if it is not above its maximum.
fn limited<N>(value: N, max: N, field: &'static str) -> Result<N, ImportError>
where
    N: Copy + PartialOrd + Into<u64>,
{
    match value <= max {
        true => Ok(value),
        false => Err(invalid(field, value.into())),
    }
}

const fn invalid(field: &'static str, value: u64) -> ImportError {
    ImportError::Invalid { field, value }
}
