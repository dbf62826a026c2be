//! What runs on the thread of a worker.

use std::{io, sync::Arc};

use axum::Router;
use futures_util::future::try_join_all;
use tokio::{net::TcpListener, sync::mpsc};

use super::{Parts, drain::send_away_when_told};
use crate::{
    admin::Admin,
    api,
    operations::Operations,
    relocation::Crew,
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
            fleet,
            ..
        } = self.parts;
        let worker = Arc::new(node.worker(index));
        let local = LocalClients::new(worker.clone(), shared.clone(), counters.clone())?;
        let local = Arc::new(local);
        // Nothing is ever sent: the channel closes when the last connection does that another
        // process has accepted.
        let (open, mut all_gone) = mpsc::channel(1);
        let crew = Crew {
            worker: worker.clone(),
            clients: local.clone(),
            frontend: frontend.clone(),
            open: open.downgrade(),
        };
        tokio::spawn(fleet.add(index).run(crew));
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
        // Waking a task takes no system call, unlike the future that the runtime blocks on.
        let serving = listeners.into_iter().map(|listener| {
            let served = tokio::spawn(frontend.clone().serve(listener, routes.clone()));
            async { served.await.map_err(io::Error::other)? }
        });
        let serving = try_join_all(serving);
        let turns = tokio::spawn(async move { worker.run().await });
        let local = tokio::spawn(async move { local.run().await });
        let stopped = frontend.stopped.clone();
        let served = async {
            serving.await?;
            drop(open);
            tokio::select! {
                _ = all_gone.recv() => {}
                () = stopped.over() => {}
            }
            Ok(())
        };
        tokio::select! {
            ended = local => ended.map_err(io::Error::other)?,
            served = served => served,
            ended = turns => ended.map_err(io::Error::other),
        }
    }
}
