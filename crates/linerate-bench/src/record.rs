//! Records: what was run where, and what came of it, as lines of JSON.
//!
//! A record is one file. Its first line describes the [`Run`]; then come the cells and the
//! measurements in the order in which they were made. A report needs nothing else.

mod journal;
mod read;

use serde::{Deserialize, Serialize};

use crate::cell::Cell;
pub use journal::Journal;
pub use read::RecordError;

/// The version of the format that is written, and the only one that is read.
pub const FORMAT: u32 = 1;

/// A record that has been read: all that a report or a comparison needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Where, when and with what was measured.
    pub run: Run,
    /// The cells, in the order in which they were announced.
    pub cells: Vec<Cell>,
    /// What the contenders did. A resumed run may hold the same round of a cell and a contender
    /// more than once; the last one counts.
    pub measurements: Vec<Measurement>,
}

/// A line of a record.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum Line {
    /// A cell that is going to be measured.
    Cell(Cell),
    /// What one contender did in one round of one cell.
    Measurement(Measurement),
    /// The first line.
    Run(Run),
}

/// Where, when and with what was measured.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Run {
    /// The version of this format.
    pub format: u32,
    /// The name of the effort: `quick`, `standard` or `thorough`.
    pub effort: String,
    /// Start, RFC 3339, UTC.
    pub started: String,
    /// The command line as typed.
    pub command: String,
    /// Rounds for each cell, unless its scenario is content with fewer.
    pub rounds: u32,
    /// Milliseconds of each measurement.
    pub measured_ms: u64,
    /// Milliseconds before each measurement that do not count.
    pub warm_up_ms: u64,
    /// The version of linerate that measured.
    pub linerate: String,
    /// The machine.
    pub host: Host,
    /// The scenarios that the cells belong to, in the order of a report.
    pub scenarios: Vec<ScenarioNote>,
    /// All contenders, also those that could not be had.
    pub contenders: Vec<ContenderNote>,
}

/// A machine, as far as figures depend on it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Host {
    /// The processor's name for itself.
    pub cpu: String,
    /// The numbers of the cores that servers ran on.
    pub server_cores: Vec<u32>,
    /// The numbers of the cores that the load ran on.
    pub load_cores: Vec<u32>,
    /// Cores in all.
    pub cores: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Name and release of the kernel.
    pub kernel: String,
    /// The hypervisor's name, or empty.
    pub hypervisor: String,
    /// The governor of the clock frequency, or empty where none can be seen.
    pub governor: String,
    /// The kernel's mitigations of processor flaws, as `flaw: state`.
    pub mitigations: Vec<String>,
    /// Versions of compilers and run-times, as `name version`.
    pub tools: Vec<String>,
}

/// What a report says of a scenario.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ScenarioNote {
    /// The name that [`Cell::scenario`] refers to.
    pub name: String,
    /// For people.
    pub title: String,
    /// What it is like in practice, and what it shows; plain text.
    pub about: String,
    /// Rounds for each of its cells, at most [`Run::rounds`].
    pub rounds: u32,
}

/// What a report says of a contender.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ContenderNote {
    /// The name of its folder, which measurements refer to.
    pub name: String,
    /// For people.
    pub title: String,
    /// The language its users write.
    pub language: String,
    /// The version of the library.
    pub version: String,
    /// How the server is written, and each setting that is not the library's default.
    pub notes: String,
    /// Why it could not take part; `None` if it did.
    pub absent: Option<String>,
}

/// What one contender did in one round of one cell.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Measurement {
    /// [`Cell::id`].
    pub cell: String,
    /// The contender's name.
    pub contender: String,
    /// Counted from 0.
    pub round: u32,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What came of a measurement.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// It crashed, stalled or answered wrongly: nothing is counted.
    Failed {
        /// What happened.
        reason: String,
    },
    /// The load generator could not keep up with the server, so the figures say more about it than
    /// about the server: they are kept, and not published.
    LoadBound(Figures),
    /// Figures that count.
    Measured(Figures),
    /// It does not offer what the cell needs.
    Unsupported {
        /// What it lacks.
        reason: String,
    },
}

/// The figures of one measurement.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Figures {
    /// Length of the measurement, seconds.
    pub elapsed_s: f64,
    /// Messages (deliveries in a fan-out) whose last byte came and was right. A message of which a
    /// part came counts as that part of one.
    pub messages: f64,
    /// Their payload.
    pub payload_bytes: f64,
    /// What came of them on the wire, frame headers included and TLS not; `None` where it isn't counted.
    pub wire_bytes: Option<f64>,
    /// Connections that were opened and closed meanwhile.
    pub connections: f64,
    /// What the server spent; `None` if it is not ours to look into.
    pub server: Option<Spent>,
    /// CPU time of the load generator, seconds.
    pub load_cpu_s: f64,
    /// Threads of the load generator, each on a core of its own.
    pub load_threads: u32,
    /// From the send of a message (in an open loop: from the intended time) to its answer's last
    /// byte; `None` where it isn't measured.
    pub latency: Option<Latency>,
    /// The memory of idle connections, in cells about that.
    pub idle: Option<IdleMemory>,
}

/// What a server spent during a measurement.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Spent {
    /// CPU time of all its threads, seconds.
    pub cpu_s: f64,
    /// The part of it in user mode. Kernels count it in ticks, so that it is coarse.
    pub user_s: f64,
    /// The part of it in the kernel.
    pub system_s: f64,
    /// Peak resident memory, of the measurement and its warm-up.
    pub resident_bytes_peak: u64,
    /// Cores that the server may use.
    pub cores: u32,
}

/// Percentiles of latency, microseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Latency {
    /// Messages that were timed.
    pub count: u64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
}

/// Resident memory of a server with idle connections.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct IdleMemory {
    /// Connections that were open.
    pub connections: u32,
    /// Before the first connection.
    pub resident_bytes_before: u64,
    /// With all connections open, none of which has sent a message.
    pub resident_bytes_idle: u64,
    /// After each has had one message echoed.
    pub resident_bytes_after: u64,
}
