//! Messages that come back: closed loop, pipelined, on a schedule, on connections that come and go.
//!
//! Each core of the load has a thread of its own ([`worker`]) with its share of the clients
//! ([`client`]). The caller's thread only tells them what phase it is, and reads what they have done
//! and what that cost at the two moments between which is measured.

mod client;
mod schedule;
mod station;
mod worker;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use self::station::{Phase, Station};
use self::worker::Worker;
use super::meter::{Latencies, Meter};
use super::pin::Pinned;
use super::script::Script;
use super::{Budget, LoadError, Probe, Target};
use crate::cell::Echo;
use crate::record::Figures;

/// How long a thread takes to end once it has said so, and not much more.
const MOMENT: Duration = Duration::from_micros(100);

/// What all threads of a load know.
#[derive(Debug)]
struct Plan<'a> {
    echo: &'a Echo,
    target: &'a Target,
    budget: &'a Budget,
    script: Script,
    write_bytes_max: usize,
}

/// Puts `target` under `echo` from one thread on each of `cores`, or one that may run anywhere if
/// there are none.
///
/// # Errors
///
/// The server failed, or the load did.
pub(super) fn measure(
    echo: &Echo,
    target: &Target,
    budget: &Budget,
    cores: &[u32],
    probe: &mut dyn Probe,
) -> Result<Figures, LoadError> {
    check_supported(echo, target)?;
    let plan = Plan {
        echo,
        target,
        budget,
        script: Script::new(echo, target.wire)?,
        write_bytes_max: echo
            .write_bytes_max
            .map_or(usize::MAX, |max| max.get() as usize),
    };
    let threads = cores.len().clamp(1, echo.connections as usize);
    let stations = (0..threads)
        .map(|_| Station::new())
        .collect::<Result<Vec<_>, _>>()?;
    thread::scope(|scope| {
        let (sender, notices) = mpsc::channel();
        let handles = stations.iter().enumerate().map(|(place, station)| {
            let core = cores.get(place).copied();
            let sender = sender.clone();
            let plan = &plan;
            scope.spawn(move || {
                let numbers = (place..plan.echo.connections as usize).step_by(threads);
                run_worker(plan, station, core, numbers, sender)
            })
        });
        let conductor = Conductor {
            plan: &plan,
            stations: &stations,
            handles: handles.collect(),
            notices,
        };
        conductor.conduct(probe)
    })
}

fn check_supported(echo: &Echo, target: &Target) -> Result<(), LoadError> {
    let what = if echo.connections == 0 || echo.window == 0 || echo.messages == Some(0) {
        "an echo of nothing"
    } else if echo.rate.is_some() && echo.messages.is_some() {
        "a schedule on connections that come and go"
    } else if echo.tls != target.tls.is_some() {
        "TLS in the cell or the target alone"
    } else {
        return Ok(());
    };
    Err(LoadError::Unsupported { what })
}

/// What a thread tells the conductor.
#[derive(Debug)]
enum Notice {
    /// Its result can be had, or it panicked.
    Ended,
    /// Its connections stand.
    Ready,
}

/// Tells that a thread ends, however it does.
struct Farewell(Sender<Notice>);

impl Drop for Farewell {
    fn drop(&mut self) {
        // Nobody listens any more when the load is abandoned.
        let _ = self.0.send(Notice::Ended);
    }
}

fn run_worker(
    plan: &Plan<'_>,
    station: &Station,
    core: Option<u32>,
    numbers: impl Iterator<Item = usize>,
    sender: Sender<Notice>,
) -> Result<Latencies, LoadError> {
    let farewell = Farewell(sender);
    let _pinned = Pinned::to(core.as_slice())?;
    station.enter();
    let worker = Worker::new(plan, station, numbers)?;
    // Nobody listens any more when the load is abandoned.
    let _ = farewell.0.send(Notice::Ready);
    worker.run()
}

/// What the caller's thread does.
struct Conductor<'scope, 'a> {
    plan: &'a Plan<'a>,
    stations: &'a [Station],
    handles: Vec<ScopedJoinHandle<'scope, Result<Latencies, LoadError>>>,
    notices: Receiver<Notice>,
}

