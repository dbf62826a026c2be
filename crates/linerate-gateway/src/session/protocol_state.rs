//! The state that only the sessions of one protocol have. A session speaks one protocol, and most
//! protocols have no such state, so that it takes one pointer.

use super::{pusher::PusherState, socketio::SocketIoState};

/// The state that only the sessions of one protocol have.
#[derive(Debug, Default)]
pub(super) struct ProtocolState(Option<Box<State>>);

#[derive(Debug)]
enum State {
    Pusher(PusherState),
    SocketIo(SocketIoState),
}

impl ProtocolState {
    /// Returns the state of a Pusher client, if it has any yet.
    pub(super) fn pusher(&self) -> Option<&PusherState> {
        match self.0.as_deref() {
            Some(State::Pusher(state)) => Some(state),
            _ => None,
        }
    }

    /// Returns the state of a Socket.IO client, if it has any yet.
    pub(super) fn socketio(&self) -> Option<&SocketIoState> {
        match self.0.as_deref() {
            Some(State::SocketIo(state)) => Some(state),
            _ => None,
        }
    }

    /// Like [`pusher`](Self::pusher), to change it.
    pub(super) fn pusher_mut(&mut self) -> Option<&mut PusherState> {
        match self.0.as_deref_mut() {
            Some(State::Pusher(state)) => Some(state),
            _ => None,
        }
    }

    /// Like [`socketio`](Self::socketio), to change it.
    pub(super) fn socketio_mut(&mut self) -> Option<&mut SocketIoState> {
        match self.0.as_deref_mut() {
            Some(State::SocketIo(state)) => Some(state),
            _ => None,
        }
    }

    /// Returns the state of a Pusher client, which begins to exist here.
    pub(super) fn begin_pusher(&mut self) -> &mut PusherState {
        if self.pusher().is_none() {
            self.0 = Some(Box::new(State::Pusher(PusherState::default())));
        }
        self.pusher_mut().expect("the state exists")
    }

    /// Returns the state of a Socket.IO client, which begins to exist here.
    pub(super) fn begin_socketio(&mut self) -> &mut SocketIoState {
        if self.socketio().is_none() {
            *self = SocketIoState::default().into();
        }
        self.socketio_mut().expect("the state exists")
    }
}

impl From<SocketIoState> for ProtocolState {
    fn from(state: SocketIoState) -> Self {
        Self(Some(Box::new(State::SocketIo(state))))
    }
}
