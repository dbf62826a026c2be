//! The phases of serving and shutting down.
#![cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        reason = "some phases belong to takeovers, which need Linux"
    )
)]

use std::{io, sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// The phase of serving or shutting down.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub(crate) enum Phase {
    /// No connections are accepted; new ones wait in the listeners, which another process may
    /// share. Existing connections are served.
    Paused,
    /// The server is running normally.
    Serving,
    /// The shutdown was announced: load balancers should stop routing clients here; everything else
    /// continues.
    Announced,
    /// Another process accepts the connections from now on. Existing ones are served until the next
    /// phase.
    HandedOver,
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

/// What a phase allows to those who accept connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Accepting {
    Allowed,
    Paused,
    Ended,
}

/// Controls the shutdown.
#[derive(Debug)]
pub(crate) struct Stop {
    phase: watch::Sender<Phase>,
    accepting: Arc<watch::Sender<usize>>,
}

/// Observes the shutdown.
#[derive(Clone, Debug)]
pub(crate) struct Stopped {
    phase: watch::Receiver<Phase>,
    /// The number of loops that may be accepting a connection right now.
    accepting: Arc<watch::Sender<usize>>,
}

/// Permits a loop to accept connections until it is [revoked](Self::revoked).
#[derive(Debug)]
pub(super) struct AcceptPermit<'a>(&'a Stopped);

/// Keeps connections from being accepted. Dropping it resumes, unless another phase was entered.
#[derive(Debug)]
pub(crate) struct PauseGuard<'a>(&'a Stop);

impl Phase {
    const fn accepting(self) -> Accepting {
        match self {
            Self::Serving | Self::Announced => Accepting::Allowed,
            Self::Paused => Accepting::Paused,
            Self::HandedOver | Self::Leaving { .. } | Self::Over => Accepting::Ended,
        }
    }

    /// Returns whether new clients should be routed elsewhere.
    pub(crate) const fn is_stopping(self) -> bool {
        !matches!(self, Self::Paused | Self::Serving)
    }
}

impl Stop {
    /// Creates a controller and an observer in the phase `Serving`.
    #[cfg(test)]
    pub(crate) fn new() -> (Self, Stopped) {
        Self::in_phase(Phase::Serving)
    }

    /// Creates a controller and an observer in the given phase.
    pub(crate) fn in_phase(phase: Phase) -> (Self, Stopped) {
        let (phase, phases) = watch::channel(phase);
        let accepting = Arc::new(watch::Sender::new(0));
        let stopped = Stopped {
            phase: phases,
            accepting: accepting.clone(),
        };
        (Self { phase, accepting }, stopped)
    }

    /// Enters a phase.
    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Enters the phase `Announced`, unless another process has taken over. Returns whether it did.
    pub(crate) fn announce(&self) -> bool {
        self.phase.send_if_modified(|phase| {
            let is_ours = *phase != Phase::HandedOver;
            if is_ours {
                *phase = Phase::Announced;
            }
            is_ours
        })
    }

    /// Closes existing connections without a window, and accepts no others.
    pub(crate) fn leave_at_once(&self) {
        let (since, window) = (Instant::now(), Duration::ZERO);
        self.enter(Phase::Leaving { since, window });
    }

    /// Stops accepting connections, and waits until no loop is accepting. Returns `None` if the
    /// server is not in the phase `Serving`.
    pub(crate) async fn pause(&self) -> Option<PauseGuard<'_>> {
        self.change(Phase::Serving, Phase::Paused).then_some(())?;
        let guard = PauseGuard(self);
        let mut accepting = self.accepting.subscribe();
        // The sender lives as long as `self`.
        _ = accepting.wait_for(|loops| *loops == 0).await;
        Some(guard)
    }

    /// Accepts connections again after a pause.
    pub(crate) fn resume(&self) {
        self.change(Phase::Paused, Phase::Serving);
    }

    /// Enters the phase `HandedOver` if `commit` succeeds. No other phase can be entered meanwhile.
    /// Returns whether it did; it does not call `commit` unless the phase is `Paused`.
    ///
    /// # Errors
    /// The error of `commit`.
    pub(crate) fn hand_over(&self, commit: impl FnOnce() -> io::Result<()>) -> io::Result<bool> {
        let mut result = Ok(());
        let is_handed_over = self.phase.send_if_modified(|phase| {
            if *phase != Phase::Paused {
                return false;
            }
            result = commit();
            if result.is_ok() {
                *phase = Phase::HandedOver;
            }
            result.is_ok()
        });
        result.map(|()| is_handed_over)
    }

    fn change(&self, from: Phase, to: Phase) -> bool {
        self.phase.send_if_modified(|phase| {
            let is_changed = *phase == from;
            if is_changed {
                *phase = to;
            }
            is_changed
        })
    }
}

