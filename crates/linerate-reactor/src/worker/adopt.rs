//! Connections that another server has accepted.

use linerate_proto::Role;

use super::Worker;
use crate::{
    Opened,
    adoption::Adoption,
    connection::Stage,
    driver::{Interest, socket},
};

impl Worker {
    /// Takes over a connection that has been counted.
    pub(super) fn adopt(&mut self, adoption: Adoption) {
        let Adoption {
            socket,
            request,
            mut input,
            path,
            is_answered,
        } = adoption;
        let stage = self.opening();
        let entered = match socket::prepare(&socket) {
            Ok(()) if self.shutdown_due.is_none() => {
                self.enter(socket, stage, Role::Server, Interest::READ).ok()
            }
            _ => None,
        };
        let Some(key) = entered else {
            return self.core.count_closed();
        };
        let path = path.as_deref().unwrap_or(request.path());
        let route = self.route(path);
        match (is_answered, route) {
            (false, route) => self.answer(key, route, &request),
            (true, Some(route)) => {
                self.begin(key);
                self.open(key, route, Opened::Accepted(&request));
            }
            (true, None) => self.connections[key].lost = true,
        }
        if let Stage::Open { .. } = self.connections[key].stage {
            self.take_input(key, &mut input);
        }
        self.settle(key);
    }
}
