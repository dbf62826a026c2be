//! A conversation in HTTP/2 frames: sends one input and collects everything that comes back.

use std::{collections::BTreeMap, io, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf},
    time::{Instant, timeout_at},
};

use super::{ANSWER_PAUSE, MOMENT};
use crate::{
    answers::{Answers, Completed},
    case::{Case, Opening, Wait},
    connection::{Connection, End},
    frame::{Role, take_frame},
    http2::{Session, Stream, StreamOutcome},
    judge::is_settled,
    outcome::Outcome,
};

/// Holds the conversation of an input.
pub(crate) async fn hold(case: &Case, connection: Connection, patience: Duration) -> Outcome {
    let window = match case.input.opening {
        Opening::Http2 { window } => window,
        _ => None,
    };
    let (reader, writer) = tokio::io::split(connection);
    let talk = Conversation {
        case,
        patience,
        reader,
        writer,
        session: Session::new(window),
        spoken: BTreeMap::new(),
        outcome: Outcome::default(),
        started: Instant::now(),
    };
    talk.run().await
}

/// The WebSocket on a stream.
struct WebSocketStream {
    arrived: Vec<u8>,
    answers: Answers,
}

struct Conversation<'a> {
    case: &'a Case,
    patience: Duration,
    reader: ReadHalf<Connection>,
    writer: WriteHalf<Connection>,
    session: Session,
    spoken: BTreeMap<u32, WebSocketStream>,
    outcome: Outcome,
    started: Instant,
}

impl Conversation<'_> {
    async fn run(mut self) -> Outcome {
        if matches!(self.case.input.opening, Opening::Http2 { .. }) {
            self.greet().await;
        }
        let last = self.case.input.stages.len();
        for stage in &self.case.input.stages {
            if self.is_over() {
                break;
            }
            self.outcome.stages += 1;
            self.session.note_sent(&stage.bytes);
            self.send(&stage.bytes).await;
            if self.outcome.stages < last {
                self.pause(stage.wait).await;
            }
        }
        let until = Instant::now() + self.patience;
        while !is_settled(&self.case.expect, &self.outcome, true) && self.receive(until).await {}
        self.outcome.took = self.started.elapsed();
        self.outcome
    }

    /// Exchanges settings.
    async fn greet(&mut self) {
        let until = Instant::now() + self.patience;
        let greeting = self.session.greeting();
        self.send(&greeting).await;
        while !self.is_over() && !self.session.is_greeted && self.receive(until).await {}
    }

    fn is_over(&self) -> bool {
        self.outcome.end != End::Open || self.outcome.fault.is_some()
    }

    /// Waits for the pause of `wait`. With [`Wait::Answer`], returns as soon as an answer arrives.
    async fn pause(&mut self, wait: Wait) {
        let time = match wait {
            Wait::Answer => ANSWER_PAUSE,
            Wait::Moment => MOMENT,
        };
        let until = Instant::now() + time;
        let before = self.session.events;
        while !self.is_over() && self.receive(until).await {
            if wait == Wait::Answer && self.session.events != before {
                break;
            }
        }
    }

    /// Sends `bytes`, and receives meanwhile. Gives up if the peer does not read in time or has
    /// closed the connection.
    async fn send(&mut self, mut bytes: &[u8]) {
        let until = Instant::now() + self.patience;
        while !bytes.is_empty() && !self.is_over() {
            let mut buffer = [0; 16 << 10];
            let read;
            tokio::select! {
                written = self.writer.write(bytes) => match written {
                    Ok(count) if count > 0 => {
                        bytes = &bytes[count..];
                        continue;
                    }
                    // What the peer sent earlier has still to be read.
                    _ => return,
                },
                result = self.reader.read(&mut buffer) => read = result,
                () = tokio::time::sleep_until(until) => return,
            }
            self.take(read, &buffer);
        }
        _ = timeout_at(until, self.writer.flush()).await;
    }

    /// Sends the pending replies and receives once. Returns false if nothing arrives by `until`.
    async fn receive(&mut self, until: Instant) -> bool {
        let output = std::mem::take(&mut self.session.output);
        if !output.is_empty() {
            // This fails if the peer has already closed the connection, which is fine.
            _ = timeout_at(until, self.writer.write_all(&output)).await;
            _ = timeout_at(until, self.writer.flush()).await;
        }
        let mut buffer = [0; 16 << 10];
        let Ok(read) = timeout_at(until, self.reader.read(&mut buffer)).await else {
            return false;
        };
        self.take(read, &buffer);
        true
    }

    fn take(&mut self, read: io::Result<usize>, buffer: &[u8]) {
        match read {
            Ok(0) => self.outcome.end = End::Fin,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.outcome.end = End::Fin
            }
            Err(_) => self.outcome.end = End::Reset,
            Ok(count) => {
                self.session.take(&buffer[..count]);
                self.look();
            }
        }
    }

    /// Copies what the session has seen into the outcome.
    fn look(&mut self) {
        let (outcome, session) = (&mut self.outcome, &mut self.session);
        outcome.http2.goaway = session.goaway;
        outcome.http2.pongs = session.pongs;
        outcome.fault = outcome.fault.take().or(session.fault.clone());
        for (id, stream) in &mut session.streams {
            let seen = outcome.http2.streams.entry(*id).or_default();
            seen.head.clone_from(&stream.head);
            (seen.end, seen.reset) = (stream.end, stream.reset);
            if stream.head.as_ref().is_some_and(|head| head.opens()) {
                let spoken = self.spoken.entry(*id).or_insert_with(WebSocketStream::new);
                let fault = spoken.take(stream, seen);
                outcome.fault = outcome.fault.take().or(fault);
            }
        }
    }
}

impl WebSocketStream {
    fn new() -> Self {
        Self {
            arrived: Vec::new(),
            answers: Answers::new(Role::Server, false),
        }
    }

    /// Processes the WebSocket frames of a stream. Describes the first that no endpoint may send.
    fn take(&mut self, stream: &mut Stream, seen: &mut StreamOutcome) -> Option<String> {
        self.arrived.extend(stream.data.drain(..));
        loop {
            let frame = match take_frame(&mut self.arrived) {
                Ok(frame) => frame?,
                Err(bytes) => return Some(format!("a frame of {bytes} bytes")),
            };
            match self.answers.take(frame) {
                Ok(Completed::Answer(answer)) => seen.answers.push(answer),
                Ok(Completed::Close(code)) => seen.close = Some(code.unwrap_or(0)),
                Ok(Completed::Nothing) => {}
                Err(fault) => return Some(fault),
            }
        }
    }
}
