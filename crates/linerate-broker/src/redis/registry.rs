//! The registry of nodes in Redis: a sorted set of the nodes by the time of their last beat, and a
//! hash of their details. Scripts use the clock of the server.

use ::redis::{FromRedisValue, Script};

use super::{leases::lease_ms, state::RedisState};
use crate::{broker::BrokerError, registry::Beat};

/// What to read about the nodes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Part {
    Details,
    Ids,
}

impl RedisState {
    /// Registers this node or renews its lease.
    pub(super) async fn beat(&self, details: &[u8]) -> Result<Beat, BrokerError> {
        let script = Script::new(include_str!("lua/beat.lua"));
        let (nodes, all_details) = self.names.registry();
        let mut call = script.key(nodes);
        call.key(all_details);
        call.arg(&self.node).arg(details).arg(lease_ms());
        let call = async |mut connection| call.invoke_async::<(usize, bool)>(&mut connection).await;
        let (nodes, is_new) = self.commands.run(call).await?;
        Ok(Beat {
            nodes,
            is_new,
            has_lost_presence: false,
        })
    }

    /// Ends the lease of this node.
    pub(super) async fn deregister(&self) -> Result<(), BrokerError> {
        let (nodes, details) = self.names.registry();
        let mut pipeline = ::redis::pipe();
        pipeline.zrem(nodes, &self.node).ignore();
        pipeline.hdel(details, &self.node).ignore();
        let run = async |mut connection| pipeline.query_async::<()>(&mut connection).await;
        self.commands.run(run).await
    }

    /// Returns the IDs or the details of the registered nodes.
    pub(super) async fn nodes<T: FromRedisValue>(&self, part: Part) -> Result<Vec<T>, BrokerError> {
        let script = Script::new(include_str!("lua/nodes.lua"));
        let (nodes, details) = self.names.registry();
        let mut call = script.key(nodes);
        call.key(details).arg(lease_ms()).arg(match part {
            Part::Details => "details",
            Part::Ids => "ids",
        });
        let call =
            async |mut connection| call.invoke_async::<Vec<Option<T>>>(&mut connection).await;
        Ok(self
            .commands
            .run(call)
            .await?
            .into_iter()
            .flatten()
            .collect())
    }
}
