//! Values that nodes store for each other: a hash of values by id, and a sorted set of their expiry
//! times.

use ::redis::Script;
use bytes::Bytes;

use super::state::RedisState;
use crate::broker::BrokerError;

impl RedisState {
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
}
