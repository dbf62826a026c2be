//! The TLS handshake, performed by rustls.

use std::{io, sync::Arc};

use linerate_tls::HelloReader;
use rustls::{
    ClientConfig, CommonState, Error, ServerConfig,
    client::UnbufferedClientConnection,
    pki_types::ServerName,
    server::UnbufferedServerConnection,
    unbuffered::{ConnectionState, EncodeError, UnbufferedStatus},
};

use super::{
    capture::Captured,
    info::Details,
    outcome::{Failed, Sealed},
    schedule::Schedule,
    session::{Secrets, Session},
};

/// A handshake in progress.
pub(super) struct Handshake {
    end: End,
    /// How many bytes at the start of the unprocessed input rustls has seen.
    seen_bytes: usize,
    /// Inspects the client's bytes until its ClientHello is complete.
    hello: Option<HelloReader>,
    /// The secrets of a server.
    captured: Captured,
}

enum End {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

/// The progress of a handshake.
pub(super) enum Progress {
    /// More input is needed.
    Goes,
    /// The handshake is complete.
    Done,
    /// The peer has closed the connection.
    Ended,
}

/// One step of rustls.
enum Step {
    /// Something was encoded or processed, and there may be more.
    Next,
    /// rustls waits for input.
    Waits,
    Ended,
}

impl Handshake {
    pub(super) fn client(
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, Failed> {
        let connection = UnbufferedClientConnection::new(config, name).map_err(failed)?;
        Ok(Self {
            end: End::Client(connection),
            seen_bytes: 0,
            hello: None,
            captured: Captured::new(),
        })
    }

    pub(super) fn server(config: Arc<ServerConfig>) -> Result<Self, Failed> {
        let connection = UnbufferedServerConnection::new(config).map_err(failed)?;
        Ok(Self {
            end: End::Server(connection),
            seen_bytes: 0,
            hello: Some(HelloReader::new()),
            captured: Captured::new(),
        })
    }

    /// Returns how many bytes at the start of the unprocessed input rustls has seen.
    pub(super) const fn seen_bytes(&self) -> usize {
        self.seen_bytes
    }

    /// Inspects new input before rustls does.
    ///
    /// # Errors
    /// If it is not a ClientHello that can be answered; the alert has been added to `sealed`.
    pub(super) fn look_at(&mut self, arrived: &[u8], sealed: &mut Sealed) -> Result<(), Failed> {
        let Some(hello) = &mut self.hello else {
            return Ok(());
        };
        match hello.handle_input(arrived) {
            Ok(false) => Ok(()),
            Ok(true) => {
                self.hello = None;
                Ok(())
            }
            Err(error) => {
                sealed.extend(error.record().map(Vec::from));
                Err(Failed {
                    alert: None,
                    cause: Some(io::Error::new(io::ErrorKind::InvalidData, error)),
                })
            }
        }
    }

    /// Processes `input`, which holds the unprocessed bytes and one more record, so that rustls
    /// does not see anything after the handshake. Removes the bytes that were processed.
    ///
    /// # Errors
    /// If the peer violates the TLS protocol; the alert has been added to `sealed`.
    pub(super) fn advance(
        &mut self,
        input: &mut Vec<u8>,
        sealed: &mut Sealed,
    ) -> Result<Progress, Failed> {
        loop {
            let (discard, step) = self.step(input, sealed);
            if step.is_err() {
                // Encode the alert. rustls must not see the input again.
                while self.state().wants_write() {
                    _ = self.step(&mut [], sealed);
                }
            }
            input.drain(..discard.min(input.len()));
            match step? {
                Step::Next => {}
                Step::Ended => return Ok(Progress::Ended),
                Step::Waits => {
                    self.seen_bytes = input.len();
                    let goes = self.state().is_handshaking();
                    return Ok(if goes { Progress::Goes } else { Progress::Done });
                }
            }
        }
    }

    /// Returns the session that was negotiated.
    ///
    /// # Errors
    /// If the kind of cipher suite is not supported here.
    pub(super) fn into_session(self) -> Result<Session, Failed> {
        let state = self.state();
        let details = Details {
            alpn: state.alpn_protocol().map(Vec::from),
            certificates: state.peer_certificates().map(Vec::from).unwrap_or_default(),
        };
        match self.end {
            End::Client(connection) => {
                let (secrets, kernel) = connection
                    .dangerous_into_kernel_connection()
                    .map_err(failed)?;
                Session::new(secrets, Secrets::Client(Box::new(kernel)), details)
            }
            End::Server(connection) => {
                // The secrets inside the kernel connection could not be exported.
                let (secrets, kernel) = connection
                    .dangerous_into_kernel_connection()
                    .map_err(failed)?;
                let suite = kernel.negotiated_cipher_suite();
                let schedule = Schedule::new(suite, &secrets, self.captured)?;
                Session::new(secrets, Secrets::Server(schedule), details)
            }
        }
    }

    fn step(&mut self, input: &mut [u8], sealed: &mut Sealed) -> (usize, Result<Step, Failed>) {
        match &mut self.end {
            End::Client(connection) => step(connection.process_tls_records(input), sealed),
            End::Server(connection) => {
                let step = step(connection.process_tls_records(input), sealed);
                self.captured.update();
                step
            }
        }
    }

    fn state(&self) -> &CommonState {
        match &self.end {
            End::Client(connection) => connection,
            End::Server(connection) => connection,
        }
    }
}

/// Does what rustls asks for.
fn step<D>(
    UnbufferedStatus { discard, state }: UnbufferedStatus<'_, '_, D>,
    sealed: &mut Sealed,
) -> (usize, Result<Step, Failed>) {
    let step = match state {
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            let mut record = Vec::new();
            if let Err(EncodeError::InsufficientSize(size)) = data.encode(&mut record) {
                record.resize(size.required_size, 0);
                // This cannot fail: the size is the one that rustls has asked for.
                _ = data.encode(&mut record);
            }
            sealed.push(record);
            Ok(Step::Next)
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            // The record is in `sealed`, which we write.
            data.done();
            Ok(Step::Next)
        }
        Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => Ok(Step::Waits),
        Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Ok(Step::Ended),
        // Early data is turned off, and rustls sees nothing after the record that ends the
        // handshake.
        Ok(_) => Err(Failed::default()),
        Err(error) => Err(failed(error)),
    };
    (discard, step)
}

/// Returns the failure of a handshake, which rustls reports to the peer.
fn failed(error: Error) -> Failed {
    Failed {
        alert: None,
        cause: Some(io::Error::new(io::ErrorKind::InvalidData, error)),
    }
}
