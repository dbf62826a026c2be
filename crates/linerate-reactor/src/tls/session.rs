//! The session after the handshake: data, alerts, and key updates.

use rustls::{
    AlertDescription, ContentType, Error, ExtractedSecrets, HandshakeType, ProtocolVersion,
    SupportedCipherSuite, client::ClientConnectionData, crypto::cipher::OutboundChunks,
    kernel::KernelConnection,
};

use super::{
    info::{Details, TlsInfo},
    outcome::{Alert, Failed, Outcome, Sealed},
    record::{self, FILLED_BYTES_MAX, HEADER_BYTES, Opener, Sealer},
    schedule::{KeyAndIv, Schedule},
};

/// Maximum number of key updates and empty records between two records with data. They cost us time
/// and carry no information.
pub(super) const IDLE_RECORDS_MAX: u8 = 32;

/// Maximum number of warnings that are ignored (TLS 1.2).
pub(super) const WARNINGS_MAX: u8 = 4;

/// Maximum number of slices in one round of encryption.
const SLICES_MAX: usize = 64;

/// A KeyUpdate that does not request one in return (RFC 8446 §4.6.3).
const KEY_UPDATE: [u8; 5] = [0x18, 0, 0, 1, 0];

/// The level of an alert that ends the connection (§6).
const FATAL: u8 = 2;

/// The level of close_notify.
const WARNING: u8 = 1;

/// An open session, which encrypts and decrypts records.
pub(super) struct Session {
    pub(super) sealer: Sealer,
    pub(super) opener: Opener,
    pub(super) secrets: Secrets,
    /// Until the connection has opened.
    pub(super) details: Option<Box<Details>>,
    /// The number of records since the last one with data.
    pub(super) idle_records: u8,
    pub(super) warnings: u8,
}

/// The source of new keys.
pub(super) enum Secrets {
    Client(Box<KernelConnection<ClientConnectionData>>),
    Server(Schedule),
}

/// The content of a record.
enum Content {
    /// Application data: its start in the record, and its length.
    Data(usize, usize),
    /// Nothing for the application.
    Other,
    /// The peer's close_notify.
    End,
}

impl Session {
    /// Continues after the handshake.
    ///
    /// # Errors
    /// If the kind of cipher suite is not supported here.
    pub(super) fn new(
        extracted: ExtractedSecrets,
        secrets: Secrets,
        details: Details,
    ) -> Result<Self, Failed> {
        let suite = secrets.suite();
        let ExtractedSecrets {
            tx: (sent, sending),
            rx: (received, receiving),
        } = extracted;
        Ok(Self {
            sealer: Sealer::new(suite, sent, record::parts(sending)?),
            opener: Opener::new(suite, received, record::parts(receiving)?),
            secrets,
            details: Some(Box::new(details)),
            idle_records: 0,
            warnings: 0,
        })
    }

    /// Decrypts all whole records of `input` and moves their data to its start, without gaps.
    /// Returns the length of the records and that of the data, in bytes.
    pub(super) fn open(
        &mut self,
        input: &mut [u8],
        sealed: &mut Sealed,
    ) -> (usize, usize, Outcome) {
        let (mut at, mut plaintext) = (0, 0);
        loop {
            let bytes = match record::length(&input[at..]) {
                Ok(Some(bytes)) if bytes <= input.len() - at => bytes,
                Ok(_) => return (at, plaintext, Outcome::Continues),
                Err(failed) => return (at, plaintext, Outcome::Failed(failed)),
            };
            let content = self.open_record(&mut input[at..at + bytes], sealed);
            match content {
                Ok(Content::Data(start, bytes)) => {
                    let start = at + start;
                    input.copy_within(start..start + bytes, plaintext);
                    plaintext += bytes;
                }
                Ok(Content::Other) => {}
                Ok(Content::End) => return (at + bytes, plaintext, Outcome::Ended),
                Err(failed) => return (at + bytes, plaintext, Outcome::Failed(failed)),
            }
            at += bytes;
        }
    }

