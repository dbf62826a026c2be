//! Appends entries to one Redis Stream that others read.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::runtime::Handle;

use super::{RedisError, address::Address, commands::Commands, tls::Trust};
use crate::broker::BrokerError;

/// Appends entries to a Redis Stream. It connects when it has something to append, and reconnects
/// by itself.
pub struct StreamWriter {
    address: Address,
    trust: Option<Arc<Trust>>,
    timeout: Duration,
    key: String,
    length_max: u64,
    commands: OnceLock<Commands>,
}

/// The fields of an entry of a stream.
pub type Entry<'a> = Vec<(&'a str, Vec<u8>)>;

impl StreamWriter {
    /// Prepares to append to the stream `key` of the service at `url`, which is that of a
    /// [`Redis`](super::Redis) broker. The stream keeps about `length_max` entries, the newest.
    /// `authorities` are the CA certificates to trust instead of those of the system, as PEM.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use linerate_broker::redis::StreamWriter;
    ///
    /// let timeout = Duration::from_secs(5);
    /// StreamWriter::new("redis://127.0.0.1:6379", ("events", 1_000), timeout, None)?;
    /// # Ok::<(), linerate_broker::redis::RedisError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the URL is malformed, or if the system has no usable CA certificates.
    pub fn new(
        url: &str,
        (key, length_max): (&str, u64),
        timeout: Duration,
        authorities: Option<&[u8]>,
    ) -> Result<Self, RedisError> {
        let address = Address::parse(url)?;
        let trust = match address.is_tls {
            true => Some(Arc::new(Trust::new(authorities)?)),
            false => None,
        };
        Ok(Self {
            address,
            trust,
            timeout,
            key: key.to_owned(),
            length_max,
            commands: OnceLock::new(),
        })
    }

    /// Appends entries in order, all or none. The connection belongs to the runtime on which this
    /// is called first.
    ///
    /// # Errors
    /// Returns an error if the server is unavailable or refuses. Except for
    /// [`BrokerError::Refused`], it is unknown whether the entries were appended.
    pub async fn append(&self, entries: &[Entry<'_>]) -> Result<(), BrokerError> {
        let mut pipeline = ::redis::pipe();
        pipeline.atomic();
        for entry in entries {
            let append = pipeline.cmd("XADD").arg(&self.key);
            append.arg("MAXLEN").arg("~").arg(self.length_max).arg("*");
            for (name, value) in entry {
                append.arg(name).arg(&value[..]);
            }
            append.ignore();
        }
        let run = async |mut connection| pipeline.query_async::<()>(&mut connection).await;
        self.commands().run(run).await
    }

    fn commands(&self) -> &Commands {
        self.commands.get_or_init(|| {
            let (address, trust) = (self.address.clone(), self.trust.clone());
            Commands::new(address, trust, self.timeout, Handle::current())
        })
    }
}

impl fmt::Debug for StreamWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamWriter")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
