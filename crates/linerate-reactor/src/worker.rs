//! Workers: each is one thread with a listener, a driver and its connections.

mod acceptor;
mod commands;
mod connections;
mod delivery;
mod dial;
mod handshakes;
mod inbox;
mod input;
mod parts;
#[cfg(unix)]
mod portable;
mod request;
pub(crate) mod service;
mod settle;
mod tls;

use std::{io, sync::Arc, time::Duration};

use self::{
    acceptor::{Acceptor, LISTENER},
    commands::RemoteCommands,
    delivery::Delivery,
    inbox::{Inbox, MAILBOX},
    service::Service,
};
use crate::{
    driver::event::Event, platform::Socket, reactor::Reactor, route::routes::Routes, wheel::TICK,
};

/// One worker: the loop that connects its parts.
pub(crate) struct Worker {
    acceptor: Acceptor,
    inbox: Inbox,
    pub(crate) service: Service,
    delivery: Delivery,
    remote_commands: RemoteCommands,
    /// When the connections that remain at shutdown are dropped.
    shutdown_due: Option<Duration>,
}

impl Worker {
    /// Creates a worker. A connector's worker has no listener.
    ///
    /// # Errors
    /// If the driver is not available.
    pub(crate) fn new(
        number: u16,
        listener: Option<Socket>,
        reactor: Arc<Reactor>,
        routes: Routes,
    ) -> io::Result<Self> {
        let mut service = Service::new(number, reactor, routes)?;
        let core = &mut service.parts.core;
        Ok(Self {
            acceptor: Acceptor::new(listener, &mut core.io.driver)?,
            inbox: Inbox::new(core)?,
            service,
            delivery: Delivery::default(),
            remote_commands: RemoteCommands::default(),
            shutdown_due: None,
        })
    }

    /// Serves until the server shuts down.
    ///
    /// # Errors
    /// If the listener or the driver fails permanently.
    pub(crate) fn run(mut self) -> io::Result<()> {
        while !self.is_shut_down() {
            self.turn(self.timeout())?;
        }
        self.service.drop_all();
        Ok(())
    }

    /// Waits until something happens or `timeout` has passed, and handles what has happened.
    ///
    /// # Errors
    /// If the listener or the driver fails permanently.
    pub(crate) fn turn(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.service.parts.core.io.driver.wait(timeout)?;
        self.service.begin_turn();
        // Events that are left here because a local reactor has collected much are reported again.
        while !self.service.parts.core.events.is_full()
            && let Some(event) = self.service.parts.core.io.driver.next()
        {
            self.handle(event)?;
            self.delivery.run_if_urgent(&mut self.service);
            commands::run_if_urgent(&mut self.service);
        }
        self.service.handle_deferred();
        self.acceptor.start_arrivals(&mut self.service)?;
        self.acceptor.resume_if_due(&mut self.service)?;
        self.service.handle_deadlines();
        self.remote_commands.run_some(&mut self.service);
        commands::run(&mut self.service);
        self.service.dial().begin_attempts();
        self.delivery.run_if_due(&mut self.service);
        Ok(())
    }

    /// Returns how long the next turn may wait: not at all while there is something to do, and
    /// without limit if nothing is due.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        // Delivering and dialing call handlers, which may have given commands or requested more.
        if self.delivery.lingers()
            || self.acceptor.has_arrivals()
            || self.remote_commands.has_work()
            || self.service.has_work()
        {
            return Some(Duration::ZERO);
        }
        let waits = self.acceptor.is_waiting()
            || self.service.has_deadlines()
            || self.shutdown_due.is_some();
        waits.then_some(TICK)
    }

    fn handle(&mut self, event: Event) -> io::Result<()> {
        match event.token {
            LISTENER => self.acceptor.handle_event(event, &mut self.service),
            MAILBOX => {
                self.open_mail();
                let core = &mut self.service.parts.core;
                if event.is_over {
                    inbox::watch(core);
                }
                Ok(())
            }
            _ => self.service.handle_event(event),
        }
    }

    /// Processes what other threads have left in the mailbox.
    fn open_mail(&mut self) {
        let service = &mut self.service;
        let mut mail = self.inbox.take(&service.parts.core);
        self.remote_commands.arrive();
        self.delivery.add(&mut mail.bursts);
        for slot in mail.resumes.drain(..) {
            service.resume(slot);
        }
        for pending in mail.connects.drain(..) {
            service.dial().request(pending);
        }
        for adoption in mail.adoptions.drain(..) {
            service.adopt(adoption);
        }
        for lookup in mail.lookups.drain(..) {
            service.dial().end_lookup(lookup);
        }
        if mail.shutdown && self.shutdown_due.is_none() {
            self.shut_down();
        }
        self.inbox.give_back(mail);
    }

    /// Starts to shut down: closes the listener and all connections.
    fn shut_down(&mut self) {
        // Earlier messages and publications are still delivered.
        self.remote_commands.run_all(&mut self.service);
        self.delivery.run(&mut self.service);
        let core = &mut self.service.parts.core;
        self.acceptor.close(&mut core.io.driver);
        let close_timeout = core.reactor.config.close_timeout;
        self.shutdown_due = Some(core.now + close_timeout + Duration::from_secs(1));
        self.service.close_all();
    }

    /// Returns whether the shutdown is complete, or has taken too long.
    fn is_shut_down(&self) -> bool {
        let now = self.service.parts.core.now;
        self.shutdown_due
            .is_some_and(|due| self.service.connections.is_empty() || now >= due)
    }
}
