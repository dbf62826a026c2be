//! Publishes in Redis, in one channel after the other, at a steady rate.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Result, anyhow, bail};

use super::plan::{Plan, channel_name};

/// Interval at which publications that have become due are published.
const STEP: Duration = Duration::from_millis(5);

/// A thread that publishes until it is stopped.
pub(super) struct Feed {
    is_over: Arc<AtomicBool>,
    published: Arc<AtomicU64>,
    thread: JoinHandle<Result<()>>,
}

impl Feed {
    /// Starts to publish `rate` publications a second.
    pub(super) fn start(plan: Plan, redis_port: u16, rate: u32) -> Result<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", redis_port))?;
        stream.set_nodelay(true)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let published = Arc::new(AtomicU64::new(0));
        let thread = thread::spawn({
            let (is_over, published) = (is_over.clone(), published.clone());
            move || {
                let started = Instant::now();
                let mut commands = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    thread::sleep(STEP);
                    let due = (started.elapsed().as_secs_f64() * f64::from(rate)) as u64;
                    let first = published.load(Ordering::Relaxed);
                    for turn in first..due {
                        put(&mut commands, plan, turn)?;
                    }
                    stream.write_all(&commands)?;
                    commands.clear();
                    take_replies(&mut stream)?;
                    published.store(first.max(due), Ordering::Relaxed);
                }
                Ok(())
            }
        });
        Ok(Self {
            is_over,
            published,
            thread,
        })
    }

    /// Returns the number of publications so far.
    pub(super) fn published(&self) -> u64 {
        self.published.load(Ordering::Relaxed)
    }

    /// Stops to publish, and returns the number of publications.
    ///
    /// # Errors
    /// Redis has refused a command, or the connection was lost.
    pub(super) fn stop(self) -> Result<u64> {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.thread.join();
        ended.map_err(|_| anyhow!("the feed panicked"))??;
        Ok(self.published.load(Ordering::Relaxed))
    }
}

/// Appends the command for the publication of this turn.
fn put(commands: &mut Vec<u8>, plan: Plan, turn: u64) -> Result<()> {
    let channels = u64::from(plan.channels);
    let channel = u32::try_from(turn % channels)?;
    let number = turn / channels + 1;
    let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let name = channel_name(channel);
    let payload = format!(
        r#"{{"c":{channel},"n":{number},"at":{},"symbol":"ACME","price":101.25,"volume":1200}}"#,
        at.as_nanos()
    );
    write!(
        commands,
        "*3\r\n$7\r\nPUBLISH\r\n${}\r\n{name}\r\n${}\r\n{payload}\r\n",
        name.len(),
        payload.len()
    )?;
    Ok(())
}

/// Reads the replies that have arrived, which are numbers unless Redis has refused a command.
fn take_replies(stream: &mut TcpStream) -> Result<()> {
    let mut buffer = [0; 16 << 10];
    stream.set_nonblocking(true)?;
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => bail!("Redis has closed the connection"),
            Ok(bytes) if buffer[..bytes].contains(&b'-') => {
                bail!("refused by Redis: {}", buffer[..bytes].escape_ascii());
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(stream.set_nonblocking(false)?)
}

#[cfg(test)]
mod tests {
    use super::{Plan, put};

    #[test]
    fn publications_take_turns_through_the_channels_and_are_numbered() {
        let plan = Plan {
            subscribers: 4,
            channels: 2,
            nodes: 2,
            port: 1,
        };
        let mut commands = Vec::new();
        for turn in 0..3 {
            put(&mut commands, plan, turn).unwrap();
        }
        let text = String::from_utf8(commands).unwrap();
        let payloads: Vec<_> = text.lines().filter(|line| line.starts_with('{')).collect();
        assert!(payloads[0].starts_with(r#"{"c":0,"n":1,"#));
        assert!(payloads[1].starts_with(r#"{"c":1,"n":1,"#));
        assert!(payloads[2].starts_with(r#"{"c":0,"n":2,"#));
        assert!(text.starts_with("*3\r\n$7\r\nPUBLISH\r\n$9\r\nmillion-0\r\n"));
    }
}
