//! Clients and channels as bytes.

use std::{os::fd::OwnedFd, sync::Arc};

use bytes::Bytes;
use linerate_hub::{ChannelName, Epoch, StreamPosition, hub::ChannelState};
use linerate_proto::portable::{ImportError, Reader, Version, Writer};

use super::Departed;
use crate::node::splice::{Trail, read_name, write_name};
use crate::transport::{
    LeavingClient, MovedClient, MovedConnection, PortableClient, SESSION_BYTES_MAX,
};

/// The maximum size of the state of a connection, in bytes.
const CONNECTION_BYTES_MAX: usize = 8 << 20;

/// The maximum length of an epoch, in bytes.
const EPOCH_BYTES_MAX: usize = 256;

/// A parcel is sent once it has this many bytes.
const PARCEL_BYTES: usize = 256 << 10;

/// The maximum number of sockets that come with a parcel.
const SOCKETS_MAX: usize = 200;

/// The kinds of parcels.
const TRAIL: u8 = 1;
const CHANNELS: u8 = 2;
const CLIENTS: u8 = 3;

/// A part of what moves, with the sockets that belong to it.
#[derive(Debug, Default)]
pub(crate) struct Parcel {
    pub(crate) bytes: Vec<u8>,
    pub(crate) sockets: Vec<Arc<OwnedFd>>,
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

/// Writes what leaves one process for another.
pub(crate) fn write(departed: &mut Departed<LeavingClient>, version: Version) -> Vec<Parcel> {
    let mut parcels = Vec::new();
    for part in std::mem::take(&mut departed.passed).split(PARCEL_BYTES) {
        let mut bytes = begin(version, TRAIL, 0);
        part.export(&mut bytes);
        parcels.push(Parcel {
            bytes: bytes.finish(),
            sockets: Vec::new(),
        });
    }
    for (index, worker) in (0..).zip(&departed.workers) {
        let mut channels = worker.channels.iter().peekable();
        while channels.peek().is_some() {
            let mut bytes = begin(version, CHANNELS, index);
            for (channel, state) in channels.by_ref() {
                bytes.flag(true);
                write_channel(channel, state, &mut bytes);
                if bytes.written_bytes() >= PARCEL_BYTES {
                    break;
                }
            }
            bytes.flag(false);
            parcels.push(Parcel {
                bytes: bytes.finish(),
                sockets: Vec::new(),
            });
        }
        let mut clients = worker.clients.iter().peekable();
        while clients.peek().is_some() {
            let mut bytes = begin(version, CLIENTS, index);
            let mut sockets = Vec::new();
            for client in clients.by_ref() {
                bytes.flag(true);
                write_client(client, &mut bytes);
                sockets.push(client.connection.socket.clone());
                if bytes.written_bytes() >= PARCEL_BYTES || sockets.len() >= SOCKETS_MAX {
                    break;
                }
            }
            bytes.flag(false);
            parcels.push(Parcel {
                bytes: bytes.finish(),
                sockets,
            });
        }
    }
    parcels
}

fn begin(version: Version, kind: u8, worker: u16) -> Writer {
    let mut bytes = Writer::new(version);
    bytes.u8(kind);
    bytes.u16(worker);
    bytes
}

impl Departed<MovedClient> {
    /// Adds a parcel that came from the other process.
    ///
    /// # Errors
    /// It is invalid, or does not fit to the workers of this process.
    pub(crate) fn add(&mut self, parcel: &[u8], sockets: Vec<OwnedFd>) -> Result<(), ParcelError> {
        let (mut bytes, _) = Reader::new(parcel)?;
        let kind = bytes.u8("kind of parcel")?;
        let index = bytes.u16("worker")?;
        let invalid = |field, value: u16| ImportError::Invalid {
            field,
            value: value.into(),
        };
        let found = sockets.len();
        let mut sockets = sockets.into_iter();
        let mut clients = 0;
        match kind {
            TRAIL => self.passed.join(Trail::import(&mut bytes)?),
            CHANNELS | CLIENTS => {
                let worker = self.workers.get_mut(usize::from(index));
                let worker = worker.ok_or_else(|| invalid("worker", index))?;
                while bytes.flag("another item")? {
                    if kind == CHANNELS {
                        worker.channels.push(read_channel(&mut bytes)?);
                        continue;
                    }
                    clients += 1;
                    let Some(socket) = sockets.next() else {
                        break;
                    };
                    worker.clients.push(read_client(&mut bytes, socket)?);
                }
            }
            kind => return Err(invalid("kind of parcel", kind.into()).into()),
        }
        if clients != found {
            let sockets = found;
            return Err(ParcelError::Sockets { clients, sockets });
        }
        bytes.finish()?;
        Ok(())
    }
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

/// Appends a client, without its socket.
fn write_client(leaving: &LeavingClient, parcel: &mut Writer) {
    parcel.bytes(&leaving.session);
    parcel.bytes(&leaving.connection.state);
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
