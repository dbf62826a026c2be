//! The addresses of a gateway.

use std::{
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use super::BindError;
use crate::{
    config::ServerOptions,
    server::{Endpoint, EndpointKind},
};

/// The addresses that a gateway listens on: that of clients first, then that of monitoring if it is
/// separate.
#[derive(Debug)]
pub(super) struct Endpoints(Vec<Endpoint>);

impl Endpoints {
    /// Binds the configured addresses, except those for which `elsewhere` returns an endpoint. The
    /// address of clients gets a socket for each worker.
    ///
    /// # Errors
    /// Fails if an address is in use, or does not belong to this machine.
    pub(super) fn bind(
        options: &ServerOptions,
        workers: u16,
        mut elsewhere: impl FnMut(EndpointKind, SocketAddr) -> Option<Endpoint>,
    ) -> Result<Self, BindError> {
        let clients = (EndpointKind::Clients, options.listen);
        let operations = options.operations_listen;
        let operations = operations.map(|address| (EndpointKind::Operations, address));
        let endpoints = [clients].into_iter().chain(operations);
        let endpoints = endpoints.map(|(kind, address)| match elsewhere(kind, address) {
            Some(endpoint) => Ok(endpoint),
            None => bind(kind, address, workers, options.dead_peer_timeout),
        });
        endpoints.collect::<Result<_, _>>().map(Self)
    }

    /// Binds those addresses that have no sockets yet.
    ///
    /// # Errors
    /// Fails if an address is in use.
    pub(super) fn bind_missing(&mut self, workers: u16) -> Result<(), BindError> {
        for endpoint in &mut self.0 {
            if endpoint.sockets.is_empty() {
                let timeout = endpoint.dead_peer_timeout;
                *endpoint = bind(endpoint.kind, endpoint.configured, workers, timeout)?;
            }
        }
        Ok(())
    }

    /// Returns the address for clients, with the actual port.
    pub(super) fn address(&self) -> SocketAddr {
        self.0[0].address
    }

    /// Returns the endpoints.
    pub(super) fn all(&self) -> &[Endpoint] {
        &self.0
    }

    /// Returns the endpoints, to add sockets.
    pub(super) fn all_mut(&mut self) -> &mut [Endpoint] {
        &mut self.0
    }

    /// Returns the sockets for clients, and those for monitoring.
    pub(super) fn into_sockets(self) -> (Vec<TcpListener>, Vec<TcpListener>) {
        let (mut clients, mut operations) = (Vec::new(), Vec::new());
        for endpoint in self.0 {
            match endpoint.kind {
                EndpointKind::Clients => clients.extend(endpoint.sockets),
                EndpointKind::Operations => operations.extend(endpoint.sockets),
            }
        }
        (clients, operations)
    }
}

fn bind(
    kind: EndpointKind,
    address: SocketAddr,
    workers: u16,
    dead_peer_timeout: Duration,
) -> Result<Endpoint, BindError> {
    let count = match kind {
        EndpointKind::Clients => usize::from(workers),
        EndpointKind::Operations => 1,
    };
    Endpoint::bind(kind, address, count, dead_peer_timeout)
        .map_err(|source| BindError::listen(address, source))
}
