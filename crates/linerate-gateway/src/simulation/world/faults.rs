//! What happens to the simulated world: publications, and faults of nodes, servers, networks and
//! clients.

use super::{Kind, Message, Mix, Packet, RECONNECT_MAX_MS, World, ZONES};

impl World {
    /// Lets a random thing happen.
    pub(super) fn step(&mut self) {
        match self.mix {
            Mix::Everything => self.step_of_everything(),
            Mix::TwoMasters => self.step_with_two_masters(),
        }
    }

    fn step_with_two_masters(&mut self) {
        match self.rng.below(100) {
            0..50 => self.publish(),
            50..70 => self.leave(),
            70..76 => self.fail_over(),
            76..82 => self.isolate_zone(),
            82..88 => self.end_partitions(),
            _ => {}
        }
    }

    fn step_of_everything(&mut self) {
        match self.rng.below(100) {
            0..40 => self.publish(),
            40..45 => self.publish_through_a_node(),
            45..50 => self.leave(),
            50..60 => self.stall_or_read(),
            60..64 => self.cut_off_or_reconnect(),
            64..67 => self.freeze(),
            67..70 => self.crash(),
            70..72 => self.restart_server(),
            72..74 => self.fail_over(),
            74..75 => self.lose_zone(),
            75..77 => self.isolate_zone(),
            77..80 => self.end_partitions(),
            80..81 => self.deploy(),
            _ => {}
        }
    }

    fn publish(&mut self) {
        let channel = self.rng.below(self.channels.len());
        let is_primary = self.rng.below(4) > 0;
        for _ in 0..*self.rng.pick(&[1, 1, 2, 5]) {
            self.publish_once(channel, is_primary);
        }
    }

    pub(super) fn publish_once(&mut self, channel: usize, is_primary: bool) {
        let channel = self.channels[channel].clone();
        let shard = self.shard_of(&channel);
        let server = {
            let network = self.network.lock();
            let others = network.serving.iter().copied();
            let mut others = others.filter(|server| server % self.scale.shards == shard);
            let primary = network.primaries[shard];
            match is_primary {
                true => network.serving.contains(&primary).then_some(primary),
                false => others.next(),
            }
        };
        if let Some(server) = server {
            let mut sent = Vec::new();
            let mut send = |to, message| sent.push((to, message));
            self.servers[server].publish(&channel, &mut send);
            self.send(sent);
        }
    }

    fn publish_through_a_node(&mut self) {
        let channel = self.rng.below(self.channels.len());
        let slot = self.rng.below(self.slots.len());
        if let Some(machine) = &mut self.slots[slot].machine {
            machine.publish(&self.channels[channel]);
        }
    }

    fn leave(&mut self) {
        let client = self.rng.below(self.clients.len());
        let retry_at = self.now + self.rng.below(RECONNECT_MAX_MS) as u64;
        self.clients[client].leave(retry_at);
    }

    fn stall_or_read(&mut self) {
        let client = self.rng.below(self.clients.len());
        self.clients[client].is_stalled = self.rng.below(2) == 0;
    }

    fn cut_off_or_reconnect(&mut self) {
        let slot = self.rng.below(self.slots.len());
        let Some(machine) = &self.slots[slot].machine else {
            return;
        };
        let mut network = self.network.lock();
        let place = &mut network.nodes[machine.number];
        place.is_cut_off = !place.is_cut_off;
        self.seen.partitions += u64::from(place.is_cut_off);
        network.resume();
    }

    fn isolate_zone(&mut self) {
        let zone = self.rng.below(ZONES);
        let mut network = self.network.lock();
        if network.isolated.replace(zone).is_none() {
            self.seen.partitions += 1;
        }
        network.resume();
    }

    pub(super) fn end_partitions(&mut self) {
        {
            let mut network = self.network.lock();
            for place in &mut network.nodes {
                place.is_cut_off = false;
            }
            network.isolated = None;
            network.resume();
        }
        // A primary that was replaced while it was isolated learns of that, and becomes a copy.
        let (serving, primaries) = {
            let network = self.network.lock();
            (network.serving.clone(), network.primaries.clone())
        };
        for server in serving {
            if !primaries.contains(&server) {
                self.stop_serving(server);
            }
        }
    }

    fn freeze(&mut self) {
        let slot = self.rng.below(self.slots.len());
        let until = self.now + self.rng.below(8_000) as u64;
        let slot = &mut self.slots[slot];
        if slot.machine.is_some() && slot.frozen_until.is_none() {
            slot.frozen_until = Some(until);
            self.seen.freezes += 1;
        }
    }

