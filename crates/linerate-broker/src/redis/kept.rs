//! What nodes keep for each other: a hash of values by their ids, and a sorted set of when which may go.

use ::redis::Script;
use bytes::Bytes;

use super::shared::Shared;
use crate::broker::BrokerError;

impl Shared {
    /// Keeps a value until `expires_at`, in seconds since 1970.
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

    /// Returns the values that are kept. Those whose end has come may be among them.
    pub(super) async fn kept(&self) -> Result<Vec<Bytes>, BrokerError> {
        let mut command = ::redis::cmd("HVALS");
        command.arg(self.names.kept().0);
        self.commands.query(&command).await
    }
}
