//! Measures an abuse in slices with and without it.

use std::{
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use linerate_harness::{machine::MachineTimes, process::Process};

use crate::{
    attack::{HOW, OFF, ON, Tally, WELL, counted},
    child::Child,
    live::LiveClients,
    waits::median,
};

/// The length of a slice.
pub(crate) const SLICE: Duration = Duration::from_millis(500);

/// The length of a slice whose result is not used.
const SHORT: Duration = Duration::from_millis(10);

/// How long files may stay open after an attack; this includes the server's deadlines.
const RELEASE_MAX: Duration = Duration::from_secs(45);

/// The options of a run.
#[derive(Debug)]
pub(crate) struct Effort {
    pub(crate) scale: f64,
    pub(crate) slices: usize,
    pub(crate) linerate: PathBuf,
}

impl Effort {
    /// Returns `number` multiplied by the scale, at least 1.
    pub(crate) fn scaled(&self, number: usize) -> usize {
        ((number as f64 * self.scale) as usize).max(1)
    }
}

/// A quantity before an abuse, at its peak, and after it.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(crate) struct Span {
    pub(crate) before: u64,
    pub(crate) peak: u64,
    pub(crate) after: u64,
}

/// The measurements of a row.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub(crate) struct Figures {
    pub(crate) memory_bytes: Span,
    pub(crate) files: Span,
    /// The server's CPU time during the abuse, as a share of one core.
    pub(crate) processor_share: f64,
    /// The share of the machine's CPU time that its host took during the measurement.
    pub(crate) stolen_share: f64,
    /// The 99th percentile of the latency without and with the abuse: the median over the slices.
    pub(crate) p99_alone: Duration,
    pub(crate) p99_with: Duration,
    /// The attackers' tally.
    pub(crate) tally: Tally,
}

impl Figures {
    /// Returns a count of the attackers' tally.
    pub(crate) fn counted(&self, name: &str) -> u64 {
        counted(&self.tally, name)
    }
}

/// A server that is measured while it is abused.
pub(crate) struct Watch {
    process: Process,
    times_before: MachineTimes,
    memory_before: u64,
    files: Span,
    processor_time: Duration,
    abused: Duration,
}

impl Watch {
    pub(crate) fn begin(process: Process) -> Result<Self> {
        process.reset_peak()?;
        let files = process.open_files()?;
        Ok(Self {
            times_before: MachineTimes::now()?,
            memory_before: process.resident_bytes()?,
            files: Span {
                before: files,
                peak: files,
                after: files,
            },
            process,
            processor_time: Duration::ZERO,
            abused: Duration::ZERO,
        })
    }

    /// Runs `work`, during which there is abuse.
    pub(crate) fn during<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let (started, before) = (Instant::now(), self.process.cpu()?);
        let done = work(self)?;
        self.abused += started.elapsed();
        self.processor_time += self.process.cpu()?.saturating_sub(before);
        self.look()?;
        Ok(done)
    }

    /// Samples the number of open files.
    pub(crate) fn look(&mut self) -> Result<()> {
        self.files.peak = self.files.peak.max(self.process.open_files()?);
        Ok(())
    }

    /// Returns how many bytes of memory were in use at the beginning.
    pub(crate) const fn memory_before(&self) -> u64 {
        self.memory_before
    }

    /// Returns the CPU time used per second of abuse.
    pub(crate) fn processor_share(&self) -> f64 {
        self.processor_time.as_secs_f64() / self.abused.as_secs_f64()
    }

    fn stolen_share(&self) -> Result<f64> {
        let (before, now) = (self.times_before, MachineTimes::now()?);
        let stolen = now.stolen.saturating_sub(before.stolen);
        Ok(stolen.div_duration_f64(now.all.saturating_sub(before.all)))
    }

    /// Waits until the number of open files is back to what it was, or a deadline passes. Figures
    /// that are not measured here are zero.
    pub(crate) fn end(self) -> Result<Figures> {
        self.end_meanwhile(|| Ok(()))
    }

    /// Like [`Watch::end`], with the latencies without and with the abuse.
    pub(crate) fn end_with(self, alone: Vec<Duration>, with: Vec<Duration>) -> Result<Figures> {
        Ok(Figures {
            p99_alone: median(alone),
            p99_with: median(with),
            ..self.end()?
        })
    }

    /// Like [`Watch::end`], but calls `work` repeatedly while waiting.
    fn end_meanwhile(mut self, mut work: impl FnMut() -> Result<()>) -> Result<Figures> {
        let deadline = Instant::now() + RELEASE_MAX;
        let peak = self.process.resident_bytes_peak()?;
        loop {
            self.files.after = self.process.open_files()?;
            if self.files.after <= self.files.before || Instant::now() >= deadline {
                break;
            }
            thread::sleep(Duration::from_millis(20));
            work()?;
        }
        // Memory that was released at the end of the last connection shows a little later.
        thread::sleep(Duration::from_millis(500));
        Ok(Figures {
            processor_share: self.processor_share(),
            stolen_share: self.stolen_share()?,
            memory_bytes: Span {
                before: self.memory_before,
                peak,
                after: self.process.resident_bytes()?,
            },
            files: self.files,
            ..Figures::default()
        })
    }
}

/// Alternates slices without and with an abuse. If the abuse has a twin, the former run with the
/// twin.
pub(crate) fn alternate(
    process: Process,
    live: &mut LiveClients,
    attackers: &mut Child,
    has_twin: bool,
    effort: &Effort,
) -> Result<Figures> {
    live.p99(SLICE)?;
    let mut watch = Watch::begin(process)?;
    let (mut alone, mut with) = (Vec::new(), Vec::new());
    for _ in 0..effort.slices {
        if has_twin {
            order(attackers, live, WELL)?;
        }
        alone.push(live.p99(SLICE)?);
        if has_twin {
            order(attackers, live, OFF)?;
        }
        order(attackers, live, ON)?;
        with.push(watch.during(|_| live.p99(SLICE))?);
        order(attackers, live, OFF)?;
    }
    let tally = attackers.ask_for(HOW)?;
    let figures = watch.end_meanwhile(|| live.p99(SHORT).map(|_| ()))?;
    Ok(Figures {
        p99_alone: median(alone),
        p99_with: median(with),
        tally,
        ..figures
    })
}

/// Sends a command to attackers. Live clients continue meanwhile, so that they answer Pings.
fn order(attackers: &mut Child, live: &mut LiveClients, order: &str) -> Result<()> {
    let serve_live_clients = || live.p99(SHORT).map(|_| ());
    attackers
        .ask_meanwhile(order, serve_live_clients)
        .map(|_| ())
}

/// How soon memory has to be released after the last attacker has disconnected.
pub(crate) const BACK_WITHIN: Duration = Duration::from_secs(10);

/// Waits until a process uses at most `bytes_max` bytes of memory, and calls `meanwhile`
/// repeatedly. Returns the time since `since`, or `None` after [`BACK_WITHIN`].
pub(crate) fn wait_until_back(
    process: Process,
    bytes_max: u64,
    since: Instant,
    mut meanwhile: impl FnMut() -> Result<()>,
) -> Result<Option<Duration>> {
    while since.elapsed() <= BACK_WITHIN {
        if process.resident_bytes()? <= bytes_max {
            return Ok(Some(since.elapsed()));
        }
        meanwhile()?;
        thread::sleep(Duration::from_millis(50));
    }
    Ok(None)
}
