//! The processes of subscribers.

use std::time::Duration;

use anyhow::Result;
use linerate_harness::process::Process;

use super::{crowd::CROWD, nodes::anonymous_bytes, plan::Plan, report::CrowdReport};
use crate::child::Child;

/// All processes of subscribers, and what they have seen so far.
pub(super) struct Crowds {
    processes: Vec<Child>,
    pub(super) seen: CrowdReport,
}

impl Crowds {
    pub(super) fn start(plan: Plan) -> Result<Self> {
        let start = |number: u32| {
            let mut arguments = vec![CROWD.to_owned(), number.to_string()];
            arguments.extend(plan.arguments());
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            Child::start(&arguments)
        };
        Ok(Self {
            processes: (0..plan.nodes).map(start).collect::<Result<_>>()?,
            seen: CrowdReport::default(),
        })
    }

    /// Gives an order to all processes, and adds what they have seen since the last one to
    /// [`seen`](Self::seen). Returns that alone.
    pub(super) fn tell(&mut self, order: &str) -> Result<CrowdReport> {
        let mut all = CrowdReport::default();
        for process in &mut self.processes {
            all.add(process.ask_for(order)?);
        }
        self.seen.then(all.clone());
        Ok(all)
    }

    /// Asks for reports.
    pub(super) fn look(&mut self) -> Result<CrowdReport> {
        self.tell("report")
    }

    pub(super) fn cpu(&self) -> Result<Duration> {
        let each = self.processes.iter();
        let each = each.map(|it| Ok(Process::new(it.id()).cpu()?));
        each.sum()
    }

    /// Returns the memory of all processes that belongs to them alone, in bytes.
    pub(super) fn memory_bytes(&self) -> Result<u64> {
        let each = self.processes.iter();
        each.map(|it| anonymous_bytes(Process::new(it.id()))).sum()
    }

    pub(super) fn end(self) -> Result<()> {
        self.processes.into_iter().try_for_each(Child::end)
    }
}
