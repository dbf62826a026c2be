//! The end of the server, in phases.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// How far the end has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Phase {
    /// It is far away.
    Serving,
    /// It was announced: balancers are told to turn away, everything else goes on.
    Announced,
    /// Nobody is let in any more; those who are there are told over this time, from then on.
    Leaving {
        /// When it began.
        since: Instant,
        /// Over how long connections are told.
        window: Duration,
    },
    /// Whoever is still there is cut off.
    Over,
}

/// Brings the end about.
#[derive(Debug)]
pub struct Stop(watch::Sender<Phase>);

/// Is told of the end.
#[derive(Clone, Debug)]
pub struct Stopped(watch::Receiver<Phase>);

impl Stop {
    /// Starts far away from the end.
    pub fn new() -> (Self, Stopped) {
        let (stop, stopped) = watch::channel(Phase::Serving);
        (Self(stop), Stopped(stopped))
    }

    /// Goes on to a phase.
    pub fn enter(&self, phase: Phase) {
        self.0.send_replace(phase);
    }
}

impl Stopped {
    /// Returns how far the end has come.
    pub fn phase(&self) -> Phase {
        *self.0.borrow()
    }

    /// Waits until nobody is to be let in any more.
    pub async fn leaving(&self) {
        self.wait(|phase| matches!(phase, Phase::Leaving { .. } | Phase::Over))
            .await;
    }

    /// Waits until whoever is still there is to be cut off.
    pub async fn over(&self) {
        self.wait(|phase| matches!(phase, Phase::Over)).await;
    }

    /// Waits for a moment to say goodbye: the caller's part of the window, from 0.0 to 1.0.
    pub async fn goodbye(&self, part: f64) {
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
        // An error means that nobody can bring the end about any more, and nobody waits for it.
        match phases.wait_for(is_reached).await {
            Ok(phase) => *phase,
            Err(_) => Phase::Over,
        }
    }
}
