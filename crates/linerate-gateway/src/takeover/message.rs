//! Messages as bytes.

use std::net::SocketAddr;

use linerate_proto::portable::{ImportError, Reader, Writer};
use thiserror::Error;

use super::frame::PAYLOAD_BYTES_MAX;
use crate::server::EndpointKind;

/// Maximum length of a text in a message, in bytes. Paths have at most 4,096.
const TEXT_BYTES_MAX: usize = 4_096;
/// Maximum length of a mark, in bytes.
const MARK_BYTES_MAX: usize = 256;
/// Maximum number of addresses that a process offers.
pub(super) const OFFERS_MAX: usize = 64;

/// A message of the protocol.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Message {
    /// The new process asks to take over. It is the first message, and every version of the
    /// protocol can read it: later versions may only append fields.
    Hello(Hello),
    /// The old process agrees, and describes what it has.
    Welcome(Welcome),
    /// The new process wants the listeners with these indices in the offers.
    Ready { wanted: Vec<u16> },
    /// Some of the sockets of an offer are in the descriptors.
    Listeners { offer: u16 },
    /// The new process could accept connections now.
    Prepared,
    /// The old process never accepts connections again.
    Commit,
    /// The new process accepts connections.
    Serving,
    /// The sender ends the takeover. Every version of the protocol can read it.
    Refuse { reason: String },
    /// The new process asks for the clients, tells its number of workers, and says what to look for
    /// among the messages from the broker.
    Relocate { workers: u16, mark: Vec<u8> },
    /// The clients of the old process stay there.
    Stay { reason: String },
    /// The new process must subscribe to these channels, in which the clients are.
    Channels {
        clients: u32,
        is_last: bool,
        names: Vec<u8>,
    },
    /// The new process is subscribed to all channels that were named.
    Subscribed,
    /// Clients, with their sockets in the descriptors, or something else that moves with them.
    Parcel(Vec<u8>),
    /// All parcels were sent.
    Moved,
    /// The new process has received all parcels, and can continue what is in them.
    Received,
}

/// The process that asks to take over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Hello {
    /// The oldest and newest version of the protocol that it has.
    pub(super) protocol: (u16, u16),
    /// The oldest and newest version of exported states that it has.
    pub(super) state: (u16, u16),
    pub(super) process: Process,
}

/// The process that is running, and what it offers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Welcome {
    /// The version of the protocol that both use from now on.
    pub(super) protocol: u16,
    /// The version of exported states that both have; 0 if there is none.
    pub(super) state: u16,
    pub(super) process: Process,
    pub(super) offers: Vec<Offer>,
}

/// What a process says of itself, for the log. What counts is what the kernel says of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) executable: String,
    pub(super) version: String,
}

/// An address on which the old process listens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Offer {
    /// The purpose; `None` if this version does not know it.
    pub(super) kind: Option<EndpointKind>,
    /// The configured address, whose port may be 0.
    pub(super) configured: SocketAddr,
    /// The address, with the actual port.
    pub(super) address: SocketAddr,
    /// The number of sockets.
    pub(super) sockets: u16,
}

/// The bytes are not a message.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub(crate) enum MessageError {
    /// A field is invalid.
    #[error("invalid message `{name}`: {source}")]
    Field {
        /// The name of the message.
        name: &'static str,
        /// The cause.
        source: ImportError,
    },
    /// No message has this kind.
    #[error("unknown message of kind {kind}")]
    Kind {
        /// The kind.
        kind: u8,
    },
}

/// The names of messages; the index is the kind minus one.
const NAMES: [&str; 15] = [
    "hello",
    "welcome",
    "ready",
    "listeners",
    "prepared",
    "commit",
    "serving",
    "refuse",
    "relocate",
    "stay",
    "channels",
    "subscribed",
    "parcel",
    "moved",
    "received",
];

