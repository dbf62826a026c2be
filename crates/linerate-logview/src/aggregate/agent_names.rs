//! What the `User-Agent` header says: names that many agents have in common.

use super::dictionary::{Dictionary, FIRST, NONE, OTHER, OTHER_NAME};
use super::ranking::{Dimension, entries};
use super::tally::Tally;
use crate::summary::Panel;

/// The most bytes of a name.
pub(super) const NAME_BYTES_MAX: usize = 64;

/// The most names that are tracked, and the most bytes of them all.
const NAMES_MAX: usize = 512;
const NAME_BYTES_SUM_MAX: usize = NAMES_MAX * NAME_BYTES_MAX;

/// The names that a function finds in agents, determined once per agent: of the programs, the
/// browsers or the systems.
#[derive(Debug)]
pub(crate) struct AgentNames {
    name: fn(&[u8]) -> Option<String>,
    names: Dictionary,
    /// The code of a name by the code of an agent, from [`FIRST`].
    by_agent: Vec<u32>,
}

impl AgentNames {
    /// Creates a list that is empty. `name` returns the name in an agent, if there is one.
    pub(crate) fn new(name: fn(&[u8]) -> Option<String>) -> Self {
        Self {
            name,
            names: Dictionary::new(NAMES_MAX, NAME_BYTES_SUM_MAX),
            by_agent: Vec::new(),
        }
    }

    /// Creates the names of agents that were classified already.
    pub(super) fn of_known(names: Dictionary, by_agent: Vec<u32>) -> Self {
        Self {
            name: |_| None,
            names,
            by_agent,
        }
    }

    /// Returns the names of agents: the different ones, without a limit on their number, and for
    /// each agent the code of its name.
    pub(super) fn of<'a>(&self, agents: impl Iterator<Item = &'a [u8]>) -> (Dictionary, Vec<u32>) {
        let mut names = Dictionary::new(usize::MAX, usize::MAX);
        let codes = agents.map(|agent| {
            let name = (self.name)(agent).unwrap_or_default();
            names.code(name.as_bytes())
        });
        let codes = codes.collect();
        (names, codes)
    }

    /// Classifies the agents that were added since the last call.
    pub(super) fn classify(&mut self, agents: &Dictionary) {
        for agent in agents.values_from(self.agents()) {
            self.add((self.name)(agent));
        }
    }

    /// Returns how many agents were classified.
    pub(super) fn agents(&self) -> usize {
        self.by_agent.len()
    }

    /// Classifies the next agent, whose name is known.
    pub(super) fn add(&mut self, name: Option<String>) {
        let name = name.unwrap_or_default();
        self.by_agent.push(self.names.code(name.as_bytes()));
    }

    /// Returns the name in the agent with this code; empty if it has none.
    pub(super) fn name_of(&self, agent: u32) -> &[u8] {
        let at = agent.checked_sub(FIRST).map(|at| at as usize);
        let name = at.and_then(|at| self.by_agent.get(at)).copied();
        match name.unwrap_or(NONE) {
            OTHER => OTHER_NAME.as_bytes(),
            name => self.names.value(name),
        }
    }

    /// Returns for each agent, in the order of codes, whether `chooses` is true for its name. The
    /// name is empty for agents without one.
    pub(crate) fn of_agents(
        &self,
        agents: &Dictionary,
        chooses: impl Fn(&[u8]) -> bool,
    ) -> Vec<bool> {
        let (none, others) = ([&b""[..]; 2], self.names.values());
        let by_name: Vec<bool> = none.into_iter().chain(others).map(&chooses).collect();
        let codes = agents.values().zip(&self.by_agent);
        codes
            .map(|(agent, &code)| match code {
                OTHER => chooses((self.name)(agent).unwrap_or_default().as_bytes()),
                code => by_name[code as usize],
            })
            .collect()
    }

    /// Returns the panel of the names. Agents without a code are not counted, because finding
    /// their names again for every summary would take too long.
    pub(super) fn panel(&self, agents: Dimension<'_>, top_max: usize) -> Panel {
        let tallies = self.tallies(Dimension {
            overflow: None,
            ..agents
        });
        let not_counted = agents.tally(OTHER).requests;
        let all = agents.tallies.iter().map(|it| it.requests).sum::<u64>();
        let named = tallies.iter().map(|(_, it)| it.requests).sum::<u64>();
        let candidates = tallies
            .iter()
            .map(|(name, tally)| (tally.requests, name.as_bytes(), tally));
        Panel {
            distinct: tallies.iter().filter(|(_, it)| it.requests > 0).count() as u64,
            exact: not_counted == 0,
            error_max: not_counted,
            not_counted,
            none: all - named - not_counted,
            top: entries(top_max, candidates),
        }
    }

    /// Sums the tallies of agents by name. Agents without a code are classified again.
    pub(super) fn tallies(&self, agents: Dimension<'_>) -> Vec<(String, Tally)> {
        let mut sums = vec![Tally::default(); self.names.len() + FIRST as usize];
        for (tally, &code) in agents
            .tallies
            .iter()
            .skip(FIRST as usize)
            .zip(&self.by_agent)
        {
            sums[code as usize].add(tally);
        }
        let mut unknown = Vec::new();
        for tracked in agents.overflow.into_iter().flat_map(|it| it.tracked()) {
            let Some(name) = (self.name)(&tracked.text) else {
                continue;
            };
            match self.names.find(name.as_bytes()) {
                Some(code) => sums[code as usize].add(&tracked.tally),
                None => unknown.push(tracked.tally),
            }
        }
        let names = (0..).zip(sums).filter(|(code, _)| *code != NONE);
        let mut sums: Vec<_> = names
            .map(|(code, tally)| match code {
                0..FIRST => (OTHER_NAME.to_string(), tally),
                code => (self.names.text(code), tally),
            })
            .collect();
        if let Some((_, others)) = sums.first_mut() {
            unknown.iter().for_each(|tally| others.add(tally));
        }
        sums
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.names.memory_bytes() + self.by_agent.capacity() * size_of::<u32>()
    }
}
