//! Sends commands and receives their answers, on a separate connection from those that subscribe.

use std::{future::Future, sync::Arc, time::Duration};

use ::redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind,
    IntoConnectionInfo, Pipeline, RedisConnectionInfo, RedisError, RedisFuture, RedisResult,
    ServerErrorKind, TlsCertificates, TlsMode, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster::ClusterClientBuilder,
    cluster_async::ClusterConnection,
};
use tokio::{
    runtime::Handle,
    sync::Mutex,
    time::{Instant, timeout},
};

use super::{
    address::{Address, Host, Login, Topology},
    cluster::SlotMap,
    tls::Trust,
};
use crate::broker::BrokerError;

/// How long to wait after a failed attempt to connect before the next one.
const PAUSE: Duration = Duration::from_millis(100);

/// A connection for commands. It is opened on demand, and again after it broke.
pub(super) struct Commands {
    address: Address,
    trust: Option<Arc<Trust>>,
    timeout: Duration,
    runtime: Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// Counts connections, so that an error closes only the connection on which it occurred.
    generation: u64,
    failed: Option<(Instant, String)>,
}

/// A connection to one server, or to a cluster.
#[derive(Clone)]
pub(super) enum Connection {
    Cluster(ClusterConnection),
    Single(MultiplexedConnection),
}

impl Commands {
    /// Prepares commands for the service at `address`. Connections live on `runtime`.
    pub(super) fn new(
        address: Address,
        trust: Option<Arc<Trust>>,
        timeout: Duration,
        runtime: Handle,
    ) -> Self {
        Self {
            address,
            trust,
            timeout,
            runtime,
            state: Mutex::default(),
        }
    }

    /// Returns how the servers of the service work together.
    pub(super) fn topology(&self) -> &Topology {
        &self.address.topology
    }

    /// Runs a command.
    pub(super) async fn query<T: ::redis::FromRedisValue>(
        &self,
        command: &Cmd,
    ) -> Result<T, BrokerError> {
        self.query_within(self.timeout, command).await
    }

    /// Runs a command, and drops a connection that does not answer by the deadline.
    pub(super) async fn query_within<T: ::redis::FromRedisValue>(
        &self,
        deadline: Duration,
        command: &Cmd,
    ) -> Result<T, BrokerError> {
        let query = async |mut connection| command.query_async(&mut connection).await;
        self.run_within(deadline, query).await
    }

    /// Runs an operation that needs a connection, within the deadline.
    pub(super) async fn run<T>(
        &self,
        operate: impl AsyncFnOnce(Connection) -> RedisResult<T>,
    ) -> Result<T, BrokerError> {
        self.run_within(self.timeout, operate).await
    }