/// Why a phase was cut short.
enum Interruption {
    /// The probe failed.
    Failed(LoadError),
    /// A thread ended; it knows why.
    WorkerEnded,
}

impl From<LoadError> for Interruption {
    fn from(error: LoadError) -> Self {
        Self::Failed(error)
    }
}

/// What the threads had done, and what it had cost them.
#[derive(Clone, Copy, Default)]
struct Done {
    verified_bytes: u64,
    connections: u64,
    received_bytes: u64,
    cpu: Duration,
}

impl Conductor<'_, '_> {
    fn conduct(self, probe: &mut dyn Probe) -> Result<Figures, LoadError> {
        let figures = self.run_phases(probe);
        if figures.is_err() {
            self.tell(Phase::Abandoned);
        }
        let mut patience = self.tick();
        while !self.handles.iter().all(ScopedJoinHandle::is_finished) {
            // A thread says that it ends a moment before it has.
            if let Ok(Notice::Ended) = self.notices.recv_timeout(patience) {
                patience = MOMENT;
            }
            self.stations.iter().for_each(Station::wake);
        }
        let mut latencies = Latencies::new();
        for handle in self.handles {
            match handle.join() {
                Ok(worker) => latencies.add(&worker?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        match figures {
            Ok(figures) => Ok(Figures {
                latency: latencies.percentiles(),
                ..figures
            }),
            Err(Interruption::Failed(error)) => Err(error),
            Err(Interruption::WorkerEnded) => unreachable!("a thread ends early by an error only"),
        }
    }

    /// Goes through the phases but the last, which ends when all threads have.
    fn run_phases(&self, probe: &mut dyn Probe) -> Result<Figures, Interruption> {
        for _ in self.stations {
            match self.notices.recv() {
                Ok(Notice::Ready) => {}
                Ok(Notice::Ended) | Err(_) => return Err(Interruption::WorkerEnded),
            }
        }
        probe.reset_peak().map_err(LoadError::Gone)?;
        self.tell(Phase::WarmUp);
        self.wait(self.plan.budget.warm_up)?;
        let meter = Meter::start(probe)?;
        let before = self.done()?;
        self.tell(Phase::Measured);
        self.wait(self.plan.budget.measured)?;
        let after = self.done()?;
        let spent = meter.read(probe)?;
        self.tell(Phase::Ending);
        let script = &self.plan.script;
        let bytes = after.verified_bytes - before.verified_bytes;
        let messages = bytes as f64 / script.answer_bytes() as f64;
        Ok(Figures {
            messages,
            payload_bytes: messages * f64::from(self.plan.echo.payload_bytes),
            wire_bytes: Some((after.received_bytes - before.received_bytes) as f64),
            connections: (after.connections - before.connections) as f64,
            load_cpu_s: (after.cpu - before.cpu).as_secs_f64(),
            load_threads: self.stations.len() as u32,
            ..spent
        })
    }

    fn tell(&self, phase: Phase) {
        for station in self.stations {
            station.tell(phase);
        }
    }

    /// Waits, and has the threads look around meanwhile. Ends early if one is hopelessly late.
    fn wait(&self, time: Duration) -> Result<(), Interruption> {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stations.iter().any(Station::is_behind) {
                return Ok(());
            }
            match self.notices.recv_timeout(left.min(self.tick())) {
                Err(RecvTimeoutError::Timeout) => self.stations.iter().for_each(Station::wake),
                Ok(_) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(Interruption::WorkerEnded);
                }
            }
        }
    }

    /// How often threads look around: often enough to notice silence in time.
    fn tick(&self) -> Duration {
        let tick = self.plan.budget.silence_max / 4;
        tick.clamp(Duration::from_millis(5), Duration::from_millis(200))
    }

    fn done(&self) -> Result<Done, LoadError> {
        let mut done = Done::default();
        for station in self.stations {
            done.verified_bytes += station.verified();
            done.connections += station.connections();
            done.received_bytes += station.received();
            done.cpu += station.cpu()?;
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests;
