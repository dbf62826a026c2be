//! The unidirectional streams of a connection (RFC 9114 §6.2), and its end.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
};

use linerate_http::Resets;
use linerate_proto::Role;
use quinn::{Connection, ReadError, RecvStream, SendStream};
use tokio::{sync::oneshot, time::Instant};

use crate::{
    control::{ControlEvent, ControlReader, DecoderChecker, check_encoder},
    fault::{Code, Failure, Fault},
    frame::{GOAWAY, SETTINGS, put},
    settings::Settings,
    varint,
};

const CONTROL: u64 = 0x0;
const PUSH: u64 = 0x1;
const QPACK_ENCODER: u64 = 0x2;
const QPACK_DECODER: u64 = 0x3;

/// State that the peer's unidirectional streams share.
struct Peer {
    connection: Connection,
    /// Our role.
    role: Role,
    /// One bit for each type of stream that may occur only once.
    seen: AtomicU8,
    settings: Mutex<Option<oneshot::Sender<Settings>>>,
    /// The streams of unknown types that we have ignored.
    ignored: Mutex<Resets>,
}

/// Reads the peer's unidirectional streams for as long as the connection lasts, and closes it if
/// the peer violates the protocol. Streams of unknown types count in `ignored`. Sends the peer's
/// settings to `settings`.
pub(crate) async fn listen(
    connection: Connection,
    role: Role,
    ignored: Resets,
    settings: oneshot::Sender<Settings>,
) {
    let peer = Arc::new(Peer {
        connection: connection.clone(),
        role,
        seen: AtomicU8::new(0),
        settings: Mutex::new(Some(settings)),
        ignored: Mutex::new(ignored),
    });
    while let Ok(stream) = connection.accept_uni().await {
        let peer = peer.clone();
        // QUIC limits the number of these streams.
        tokio::spawn(async move {
            if let Err(Failure::Fault(fault)) = peer.read(stream).await {
                tracing::debug!(error = %fault, "HTTP/3 connection failed");
                fault.close(&peer.connection);
            }
        });
    }
}

impl Peer {
    async fn read(&self, mut stream: RecvStream) -> Result<(), Failure> {
        let Some(kind) = read_kind(&mut stream).await? else {
            return Ok(());
        };
        match kind {
            CONTROL => {
                self.note_only(kind)?;
                let mut reader = ControlReader::new(self.role);
                read_critical(stream, |input| self.handle_control(&mut reader, input)).await
            }
            QPACK_ENCODER => {
                self.note_only(kind)?;
                read_critical(stream, check_encoder).await
            }
            QPACK_DECODER => {
                self.note_only(kind)?;
                let mut checker = DecoderChecker::default();
                read_critical(stream, |input| checker.handle_input(input)).await
            }
            // §6.2.2: only servers may push, and only as much as the client allows. We allow
            // nothing.
            PUSH if self.role == Role::Server => Err(creation_error().into()),
            PUSH => Err(Fault::connection(Code::ID_ERROR, "push not allowed").into()),
            _ => self.ignore(stream),
        }
    }

    fn handle_control(&self, reader: &mut ControlReader, mut input: &[u8]) -> Result<(), Fault> {
        while let Some(event) = reader.handle_input(&mut input)? {
            if let ControlEvent::Settings(settings) = event
                && let Some(sender) = lock(&self.settings).take()
            {
                // The receiver may be gone.
                _ = sender.send(settings);
            }
        }
        Ok(())
    }

    /// Records a stream of a type that may occur only once.
    fn note_only(&self, kind: u64) -> Result<(), Fault> {
        let bit = 1 << kind;
        match self.seen.fetch_or(bit, Ordering::Relaxed) & bit {
            0 => Ok(()),
            _ => Err(creation_error()),
        }
    }

    /// Ignores a stream of an unknown type. Only a limited number of them is allowed (§6.2.3).
    fn ignore(&self, mut stream: RecvStream) -> Result<(), Failure> {
        // This fails if the stream has already ended.
        _ = stream.stop(Code::STREAM_CREATION_ERROR.into());
        match lock(&self.ignored).count(Instant::now()) {
            true => Err(Fault::connection(Code::EXCESSIVE_LOAD, "too many streams").into()),
            false => Ok(()),
        }
    }
}

const fn creation_error() -> Fault {
    Fault::connection(Code::STREAM_CREATION_ERROR, "stream not allowed")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the type of a stream, or returns `None` if it ends before that, which is allowed (§6.2).
async fn read_kind(stream: &mut RecvStream) -> Result<Option<u64>, Failure> {
    let mut bytes = [0; 8];
    let mut filled = 0;
    loop {
        let wanted = match filled {
            0 => 1,
            _ => varint::bytes(bytes[0]),
        };
        match stream.read(&mut bytes[filled..wanted]).await? {
            Some(read) => filled += read,
            None => return Ok(None),
        }
        if let Some((kind, _)) = varint::decode(&bytes[..filled]) {
            return Ok(Some(kind));
        }
    }
}

/// Reads a stream that must not end before the connection does.
async fn read_critical(
    mut stream: RecvStream,
    mut take: impl FnMut(&[u8]) -> Result<(), Fault>,
) -> Result<(), Failure> {
    loop {
        let mut buffer = [0; 1 << 10];
        match stream.read(&mut buffer).await {
            Ok(Some(bytes)) => take(&buffer[..bytes])?,
            Ok(None) | Err(ReadError::Reset(_)) => {
                let what = "critical stream closed";
                return Err(Fault::connection(Code::CLOSED_CRITICAL_STREAM, what).into());
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Opens our control stream and sends our settings. The caller must keep the stream open.
///
/// # Errors
/// Returns an error if the connection is lost.
pub(crate) async fn open_control(
    connection: &Connection,
    settings: Settings,
) -> io::Result<SendStream> {
    let mut stream = connection.open_uni().await?;
    let mut payload = Vec::new();
    settings.encode(&mut payload);
    let mut bytes = Vec::new();
    varint::encode(&mut bytes, CONTROL);
    put(&mut bytes, SETTINGS, &payload);
    stream.write_all(&bytes).await?;
    Ok(stream)
}

/// Sends a GOAWAY frame on our control stream: requests on this stream and all later ones are not
/// processed.
///
/// # Errors
/// Returns an error if the connection is lost.
pub(crate) async fn send_goaway(control: &mut SendStream, stream: u64) -> io::Result<()> {
    let mut payload = Vec::new();
    varint::encode(&mut payload, stream);
    let mut bytes = Vec::new();
    put(&mut bytes, GOAWAY, &payload);
    Ok(control.write_all(&bytes).await?)
}

/// Closes a connection when it is dropped.
#[derive(Debug)]
pub(crate) struct CloseOnDrop(pub(crate) Connection);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        // This does nothing if the connection was already closed, perhaps with another code.
        self.0.close(Code::NO_ERROR.into(), b"");
    }
}
