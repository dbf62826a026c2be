//! Processes that are killed at any time during a takeover.

use std::{
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener},
    process::{Child, Command},
    time::Duration,
};

use linerate_testkit::Rng;
use tokio::{
    task::spawn_blocking,
    time::{sleep, timeout},
};

use super::{Deploys, ask};
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

/// Returns times from the start of a process to beyond the end of a takeover.
async fn delays(deploys: &Deploys, address: SocketAddr) -> Vec<Duration> {
    let mut old = Process::start(&mut deploys.command(address));
    assert!(old.serves().await);
    let started = std::time::Instant::now();
    let mut new = Process::start(deploys.command(address).arg("--takeover"));
    assert!(new.serves().await);
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
    let deploys = Deploys::new();
    let address = free_address();
    for delay in delays(&deploys, address).await {
        let mut old = Process::start(deploys.command(address).arg("--takeover"));
        assert!(old.serves().await);
        let mut new = Process::start(deploys.command(address).arg("--takeover"));
        sleep(delay).await;
        new.kill();
        if new.serves().await {
            // It was responsible, so that the old one ends.
            old.ends().await;
        }
        // In either case, a restart succeeds on the same address, whatever the killed one has left.
        let mut restarted = Process::start(deploys.command(address).arg("--takeover"));
        assert!(restarted.serves().await, "after {delay:?}");
        old.ends().await;
        ask(address).await;
        restarted.kill();
    }
}

#[tokio::test]
async fn an_old_process_that_is_killed_leaves_the_new_one_serving() {
    let deploys = Deploys::new();
    let address = free_address();
    for delay in delays(&deploys, address).await {
        let mut old = Process::start(deploys.command(address).arg("--takeover"));
        assert!(old.serves().await);
        let mut new = Process::start(deploys.command(address).arg("--takeover"));
        sleep(delay).await;
        old.kill();
        assert!(new.serves().await, "after {delay:?}");
        ask(address).await;
        new.kill();
    }
}
