//! Clients, channels and a hub, and the random events that happen to them.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use linerate_hub::{
    ChannelOptions, ClientId, Encode, GapCause, Hub, HubOptions, Start, SubscriptionId,
    SubscriptionOptions, Transmit, hub::MemoryUse,
};

use super::{
    channel::Channel,
    checker::Checker,
    options::{Numbers, any_options},
    random::Random,
};
use crate::world::position;

const CLIENTS: usize = 12;
const LETTERS: [&str; 4] = ["", "a", "b", "ab"];

struct Client {
    id: ClientId,
    subscriptions: HashMap<SubscriptionId, (usize, Checker)>,
    joining: Vec<SubscriptionId>,
    is_blocked: bool,
}

pub(crate) struct Simulation {
    random: Random,
    /// There are only a few sets of options, so that many subscriptions share one.
    options: Vec<SubscriptionOptions>,
    hub: Hub,
    now: Instant,
    channels: Vec<Channel>,
    clients: Vec<Client>,
    next_id: u64,
    deltas: u64,
}

impl Simulation {
    pub(crate) fn new(seed: u64, is_conflating: bool) -> Self {
        let mut random = Random::new(seed);
        let channels = (0..3).map(|index| {
            let options = ChannelOptions {
                ring_messages_max: random.one_of(&[1, 4, 20, 1_000]),
                ring_bytes_max: random.one_of(&[1_000, 5_000, 1_000_000]),
            };
            Channel::new(index, options, index != 1)
        });
        let channels = channels.collect();
        let encodings: Vec<Arc<dyn Encode<Block = Bytes>>> =
            vec![Arc::new(Numbers), Arc::new(Numbers)];
        let hub_options = HubOptions {
            encodings,
            seed,
            block_cache_bytes_max: random.one_of(&[0, 300, 100_000]),
            ..HubOptions::default()
        };
        let kinds = 1 + random.below(4);
        let options = (0..kinds).map(|_| any_options(&mut random, is_conflating));
        Self {
            options: options.collect(),
            random,
            hub: Hub::new(hub_options),
            now: Instant::now(),
            channels,
            clients: Vec::new(),
            next_id: 0,
            deltas: 0,
        }
    }

    /// Performs a random step.
    pub(crate) fn step(&mut self) {
        match self.random.below(100) {
            0..4 => self.connect(),
            4..6 => self.disconnect(),
            6..14 => self.subscribe(),
            14..20 => self.activate(),
            20..24 => self.unsubscribe(),
            24..55 => self.produce(),
            55..75 => self.carry(),
            75..76 => self.lose_link(),
            76..82 => self.pass(),
            82..95 => self.serve(),
            _ => self.unblock(),
        }
    }

    /// Delivers everything to all clients; afterwards the hub must hold nothing.
    pub(crate) fn settle(&mut self) {
        for client in 0..self.clients.len() {
            while !self.clients[client].joining.is_empty() {
                self.activate_one(client);
            }
        }
        for channel in 0..self.channels.len() {
            while !self.channels[channel].underway.is_empty() {
                self.arrive(channel);
                self.serve_all(usize::MAX);
            }
        }
        self.serve_all(usize::MAX);
        self.now += Duration::from_secs(1);
        self.hub.handle_timeout(self.now);
        self.serve_all(usize::MAX);
        for client in &self.clients {
            for (channel, checker) in client.subscriptions.values() {
                checker.see_nothing(&self.channels[*channel]);
            }
        }
        assert_eq!(self.hub.poll_ready(), None);
        let held = self.hub.memory_use();
        assert_eq!(held.block_bytes, 0);
        assert!(held.messages as usize <= self.predecessors_max());
        if held.messages == 0 {
            assert_eq!(held, MemoryUse::default());
        }
    }

    /// Returns the maximum number of publications that are kept for deltas: one for each filter of
    /// a channel.
    fn predecessors_max(&self) -> usize {
        let with_deltas = self.options.iter().filter(|options| options.with_deltas);
        with_deltas.count() * self.channels.len()
    }