    /// Encrypts the `slices`, one after the other.
    pub(super) fn seal<'a>(
        &mut self,
        mut slices: impl Iterator<Item = &'a [u8]>,
        sealed: &mut Sealed,
    ) -> Result<(), Failed> {
        loop {
            let mut some: [&[u8]; SLICES_MAX] = [&[]; SLICES_MAX];
            let mut count = 0;
            for (place, slice) in some.iter_mut().zip(&mut slices) {
                *place = slice;
                count += 1;
            }
            let mut rest = OutboundChunks::new(&some[..count]);
            if rest.is_empty() {
                return Ok(());
            }
            while !rest.is_empty() {
                self.spare_keys(sealed)?;
                let (filled, behind) = rest.split_at(FILLED_BYTES_MAX);
                sealed.push(self.sealer()?.seal(ContentType::ApplicationData, filled)?);
                rest = behind;
            }
        }
    }

    /// Tells the peer why no more data follows.
    pub(super) fn alert(&mut self, alert: Alert, sealed: &mut Sealed) {
        let level = if alert == Alert::CLOSE_NOTIFY {
            WARNING
        } else {
            FATAL
        };
        let message = [level, alert.0];
        let payload = OutboundChunks::Single(&message);
        // If the alert cannot be encrypted, the end of the stream must suffice.
        if let Ok(sealer) = self.sealer() {
            sealed.extend(sealer.seal(ContentType::Alert, payload));
        }
    }

    /// Returns what the handshake has negotiated.
    pub(super) fn info(&self) -> TlsInfo<'_> {
        TlsInfo {
            version: self.version(),
            cipher_suite: self.secrets.suite().suite(),
            details: self.details.as_deref(),
        }
    }

    /// Frees what is known only until the connection has opened.
    pub(super) fn forget_handshake(&mut self) {
        self.details = None;
    }

    /// Returns a record with the given content type.
    #[cfg(test)]
    pub(super) fn seal_as(&mut self, kind: ContentType, content: &[u8]) -> Vec<u8> {
        let payload = OutboundChunks::Single(content);
        let sealer = self.sealer().expect("keys can be derived");
        sealer.seal(kind, payload).expect("keys are not worn out")
    }

    fn open_record(&mut self, record: &mut [u8], sealed: &mut Sealed) -> Result<Content, Failed> {
        // §5.2: "The outer opaque_type field of a TLSCiphertext record is always set to the value
        // 23 (application_data)". The cipher does not see that field.
        if self.is_tls13() && record[0] != u8::from(ContentType::ApplicationData) {
            return Err(Failed::telling(AlertDescription::UnexpectedMessage));
        }
        let address = record.as_ptr().addr();
        if !self.opener.has_keys() {
            let keys = self.secrets.receiving_keys()?;
            self.opener = Opener::new(self.secrets.suite(), self.opener.sequence(), keys);
        }
        let (kind, content) = self.opener.open(record).map_err(alert_for)?;
        let start = content
            .as_ptr()
            .addr()
            .saturating_sub(address)
            .max(HEADER_BYTES);
        let bytes = content.len();
        if kind == ContentType::ApplicationData && bytes > 0 {
            self.idle_records = 0;
            return Ok(Content::Data(start, bytes));
        }
        self.idle_records += 1;
        if self.idle_records > IDLE_RECORDS_MAX {
            return Err(Failed::telling(AlertDescription::UnexpectedMessage));
        }
        match kind {
            ContentType::ApplicationData => Ok(Content::Other),
            ContentType::Alert => self.take_alert(content),
            ContentType::Handshake => {
                // The messages are rare and short. A copy ends the borrow of the keys, which they
                // may change.
                let messages = content.to_vec();
                self.take_messages(&messages, sealed)
            }
            _ => Err(Failed::telling(AlertDescription::UnexpectedMessage)),
        }
    }

    fn take_alert(&mut self, alert: &[u8]) -> Result<Content, Failed> {
        if alert.is_empty() {
            // §5.4: this is "unexpected_message", as for handshake messages.
            return Err(Failed::telling(AlertDescription::UnexpectedMessage));
        }
        let &[level, alert] = alert else {
            return Err(Failed::telling(AlertDescription::DecodeError));
        };
        match AlertDescription::from(alert) {
            AlertDescription::CloseNotify => Ok(Content::End),
            // §6.1: user_canceled "SHOULD be followed by a close_notify".
            AlertDescription::UserCanceled => Ok(Content::Other),
            _ if !self.is_tls13() && level != FATAL && self.warnings < WARNINGS_MAX => {
                self.warnings += 1;
                Ok(Content::Other)
            }
            _ => Err(Failed::default()),
        }
    }

    /// Handles the handshake messages that may follow the handshake: key updates and tickets
    /// (§4.6). Each message must be contained in one record, as all implementations send them.
    fn take_messages(
        &mut self,
        mut messages: &[u8],
        sealed: &mut Sealed,
    ) -> Result<Content, Failed> {
        if !self.is_tls13() {
            // RFC 5746 §4.5: a fatal handshake_failure refuses renegotiation.
            return Err(Failed::telling(AlertDescription::HandshakeFailure));
        }
        if messages.is_empty() {
            // §5.4: "if such a message is received, the receiving implementation MUST terminate the
            // connection with an "unexpected_message" alert."
            return Err(Failed::telling(AlertDescription::UnexpectedMessage));
        }
        while let Some((&[kind, high, middle, low], rest)) = messages.split_first_chunk() {
            let bytes = u32::from_be_bytes([0, high, middle, low]) as usize;
            let Some((message, behind)) = rest.split_at_checked(bytes) else {
                break;
            };
            match (HandshakeType::from(kind), &mut self.secrets) {
                (HandshakeType::KeyUpdate, _) => {
                    // §5.1: "Handshake messages MUST NOT span key changes."
                    if !behind.is_empty() {
                        break;
                    }
                    self.update_keys(message, sealed)?;
                }
                (HandshakeType::NewSessionTicket, Secrets::Client(kernel)) => {
                    let stored = kernel.handle_new_session_ticket(message);
                    stored.map_err(alert_for)?;
                }
                _ => break,
            }
            messages = behind;
        }
        if messages.is_empty() {
            Ok(Content::Other)
        } else {
            Err(Failed::telling(AlertDescription::UnexpectedMessage))
        }
    }

    /// Updates the keys of the peer's records, and ours if the peer requests it (§4.6.3).
    fn update_keys(&mut self, request: &[u8], sealed: &mut Sealed) -> Result<(), Failed> {
        let &[request @ (0 | 1)] = request else {
            return Err(Failed::telling(AlertDescription::IllegalParameter));
        };
        let keys = self.secrets.next_receiving()?;
        self.opener = Opener::new(self.secrets.suite(), 0, keys);
        if request == 1 {
            self.change_keys(sealed)?;
        }
        Ok(())
    }

    /// Returns what encrypts our records, with keys.
    fn sealer(&mut self) -> Result<&mut Sealer, Failed> {
        if !self.sealer.has_keys() {
            let keys = self.secrets.sending_keys()?;
            self.sealer = Sealer::new(self.secrets.suite(), self.sealer.sequence(), keys);
        }
        Ok(&mut self.sealer)
    }

    /// Replaces our keys before they have protected more records than is safe.
    fn spare_keys(&mut self, sealed: &mut Sealed) -> Result<(), Failed> {
        let suite = self.secrets.suite();
        let (common, changes) = match suite {
            SupportedCipherSuite::Tls12(suite) => (&suite.common, false),
            SupportedCipherSuite::Tls13(suite) => (&suite.common, true),
        };
        // One record is reserved for the KeyUpdate or the alert.
        if self.sealer.sequence() + 1 < common.confidentiality_limit {
            return Ok(());
        }
        if changes {
            return self.change_keys(sealed);
        }
        Err(Failed::telling(AlertDescription::CloseNotify))
    }

    pub(super) fn change_keys(&mut self, sealed: &mut Sealed) -> Result<(), Failed> {
        let message = OutboundChunks::Single(&KEY_UPDATE);
        sealed.push(self.sealer()?.seal(ContentType::Handshake, message)?);
        let keys = self.secrets.next_sending()?;
        self.sealer = Sealer::new(self.secrets.suite(), 0, keys);
        Ok(())
    }

    fn version(&self) -> ProtocolVersion {
        match self.is_tls13() {
            true => ProtocolVersion::TLSv1_3,
            false => ProtocolVersion::TLSv1_2,
        }
    }

    fn is_tls13(&self) -> bool {
        matches!(self.secrets.suite(), SupportedCipherSuite::Tls13(_))
    }
}

