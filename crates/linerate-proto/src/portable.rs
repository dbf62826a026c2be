//! The state of a connection as bytes, with which another process continues it.
//!
//! [`Engine::export`](crate::Engine::export) writes the state at any byte of the input and output,
//! and [`Importer::import`](crate::engine::Importer::import) continues from there: the input that
//! follows causes the same events, and the peer can read the output that follows.
//!
//! # What is exported
//!
//! The format has no names and no padding. All numbers are big-endian, a flag is a byte that is 0
//! or 1, and an optional part begins with a flag. The parts are, in this order:
//!
//! 1. The [`Version`], two bytes.
//! 2. The role.
//! 3. The closing handshake: the state of each direction, the peer's code, and the control frame
//!    that is due, with its payload.
//! 4. Keepalive. Times are exported as ages in nanoseconds, because each process has its own zero.
//! 5. The fragmented message that is being sent, if any.
//! 6. Compression, if it was negotiated: the agreement, and the windows of both directions.
//! 7. What is arriving: the header or frame and its masking key, the message, and the state of the
//!    UTF-8 validation.
//! 8. The inflater in the middle of a compressed message: its window, the header of the deflate
//!    block that is arriving, and the bits that do not yet make up a symbol. zlib's own state is
//!    not exported. The new process writes a short stream that brings a new inflater to the same
//!    place.
//!
//! Settings such as limits and the level of compression are not exported, because the new process
//! has its own. An arriving message that exceeds the new limits fails the connection.
//!
//! The windows are as large as was agreed. A peer that refers back further inside a message, which
//! an engine otherwise tolerates, fails with
//! [`ProtocolError::InvalidCompression`](crate::ProtocolError) if the connection moves meanwhile.
//!
//! An exported state contains what the peer sent and received, masking keys included: transmit it
//! only through channels that other users cannot read, and do not log it.
//!
//! # What stays with the caller
//!
//! - Input that was not [consumed](crate::engine::Events::consumed). Pass it to the new engine as
//!   it is in the buffer, because a part of it may be unmasked already.
//! - Output that was appended to the caller's buffer and not written.
//!
//! # Bounds
//!
//! A state takes less than 400 bytes without compression. With compression, each direction adds up
//! to 32 KiB, and an arriving message up to 3 KiB. An import allocates in proportion to the bytes
//! that it was given, plus the memory that any engine of this kind has. It checks every field, and
//! refuses a state that no engine can be in.

mod error;
mod reader;
mod version;
mod writer;

pub use error::{ExportError, ImportError};
pub use reader::Reader;
pub(crate) use reader::{check, invalid};
pub use version::{Version, VersionError};
pub use writer::Writer;
