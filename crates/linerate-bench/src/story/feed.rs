//! Publishes in Redis at a rate that does not depend on the server.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use super::message::{MessageHeader, SIZES, channel_of, room_of, size, source_name};
use super::{CHANNEL, StoryError, system};

/// Interval at which messages that have become due are published.
const STEP: Duration = Duration::from_millis(1);

/// Size of the largest messages, in bytes.
pub const LARGE_BYTES: usize = SIZES[2].0;

/// The form of a payload in Redis.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Envelope {
    /// The form in which other nodes of the library `centrifuge` publish: Protobuf, with the source
    /// as a tag.
    Centrifuge,
    /// The payload without anything around it, in a channel of its source.
    Channel,
    /// The payload without anything around it.
    Plain,
    /// The payload without anything around it, in a room in the namespace of its source.
    Room,
}

/// A publisher that is connected to Redis.
#[derive(Debug)]
pub struct Feed {
    stream: TcpStream,
    envelope: Envelope,
    sources: u32,
    /// The time from which due times count.
    start: Instant,
    is_large: bool,
    text: String,
    commands: Vec<u8>,
    /// The last reply, as long as it is incomplete.
    replies: Vec<u8>,
}

/// What was published in a trial.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// Number of messages of each source.
    pub counts: Vec<u64>,
    /// Largest delay with which a message was published.
    pub late_max: Duration,
    /// How long publishing took.
    pub elapsed: Duration,
}

impl Feed {
    /// Connects to Redis. The messages of `sources` sources take turns, and due times count from
    /// `start`.
    ///
    /// # Errors
    ///
    /// Returns an error if Redis cannot be reached.
    pub fn connect(
        redis: SocketAddr,
        envelope: Envelope,
        sources: u32,
        start: Instant,
    ) -> Result<Self, StoryError> {
        let stream = TcpStream::connect(redis).map_err(system("cannot connect to Redis"))?;
        stream
            .set_nodelay(true)
            .map_err(system("cannot set TCP_NODELAY"))?;
        Ok(Self {
            stream,
            envelope,
            sources,
            start,
            is_large: false,
            text: String::new(),
            commands: Vec::new(),
            replies: Vec::new(),
        })
    }

    /// Sets whether all messages have [`LARGE_BYTES`] from now on.
    pub fn set_large(&mut self, is_large: bool) {
        self.is_large = is_large;
    }

    /// Publishes `rate` messages a second for `time`, each when it is due or as soon as Redis
    /// accepts it.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection to Redis is lost, or if Redis refuses a command.
    pub fn publish(
        &mut self,
        trial: u32,
        rate: f64,
        time: Duration,
    ) -> Result<Published, StoryError> {
        let started = Instant::now();
        let total = (rate * time.as_secs_f64()).round().max(1.0) as u64;
        let mut published = Published {
            counts: vec![0; self.sources as usize],
            ..Published::default()
        };
        let mut turn = 0;
        while turn < total {
            let due_now = (started.elapsed().as_secs_f64() * rate) as u64 + 1;
            while turn < due_now.min(total) {
                let due = started + Duration::from_secs_f64(turn as f64 / rate);
                published.late_max = published.late_max.max(due.elapsed());
                self.put(trial, turn, due, &mut published.counts);
                turn += 1;
            }
            self.send().map_err(system("cannot publish in Redis"))?;
            thread::sleep(STEP);
        }
        published.elapsed = started.elapsed();
        Ok(published)
    }

    /// Appends the command for one message.
    fn put(&mut self, trial: u32, turn: u64, due: Instant, counts: &mut [u64]) {
        let source = (turn % u64::from(self.sources)) as u32;
        let count = &mut counts[source as usize];
        let header = MessageHeader {
            trial,
            source,
            number: *count,
            due: due - self.start,
        };
        *count += 1;
        let bytes = match self.is_large {
            true => LARGE_BYTES,
            false => size(turn),
        };
        header.write(bytes, &mut self.text);
        match self.envelope {
            Envelope::Channel => {
                let channel = channel_of(&source_name(source));
                put_publish(&mut self.commands, &channel, self.text.as_bytes());
            }
            Envelope::Room => {
                let room = room_of(&source_name(source));
                put_publish(&mut self.commands, &room, self.text.as_bytes());
            }
            Envelope::Plain => put_publish(&mut self.commands, CHANNEL, self.text.as_bytes()),
            Envelope::Centrifuge => {
                let payload = centrifuge_publication(self.text.as_bytes(), &source_name(source));
                put_publish(
                    &mut self.commands,
                    &format!("centrifuge.client.{CHANNEL}"),
                    &payload,
                );
            }
        }
    }

    /// Sends the commands and reads the replies that have arrived.
    fn send(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.commands)?;
        self.commands.clear();
        self.stream.set_nonblocking(true)?;
        let taken = self.take_replies();
        self.stream.set_nonblocking(false)?;
        taken
    }

    fn take_replies(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => self.judge(&buffer[..bytes])?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Checks that no reply is an error. A successful reply is the number of Redis' own
    /// subscribers.
    fn judge(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.replies.extend_from_slice(bytes);
        let whole = memchr::memrchr(b'\n', &self.replies).map_or(0, |end| end + 1);
        let refused = self.replies[..whole]
            .split(|&byte| byte == b'\n')
            .find(|line| line.starts_with(b"-"));
        if let Some(line) = refused {
            return Err(io::Error::other(String::from_utf8_lossy(line).into_owned()));
        }
        self.replies.drain(..whole);
        Ok(())
    }
}

fn put_publish(out: &mut Vec<u8>, channel: &str, payload: &[u8]) {
    out.extend_from_slice(
        format!(
            "*3\r\n$7\r\nPUBLISH\r\n${}\r\n{channel}\r\n${}\r\n",
            channel.len(),
            payload.len()
        )
        .as_bytes(),
    );
    out.extend_from_slice(payload);
    out.extend_from_slice(b"\r\n");
}

/// Encodes a `Publication` of the Centrifuge protocol: field 4 is the payload, field 7 a map of
/// tags.
fn centrifuge_publication(payload: &[u8], source: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 32);
    put_field(&mut out, 4, payload);
    let mut entry = Vec::new();
    put_field(&mut entry, 1, b"source");
    put_field(&mut entry, 2, source.as_bytes());
    put_field(&mut out, 7, &entry);
    out
}

fn put_field(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_the_lengths_that_redis_wants() {
        let mut out = Vec::new();
        put_publish(&mut out, "story", b"hello");
        assert_eq!(
            out,
            b"*3\r\n$7\r\nPUBLISH\r\n$5\r\nstory\r\n$5\r\nhello\r\n"
        );
    }

    #[test]
    fn a_publication_has_its_payload_and_its_source() {
        let publication = centrifuge_publication(&[b'x'; 300], "s07");
        assert_eq!(publication[..3], [0x22, 0xAC, 0x02]);
        assert_eq!(&publication[303..], b"\x3A\x0D\x0A\x06source\x12\x03s07");
    }
}
