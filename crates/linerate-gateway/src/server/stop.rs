//! The phases of shutting down.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// The phase of shutting down.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub(crate) enum Phase {
    /// The server is running normally.
    Serving,
    /// The shutdown was announced: load balancers should stop routing clients here; everything else
    /// continues.
    Announced,
    /// New connections are refused, and existing ones are closed over the window.
    Leaving {
        /// When this phase began.
        since: Instant,
        /// The time over which connections are closed.
        window: Duration,
    },
    /// The remaining connections are cut off.
    Over,
}

/// Controls the shutdown.
#[derive(Debug)]
pub(crate) struct Stop(watch::Sender<Phase>);

/// Observes the shutdown.
#[derive(Clone, Debug)]
pub(crate) struct Stopped(watch::Receiver<Phase>);

impl Stop {
    /// Creates a controller and an observer in the phase `Serving`.
    pub(crate) fn new() -> (Self, Stopped) {
        let (stop, stopped) = watch::channel(Phase::Serving);
        (Self(stop), Stopped(stopped))
    }

    /// Enters a phase.
    pub(crate) fn enter(&self, phase: Phase) {
        self.0.send_replace(phase);
    }
}

impl Stopped {
    /// Returns the current phase.
    pub(crate) fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Waits until new connections must be refused.
    pub(crate) async fn leaving(&self) {
        self.wait(|phase| matches!(phase, Phase::Leaving { .. } | Phase::Over))
            .await;
    }

    /// Waits until the remaining connections must be cut off.
    pub(crate) async fn over(&self) {
        self.wait(|phase| matches!(phase, Phase::Over)).await;
    }

    /// Waits until this connection must close. `part` is its time within the window, from 0.0 to
    /// 1.0.
    pub(crate) async fn goodbye(&self, part: f64) {
        let is_reached = |phase: &Phase| matches!(phase, Phase::Leaving { .. } | Phase::Over);
        if let Phase::Leaving { since, window } = self.wait(is_reached).await {
            tokio::select! {
                () = sleep_until(since + window.mul_f64(part.clamp(0.0, 1.0))) => {}
                () = self.over() => {}
            }
        }
    }

    async fn wait(&self, is_reached: impl FnMut(&Phase) -> bool) -> Phase {
        let mut phases = self.0.clone();
        // An error means that the controller was dropped, so that no further phase can be entered.
        match phases.wait_for(is_reached).await {
            Ok(phase) => *phase,
            Err(_) => Phase::Over,
        }
    }
}
