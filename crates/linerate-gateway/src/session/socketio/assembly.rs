//! Puts events together with the attachments that follow them. They are not commands that wait:
//! the session has to read further input to complete them.

use bytes::Bytes;

use super::super::Session;
use crate::protocol::{
    codes::Disconnect,
    command::{Command, Request, SocketIoRequest},
    socketio::{
        self,
        binary::{self, IllegalAttachments},
    },
};

/// A request whose attachments are arriving.
#[derive(Debug)]
pub(super) struct Incomplete {
    request: SocketIoRequest,
    attachments: Vec<Bytes>,
    /// The bytes of the attachments.
    bytes: usize,
}

/// Why a packet with attachments is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
enum Refused {
    #[error(transparent)]
    Attachments(#[from] IllegalAttachments),
    #[error("packet has {bytes} bytes of attachments; at most {bytes_max} are allowed")]
    Bytes { bytes: usize, bytes_max: usize },
    #[error("packet has {count} attachments; at most {count_max} are allowed")]
    Count { count: usize, count_max: usize },
    #[error("packet arrives before the last attachment of the one before it")]
    Interrupted,
    #[error("binary message is not an attachment of a packet")]
    Unannounced,
}

impl Session {
    /// Returns a command that is complete, and keeps what waits for attachments. A packet that is
    /// not allowed ends the session.
    pub(in crate::session) fn assemble(&mut self, command: Command) -> Option<Command> {
        let request = match command.request {
            Request::SocketIo(request) => *request,
            request => return Some(Command { request, ..command }),
        };
        match self.assembled(request) {
            Ok(request) => Some(Command {
                id: command.id,
                request: Request::SocketIo(Box::new(request?)),
            }),
            Err(refused) => {
                self.end(Disconnect::BAD_REQUEST.with_reason(refused.to_string()));
                None
            }
        }
    }

    fn assembled(&mut self, request: SocketIoRequest) -> Result<Option<SocketIoRequest>, Refused> {
        let incomplete = self.take_incomplete();
        match (request, incomplete) {
            (SocketIoRequest::Close, _) => {
                self.end(socketio::CLOSED);
                Ok(None)
            }
            (SocketIoRequest::Attachment(_), None) => Err(Refused::Unannounced),
            (SocketIoRequest::Attachment(bytes), Some(incomplete)) => {
                let settings = self.context.gate.shared.settings_full();
                let bytes_max = settings.config.client.message_bytes_max;
                self.proceed(incomplete.with(bytes, bytes_max)?)
            }
            (_, Some(_)) => Err(Refused::Interrupted),
            (request, None) => {
                if let SocketIoRequest::Disconnect { namespace } = &request {
                    // The end of the connection, which is handled on arrival, may follow at once.
                    self.forget_session(namespace);
                }
                let settings = self.context.gate.shared.settings_full();
                let count_max = settings.config.socketio.attachments_max;
                let count = request.announced();
                if count > count_max {
                    return Err(Refused::Count { count, count_max });
                }
                self.proceed(Incomplete {
                    request,
                    attachments: Vec::new(),
                    bytes: 0,
                })
            }
        }
    }

    /// Returns the request if nothing is missing, otherwise keeps it.
    fn proceed(&mut self, incomplete: Incomplete) -> Result<Option<SocketIoRequest>, Refused> {
        if incomplete.attachments.len() == incomplete.request.announced() {
            return Ok(Some(incomplete.complete()?));
        }
        let account = &self.context.gate.worker.accounts().messages;
        let bytes = incomplete.request.memory_bytes() + incomplete.bytes;
        self.activity.keep_incoming(bytes as u64, account);
        let state = self.protocol_state.begin_socketio();
        state.incomplete = Some(incomplete);
        Ok(None)
    }

    fn take_incomplete(&mut self) -> Option<Incomplete> {
        let incomplete = self.protocol_state.socketio_mut()?.incomplete.take()?;
        self.activity.release_incoming();
        Some(incomplete)
    }
}

impl Incomplete {
    /// Adds an attachment.
    fn with(mut self, attachment: Bytes, bytes_max: usize) -> Result<Self, Refused> {
        self.bytes += attachment.len();
        if self.bytes > bytes_max {
            let bytes = self.bytes;
            return Err(Refused::Bytes { bytes, bytes_max });
        }
        self.attachments.push(attachment);
        Ok(self)
    }

    /// Returns the request, with the attachments in place of their placeholders.
    fn complete(self) -> Result<SocketIoRequest, Refused> {
        let mut request = self.request;
        if let SocketIoRequest::Event(event) = &mut request
            && event.announced > 0
        {
            event.arguments = binary::fill(&event.arguments, &self.attachments)?.into();
            event.announced = 0;
        }
        Ok(request)
    }
}
