//! What runs on the thread of a worker.

use std::{sync::Arc, time::Duration};

use axum::Router;

use super::Parts;
use crate::{
    admin::Admin,
    api,
    node::Worker,
    operations::Operations,
    server::{Front, Phase, Seat, send_away},
    session::Shared,
    transport,
};

/// Everything that a worker needs.
#[derive(Clone)]
pub(super) struct Desk<R> {
    pub(super) parts: Parts,
    pub(super) admin: Arc<Admin>,
    pub(super) operations: Arc<Operations>,
    pub(super) extend: R,
}

impl<R: Fn(Router) -> Router> Desk<R> {
    pub(super) async fn serve(self, seat: Seat) -> std::io::Result<()> {
        let Parts {
            node,
            shared,
            front,
            counters,
        } = self.parts;
        let worker = Arc::new(node.worker(seat.index));
        let clients = transport::routes(worker.clone(), shared.clone(), counters);
        let applications = api::routes(node, shared.clone());
        let administrators = self.admin.routes(worker.clone());
        let mut routes = clients.merge(applications).merge(administrators);
        let has_listener = shared.settings().config.server.operations_listen.is_some();
        if !has_listener {
            routes = routes.merge(self.operations.public_routes());
        }
        let routes = (self.extend)(routes);
        tokio::spawn(send_away_when_told(worker.clone(), front.clone(), shared));
        tokio::select! {
            served = front.serve(seat.listener, routes) => served,
            () = worker.run() => Ok(()),
        }
    }
}

/// Disconnects the clients of a worker when the server stops, or while an administrator has
/// draining switched on.
async fn send_away_when_told(worker: Arc<Worker>, front: Arc<Front>, shared: Arc<Shared>) {
    let mut draining = worker.node().draining();
    loop {
        tokio::select! {
            () = front.stopped.leaving() => break,
            told = draining.wait_for(|is_draining| *is_draining) => if told.is_err() {
                break;
            }
        }
        let options = &shared.settings_full().config.server.drain;
        let window = options.window_of(front.admission.open());
        tokio::select! {
            () = front.stopped.leaving() => break,
            _ = draining.wait_for(|is_draining| !*is_draining) => continue,
            () = send_away(worker.clone(), window) => {}
        }
        // Clients that connect after this may stay until the server stops.
        tokio::select! {
            () = front.stopped.leaving() => break,
            _ = draining.wait_for(|is_draining| !*is_draining) => {}
        }
    }
    front.stopped.leaving().await;
    let window = match front.stopped.phase() {
        Phase::Leaving { window, .. } => window,
        _ => Duration::ZERO,
    };
    // No new connections arrive, but some that are already open have not been authenticated yet.
    worker.turn_away();
    send_away(worker, window).await;
}
