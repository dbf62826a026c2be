//! Echo loads: closed loop, pipelined, on a schedule, and on connections that are opened and
//! closed.
//!
//! Each core of the load has a thread ([`worker`]) with its share of the clients ([`client`]). The
//! caller's thread only announces the phases to these threads. At the start and the end of the
//! measurement, it reads what they have done and what that cost.

mod client;
mod schedule;
mod station;
mod worker;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use linerate_harness::cores::AffinityGuard;

use self::station::{Phase, Station};
use self::worker::Worker;
use super::error::system;
use super::meter::{Latencies, Meter};
use super::script::Script;
use super::{Budget, LoadError, Probe, Target};
use crate::cell::Echo;
use crate::record::Figures;

/// Slightly more than the time that a thread takes to end after it has announced its end.
const MOMENT: Duration = Duration::from_micros(100);

/// What all threads of a load share.
#[derive(Debug)]
struct Plan<'a> {
    echo: &'a Echo,
    target: &'a Target,
    budget: &'a Budget,
    script: Script,
    write_bytes_max: usize,
}

/// Puts `target` under the load `echo`, with one thread on each of `cores`, or one thread on any
/// core if `cores` is empty.
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
        "no connections, an empty window, or no messages"
    } else if echo.rate.is_some() && echo.messages.is_some() {
        "a rate together with a number of messages per connection"
    } else if echo.tls != target.tls.is_some() {
        "TLS in only one of cell and target"
    } else {
        return Ok(());
    };
    Err(LoadError::Unsupported(what))
}

/// A message from a thread to the conductor.
#[derive(Debug)]
enum Notice {
    /// The thread has a result, or it panicked.
    Ended,
    /// The connections of the thread are open.
    Ready,
}

/// Tells the conductor that a thread ends, for whatever reason.
struct EndNotifier(Sender<Notice>);

impl Drop for EndNotifier {
    fn drop(&mut self) {
        // The receiver no longer exists if the load was abandoned.
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
    let notifier = EndNotifier(sender);
    let _pinned =
        AffinityGuard::to(core.as_slice()).map_err(system("cannot pin the load to its cores"))?;
    station.enter();
    let worker = Worker::new(plan, station, numbers)?;
    // The receiver no longer exists if the load was abandoned.
    let _ = notifier.0.send(Notice::Ready);
    worker.run()
}

/// Controls the phases of a load from the caller's thread.
struct Conductor<'scope, 'a> {
    plan: &'a Plan<'a>,
    stations: &'a [Station],
    handles: Vec<ScopedJoinHandle<'scope, Result<Latencies, LoadError>>>,
    notices: Receiver<Notice>,
}

/// The reason why a phase was cut short.
enum Interruption {
    /// The probe failed.
    Failed(LoadError),
    /// A thread ended. Its result says why.
    WorkerEnded,
}

impl From<LoadError> for Interruption {
    fn from(error: LoadError) -> Self {
        Self::Failed(error)
    }
}

/// What the threads have done so far, and the CPU time that they have used.
#[derive(Clone, Copy, Default)]
struct LoadTotals {
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
            // A thread announces its end shortly before it has ended.
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
            Err(Interruption::WorkerEnded) => {
                unreachable!("a thread ends early only with an error")
            }
        }
    }

    /// Runs all phases but the last. That one ends when all threads have ended.
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
        let before = self.totals()?;
        self.tell(Phase::Measured);
        self.wait(self.plan.budget.measured)?;
        let after = self.totals()?;
        let spent = meter.read(probe)?;
        self.tell(Phase::Ending);
        let script = &self.plan.script;
        let bytes = after.verified_bytes - before.verified_bytes;
        let messages = bytes as f64 / script.answer_bytes as f64;
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

    /// Waits for `time`, waking the threads at each tick. Returns early if a thread is hopelessly
    /// late.
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

    /// Returns the interval at which threads are woken: short enough to notice silence in time.
    fn tick(&self) -> Duration {
        let tick = self.plan.budget.silence_max / 4;
        tick.clamp(Duration::from_millis(5), Duration::from_millis(200))
    }

    fn totals(&self) -> Result<LoadTotals, LoadError> {
        let mut totals = LoadTotals::default();
        for station in self.stations {
            let of_thread = station.totals()?;
            totals.verified_bytes += of_thread.verified_bytes;
            totals.connections += of_thread.connections;
            totals.received_bytes += of_thread.received_bytes;
            totals.cpu += of_thread.cpu;
        }
        Ok(totals)
    }
}

#[cfg(test)]
mod tests;
