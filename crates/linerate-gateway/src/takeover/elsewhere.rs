//! Replaces takeovers on systems other than Linux, where a process cannot verify which executable
//! another one runs.
#![allow(
    dead_code,
    reason = "the interface is that on Linux, and nothing of it exists"
)]

mod error;

use std::{convert::Infallible, path::Path, sync::Arc};

use tokio::sync::watch;

pub use error::TakeoverError;

use crate::{
    relocation::Relocation,
    server::{Endpoint, EndpointKind, Stop, Stopped},
    session::SessionEnvironment,
};

/// A takeover, which does not exist.
#[derive(Debug)]
pub(crate) struct Joining(Infallible);

/// A socket, which does not exist.
#[derive(Debug)]
pub(crate) struct TakeoverSocket(Infallible);

/// How a new process continues.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Continuation {
    /// The old process has died.
    Alone,
    /// As the protocol provides.
    Together,
}

impl TakeoverSocket {
    pub(crate) fn bind(_: &Path) -> Result<Self, TakeoverError> {
        Err(TakeoverError::Unsupported)
    }
}

impl Joining {
    pub(crate) async fn begin(_: Option<&Path>) -> Result<Option<Self>, TakeoverError> {
        Err(TakeoverError::Unsupported)
    }

    pub(crate) fn endpoint(
        &mut self,
        _: EndpointKind,
        _: std::net::SocketAddr,
        _: std::time::Duration,
    ) -> Option<Endpoint> {
        match self.0 {}
    }

    pub(crate) async fn receive(
        &mut self,
        _: &mut [Endpoint],
    ) -> Result<Continuation, TakeoverError> {
        match self.0 {}
    }

    pub(crate) async fn complete(&mut self, _: Relocation) -> Result<Continuation, TakeoverError> {
        match self.0 {}
    }

    pub(crate) async fn confirm(&mut self) {
        match self.0 {}
    }

    pub(crate) fn take_socket(&mut self) -> Option<TakeoverSocket> {
        match self.0 {}
    }

    pub(crate) async fn give_up(self, _: &dyn std::error::Error) {
        match self.0 {}
    }
}

/// Waits for a process that takes over, which does not exist.
#[derive(Debug)]
pub(crate) struct Handover {
    pub socket: TakeoverSocket,
    pub endpoints: Vec<Endpoint>,
    pub clients: Arc<Stop>,
    pub operations: Arc<Stop>,
    pub stopped: Stopped,
    pub shared: Arc<SessionEnvironment>,
    pub relocation: Relocation,
    pub successor: watch::Sender<Option<TakenOver>>,
}

/// The process that has taken over, which does not exist.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenOver {
    pub process: u32,
    pub is_decided: bool,
}

impl Handover {
    pub(crate) async fn run(self) {
        match self.socket.0 {}
    }
}
