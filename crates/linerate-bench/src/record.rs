//! Records: what was run where, and its results, as lines of JSON.
//!
//! A record is one file. Its first line describes the [`Run`]; the cells and the measurements
//! follow in the order in which they were made. A report needs no other input.

mod journal;
mod read;

use serde::{Deserialize, Serialize};

use crate::cell::Cell;
pub use journal::Journal;
pub use read::RecordError;

/// Version of the format that is written, and the only one that can be read.
pub const FORMAT: u32 = 1;

/// A record that has been read, with everything that a report or a comparison needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The conditions of the run: machine, time and settings.
    pub run: Run,
    /// The cells, in the order in which they were announced.
    pub cells: Vec<Cell>,
    /// The results of the contenders. The record of a resumed run may contain the same round of a
    /// cell and a contender more than once; the last one counts.
    pub measurements: Vec<Measurement>,
}

/// A line of a record.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum Line {
    /// A cell that is about to be measured.
    Cell(Cell),
    /// The result of one contender in one round of one cell.
    Measurement(Measurement),
    /// The first line.
    Run(Run),
}

/// The conditions of a run: machine, time and settings.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Run {
    /// Version of this format.
    pub format: u32,
    /// Name of the effort: `quick`, `standard` or `thorough`.
    pub effort: String,
    /// Start time in UTC (RFC 3339).
    pub started: String,
    /// The command line as it was typed.
    pub command: String,
    /// Number of rounds for each cell, unless its scenario limits them to fewer.
    pub rounds: u32,
    /// Duration of each measurement, in milliseconds.
    pub measured_ms: u64,
    /// Duration of the warm-up before each measurement, in milliseconds.
    pub warm_up_ms: u64,
    /// Version of linerate that made the measurements.
    pub linerate: String,
    /// The machine.
    pub host: Host,
    /// The scenarios of the cells, in the order of a report.
    pub scenarios: Vec<ScenarioNote>,
    /// All contenders, including those that were not available.
    pub contenders: Vec<ContenderNote>,
}

/// The properties of a machine that figures depend on.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Host {
    /// Model name of the processor.
    pub cpu: String,
    /// Numbers of the cores that servers ran on.
    pub server_cores: Vec<u32>,
    /// Numbers of the cores that the load ran on.
    pub load_cores: Vec<u32>,
    /// Total number of cores.
    pub cores: u32,
    /// Size of the memory, in bytes.
    pub memory_bytes: u64,
    /// Name and release of the kernel.
    pub kernel: String,
    /// Name of the hypervisor, or empty.
    pub hypervisor: String,
    /// Governor of the clock frequency, or empty if it cannot be read.
    pub governor: String,
    /// The kernel's mitigations of processor flaws, as `flaw: state`.
    pub mitigations: Vec<String>,
    /// Versions of compilers and runtimes, as `name version`.
    pub tools: Vec<String>,
}

/// The description of a scenario in a report.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ScenarioNote {
    /// The name that [`Cell::scenario`] refers to.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// What the scenario is like in practice and what it shows, as plain text.
    pub about: String,
    /// Number of rounds for each of its cells, at most [`Run::rounds`].
    pub rounds: u32,
}

/// The description of a contender in a report.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ContenderNote {
    /// Name of its folder, which measurements refer to.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Language in which the library's users write their code.
    pub language: String,
    /// Version of the library.
    pub version: String,
    /// How the server is written, and each setting that is not the library's default.
    pub notes: String,
    /// Why it could not take part; `None` if it did.
    pub absent: Option<String>,
}

/// The result of one contender in one round of one cell.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Measurement {
    /// The cell, as [`Cell::id`] returns it.
    pub cell: String,
    /// Name of the contender.
    pub contender: String,
    /// Number of the round, counted from 0.
    pub round: u32,
    /// The result.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The result of a measurement.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// The server crashed, stalled or answered wrongly. It has no figures.
    Failed {
        /// What happened.
        reason: String,
    },
    /// The load generator could not keep up with the server, so the figures say more about the load
    /// than about the server. They are recorded but not published.
    LoadBound(Figures),
    /// Figures that count.
    Measured(Figures),
    /// The contender does not offer what the cell needs.
    Unsupported {
        /// What it lacks.
        reason: String,
    },
}

/// The figures of one measurement.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Figures {
    /// Duration of the measurement, in seconds.
    pub elapsed_s: f64,
    /// Number of messages (deliveries in a fan-out) that arrived completely and correctly. A
    /// message that arrived in part counts as that fraction of a message.
    pub messages: f64,
    /// Payload of these messages, in bytes.
    pub payload_bytes: f64,
    /// Bytes on the wire of the answers, including frame headers but not TLS; `None` if they were
    /// not counted.
    pub wire_bytes: Option<f64>,
    /// Number of connections that were opened and closed during the measurement.
    pub connections: f64,
    /// Resources that the server used; `None` if its process cannot be inspected.
    pub server: Option<ServerUsage>,
    /// CPU time of the load generator, in seconds.
    pub load_cpu_s: f64,
    /// Number of threads of the load generator, each on a different core.
    pub load_threads: u32,
    /// Time from the sending of a message (in an open loop, from the intended send time) to the
    /// last byte of its answer; `None` if it was not measured.
    pub latency: Option<Latency>,
    /// Memory of idle connections, in cells that compare it.
    pub idle: Option<IdleMemory>,
}

/// The resources that a server used during a measurement.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ServerUsage {
    /// CPU time of all its threads, in seconds.
    pub cpu_s: f64,
    /// The part of the CPU time in user mode. It is coarse, because kernels count it in ticks.
    pub user_s: f64,
    /// The part of the CPU time in the kernel.
    pub system_s: f64,
    /// Peak of the resident memory during the measurement and its warm-up, in bytes.
    pub resident_bytes_peak: u64,
    /// Number of cores that the server may use.
    pub cores: u32,
}

/// Percentiles of latency, in microseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Latency {
    /// Number of messages that were timed.
    pub count: u64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Maximum.
    pub max_us: f64,
}

/// Resident memory of a server with idle connections.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct IdleMemory {
    /// Number of open connections.
    pub connections: u32,
    /// Bytes before the first connection.
    pub resident_bytes_before: u64,
    /// Bytes with all connections open, before any of them has sent a message.
    pub resident_bytes_idle: u64,
    /// Bytes after each connection has had one message echoed.
    pub resident_bytes_after: u64,
}
