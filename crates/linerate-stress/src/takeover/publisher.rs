//! Publishes in Redis, in one channel after the other.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, ensure};

use super::follower::now_micros;

/// Interval at which publications that have become due are published.
const STEP: Duration = Duration::from_millis(2);

/// A thread that publishes until it is stopped.
pub(super) struct Publisher {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64>>,
}

impl Publisher {
    /// Starts to publish `rate` publications a second. Each has its number in its channel, from 1,
    /// and the time.
    pub(super) fn start(redis: u16, channels: u32, rate: u32) -> Result<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", redis))?;
        stream.set_nodelay(true)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let is_over = is_over.clone();
            move || {
                let started = Instant::now();
                let (mut published, mut lines) = (0, 0);
                let mut replies = [0; 16 << 10];
                // Ends with the last channel, so that all have the same number.
                while !is_over.load(Ordering::Relaxed) || published % u64::from(channels) > 0 {
                    thread::sleep(STEP);
                    let due = (started.elapsed().as_secs_f64() * f64::from(rate)) as u64;
                    let mut commands = Vec::new();
                    while published < due {
                        let channel = published % u64::from(channels);
                        let number = published / u64::from(channels) + 1;
                        let micros = now_micros();
                        let data = format!(r#"{{"n":{number},"t":{micros},"to":"all"}}"#);
                        let command = format!("PUBLISH c{channel} '{data}'\r\n");
                        commands.extend_from_slice(command.as_bytes());
                        published += 1;
                        if is_over.load(Ordering::Relaxed) && published % u64::from(channels) == 0 {
                            break;
                        }
                    }
                    stream.write_all(&commands)?;
                    while lines < published {
                        let bytes = stream.read(&mut replies)?;
                        ensure!(bytes > 0, "Redis has closed the connection");
                        let ends = replies[..bytes].iter().filter(|byte| **byte == b'\n');
                        lines += ends.count() as u64;
                    }
                }
                Ok(published / u64::from(channels))
            }
        });
        Ok(Self { is_over, thread })
    }

    /// Stops to publish, and returns the last number of all channels.
    pub(super) fn stop(self) -> Result<u64> {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.thread.join();
        ended.map_err(|_| anyhow!("the publisher panicked"))?
    }
}