impl Message {
    /// Returns the number of the message's kind, which never changes.
    pub(super) const fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => 1,
            Self::Welcome(_) => 2,
            Self::Ready { .. } => 3,
            Self::Listeners { .. } => 4,
            Self::Prepared => 5,
            Self::Commit => 6,
            Self::Serving => 7,
            Self::Refuse { .. } => 8,
            Self::Relocate { .. } => 9,
            Self::Stay { .. } => 10,
            Self::Channels { .. } => 11,
            Self::Subscribed => 12,
            Self::Parcel(_) => 13,
            Self::Moved => 14,
            Self::Received => 15,
        }
    }

    /// Returns the name of the message.
    pub(super) fn name(&self) -> &'static str {
        NAMES[usize::from(self.kind() - 1)]
    }

    /// Returns whether every version of the protocol can read the message.
    pub(super) const fn is_in_every_version(&self) -> bool {
        matches!(self, Self::Hello(_) | Self::Refuse { .. })
    }

    /// Writes the payload.
    pub(super) fn to_payload(&self) -> Vec<u8> {
        let mut writer = Writer::unversioned();
        match self {
            Self::Hello(hello) => {
                for number in [hello.protocol, hello.state] {
                    writer.u16(number.0);
                    writer.u16(number.1);
                }
                hello.process.write(&mut writer);
            }
            Self::Welcome(welcome) => {
                writer.u16(welcome.protocol);
                writer.u16(welcome.state);
                welcome.process.write(&mut writer);
                write_list(&mut writer, &welcome.offers, Offer::write);
            }
            Self::Ready { wanted } => {
                write_list(&mut writer, wanted, |index, writer| writer.u16(*index));
            }
            Self::Listeners { offer } => writer.u16(*offer),
            Self::Prepared
            | Self::Commit
            | Self::Serving
            | Self::Subscribed
            | Self::Moved
            | Self::Received => {}
            Self::Refuse { reason } | Self::Stay { reason } => write_text(&mut writer, reason),
            Self::Relocate { workers, mark } => {
                writer.u16(*workers);
                writer.bytes(mark);
            }
            Self::Channels {
                clients,
                is_last,
                names,
            } => {
                writer.u32(*clients);
                writer.flag(*is_last);
                writer.bytes(names);
            }
            Self::Parcel(parcel) => writer.bytes(parcel),
        }
        writer.finish()
    }

    /// Reads a payload.
    pub(super) fn from_payload(kind: u8, payload: &[u8]) -> Result<Self, MessageError> {
        let names = NAMES.get(usize::from(kind).wrapping_sub(1));
        let name = names.copied().ok_or(MessageError::Kind { kind })?;
        let mut reader = Reader::unversioned(payload);
        let read = Self::read(kind, &mut reader).and_then(|message| {
            if !message.is_in_every_version() {
                reader.finish()?;
            }
            Ok(message)
        });
        read.map_err(|source| MessageError::Field { name, source })
    }

    fn read(kind: u8, reader: &mut Reader<'_>) -> Result<Self, ImportError> {
        Ok(match kind {
            1 => Self::Hello(Hello {
                protocol: (
                    reader.u16("oldest protocol version")?,
                    reader.u16("newest protocol version")?,
                ),
                state: (
                    reader.u16("oldest state version")?,
                    reader.u16("newest state version")?,
                ),
                process: Process::read(reader)?,
            }),
            2 => Self::Welcome(Welcome {
                protocol: reader.u16("protocol version")?,
                state: reader.u16("state version")?,
                process: Process::read(reader)?,
                offers: read_list(reader, "offers", Offer::read)?,
            }),
            3 => Self::Ready {
                wanted: read_list(reader, "wanted offers", |reader| reader.u16("wanted offer"))?,
            },
            4 => Self::Listeners {
                offer: reader.u16("offer")?,
            },
            5 => Self::Prepared,
            6 => Self::Commit,
            7 => Self::Serving,
            8 => Self::Refuse {
                reason: read_text(reader, "reason")?,
            },
            9 => Self::Relocate {
                workers: reader.u16("number of workers")?,
                mark: reader.bytes("mark", MARK_BYTES_MAX)?.to_vec(),
            },
            10 => Self::Stay {
                reason: read_text(reader, "reason")?,
            },
            11 => Self::Channels {
                clients: reader.u32("number of clients")?,
                is_last: reader.flag("last channels")?,
                names: reader.bytes("channels", PAYLOAD_BYTES_MAX)?.to_vec(),
            },
            12 => Self::Subscribed,
            13 => Self::Parcel(reader.bytes("parcel", PAYLOAD_BYTES_MAX)?.to_vec()),
            14 => Self::Moved,
            _ => Self::Received,
        })
    }
}