    fn crash(&mut self) {
        let slot = self.rng.below(self.slots.len());
        let down = self.rng.below(5_000) as u64;
        if self.end(slot, down, true) {
            self.seen.crashes += 1;
        }
    }

    /// Ends a process, which starts again `down` milliseconds later. Returns whether there was one.
    /// If `are_others_told`, the kernel closes its connections.
    pub(super) fn end(&mut self, slot: usize, down: u64, are_others_told: bool) -> bool {
        self.slots[slot].starts_at = self.now + down;
        self.slots[slot].frozen_until = None;
        self.slots[slot].ends_at = None;
        let Some(machine) = self.slots[slot].machine.take() else {
            return false;
        };
        let number = machine.number;
        drop(machine);
        let mut network = self.network.lock();
        network.drop_packets(|connection| connection.node == number);
        drop(network);
        if are_others_told {
            for server in &mut self.servers {
                server.forget_node(number);
            }
        }
        for client in &mut self.clients {
            if let Some(seat) = &client.seat
                && seat.node == number
            {
                let bytes = self.rng.below(seat.pipe.unread() + 1);
                seat.pipe.cut(bytes);
            }
        }
        true
    }

    fn restart_server(&mut self) {
        let server = self.rng.below(self.servers.len());
        let down = self.rng.below(5_000) as u64;
        self.stop(server, down, true);
        self.seen.restarts += 1;
    }

    /// Stops a server, which starts again `down` milliseconds later.
    fn stop(&mut self, server: usize, down: u64, are_others_told: bool) {
        if self.stopped.iter().any(|(stopped, _)| *stopped == server) {
            return;
        }
        self.stopped.push((server, self.now + down));
        let connections = self.servers[server].close();
        let mut network = self.network.lock();
        network.serving.remove(&server);
        network.drop_packets(|connection| connection.server == server);
        if are_others_told {
            for connection in connections {
                network.send(connection, Packet::ToNode(Message::Closed));
            }
        }
        drop(network);
        if self.kind == Kind::Redis {
            self.runs += 1;
            self.servers[server].forget(self.runs);
        }
    }

    /// Makes the other server of a shard its primary, as a sentinel does.
    fn fail_over(&mut self) {
        let shard = self.rng.below(self.scale.shards);
        let old = self.network.lock().primaries[shard];
        let new = (old + self.scale.shards) % self.servers.len();
        if self.stopped.iter().any(|(stopped, _)| *stopped == new) {
            return;
        }
        // A primary that has not noticed that it was replaced is not a copy of the other one.
        if self.network.lock().serving.contains(&new) {
            return;
        }
        self.seen.failovers += 1;
        self.runs += 1;
        let [old_server, new_server] = self
            .servers
            .get_disjoint_mut([old, new])
            .expect("a shard has two servers");
        match self.kind {
            Kind::Nats => new_server.replace(old_server),
            Kind::Redis => new_server.forget(self.runs),
        }
        let is_isolated = {
            let mut network = self.network.lock();
            network.primaries[shard] = new;
            network.serving.insert(new);
            let zones = [old, new].map(|server| Some(network.servers[server].zone));
            network.isolated.is_some() && zones.contains(&network.isolated)
        };
        // Redis does not notice that it was replaced as long as it is isolated. NATS does not
        // answer without a quorum.
        if self.kind == Kind::Nats || !is_isolated {
            self.stop_serving(old);
        }
    }

    /// Makes a server a copy, which has no connections.
    fn stop_serving(&mut self, server: usize) {
        let connections = self.servers[server].close();
        let mut network = self.network.lock();
        network.serving.remove(&server);
        for connection in connections {
            network.send(connection, Packet::ToNode(Message::Closed));
        }
    }

    /// Cuts the power of a zone: no connection is closed.
    fn lose_zone(&mut self) {
        self.seen.zones_lost += 1;
        let zone = self.rng.below(ZONES);
        let down = 1_000 + self.rng.below(7_000) as u64;
        for slot in 0..self.slots.len() {
            if self.slots[slot].zone == zone {
                self.end(slot, down, false);
            }
        }
        for server in 0..self.servers.len() {
            if self.network.lock().servers[server].zone == zone {
                self.stop(server, down, false);
            }
        }
    }

    /// Replaces all nodes, one after the other.
    fn deploy(&mut self) {
        if self.to_deploy.is_empty() {
            self.seen.deploys += 1;
            self.to_deploy = (0..self.slots.len()).collect();
        }
    }
}
