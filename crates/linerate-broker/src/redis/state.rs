//! State that the parts of the broker share.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ::redis::Script;
use bytes::Bytes;
use linerate_hub::ChannelName;
use tokio::runtime::Handle;

use super::{
    address::{Address, Topology},
    commands::Commands,
    dial::Dialer,
    epochs::Epochs,
    health::Health,
    leases::{LeaseScripts, Leases},
    names::Names,
    subscriptions::SubscriptionKind,
    tls::Trust,
};
use crate::{
    broker::BrokerError,
    incarnation,
    ingest::Ingest,
    options::BrokerOptions,
    request::{History, HistoryRequest, StreamOptions},
    sequencer::Sequencer,
};

/// The maximum number of bytes that an envelope adds to a payload, including the publisher.
const ENVELOPE_BYTES_MAX: usize = 64 << 10;

/// The scripts of durable channels.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) publish: Script,
    pub(super) publish_once: Script,
    pub(super) history: Script,
    /// The publishing command: `PUBLISH`, or `SPUBLISH` in a sharded cluster.
    pub(super) word: &'static str,
}

/// The beginning of each script that uses a stream.
macro_rules! adopt {
    () => {
        include_str!("lua/adopt.lua")
    };
}

impl Scripts {
    pub(super) fn new(word: &'static str) -> Self {
        Self {
            publish: Script::new(concat!(adopt!(), include_str!("lua/publish.lua"))),
            publish_once: Script::new(include_str!("lua/publish_once.lua")),
            history: Script::new(concat!(adopt!(), include_str!("lua/history.lua"))),
            word,
        }
    }
}

/// Options, connections for commands, and the state to which all links of a node write.
pub(super) struct RedisState {
    pub(super) options: BrokerOptions,
    pub(super) names: Names,
    pub(super) node: String,
    pub(super) is_cluster: bool,
    pub(super) is_sharded: bool,
    pub(super) ingest: Arc<dyn Ingest>,
    pub(super) sequencer: Mutex<Sequencer>,
    pub(super) health: Health,
    pub(super) commands: Commands,
    pub(super) dialer: Dialer,
    pub(super) scripts: Scripts,
    pub(super) epochs: Epochs,
    pub(super) occupancy_leases: Leases,
    pub(super) presence_leases: Leases,
    pub(super) lease_scripts: LeaseScripts,
    /// The reason why there was no link the last time.
    pub(super) trouble: Mutex<String>,
}

impl RedisState {
    pub(super) fn new(
        address: Address,
        trust: Option<Arc<Trust>>,
        options: BrokerOptions,
        ingest: Arc<dyn Ingest>,
        runtime: Handle,
    ) -> Self {
        let is_sharded = matches!(
            address.topology,
            Topology::Cluster {
                is_sharded: true,
                ..
            }
        );
        let word = match is_sharded {
            true => "SPUBLISH",
            false => "PUBLISH",
        };
        let node = incarnation::random();
        Self {
            names: Names::new(&options.prefix),
            is_cluster: matches!(address.topology, Topology::Cluster { .. }),
            is_sharded,
            ingest,
            sequencer: Mutex::new(Sequencer::new(options.sequencer, &node)),
            health: Health::new(&options),
            dialer: Dialer {
                login: address.login.clone(),
                trust: trust.clone(),
                timeout: options.dial_timeout,
                payload_bytes_max: options.payload_bytes_max + ENVELOPE_BYTES_MAX,
            },
            commands: Commands::new(address, trust, options.command_timeout, runtime),
            epochs: Epochs::default(),
            occupancy_leases: Leases::default(),
            presence_leases: Leases::in_use(),
            lease_scripts: LeaseScripts::new(),
            scripts: Scripts::new(word),
            trouble: Mutex::new("not connected yet".to_owned()),
            node,
            options,
        }
    }

    pub(super) fn name(&self, channel: &ChannelName) -> Result<String, BrokerError> {
        let reserved = "names that begin with \"linerate.\" are reserved";
        let name = self.names.channel(channel);
        name.ok_or_else(|| BrokerError::refused(reserved))
    }

    pub(super) async fn history(
        &self,
        channel: &ChannelName,
        options: StreamOptions,
        request: &HistoryRequest,
    ) -> Result<History, BrokerError> {
        let name = self.name(channel)?;
        let history = self.read_stream(&name, options, request).await?;
        self.epochs.record(channel, &history.newest.epoch);
        let Some(since) = &request.since else {
            return Ok(history);
        };
        let epoch = &history.newest.epoch;
        if request.is_reverse || !self.epochs.has_followed(channel, &since.epoch, epoch) {
            return Ok(history);
        }
        let whole = HistoryRequest {
            since: None,
            ..request.clone()
        };
        let after = self.read_stream(&name, options, &whole).await?;
        Ok(match after.newest.epoch == *epoch {
            true => History {
                is_contiguous: false,
                ..after
            },
            false => history,
        })
    }

    /// Stores a value until `expires_at`, in seconds since 1970.
    pub(super) async fn keep(
        &self,
        id: &str,
        value: &[u8],
        expires_at: Option<u64>,
    ) -> Result<(), BrokerError> {
        let script = Script::new(include_str!("lua/keep.lua"));
        let (values, ends) = self.names.kept();
        let end = expires_at.map_or("+inf".to_owned(), |at| at.to_string());
        let mut call = script.key(values);
        call.key(ends).arg(id).arg(value).arg(end);
        let call = async |mut connection| call.invoke_async::<()>(&mut connection).await;
        self.commands.run(call).await
    }

    /// Returns the stored values, which may include expired ones.
    pub(super) async fn kept(&self) -> Result<Vec<Bytes>, BrokerError> {
        let mut command = ::redis::cmd("HVALS");
        command.arg(self.names.kept().0);
        self.commands.query(&command).await
    }

    /// Stores a value for `ttl`.
    pub(super) async fn put(
        &self,
        key: &str,
        value: &[u8],
        ttl: Duration,
    ) -> Result<(), BrokerError> {
        let mut command = ::redis::cmd("SET");
        command.arg(self.names.deposit(key)).arg(value);
        command.arg("PX").arg(ttl.as_millis().max(1) as u64);
        self.commands.query(&command).await
    }

    /// Removes a value and returns it.
    pub(super) async fn take(&self, key: &str) -> Result<Option<Bytes>, BrokerError> {
        let script = Script::new(include_str!("lua/take.lua"));
        let call = script.key(self.names.deposit(key));
        let call = async |mut connection| call.invoke_async(&mut connection).await;
        self.commands.run(call).await
    }

    /// Returns the names of the channels in which other nodes talk to this one.
    pub(super) fn control_names(&self) -> [String; 2] {
        [None, Some(&*self.node)].map(|to| self.names.control(to))
    }

    pub(super) fn kind(&self) -> SubscriptionKind {
        match self.is_sharded {
            true => SubscriptionKind::Shard,
            false => SubscriptionKind::Channel,
        }
    }
}

impl std::fmt::Debug for RedisState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisState")
            .field("node", &self.node)
            .field("health", &self.health)
            .finish_non_exhaustive()
    }
}