impl Process {
    fn write(&self, writer: &mut Writer) {
        writer.u32(self.pid);
        write_text(writer, &self.executable);
        write_text(writer, &self.version);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, ImportError> {
        Ok(Self {
            pid: reader.u32("process")?,
            executable: read_text(reader, "executable")?,
            version: read_text(reader, "program version")?,
        })
    }
}

impl Offer {
    fn write(&self, writer: &mut Writer) {
        writer.u8(match self.kind {
            None => 0,
            Some(EndpointKind::Clients) => 1,
            Some(EndpointKind::Operations) => 2,
        });
        write_text(writer, &self.configured.to_string());
        write_text(writer, &self.address.to_string());
        writer.u16(self.sockets);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, ImportError> {
        Ok(Self {
            kind: match reader.u8("kind of listener")? {
                1 => Some(EndpointKind::Clients),
                2 => Some(EndpointKind::Operations),
                _ => None,
            },
            configured: read_address(reader, "configured address")?,
            address: read_address(reader, "address")?,
            sockets: reader.u16("number of sockets")?,
        })
    }
}

fn write_list<T>(writer: &mut Writer, list: &[T], mut write: impl FnMut(&T, &mut Writer)) {
    writer.u8(u8::try_from(list.len()).expect("a list has at most OFFERS_MAX items"));
    list.iter().for_each(|item| write(item, writer));
}

fn read_list<'a, T>(
    reader: &mut Reader<'a>,
    field: &'static str,
    mut read: impl FnMut(&mut Reader<'a>) -> Result<T, ImportError>,
) -> Result<Vec<T>, ImportError> {
    let count = usize::from(reader.u8(field)?);
    if count > OFFERS_MAX {
        let value = count as u64;
        return Err(ImportError::Invalid { field, value });
    }
    (0..count).map(|_| read(reader)).collect()
}

/// Writes a text, cut off where it is too long.
fn write_text(writer: &mut Writer, text: &str) {
    let end = text.floor_char_boundary(TEXT_BYTES_MAX.min(text.len()));
    writer.bytes(&text.as_bytes()[..end]);
}

fn read_text(reader: &mut Reader<'_>, field: &'static str) -> Result<String, ImportError> {
    let bytes = reader.bytes(field, TEXT_BYTES_MAX)?;
    let text = std::str::from_utf8(bytes);
    let text = text.map_err(|error| ImportError::Invalid {
        field,
        value: error.valid_up_to() as u64,
    })?;
    // It is shown in logs, which control characters must not disturb.
    Ok(text.replace(char::is_control, "\u{fffd}"))
}

fn read_address(reader: &mut Reader<'_>, field: &'static str) -> Result<SocketAddr, ImportError> {
    let bytes = reader.bytes(field, TEXT_BYTES_MAX)?;
    let text = std::str::from_utf8(bytes).ok();
    let invalid = ImportError::Invalid {
        field,
        value: bytes.len() as u64,
    };
    text.and_then(|text| text.parse().ok()).ok_or(invalid)
}

#[cfg(test)]
mod tests {
    use super::{Hello, Message, MessageError, Offer, Process, Welcome};
    use crate::server::EndpointKind;

    fn messages() -> Vec<Message> {
        let process = Process {
            pid: 7,
            executable: "/usr/bin/linerate".into(),
            version: "0.1.0".into(),
        };
        let offer = |kind, port| Offer {
            kind,
            configured: ([127, 0, 0, 1], 0).into(),
            address: ([127, 0, 0, 1], port).into(),
            sockets: 300,
        };
        vec![
            Message::Hello(Hello {
                protocol: (1, 2),
                state: (3, 4),
                process: process.clone(),
            }),
            Message::Welcome(Welcome {
                protocol: 1,
                state: 0,
                process,
                offers: vec![
                    offer(Some(EndpointKind::Clients), 80),
                    offer(Some(EndpointKind::Operations), 81),
                    offer(None, 82),
                ],
            }),
            Message::Ready { wanted: vec![1, 0] },
            Message::Listeners { offer: 1 },
            Message::Prepared,
            Message::Commit,
            Message::Serving,
            Message::Refuse {
                reason: "draining".into(),
            },
            Message::Relocate {
                workers: 2,
                mark: b"mark".to_vec(),
            },
            Message::Stay {
                reason: "other workers".into(),
            },
            Message::Channels {
                clients: 3,
                is_last: true,
                names: b"news".to_vec(),
            },
            Message::Subscribed,
            Message::Parcel(b"client".to_vec()),
            Message::Moved,
            Message::Received,
        ]
    }

    #[test]
    fn every_message_is_read_as_it_was_written_and_no_part_of_it_is() {
        for message in messages() {
            let payload = message.to_payload();
            let read = |payload: &[u8]| Message::from_payload(message.kind(), payload);
            assert_eq!(read(&payload).as_ref(), Ok(&message));
            for end in 0..payload.len() {
                let error = read(&payload[..end]).unwrap_err().to_string();
                assert!(error.contains(message.name()), "{error}");
            }
            // Only these may be longer in later versions.
            let longer = [&payload[..], b"\0"].concat();
            assert_eq!(read(&longer).is_ok(), message.is_in_every_version());
        }
    }

    #[test]
    fn lists_and_texts_have_limits_and_texts_no_control_characters() {
        let ready = |count: u8| {
            let payload = [&[count][..], &vec![0; 2 * usize::from(count)]].concat();
            Message::from_payload(3, &payload)
        };
        assert!(ready(64).is_ok());
        assert_eq!(
            ready(65).unwrap_err().to_string(),
            "invalid message `ready`: invalid wanted offers: 65"
        );
        let refuse = |reason: String| {
            let payload = Message::Refuse { reason }.to_payload();
            match Message::from_payload(8, &payload) {
                Ok(Message::Refuse { reason }) => reason,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(refuse("é".repeat(3_000)), "é".repeat(2_048));
        assert_eq!(refuse("a\n\x1b[1mb".into()), "a\u{fffd}\u{fffd}[1mb");
        let unknown = Message::from_payload(0, b"");
        assert_eq!(unknown, Err(MessageError::Kind { kind: 0 }));
        assert!(Message::from_payload(9, b"").is_err());
    }
}
