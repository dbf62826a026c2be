//! Clients and channels as bytes.

use std::{os::fd::OwnedFd, sync::Arc};

use bytes::Bytes;
use linerate_hub::{ChannelName, Epoch, StreamPosition, hub::ChannelState};
use linerate_proto::portable::{ImportError, Reader, Version, Writer};

use crate::{
    node::splice::{Trail, read_name, write_name},
    transport::{MovedClient, MovedConnection, PortableClient, SESSION_BYTES_MAX},
};

/// The maximum size of the state of a connection, in bytes.
const CONNECTION_BYTES_MAX: usize = 8 << 20;

/// The maximum length of an epoch, in bytes.
const EPOCH_BYTES_MAX: usize = 256;

/// A parcel is sent once it has about this many bytes.
const PARCEL_BYTES: usize = 256 << 10;

/// The maximum number of sockets that come with a parcel.
const SOCKETS_MAX: usize = 200;

/// The kinds of parcels.
const TRAIL: u8 = 1;
const CHANNELS: u8 = 2;
const CLIENTS: u8 = 3;

/// A part of what moves, with the sockets that belong to it.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) bytes: Vec<u8>,
    pub(crate) sockets: Vec<Arc<OwnedFd>>,
}

/// Packs the channels, and then the clients, of a worker.
#[derive(Debug)]
pub(super) struct Packer {
    version: Version,
    worker: u16,
    clients: usize,
    full: Vec<Parcel>,
    open: Option<Open>,
}

/// A parcel that is being packed.
#[derive(Debug)]
struct Open {
    kind: u8,
    bytes: Writer,
    sockets: Vec<Arc<OwnedFd>>,
}

/// What was in a parcel.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(super) passed: Option<Trail>,
    pub(super) channels: Vec<(ChannelName, ChannelState)>,
    pub(super) clients: Vec<MovedClient>,
}