impl Drop for PauseGuard<'_> {
    fn drop(&mut self) {
        self.0.resume();
    }
}

impl Stopped {
    /// Returns the current phase.
    pub(crate) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Waits until connections may be accepted; `None` once they never may be again.
    pub(super) async fn permit(&self) -> Option<AcceptPermit<'_>> {
        let is_decided = |phase: &Phase| phase.accepting() != Accepting::Paused;
        if self.wait(is_decided).await.accepting() == Accepting::Ended {
            return None;
        }
        self.accepting.send_modify(|loops| *loops += 1);
        Some(AcceptPermit(self))
    }

    /// Waits until the server begins to stop, or another process has taken over.
    pub(crate) async fn stopping(&self) {
        self.wait(|phase| phase.is_stopping()).await;
    }

    /// Waits until existing connections must be closed.
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
        let mut phases = self.phase.clone();
        // An error means that the controller was dropped, so that no further phase can be entered.
        match phases.wait_for(is_reached).await {
            Ok(phase) => *phase,
            Err(_) => Phase::Over,
        }
    }
}

impl AcceptPermit<'_> {
    /// Waits until no further connection may be accepted. Check this before every accept: until the
    /// permit is dropped, a pause waits for it.
    pub(super) async fn revoked(&self) {
        let is_revoked = |phase: &Phase| phase.accepting() != Accepting::Allowed;
        self.0.wait(is_revoked).await;
    }
}

impl Drop for AcceptPermit<'_> {
    fn drop(&mut self) {
        self.0.accepting.send_modify(|loops| *loops -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::{io, time::Duration};

    use futures_util::FutureExt;
    use tokio::time::Instant;

    use super::{Phase, Stop};

    #[tokio::test]
    async fn a_pause_waits_for_every_loop_and_ends_with_its_guard() {
        let (stop, stopped) = Stop::new();
        let permit = stopped.permit().await.unwrap();
        assert!(permit.revoked().now_or_never().is_none());
        let mut pause = Box::pin(stop.pause());
        assert!(pause.as_mut().now_or_never().is_none());
        permit.revoked().await;
        assert!(stopped.permit().now_or_never().is_none(), "no new permits");
        drop(permit);
        let guard = pause.await.unwrap();
        assert_eq!(stopped.phase(), Phase::Paused);
        assert!(stop.pause().await.is_none(), "one pause at a time");
        drop(guard);
        assert_eq!(stopped.phase(), Phase::Serving);
        assert!(stopped.permit().now_or_never().flatten().is_some());
    }

    #[tokio::test]
    async fn a_pause_that_is_given_up_resumes() {
        let (stop, stopped) = Stop::new();
        let _permit = stopped.permit().await.unwrap();
        assert!(stop.pause().now_or_never().is_none());
        assert_eq!(stopped.phase(), Phase::Serving);
    }

    #[tokio::test]
    async fn only_a_commit_that_succeeds_hands_over_and_it_is_final() {
        let (stop, stopped) = Stop::new();
        let commit_not_called = || -> io::Result<()> { unreachable!("the server is not paused") };
        assert!(!stop.hand_over(commit_not_called).unwrap());
        let guard = stop.pause().await.unwrap();
        let failed = stop.hand_over(|| Err(io::ErrorKind::BrokenPipe.into()));
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(stopped.phase(), Phase::Paused);
        assert!(stop.hand_over(|| Ok(())).unwrap());
        drop(guard);
        stop.resume();
        assert!(!stop.announce());
        assert_eq!(stopped.phase(), Phase::HandedOver);
        assert!(stopped.permit().await.is_none());
        assert!(stopped.leaving().now_or_never().is_none(), "clients stay");
        let (since, window) = (Instant::now(), Duration::ZERO);
        stop.enter(Phase::Leaving { since, window });
        stopped.leaving().await;
    }

    #[tokio::test]
    async fn a_shutdown_that_is_announced_during_a_pause_stays_announced() {
        let (stop, stopped) = Stop::new();
        let guard = stop.pause().await.unwrap();
        assert!(stop.announce());
        drop(guard);
        assert_eq!(stopped.phase(), Phase::Announced);
        assert!(!stop.hand_over(|| Ok(())).unwrap());
        assert!(stopped.permit().await.is_some(), "connections are accepted");
    }
}
