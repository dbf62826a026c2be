//! Who subscribes to what, and where: arithmetic that all processes agree on.

use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::{Result, ensure};
use clap::Args;

/// Files that a process opens besides the sockets of subscribers.
const OTHER_FILES: u32 = 256;

/// Subscribers, channels, nodes and processes of subscribers, as many of the last two.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Number of subscribers, each with one connection
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(crate) subscribers: u32,
    /// Number of channels; each subscriber has one
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) channels: u32,
    /// Number of nodes, and of client processes
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(crate) nodes: u32,
    /// The port of all nodes, each of which has its own loopback address
    #[arg(long, value_name = "PORT", default_value_t = 18_080)]
    pub(crate) port: u16,
}

impl Plan {
    /// Checks that the processes can open as many connections.
    ///
    /// # Errors
    /// A number is zero, or there are too few nodes. While a node restarts, the others have its
    /// subscribers.
    pub(crate) fn check(&self, files_max: u64) -> Result<()> {
        let Self {
            subscribers,
            channels,
            nodes,
            ..
        } = *self;
        ensure!(
            channels > 0 && nodes > 1 && subscribers >= nodes,
            "at least 1 channel, 2 nodes, and 1 subscriber for each node are required"
        );
        ensure!(nodes <= 250, "{nodes} nodes; at most 250 have addresses");
        let most = u64::from(self.connections_max() + OTHER_FILES);
        ensure!(
            most <= files_max,
            "{subscribers} subscribers on {nodes} nodes need up to {most} files in a process; \
             {files_max} are allowed: use more nodes"
        );
        Ok(())
    }

    /// Returns how many connections a node accepts: more than its share, because restarted nodes
    /// begin without any.
    pub(crate) const fn connections_max(&self) -> u32 {
        let share = self.subscribers.div_ceil(self.nodes);
        share + share.div_ceil(8) + 64
    }

    /// Returns the subscribers of a client process.
    pub(crate) fn crowd(&self, number: u32) -> std::ops::Range<u32> {
        let from = |number: u32| {
            let first = u64::from(number) * u64::from(self.subscribers) / u64::from(self.nodes);
            u32::try_from(first).unwrap_or(self.subscribers)
        };
        from(number)..from(number + 1)
    }

    pub(crate) const fn channel(&self, subscriber: u32) -> u32 {
        subscriber % self.channels
    }

    /// Returns the first node of a subscriber. Those of a channel are on different nodes.
    pub(crate) const fn node(&self, subscriber: u32) -> u32 {
        (subscriber + subscriber / self.channels) % self.nodes
    }

    pub(crate) fn address(&self, node: u32) -> SocketAddrV4 {
        let last = u8::try_from(node + 1).unwrap_or(u8::MAX);
        SocketAddrV4::new(Ipv4Addr::new(127, 1, 0, last), self.port)
    }

    /// Returns the address from which a client process connects.
    pub(crate) fn source(&self, crowd: u32) -> Ipv4Addr {
        let last = u8::try_from(crowd + 1).unwrap_or(u8::MAX);
        Ipv4Addr::new(127, 2, 0, last)
    }

    /// Returns the number of publications in a channel after `total` in all channels, which have
    /// their turns one after the other.
    pub(crate) fn publications(&self, channel: u32, total: u64) -> u64 {
        let channels = u64::from(self.channels);
        total / channels + u64::from(u64::from(channel) < total % channels)
    }

    /// Returns the plan as arguments of a process of subscribers.
    pub(crate) fn arguments(&self) -> [String; 4] {
        [
            self.subscribers,
            self.channels,
            self.nodes,
            self.port.into(),
        ]
        .map(|it| it.to_string())
    }
}

/// Returns the name of a channel.
pub(crate) fn channel_name(channel: u32) -> String {
    format!("million-{channel}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Plan;

    const PLAN: Plan = Plan {
        subscribers: 1_000_000,
        channels: 100_000,
        nodes: 60,
        port: 1,
    };

    #[test]
    fn every_subscriber_belongs_to_one_process_and_nodes_have_equal_shares() {
        let mut next = 0;
        for number in 0..PLAN.nodes {
            let crowd = PLAN.crowd(number);
            assert_eq!(crowd.start, next);
            next = crowd.end;
        }
        assert_eq!(next, PLAN.subscribers);
        let mut nodes = vec![0; 60];
        for subscriber in 0..PLAN.subscribers {
            nodes[PLAN.node(subscriber) as usize] += 1;
        }
        assert!(nodes.iter().all(|count| (16_000..17_500).contains(count)));
    }

    #[test]
    fn subscribers_of_a_channel_are_on_different_nodes() {
        for channel in [0, 1, 77_777] {
            let subscribers = (0..10).map(|turn| channel + turn * PLAN.channels);
            let nodes: BTreeSet<_> = subscribers.map(|it| PLAN.node(it)).collect();
            assert_eq!(nodes.len(), 10);
        }
    }

    #[test]
    fn channels_have_their_turns_one_after_the_other() {
        assert_eq!(PLAN.publications(0, 0), 0);
        assert_eq!(PLAN.publications(0, 100_001), 2);
        assert_eq!(PLAN.publications(1, 100_001), 1);
    }

    #[test]
    fn a_plan_for_which_a_process_has_too_few_files_is_refused() {
        assert!(PLAN.check(20_000).is_ok());
        let error = PLAN.check(10_000).unwrap_err().to_string();
        assert!(error.contains("1000000 subscribers on 60 nodes"), "{error}");
        assert!(Plan { nodes: 1, ..PLAN }.check(20_000_000).is_err());
    }
}
