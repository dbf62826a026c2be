//! Records made by hand.

use crate::cell::{Cell, Deflate, Echo, Idle, Load, Payload};
use crate::record::{
    ContenderNote, Figures, Host, IdleMemory, Latency, Measurement, Outcome, Record, Run,
    ScenarioNote, ServerUsage,
};

/// A record under construction.
pub(crate) struct Sample(pub(crate) Record);

impl Sample {
    /// Creates a run of three rounds without cells and contenders.
    pub(crate) fn new() -> Self {
        let host = Host {
            cpu: "Abacus 2000".into(),
            server_cores: vec![0],
            load_cores: vec![1],
            cores: 2,
            memory_bytes: 8 << 30,
            kernel: "Linux 6.1".into(),
            hypervisor: String::new(),
            governor: String::new(),
            mitigations: vec!["spectre_v2: Mitigation".into()],
            tools: vec!["rustc 1.95.0".into()],
        };
        let run = Run {
            format: 1,
            effort: "standard".into(),
            started: "2026-11-20T20:00:00Z".into(),
            command: "linerate bench --effort standard".into(),
            rounds: 3,
            measured_ms: 200,
            warm_up_ms: 40,
            linerate: "0.1.0".into(),
            host,
            scenarios: Vec::new(),
            contenders: Vec::new(),
        };
        Self(Record {
            run,
            cells: Vec::new(),
            measurements: Vec::new(),
        })
    }

    /// Adds a cell, and its scenario if that is new.
    pub(crate) fn cell(mut self, cell: Cell) -> Self {
        let scenarios = &mut self.0.run.scenarios;
        if scenarios.iter().all(|note| note.name != cell.scenario) {
            scenarios.push(ScenarioNote {
                name: cell.scenario.clone(),
                title: format!("The {} scenario", cell.scenario),
                about: format!("What {} shows.", cell.scenario),
                rounds: 3,
            });
        }
        self.0.cells.push(cell);
        self
    }

    /// Adds a contender in Rust.
    pub(crate) fn contender(self, name: &str) -> Self {
        self.contender_in("Rust", name)
    }

    pub(crate) fn contender_in(mut self, language: &str, name: &str) -> Self {
        self.0.run.contenders.push(ContenderNote {
            name: name.into(),
            title: name.into(),
            language: language.into(),
            version: "1.2.3".into(),
            notes: format!("How {name} is used."),
            absent: None,
        });
        self
    }

    /// Adds an outcome.
    pub(crate) fn outcome(
        mut self,
        cell: &str,
        contender: &str,
        round: u32,
        outcome: Outcome,
    ) -> Self {
        self.0.measurements.push(Measurement {
            cell: cell.into(),
            contender: contender.into(),
            round,
            outcome,
        });
        self
    }

    /// Adds rounds that differ in the number of messages per second of the server's CPU time.
    pub(crate) fn measured(mut self, cell: &str, contender: &str, per_cpu_second: &[f64]) -> Self {
        for (round, figure) in (0..).zip(per_cpu_second) {
            let outcome = Outcome::Measured(per_cpu(*figure));
            self = self.outcome(cell, contender, round, outcome);
        }
        self
    }

    pub(crate) fn failed(self, cell: &str, contender: &str, round: u32, reason: &str) -> Self {
        let reason = reason.into();
        self.outcome(cell, contender, round, Outcome::Failed { reason })
    }
}

/// Returns figures of a tenth of a second in which the server is busy for half of the time.
pub(crate) fn per_cpu(messages_per_cpu_second: f64) -> Figures {
    Figures {
        elapsed_s: 0.1,
        messages: messages_per_cpu_second * 0.05,
        payload_bytes: messages_per_cpu_second * 0.05 * 8.0,
        server: Some(ServerUsage {
            cpu_s: 0.05,
            user_s: 0.02,
            system_s: 0.03,
            resident_bytes_peak: 10 << 20,
            cores: 1,
        }),
        load_cpu_s: 0.05,
        load_threads: 1,
        latency: Some(latency(1_000.0)),
        ..Figures::default()
    }
}

/// Returns a latency with this 99th percentile, in microseconds.
pub(crate) fn latency(p99_us: f64) -> Latency {
    Latency {
        count: 1_000,
        p50_us: p99_us / 10.0,
        p90_us: p99_us / 2.0,
        p99_us,
        p999_us: p99_us * 2.0,
        max_us: p99_us * 3.0,
    }
}

/// Returns figures of a thousand idle connections. The arguments are the bytes of each before and
/// after a message.
pub(crate) fn idle(before: u64, after: u64) -> Figures {
    let memory = IdleMemory {
        connections: 1_000,
        resident_bytes_before: 1 << 20,
        resident_bytes_idle: (1 << 20) + 1_000 * before,
        resident_bytes_after: (1 << 20) + 1_000 * after,
    };
    Figures {
        idle: Some(memory),
        latency: None,
        ..per_cpu(1_000.0)
    }
}

/// Returns a cell of small messages.
pub(crate) fn echo(scenario: &str, name: &str) -> Cell {
    Cell {
        scenario: scenario.into(),
        name: name.into(),
        title: format!("{scenario} {name}"),
        load: Load::Echo(Echo {
            connections: 8,
            window: 16,
            payload_bytes: 8,
            payload: Payload::Ascii,
            frames: 1,
            write_bytes_max: None,
            tls: false,
            deflate: Deflate::Off,
            rate: None,
            messages: None,
        }),
    }
}

/// Returns a cell of messages on a schedule, which compares latency.
pub(crate) fn scheduled(scenario: &str, name: &str) -> Cell {
    let mut cell = echo(scenario, name);
    if let Load::Echo(echo) = &mut cell.load {
        echo.rate = Some(20_000.0);
    }
    cell
}

/// Returns a cell of idle connections, which compares memory.
pub(crate) fn idle_cell(scenario: &str, name: &str) -> Cell {
    Cell {
        load: Load::Idle(Idle {
            connections: 1_000,
            payload_bytes: 16_384,
        }),
        ..echo(scenario, name)
    }
}
