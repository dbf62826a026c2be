//! The state that only the sessions of one protocol have. A session speaks one protocol, and most
//! protocols have no such state, so that it takes one pointer.

use linerate_budget::Account;
use linerate_hub::ChannelName;

use super::{phoenix::PhoenixState, pusher::PusherState, socketio::SocketIoState};

/// The state that only the sessions of one protocol have.
#[derive(Debug, Default)]
pub(super) struct ProtocolState(Option<Box<State>>);

#[derive(Debug)]
enum State {
    Phoenix(PhoenixState),
    Pusher(PusherState),
    SocketIo(SocketIoState),
}

impl ProtocolState {
    /// Returns the state of a Phoenix client, if it has any yet.
    pub(super) fn phoenix(&self) -> Option<&PhoenixState> {
        match self.0.as_deref() {
            Some(State::Phoenix(state)) => Some(state),
            _ => None,
        }
    }

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

    /// Like [`phoenix`](Self::phoenix), to change it.
    fn phoenix_mut(&mut self) -> Option<&mut PhoenixState> {
        match self.0.as_deref_mut() {
            Some(State::Phoenix(state)) => Some(state),
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

    /// Returns the state of a Phoenix client, which begins to exist here. Its memory is charged to
    /// `account`.
    pub(super) fn begin_phoenix(&mut self, account: &Account) -> &mut PhoenixState {
        if self.phoenix().is_none() {
            let state = PhoenixState::new(account);
            self.0 = Some(Box::new(State::Phoenix(state)));
        }
        self.phoenix_mut().expect("the state exists")
    }

    /// Forgets a channel that the client has left.
    pub(super) fn leave(&mut self, channel: &ChannelName) {
        match self.0.as_deref_mut() {
            Some(State::Phoenix(state)) => state.leave(channel),
            Some(State::Pusher(state)) => state.leave(channel),
            Some(State::SocketIo(_)) | None => {}
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
