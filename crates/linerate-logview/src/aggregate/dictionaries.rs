//! The dictionaries that give the values of requests their codes.

use super::dictionary::Dictionary;
use super::limits::Limits;
use crate::format::Record;
use crate::store::{Row, TEXTS};

/// Returns the values of a record, in the order of [`TEXTS`].
#[inline]
pub(crate) fn values<'a>(record: &Record<'a>) -> [&'a [u8]; TEXTS.len()] {
    [
        record.address,
        record.agent,
        record.host,
        record.method,
        record.path,
        record.referrer,
    ]
}

/// The dictionaries of all dimensions.
#[derive(Debug)]
pub(crate) struct Dictionaries([Dictionary; TEXTS.len()]);

impl Dictionaries {
    pub(crate) fn new(limits: &Limits) -> Self {
        /// The longest method that a parser accepts.
        const METHOD_BYTES_MAX: usize = 32;
        Self([
            Dictionary::new(limits.addresses_max, limits.address_bytes_max),
            Dictionary::new(limits.agents_max, limits.agent_bytes_max),
            Dictionary::new(limits.hosts_max, limits.host_bytes_max),
            Dictionary::new(limits.methods_max, limits.methods_max * METHOD_BYTES_MAX),
            Dictionary::new(limits.paths_max, limits.path_bytes_max),
            Dictionary::new(limits.referrers_max, limits.referrer_bytes_max),
        ])
    }

    /// Creates dictionaries without limits, for one piece of a log.
    pub(crate) fn unlimited() -> Self {
        Self(TEXTS.map(|_| Dictionary::new(usize::MAX, usize::MAX)))
    }

    /// Returns the request with codes for its values.
    #[inline(always)]
    pub(crate) fn row(&mut self, record: &Record<'_>) -> Row {
        let [address, agent, host, method, path, referrer] = &mut self.0;
        Row {
            time: record.time,
            bytes_sent: record.bytes_sent,
            // The column stores the duration plus one, so that 0 means none.
            duration: record.duration.map(|it| it.min(u64::MAX - 1)),
            codes: [
                address.code(record.address),
                agent.code(record.agent),
                host.code(record.host),
                method.code(record.method),
                path.code(record.path),
                referrer.code(record.referrer),
            ],
            status: record.status,
        }
    }

    pub(crate) fn of(&self, text: usize) -> &Dictionary {
        &self.0[text]
    }

    pub(crate) fn of_mut(&mut self, text: usize) -> &mut Dictionary {
        &mut self.0[text]
    }

    /// Removes all values but keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.0.iter_mut().for_each(Dictionary::clear);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.iter().map(Dictionary::memory_bytes).sum()
    }
}