/// The error for bytes that are not a client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ParcelError {
    /// A field of the parcel is invalid.
    #[error(transparent)]
    Field(#[from] ImportError),
    /// The session is invalid.
    #[error("invalid session: {0}")]
    Session(#[from] serde_json::Error),
    /// There are not as many sockets as clients.
    #[error("{clients} clients came with {sockets} sockets")]
    Sockets { clients: usize, sockets: usize },
}

impl Packer {
    /// Creates a packer for the worker with this index.
    pub(super) const fn new(version: Version, worker: u16) -> Self {
        Self {
            version,
            worker,
            clients: 0,
            full: Vec::new(),
            open: None,
        }
    }

    /// Packs what is known of a channel.
    pub(super) fn channel(&mut self, channel: &ChannelName, state: &ChannelState) {
        let open = self.open(CHANNELS);
        open.bytes.flag(true);
        write_channel(channel, state, &mut open.bytes);
        self.close_if_full();
    }

    /// Packs a client, given its session as JSON.
    pub(super) fn client(&mut self, session: &[u8], connection: &MovedConnection) {
        self.clients += 1;
        let open = self.open(CLIENTS);
        open.bytes.flag(true);
        open.bytes.bytes(session);
        open.bytes.bytes(&connection.state);
        open.sockets.push(connection.socket.clone());
        self.close_if_full();
    }

    /// Returns the number of clients, and everything in parcels.
    pub(super) fn finish(mut self) -> (usize, Vec<Parcel>) {
        self.close();
        (self.clients, self.full)
    }

    fn open(&mut self, kind: u8) -> &mut Open {
        if self.open.as_ref().is_some_and(|open| open.kind != kind) {
            self.close();
        }
        let (version, worker) = (self.version, self.worker);
        self.open.get_or_insert_with(|| Open {
            kind,
            bytes: begin(version, kind, worker, PARCEL_BYTES),
            sockets: Vec::new(),
        })
    }

    fn close_if_full(&mut self) {
        let is_full = |open: &Open| {
            open.bytes.written_bytes() >= PARCEL_BYTES || open.sockets.len() >= SOCKETS_MAX
        };
        if self.open.as_ref().is_some_and(is_full) {
            self.close();
        }
    }

    fn close(&mut self) {
        if let Some(mut open) = self.open.take() {
            open.bytes.flag(false);
            self.full.push(Parcel {
                bytes: open.bytes.finish(),
                sockets: open.sockets,
            });
        }
    }
}

/// Packs the publications that were passed on.
pub(super) fn pack_trail(passed: Trail, version: Version) -> Vec<Parcel> {
    let parts = passed.split(PARCEL_BYTES).into_iter().map(|part| {
        let mut bytes = begin(version, TRAIL, 0, 0);
        part.export(&mut bytes);
        Parcel {
            bytes: bytes.finish(),
            sockets: Vec::new(),
        }
    });
    parts.collect()
}

fn begin(version: Version, kind: u8, worker: u16, capacity: usize) -> Writer {
    let mut bytes = Writer::with_capacity(version, capacity);
    bytes.u8(kind);
    bytes.u16(worker);
    bytes
}

/// Returns the index of the worker that a parcel is for.
///
/// # Errors
/// The parcel is invalid.
pub(super) fn worker_of(parcel: &[u8]) -> Result<u16, ImportError> {
    let (mut bytes, _) = Reader::new(parcel)?;
    bytes.u8("kind of parcel")?;
    bytes.u16("worker")
}

/// Unpacks a parcel that came from another process.
///
/// # Errors
/// The parcel is invalid.
pub(crate) fn unpack(parcel: &[u8], sockets: Vec<OwnedFd>) -> Result<Contents, ParcelError> {
    let (mut bytes, _) = Reader::new(parcel)?;
    let kind = bytes.u8("kind of parcel")?;
    bytes.u16("worker")?;
    let found = sockets.len();
    let mut contents = Contents {
        clients: Vec::with_capacity(found),
        ..Contents::default()
    };
    let mut sockets = sockets.into_iter();
    let mut clients = 0;
    match kind {
        TRAIL => contents.passed = Some(Trail::import(&mut bytes)?),
        CHANNELS => {
            while bytes.flag("another channel")? {
                contents.channels.push(read_channel(&mut bytes)?);
            }
        }
        CLIENTS => {
            while bytes.flag("another client")? {
                clients += 1;
                let Some(socket) = sockets.next() else {
                    break;
                };
                contents.clients.push(read_client(&mut bytes, socket)?);
            }
        }
        kind => {
            let (field, value) = ("kind of parcel", kind.into());
            return Err(ImportError::Invalid { field, value }.into());
        }
    }
    if clients != found {
        let sockets = found;
        return Err(ParcelError::Sockets { clients, sockets });
    }
    bytes.finish()?;
    Ok(contents)
}

/// Writes the names of channels, in as many parts as it takes.
pub(crate) fn write_names(names: &[ChannelName]) -> Vec<Vec<u8>> {
    let mut names = names.iter().peekable();
    let mut parts = Vec::new();
    loop {
        let mut bytes = Writer::unversioned();
        for name in names.by_ref() {
            bytes.flag(true);
            write_name(name, &mut bytes);
            if bytes.written_bytes() >= PARCEL_BYTES {
                break;
            }
        }
        bytes.flag(false);
        parts.push(bytes.finish());
        if names.peek().is_none() {
            return parts;
        }
    }
}

/// Reads names of channels.
///
/// # Errors
/// One of them is invalid.
pub(crate) fn read_names(bytes: &[u8]) -> Result<Vec<ChannelName>, ImportError> {
    let mut bytes = Reader::unversioned(bytes);
    let mut names = Vec::new();
    while bytes.flag("another channel")? {
        names.push(read_name(&mut bytes)?);
    }
    bytes.finish()?;
    Ok(names)
}

/// Reads a client, whose socket came with it.
///
/// # Errors
/// The bytes are not a client.
fn read_client(parcel: &mut Reader<'_>, socket: OwnedFd) -> Result<MovedClient, ParcelError> {
    let client = parcel.bytes("session", SESSION_BYTES_MAX)?;
    let client: PortableClient = serde_json::from_slice(client)?;
    let state = parcel.bytes("state of the connection", CONNECTION_BYTES_MAX)?;
    Ok(MovedClient {
        client,
        connection: MovedConnection {
            socket: Arc::new(socket),
            state: Bytes::copy_from_slice(state),
        },
    })
}

/// Appends what is known of a channel.
fn write_channel(channel: &ChannelName, state: &ChannelState, parcel: &mut Writer) {
    write_name(channel, parcel);
    parcel.u32(state.id);
    parcel.flag(state.position.is_some());
    if let Some(position) = &state.position {
        parcel.bytes(position.epoch.as_str().as_bytes());
        parcel.u64(position.offset);
    }
}

/// Reads what is known of a channel.
///
/// # Errors
/// The bytes are not a channel.
fn read_channel(parcel: &mut Reader<'_>) -> Result<(ChannelName, ChannelState), ImportError> {
    let channel = read_name(parcel)?;
    let id = parcel.u32("number of the channel")?;
    let position = match parcel.flag("position")? {
        true => {
            let epoch = parcel.bytes("epoch", EPOCH_BYTES_MAX)?;
            let text = std::str::from_utf8(epoch).map_err(|error| ImportError::Invalid {
                field: "epoch",
                value: error.valid_up_to() as u64,
            })?;
            Some(StreamPosition {
                epoch: Epoch::new(text),
                offset: parcel.u64("offset")?,
            })
        }
        false => None,
    };
    Ok((channel, ChannelState { id, position }))
}