    /// Returns the number of gaps that were reported, and of deltas from earlier blocks.
    pub(crate) fn end(mut self) -> (u64, u64) {
        while !self.clients.is_empty() {
            self.remove(0);
        }
        assert_eq!(self.hub.channels().count(), 0);
        assert_eq!((self.hub.clients(), self.hub.subscriptions()), (0, 0));
        let deliveries = self.hub.deliveries();
        assert!(deliveries.iter().all(|meter| meter.subscriptions == 0));
        assert_eq!(self.hub.memory_use(), MemoryUse::default());
        (self.hub.totals().gaps.iter().sum(), self.deltas)
    }

    fn connect(&mut self) {
        if self.clients.len() < CLIENTS {
            self.clients.push(Client {
                id: self.hub.connect(),
                subscriptions: HashMap::new(),
                joining: Vec::new(),
                is_blocked: false,
            });
        }
    }

    fn disconnect(&mut self) {
        if let Some(client) = self.any_client() {
            self.remove(client);
        }
    }

    fn remove(&mut self, client: usize) {
        let client = self.clients.remove(client);
        for name in self.hub.disconnect(client.id) {
            let mut channels = self.channels.iter_mut();
            let channel = channels.find(|channel| channel.name == name);
            channel.unwrap().forget();
        }
    }

    fn subscribe(&mut self) {
        let Some(client) = self.any_client() else {
            return;
        };
        let index = self.random.below(self.channels.len());
        let options = self.random.one_of(&self.options);
        let channel = &self.channels[index];
        let name = channel.name.clone();
        let id = self.clients[client].id;
        let result = self
            .hub
            .subscribe(self.now, id, name, channel.options, options.clone());
        let client = &mut self.clients[client];
        let has_one = client
            .subscriptions
            .values()
            .any(|(other, _)| *other == index);
        assert_eq!(result.is_err(), has_one);
        if let Ok(subscription) = result {
            let checker = Checker::new(options, channel);
            client.subscriptions.insert(subscription, (index, checker));
            client.joining.push(subscription);
        }
    }

    fn activate(&mut self) {
        if let Some(client) = self.any_client()
            && !self.clients[client].joining.is_empty()
        {
            self.activate_one(client);
        }
    }

    fn activate_one(&mut self, client: usize) {
        let client = &mut self.clients[client];
        let subscription = client.joining.swap_remove(0);
        let Some((index, checker)) = client.subscriptions.get_mut(&subscription) else {
            return;
        };
        let channel = &self.channels[*index];
        checker.begin(channel);
        if !channel.is_positioned || self.random.once_in(2) {
            self.hub.activate(self.now, subscription, Start::Live);
            return;
        }
        let (epoch, newest) = channel.newest;
        let known = newest.saturating_sub(self.random.below(6) as u64);
        let history = channel.history.iter().filter(|item| {
            let of_epoch = item.at.filter(|at| at.0 == epoch);
            of_epoch.is_some_and(|at| at.1 > known)
        });
        checker.begin_after((epoch, known));
        let history = history.map(|item| item.publication());
        self.hub.replay(subscription, history);
        let start = Start::After(position(&epoch.to_string(), newest));
        self.hub.activate(self.now, subscription, start);
    }

    fn unsubscribe(&mut self) {
        let Some(client) = self.any_client() else {
            return;
        };
        let index = self.random.below(self.channels.len());
        let client = &mut self.clients[client];
        let is_empty = self.hub.unsubscribe(client.id, &self.channels[index].name);
        let before = client.subscriptions.len();
        client
            .subscriptions
            .retain(|_, (channel, _)| *channel != index);
        assert_eq!(is_empty.is_some(), client.subscriptions.len() < before);
        if is_empty.is_some_and(|is_empty| is_empty.0) {
            self.channels[index].forget();
        }
    }

    /// Publishes, or starts the stream again under a new epoch.
    fn produce(&mut self) {
        let channel = self.random.below(self.channels.len());
        let channel = &mut self.channels[channel];
        if self.random.once_in(100) {
            channel.newest = (channel.newest.0 + 1, 0);
        }
        for _ in 0..self.random.one_of(&[1, 1, 2, 10]) {
            self.next_id += 1;
            channel.produce(self.next_id, self.random.one_of(&LETTERS));
        }
    }

