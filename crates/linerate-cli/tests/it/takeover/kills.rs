//! Processes that are killed at any time during a takeover.

use std::{
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener},
    process::{Child, Command},
    time::Duration,
};

use linerate_testkit::{Rng, server::RedisServer};
use tokio::{
    task::spawn_blocking,
    time::{sleep, timeout},
};

use super::{
    Deploys, ask,
    clients::{Crowd, Source},
};
use crate::support::PATIENCE;

/// A server, and whether it has said that it serves; killed on drop.
struct Process {
    child: Child,
    announced: Option<tokio::task::JoinHandle<bool>>,
}

impl Process {
    fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let announced = spawn_blocking(move || {
            let mut line = String::new();
            BufReader::new(output).read_line(&mut line).unwrap() > 0
        });
        Self {
            child,
            announced: Some(announced),
        }
    }

    /// Waits until the process serves, or has ended without that; returns whether it serves.
    async fn serves(&mut self) -> bool {
        let announced = self.announced.take().expect("asked once");
        timeout(PATIENCE, announced).await.unwrap().unwrap()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until the process has ended by itself.
    async fn ends(&mut self) {
        let ends = async {
            while self.child.try_wait().unwrap().is_none() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, ends).await.expect("the process ends");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// Servers at one address that take over from each other.
struct Address {
    deploys: Deploys,
    address: SocketAddr,
    more: Vec<String>,
}

impl Address {
    /// Chooses an address for servers with further flags.
    fn free(more: &[&str]) -> Self {
        Self {
            deploys: Deploys::new(),
            address: free_address(),
            more: more.iter().map(|flag| (*flag).to_owned()).collect(),
        }
    }

    fn start(&self) -> Process {
        let mut command = self.deploys.command(self.address);
        Process::start(command.args(&self.more).arg("--takeover"))
    }

    async fn serve(&self) -> Process {
        let mut process = self.start();
        assert!(process.serves().await);
        process
    }

    /// Begins a takeover of a server with clients. Returns the old process, the new one, and the
    /// clients, after `delay`.
    async fn move_crowd(&self, redis: &RedisServer, delay: Duration) -> (Process, Process, Crowd) {
        let old = self.serve().await;
        let crowd = Crowd::gather(self.address, Source::Redis(redis.port())).await;
        let new = self.start();
        sleep(delay).await;
        (old, new, crowd)
    }
}

/// Returns times from the start of a process to beyond the end of a takeover.
async fn delays(address: &Address) -> Vec<Duration> {
    let _old = address.serve().await;
    let started = std::time::Instant::now();
    let _new = address.serve().await;
    let whole = started.elapsed();
    let mut rng = Rng::new(19);
    let times = rng.bytes(8).into_iter();
    let random = times.map(|time| whole.mul_f64(f64::from(time) / 200.0));
    // Most of the protocol takes place at the end.
    let late = (0..8_u32).map(|part| whole - whole.mul_f64(f64::from(part) / 80.0));
    random.chain(late).collect()
}

#[tokio::test]
async fn a_new_process_that_is_killed_leaves_the_old_one_or_a_restart_serving() {
    let address = Address::free(&[]);
    for delay in delays(&address).await {
        let mut old = address.serve().await;
        let mut new = address.start();
        sleep(delay).await;
        new.kill();
        if new.serves().await {
            // It was responsible, so that the old one ends.
            old.ends().await;
        }
        // In either case, a restart succeeds on the same address, whatever the killed one has left.
        let mut restarted = address.start();
        assert!(restarted.serves().await, "after {delay:?}");
        old.ends().await;
        ask(address.address).await;
    }
}

#[tokio::test]
async fn an_old_process_that_is_killed_leaves_the_new_one_serving() {
    let address = Address::free(&[]);
    for delay in delays(&address).await {
        let mut old = address.serve().await;
        let mut new = address.start();
        sleep(delay).await;
        old.kill();
        assert!(new.serves().await, "after {delay:?}");
        ask(address.address).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_stay_with_the_old_process_or_end_with_the_new_one_that_is_killed() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let address = Address::free(&["--broker", &redis.url()]);
    for delay in delays(&address).await {
        let (mut old, mut new, crowd) = address.move_crowd(&redis, delay).await;
        new.kill();
        sleep(Duration::from_millis(100)).await;
        match crowd.disperse().await {
            0 => old.ends().await,
            connected => assert_eq!(connected, Crowd::CLIENTS, "after {delay:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_end_with_the_old_process_that_is_killed_or_stay_with_the_new_one() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let address = Address::free(&["--broker", &redis.url()]);
    for delay in delays(&address).await {
        let (mut old, mut new, crowd) = address.move_crowd(&redis, delay).await;
        old.kill();
        assert!(new.serves().await, "after {delay:?}");
        sleep(Duration::from_millis(100)).await;
        let connected = crowd.disperse().await;
        assert!(
            connected == 0 || connected == Crowd::CLIENTS,
            "{connected} clients after {delay:?}"
        );
        ask(address.address).await;
    }
}
