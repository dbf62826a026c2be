//! The limits on what is kept of a log.

use std::sync::Arc;

use crate::asns::Asns;
use crate::countries::Countries;
use crate::spill::SpillSpace;

/// The limits of an [`Aggregator`](super::Aggregator).
///
/// With all defaults reached, it uses less than 80 MiB. Values beyond a limit are still counted,
/// and the summary says which of its figures are then estimates.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The longest line that is parsed, 64 KiB: eight times the longest request line that servers
    /// accept.
    pub line_bytes_max: usize,
    /// The most distinct addresses that are tracked, 131,072.
    pub addresses_max: usize,
    /// The most bytes of their text, 4 MiB: 32 for each, about what IPv6 needs.
    pub address_bytes_max: usize,
    /// The most distinct paths that are tracked, 131,072.
    pub paths_max: usize,
    /// The most bytes of their text, 8 MiB: 64 for each.
    pub path_bytes_max: usize,
    /// The most distinct agents that are tracked, 32,768.
    pub agents_max: usize,
    /// The most bytes of their text, 4 MiB: 128 for each.
    pub agent_bytes_max: usize,
    /// The most distinct referrers that are tracked, 32,768.
    pub referrers_max: usize,
    /// The most bytes of their text, 3 MiB: 96 for each.
    pub referrer_bytes_max: usize,
    /// The most distinct virtual hosts that are tracked, 1,024.
    pub hosts_max: usize,
    /// The most bytes of their text, 64 KiB: 64 for each.
    pub host_bytes_max: usize,
    /// The most distinct methods that are tracked, 32: the nine of HTTP and those of WebDAV.
    pub methods_max: usize,
    /// The most minutes of addresses, 131,072, to which requests that arrive later can be added.
    /// With more, the busiest minutes of addresses whose requests are not in the order of time may
    /// be too low, and [`Firewall::error_max`](crate::summary::Firewall::error_max) says by how
    /// much.
    pub minutes_max: usize,
    /// The most buckets of the timeline that are reported, 2,880: two days of minutes. Up to a
    /// quarter more are kept.
    pub timeline_buckets_max: usize,
    /// The most bytes of the columns that answer queries, 40 MiB: about ten bytes for each request
    /// in a log of one gigabyte.
    pub column_bytes_max: usize,
    /// Disk space for the columns that do not fit into memory. Defaults to `None`, so that queries
    /// are refused once memory does not suffice. Not used with `columns_age`.
    pub spill: Option<Arc<SpillSpace>>,
    /// True if the oldest requests are dropped for the newest when the columns are full, as is
    /// right for a log that never ends. Defaults to false.
    pub columns_age: bool,
    /// The most bytes of the lines themselves, compressed. Defaults to 0, so that no lines are
    /// kept.
    pub line_bytes_sum_max: usize,
    /// How many of the first unparsed lines are kept, 5.
    pub samples_max: usize,
    /// How many characters of each are kept, 200.
    pub sample_chars_max: usize,
    /// The most values in each list of a summary, 20.
    pub top_max: usize,
    /// The database of countries. Defaults to `None`, so that there are no figures of countries.
    pub countries: Option<Countries>,
    /// The database of autonomous systems. Defaults to `None`, so that requests cannot be counted
    /// by them.
    pub asns: Option<Asns>,
}

impl Limits {
    /// Lowers the limits so that everything together uses at most `bytes_max` bytes of heap: half
    /// of it for names, the rest for columns and lines. Values below 8 MiB count as 8 MiB.
    #[must_use]
    pub fn within(mut self, bytes_max: usize) -> Self {
        /// The timeline, and lists whose size does not depend on the log.
        const FIXED_BYTES: usize = 4 << 20;
        let bytes_max = bytes_max.max(8 << 20) - FIXED_BYTES;
        let names_max = self.names_bytes_max();
        if names_max > bytes_max / 2 {
            let part = (bytes_max / 2) as f64 / names_max as f64;
            for limit in self.names_mut() {
                *limit = (*limit as f64 * part) as usize;
            }
        }
        let rest = bytes_max - self.names_bytes_max();
        self.column_bytes_max = self.column_bytes_max.min(rest / 2);
        self.line_bytes_sum_max = self.line_bytes_sum_max.min(rest - self.column_bytes_max);
        self
    }

    /// Returns the limits on the number and the bytes of names, for all dimensions in which a log
    /// may have any number of values, and on the minutes of addresses.
    fn names_mut(&mut self) -> [&mut usize; 11] {
        [
            &mut self.addresses_max,
            &mut self.address_bytes_max,
            &mut self.paths_max,
            &mut self.path_bytes_max,
            &mut self.agents_max,
            &mut self.agent_bytes_max,
            &mut self.referrers_max,
            &mut self.referrer_bytes_max,
            &mut self.hosts_max,
            &mut self.host_bytes_max,
            &mut self.minutes_max,
        ]
    }

    /// Returns approximately how many bytes of heap names and their counters use at most.
    pub(crate) fn names_bytes_max(&self) -> usize {
        /// A minute of an address.
        const MINUTE_BYTES: usize = 12;
        /// A value in a table, its end, its tally, and the additional data of an address.
        const VALUE_BYTES: usize = 96;
        let values = [
            self.addresses_max,
            self.paths_max,
            self.agents_max,
            self.referrers_max,
            self.hosts_max,
            self.methods_max,
        ];
        let bytes = [
            self.address_bytes_max,
            self.path_bytes_max,
            self.agent_bytes_max,
            self.referrer_bytes_max,
            self.host_bytes_max,
        ];
        let values = values.into_iter().fold(0, usize::saturating_add);
        let bytes = bytes.into_iter().fold(0, usize::saturating_add);
        bytes
            .saturating_add(values.saturating_mul(VALUE_BYTES))
            .saturating_add(self.minutes_max.saturating_mul(MINUTE_BYTES))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes_max: 64 << 10,
            addresses_max: 131_072,
            address_bytes_max: 4 << 20,
            paths_max: 131_072,
            path_bytes_max: 8 << 20,
            agents_max: 32_768,
            agent_bytes_max: 4 << 20,
            referrers_max: 32_768,
            referrer_bytes_max: 3 << 20,
            hosts_max: 1_024,
            host_bytes_max: 64 << 10,
            methods_max: 32,
            minutes_max: 131_072,
            timeline_buckets_max: 2_880,
            column_bytes_max: 40 << 20,
            spill: None,
            columns_age: false,
            line_bytes_sum_max: 0,
            samples_max: 5,
            sample_chars_max: 200,
            top_max: crate::query::TOP_DEFAULT,
            countries: None,
            asns: None,
        }
    }
}
