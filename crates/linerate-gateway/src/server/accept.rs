//! Accepts connections at a limited rate, even when file descriptors run out.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use axum::Router;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::yield_now,
    time::sleep,
};

use super::{ConnectionGuard, Frontend, connection, refusal, spares::Spares};
use crate::log_limiter::LogLimiter;

/// Pause after a failed accept that may succeed later.
const REST: Duration = Duration::from_millis(100);

static FAILURES: LogLimiter = LogLimiter::new();
static REFUSALS: LogLimiter = LogLimiter::new();

/// Serves `app` until the server stops, and then until all connections are closed. While the server
/// is paused, connections wait in the listener.
pub(super) async fn serve(
    frontend: Arc<Frontend>,
    listener: TcpListener,
    app: Router,
) -> io::Result<()> {
    // Nothing is ever sent: the channel closes when the last connection does.
    let (open, mut all_gone) = mpsc::channel(1);
    let stopped = frontend.stopped.clone();
    let mut pace = Pace::new(Instant::now());
    while let Some(permit) = stopped.permit().await {
        let mut revoked = pin!(permit.revoked());
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut revoked => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok(accepted) => {
                    if let Some(accepted) = frontend.spares.spare(accepted) {
                        welcome(&frontend, accepted, &app, open.clone());
                    }
                }
                Err(error) => wait_out(error, &listener, &frontend.spares).await?,
            }
            let rate = frontend.admission.accepts_per_second_max() as usize;
            let rate = rate / frontend.loops.load(Ordering::Relaxed);
            match pace.step(Instant::now(), rate.max(1)) {
                Some(wait) => sleep(wait).await,
                // Serve other sockets between two connections, however many arrive at once.
                None => yield_now().await,
            }
        }
    }
    drop((listener, open));
    // If another process has taken over, this one has not begun to drain yet.
    stopped.leaving().await;
    tokio::select! {
        _ = all_gone.recv() => {}
        () = stopped.over() => {}
    }
    Ok(())
}

fn welcome(
    frontend: &Arc<Frontend>,
    (stream, peer): (TcpStream, SocketAddr),
    app: &Router,
    open: mpsc::Sender<Infallible>,
) {
    match ConnectionGuard::new(&frontend.admission, open, frontend.stopped.clone()) {
        Ok(guard) => {
            tokio::spawn(connection::attend(
                frontend.clone(),
                (stream, peer),
                app.clone(),
                guard,
            ));
        }
        Err(full) => {
            if let Some(count) = REFUSALS.ask(Instant::now()) {
                tracing::warn!(count, "connections refused: {}", full.reason());
            }
            let is_tls = frontend.certificate.is_some();
            tokio::spawn(refusal::refuse(stream, full, is_tls));
        }
    }
}

/// Pauses after a failed accept if the cause may be temporary, such as a shortage of file
/// descriptors.
async fn wait_out(error: io::Error, listener: &TcpListener, spares: &Spares) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::NotConnected => return Err(error),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset => return Ok(()),
        _ => {}
    }
    let turned_away = spares.turn_away(listener).await;
    if let Some(count) = FAILURES.ask_for(turned_away.max(1), Instant::now()) {
        tracing::warn!(%error, count, "cannot accept connections; pending connections are closed");
    }
    // Without this pause, the loop would spin while the listener stays readable.
    sleep(REST).await;
    Ok(())
}

/// Limits the number of connections accepted per second. A burst of that size is allowed.
#[derive(Debug)]
struct Pace {
    /// The time by which all connections so far would have been accepted at an even rate.
    even: Instant,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self { even: now }
    }

    /// Counts a connection, and returns how long to wait before accepting the next.
    fn step(&mut self, now: Instant, per_second: usize) -> Option<Duration> {
        let behind = now.checked_sub(Duration::from_secs(1)).unwrap_or(now);
        let interval = Duration::from_secs(1) / u32::try_from(per_second).unwrap_or(u32::MAX);
        self.even = self.even.max(behind) + interval;
        let wait = self.even.saturating_duration_since(now);
        (!wait.is_zero()).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Pace;

    #[test]
    fn g07_a_storm_is_spread_over_time_and_a_trickle_never_waits() {
        let start = Instant::now() + Duration::from_secs(5);
        let mut pace = Pace::new(start);
        let mut now = start + Duration::from_secs(3);
        let mut waits = 0;
        for _ in 0..300 {
            if let Some(wait) = pace.step(now, 100) {
                now += wait;
                waits += 1;
            }
        }
        assert_eq!(waits, 200);
        let taken = now.duration_since(start + Duration::from_secs(3));
        assert!(taken.abs_diff(Duration::from_secs(2)) < Duration::from_millis(20));
        for _ in 0..100 {
            now += Duration::from_millis(11);
            assert_eq!(pace.step(now, 100), None);
        }
    }
}