    /// Lets a publication arrive, get lost, or arrive a second time.
    fn carry(&mut self) {
        let channel = self.random.below(self.channels.len());
        for _ in 0..1 + self.random.below(8) {
            match self.random.below(60) {
                0 => drop(self.channels[channel].underway.pop_front()),
                1 => {
                    let channel = &mut self.channels[channel];
                    let again = channel.log.last().filter(|_| channel.is_positioned);
                    channel
                        .underway
                        .extend(again.copied().filter(|_| channel.underway.is_empty()));
                }
                _ => self.arrive(channel),
            }
        }
    }

    fn arrive(&mut self, index: usize) {
        let channel = &mut self.channels[index];
        let Some(item) = channel.underway.pop_front() else {
            return;
        };
        if self.hub.has_channel(channel.name.as_str()) {
            channel.arrive(item);
        }
        self.hub
            .publish(self.now, &channel.name, item.publication());
    }

    fn lose_link(&mut self) {
        let cause = GapCause::LinkLost;
        if self.random.once_in(2) {
            self.channels
                .iter_mut()
                .for_each(|channel| channel.gap(None, cause));
            self.hub.handle_gap(self.now, None, cause);
        } else {
            let channel = self.random.below(self.channels.len());
            let channel = &mut self.channels[channel];
            channel.gap(None, cause);
            self.hub.handle_gap(self.now, Some(&channel.name), cause);
        }
    }

    fn pass(&mut self) {
        self.now += Duration::from_millis(self.random.below(120) as u64);
        self.hub.handle_timeout(self.now);
    }

    /// Lets some of the clients take some of their output.
    fn serve(&mut self) {
        let capacity = self.random.one_of(&[1, 1, 3, 100]);
        while let Some(id) = self.hub.poll_ready() {
            let mut clients = self.clients.iter();
            let client = clients.position(|client| client.id == id);
            self.take(client.unwrap(), capacity);
        }
        for client in &self.clients {
            for (subscription, (channel, checker)) in &client.subscriptions {
                let is_live = !client.joining.contains(subscription);
                assert!(!is_live || !checker.is_too_slow(&self.channels[*channel]));
            }
        }
    }

    fn serve_all(&mut self, capacity: usize) {
        while self.hub.poll_ready().is_some() {}
        for client in (0..self.clients.len()).rev() {
            self.take(client, capacity);
        }
    }

    fn unblock(&mut self) {
        if let Some(client) = self.any_client() {
            let client = &mut self.clients[client];
            client.is_blocked = false;
            self.hub.handle_writable(client.id);
        }
    }

    fn take(&mut self, index: usize, capacity: usize) {
        let client = &mut self.clients[index];
        for _ in 0..capacity {
            let Some(transmit) = self.hub.poll_transmit(self.now, client.id) else {
                return;
            };
            match transmit {
                Transmit::Block {
                    subscription,
                    block,
                    messages,
                } => {
                    let (channel, checker) = client.subscriptions.get_mut(&subscription).unwrap();
                    let numbers: Vec<u64> = block
                        .chunks(8)
                        .map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap()))
                        .collect();
                    let of_each = |first: usize| numbers[first..].iter().step_by(3).copied();
                    let ids: Vec<u64> = of_each(1).collect();
                    let sizes: u64 = of_each(2).sum();
                    assert_eq!(ids.len(), messages as usize);
                    self.deltas += checker.see_deltas(&ids, of_each(3));
                    checker.see_block(&ids, numbers[0], sizes as usize, &self.channels[*channel]);
                }
                Transmit::Gap {
                    subscription, gap, ..
                } => {
                    let (channel, checker) = client.subscriptions.get_mut(&subscription).unwrap();
                    checker.see_gap(gap, &self.channels[*channel]);
                }
                Transmit::Slow { subscription, .. } => {
                    let (channel, checker) = client.subscriptions.get_mut(&subscription).unwrap();
                    checker.see_end(&self.channels[*channel]);
                    self.remove(index);
                    return;
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    fn any_client(&mut self) -> Option<usize> {
        let count = self.clients.len();
        (count > 0).then(|| self.random.below(count))
    }
}