    async fn run_within<T>(
        &self,
        deadline: Duration,
        operate: impl AsyncFnOnce(Connection) -> RedisResult<T>,
    ) -> Result<T, BrokerError> {
        let mut used = None;
        let done = timeout(deadline, async {
            let (connection, generation) = self.connection().await?;
            used = Some(generation);
            operate(connection).await.map_err(Failure::Redis)
        });
        match done.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(Failure::Away(reason))) => Err(BrokerError::Away { reason }),
            Ok(Err(Failure::Redis(error))) => {
                if is_broken(&error) {
                    self.forget(used).await;
                }
                Err(explain(&error))
            }
            Err(_) => {
                self.forget(used).await;
                Err(BrokerError::Timeout { deadline })
            }
        }
    }

    /// Returns the current address of the server: the one in the URL, or the one that a sentinel or
    /// a node of the cluster returns.
    pub(super) async fn server(&self) -> Result<Host, String> {
        match &self.address.topology {
            Topology::Cluster { nodes, .. } => {
                let map = self.slots(nodes).await?;
                map.masters().into_iter().next().ok_or_else(no_master)
            }
            Topology::Sentinel { sentinels, master } => self.master(sentinels, master).await,
            Topology::Single(host) => Ok(host.clone()),
        }
    }

    /// Asks the nodes of a cluster, one after another, which masters serve which slots.
    pub(super) async fn slots(&self, nodes: &[Host]) -> Result<SlotMap, String> {
        let mut trouble = no_master();
        let mut command = ::redis::cmd("CLUSTER");
        command.arg("SLOTS");
        for node in nodes {
            match self.ask(node, &self.address.login, &command).await {
                Ok(value) => match SlotMap::parse(&value, node) {
                    Some(map) => return Ok(map),
                    None => trouble = format!("{node} returned no slots"),
                },
                Err(error) => trouble = format!("{node}: {error}"),
            }
        }
        Err(trouble)
    }

    async fn master(&self, sentinels: &[Host], master: &str) -> Result<Host, String> {
        let mut trouble = no_master();
        let mut command = ::redis::cmd("SENTINEL");
        command.arg("get-master-addr-by-name").arg(master);
        for sentinel in sentinels {
            let login = &self.address.sentinel_login;
            match self.ask(sentinel, login, &command).await {
                Ok(Value::Nil) => trouble = format!("{sentinel} does not know the master"),
                Ok(value) => match ::redis::from_redis_value::<(String, u16)>(value) {
                    Ok((name, port)) => return Ok(Host { name, port }),
                    Err(error) => trouble = format!("{sentinel}: {error}"),
                },
                Err(error) => trouble = format!("{sentinel}: {error}"),
            }
        }
        Err(trouble)
    }

    /// Runs one command on its own connection.
    async fn ask(&self, host: &Host, login: &Login, command: &Cmd) -> Result<Value, String> {
        let asked = timeout(self.timeout, async {
            let mut connection = self.connect_to(host, login, 0).await?;
            command.query_async(&mut connection).await
        });
        match asked.await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {:?}", self.timeout)),
        }
    }

    async fn connection(&self) -> Result<(Connection, u64), Failure> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection {
            return Ok((connection.clone(), state.generation));
        }
        if let Some((at, reason)) = &state.failed
            && at.elapsed() < PAUSE
        {
            return Err(Failure::Away(reason.clone()));
        }
        match self.connect().await {
            Ok(connection) => {
                state.generation += 1;
                state.connection = Some(connection.clone());
                state.failed = None;
                Ok((connection, state.generation))
            }
            Err(reason) => {
                state.failed = Some((Instant::now(), reason.clone()));
                Err(Failure::Away(reason))
            }
        }
    }

    async fn forget(&self, generation: Option<u64>) {
        let mut state = self.state.lock().await;
        if generation == Some(state.generation) {
            state.connection = None;
        }
    }

    async fn connect(&self) -> Result<Connection, String> {
        let explained = |error: RedisError| error.to_string();
        if let Topology::Cluster { nodes, .. } = &self.address.topology {
            let cluster = self.connect_to_cluster(nodes).await;
            return cluster.map(Connection::Cluster).map_err(explained);
        }
        let host = self.server().await?;
        let single = self.connect_to(&host, &self.address.login, self.address.database);
        let mut single = single.await.map_err(explained)?;
        if let Topology::Sentinel { .. } = self.address.topology {
            let role = ::redis::cmd("ROLE").query_async(&mut single).await;
            let role: Value = role.map_err(explained)?;
            let is_master = matches!(&role, Value::Array(words)
                if matches!(words.first(), Some(Value::BulkString(word)) if word == b"master"));
            if !is_master {
                return Err(format!("{host} is no longer a master"));
            }
        }
        Ok(Connection::Single(single))
    }

    async fn connect_to(
        &self,
        host: &Host,
        login: &Login,
        database: i64,
    ) -> RedisResult<MultiplexedConnection> {
        let info = self.info(host, login, database)?;
        let client = match &self.trust {
            Some(trust) => Client::build_with_tls(info, certificates(trust))?,
            None => Client::open(info)?,
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout));
        self.spawned(async move {
            client
                .get_multiplexed_async_connection_with_config(&config)
                .await
        })
        .await
    }

    async fn connect_to_cluster(&self, nodes: &[Host]) -> RedisResult<ClusterConnection> {
        let login = &self.address.login;
        let infos = nodes.iter().map(|node| self.info(node, login, 0));
        let infos: Vec<ConnectionInfo> = infos.collect::<RedisResult<_>>()?;
        let mut builder = ClusterClientBuilder::new(infos)
            .connection_timeout(self.timeout)
            .response_timeout(self.timeout);
        if let Some(user) = &login.user {
            builder = builder.username(user);
        }
        if let Some(password) = &login.password {
            builder = builder.password(password);
        }
        if let Some(trust) = &self.trust {
            builder = builder.tls(TlsMode::Secure).certs(certificates(trust));
        }
        let client = builder.build()?;
        self.spawned(async move { client.get_async_connection().await })
            .await
    }

    /// Runs `future` on the runtime of the connections, because the task that drives a connection
    /// stays where it was created.
    async fn spawned<T: Send + 'static>(
        &self,
        future: impl Future<Output = RedisResult<T>> + Send + 'static,
    ) -> RedisResult<T> {
        let ended = (ErrorKind::Io, "the broker was shut down");
        let joined = self.runtime.spawn(future).await;
        joined.unwrap_or_else(|_| Err(ended.into()))
    }

    fn info(&self, host: &Host, login: &Login, database: i64) -> RedisResult<ConnectionInfo> {
        let (host, port) = (host.name.clone(), host.port);
        let address = match self.trust {
            Some(_) => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            },
            None => ConnectionAddr::Tcp(host, port),
        };
        let mut settings = RedisConnectionInfo::default().set_db(database);
        if let Some(user) = &login.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &login.password {
            settings = settings.set_password(password);
        }
        Ok(address.into_connection_info()?.set_redis_settings(settings))
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Cluster(cluster) => cluster.req_packed_command(command),
            Self::Single(single) => single.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Cluster(cluster) => cluster.req_packed_commands(commands, offset, count),
            Self::Single(single) => single.req_packed_commands(commands, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Cluster(cluster) => cluster.get_db(),
            Self::Single(single) => single.get_db(),
        }
    }
}

/// The reason why an operation failed.
enum Failure {
    Away(String),
    Redis(RedisError),
}

fn certificates(trust: &Trust) -> TlsCertificates {
    TlsCertificates {
        client_tls: None,
        root_cert: Some(trust.pem.clone()),
    }
}

/// Returns whether a connection is unusable: it is closed, or leads to a server that is no longer a
/// master.
fn is_broken(error: &RedisError) -> bool {
    let kind = ErrorKind::Server(ServerErrorKind::ReadOnly);
    error.is_unrecoverable_error()
        || error.is_io_error()
        || error.kind() == kind
        || error.kind() == ErrorKind::Server(ServerErrorKind::MasterDown)
        || error.kind() == ErrorKind::ClusterConnectionNotFound
}

fn explain(error: &RedisError) -> BrokerError {
    let is_away = is_broken(error)
        || matches!(
            error.kind(),
            ErrorKind::Server(
                ServerErrorKind::BusyLoading
                    | ServerErrorKind::ClusterDown
                    | ServerErrorKind::TryAgain
            )
        );
    match is_away {
        true => BrokerError::away(error),
        false => BrokerError::refused(error),
    }
}

fn no_master() -> String {
    "found no master".to_owned()
}