impl Secrets {
    /// Returns the keys of the peer's records.
    fn receiving_keys(&self) -> Result<KeyAndIv, Failed> {
        match self {
            Self::Client(_) => Err(Failed::default()),
            Self::Server(schedule) => schedule.receiving_keys(None),
        }
    }

    /// Returns the keys of our records.
    fn sending_keys(&self) -> Result<KeyAndIv, Failed> {
        match self {
            Self::Client(_) => Err(Failed::default()),
            Self::Server(schedule) => schedule.sending_keys(None),
        }
    }

    /// Replaces the secret of the peer's records; returns the new keys.
    fn next_receiving(&mut self) -> Result<KeyAndIv, Failed> {
        match self {
            Self::Client(kernel) => {
                let (_, secrets) = kernel.update_rx_secret().map_err(alert_for)?;
                record::parts(secrets)
            }
            Self::Server(schedule) => schedule.next_receiving(),
        }
    }

    /// Replaces the secret of our records; returns the new keys.
    fn next_sending(&mut self) -> Result<KeyAndIv, Failed> {
        match self {
            Self::Client(kernel) => {
                let (_, secrets) = kernel.update_tx_secret().map_err(alert_for)?;
                record::parts(secrets)
            }
            Self::Server(schedule) => schedule.next_sending(),
        }
    }

    pub(super) fn suite(&self) -> SupportedCipherSuite {
        match self {
            Self::Client(kernel) => kernel.negotiated_cipher_suite(),
            Self::Server(schedule) => schedule.suite(),
        }
    }
}

/// Returns the alert that reports an error of the peer.
fn alert_for(error: Error) -> Failed {
    Failed::telling(match error {
        Error::DecryptError => AlertDescription::BadRecordMac,
        Error::PeerSentOversizedRecord => AlertDescription::RecordOverflow,
        Error::InvalidMessage(_) => AlertDescription::DecodeError,
        Error::PeerMisbehaved(_) => AlertDescription::UnexpectedMessage,
        _ => AlertDescription::InternalError,
    })
}
