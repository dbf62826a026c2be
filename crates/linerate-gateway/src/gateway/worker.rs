//! What runs on the thread of a worker.

use std::{io, sync::Arc};

use axum::Router;
use futures_util::future::try_join_all;
use tokio::net::TcpListener;

use super::{Parts, drain::send_away_when_told};
use crate::{
    admin::Admin,
    api,
    operations::Operations,
    transport::{self, LocalClients},
};

/// Everything that a worker needs to serve.
#[derive(Clone)]
pub(super) struct WorkerService<R> {
    pub(super) parts: Parts,
    pub(super) admin: Arc<Admin>,
    pub(super) operations: Arc<Operations>,
    pub(super) extend: R,
}

impl<R: Fn(Router) -> Router> WorkerService<R> {
    pub(super) async fn serve(self, index: u16, listeners: Vec<TcpListener>) -> io::Result<()> {
        let Parts {
            node,
            shared,
            frontend,
            counters,
        } = self.parts;
        let worker = Arc::new(node.worker(index));
        let options = &shared.settings_full().config.client;
        let local = LocalClients::new(worker.clone(), options, counters.clone())?;
        let local = Arc::new(local);
        let clients = transport::routes(worker.clone(), shared.clone(), counters, local.clone());
        let applications = api::routes(node, shared.clone());
        let administrators = self.admin.routes(worker.clone());
        let mut routes = clients.merge(applications).merge(administrators);
        let has_listener = shared.settings().config.server.operations_listen.is_some();
        if !has_listener {
            routes = routes.merge(self.operations.public_routes());
        }
        let routes = (self.extend)(routes);
        tokio::spawn(send_away_when_told(
            worker.clone(),
            frontend.clone(),
            shared,
        ));
        let serving = listeners
            .into_iter()
            .map(|listener| frontend.clone().serve(listener, routes.clone()));
        let serving = try_join_all(serving);
        let turns = tokio::spawn(async move { worker.run().await });
        let local = tokio::spawn(async move { local.run().await });
        tokio::select! {
            ended = local => ended.map_err(io::Error::other)?,
            served = serving => served.map(drop),
            ended = turns => ended.map_err(io::Error::other),
        }
    }
}
