//! A conversation with the endpoint under test: sends one input and collects everything that comes
//! back.

pub(crate) mod http2;

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf},
    time::{Instant, timeout, timeout_at},
};

use crate::{
    answers::{Answers, Completed},
    case::{Case, Expect, Opening, Wait},
    connection::{Connection, End, Fault},
    frame::{Frame, Role, take_frame},
    http::Head,
    judge::{fault_of_choices, fault_of_opening, is_settled},
    outcome::{CloseFrame, Outcome},
};

/// How long to wait for an answer between two stages.
const ANSWER_PAUSE: Duration = Duration::from_millis(300);

/// The pause that keeps two stages in separate segments.
const MOMENT: Duration = Duration::from_millis(2);

/// How long to wait for a second response to a request.
const SECOND_ANSWER_PAUSE: Duration = Duration::from_millis(150);

/// The interval between bytes that are sent one at a time.
const DRIP_INTERVAL: Duration = Duration::from_secs(1);

/// How many received bytes that are not frames are kept.
const REST_BYTES_MAX: usize = 64 << 10;

/// The payload of the Ping whose Pong shows that an endpoint that does not echo has read the input.
pub(crate) const PROBE: &[u8] = b"linerate check";

/// How a conversation is conducted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TalkOptions {
    /// The role of the endpoint under test.
    pub(crate) role: Role,
    /// True if the endpoint echoes messages.
    pub(crate) echoes: bool,
    /// How long an answer may take, and how long the end of a connection.
    pub(crate) patience: Duration,
}

/// A connection and what has been received on it.
pub(crate) struct Conversation<'a> {
    case: &'a Case,
    manner: TalkOptions,
    reader: ReadHalf<Connection>,
    writer: WriteHalf<Connection>,
    /// The bytes of the request that were sent, until it is answered.
    sent: Vec<u8>,
    arrived: Vec<u8>,
    answers: Option<Answers>,
    outcome: Outcome,
    started: Instant,
    has_closed: bool,
}

impl<'a> Conversation<'a> {
    /// Starts a conversation on a connection on which nothing has been sent.
    pub(crate) fn new(case: &'a Case, manner: TalkOptions, connection: Connection) -> Self {
        let (reader, writer) = tokio::io::split(connection);
        Self {
            case,
            manner,
            reader,
            writer,
            sent: Vec::new(),
            arrived: Vec::new(),
            answers: None,
            outcome: Outcome::default(),
            started: Instant::now(),
            has_closed: matches!(case.expect, Expect::Close { .. }),
        }
    }

    /// Sends a request and waits for the response.
    pub(crate) async fn open(&mut self, request: &[u8]) {
        let until = Instant::now() + self.manner.patience;
        self.send(request).await;
        while self.outcome.end == End::Open && self.outcome.head.is_none() {
            if !self.receive(until).await {
                break;
            }
        }
    }

    /// Continues after the response to a request that was sent over HTTP/2.
    pub(crate) fn go_on(&mut self, head: Head, request: &Head) {
        if head.opens() {
            self.outcome.fault = fault_of_choices(&head, request);
            self.expect_frames();
        }
        self.outcome.head = Some(head);
    }

    /// Waits for a client's request.
    pub(crate) async fn hear(&mut self) -> Option<Head> {
        let until = Instant::now() + self.manner.patience;
        while self.outcome.end == End::Open && self.outcome.head.is_none() {
            if !self.receive(until).await {
                break;
            }
        }
        let request = self.outcome.head.take()?;
        self.expect_frames();
        Some(request)
    }

    /// Sends the response to a client's request.
    pub(crate) async fn answer(&mut self, answer: &[u8]) {
        self.send(answer).await;
    }

    /// Parses everything from now on as frames, as after an opening handshake.
    fn expect_frames(&mut self) {
        let compressed = self.case.input.opening.offer().is_some();
        self.answers = Some(Answers::new(self.manner.role, compressed));
    }

    /// Ends the conversation at once, and returns what was seen.
    pub(crate) fn leave(mut self) -> Outcome {
        self.outcome.took = self.started.elapsed();
        self.outcome
    }

    /// Returns the head of the response, if it has arrived.
    pub(crate) fn head(&self) -> Option<&Head> {
        self.outcome.head.as_ref()
    }

    /// Sends the stages, each after applying `fill` to it, and collects what comes back.
    pub(crate) async fn run(mut self, fill: impl Fn(&[u8]) -> Vec<u8>) -> Outcome {
        self.started = Instant::now();
        for stage in &self.case.input.stages {
            if self.is_over() {
                break;
            }
            self.outcome.stages += 1;
            self.send(&fill(&stage.bytes)).await;
            let pause = match stage.wait {
                Wait::Answer => ANSWER_PAUSE,
                Wait::Moment => MOMENT,
            };
            if self.outcome.stages < self.case.input.stages.len() {
                self.pause(pause, stage.wait).await;
            }
        }
        if let Expect::GivenUp { drip, .. } = &self.case.expect {
            return self.outlast(drip).await;
        }
        if self.case.input.ends {
            // This fails if the peer has already closed the connection, which is fine.
            _ = timeout(self.manner.patience, self.writer.shutdown()).await;
        }
        self.finish().await
    }

    /// Waits for the peer to end the connection, and sends only the bytes of `drip` meanwhile.
    async fn outlast(mut self, drip: &[u8]) -> Outcome {
        let until = self.started + self.manner.patience;
        let mut drops = drip.iter().cycle();
        while self.outcome.end == End::Open && Instant::now() < until {
            if let Some(drop) = drops.next() {
                self.send(&[*drop]).await;
            }
            let next = (Instant::now() + DRIP_INTERVAL).min(until);
            while self.outcome.end == End::Open && self.receive(next).await {}
        }
        self.leave()
    }

    /// Returns whether received bytes are parsed as frames.
    pub(crate) fn is_open(&self) -> bool {
        self.answers.is_some()
    }

    fn is_over(&self) -> bool {
        self.outcome.end != End::Open
            || self.outcome.close.is_some()
            || self.outcome.fault.is_some()
    }

    /// Waits for up to `time`. With [`Wait::Answer`], returns as soon as an answer arrives.
    async fn pause(&mut self, time: Duration, wait: Wait) {
        let until = Instant::now() + time;
        let seen = |outcome: &Outcome| (outcome.answers.len(), outcome.head.is_some());
        let before = seen(&self.outcome);
        while !self.is_over() && self.receive(until).await {
            if wait == Wait::Answer && seen(&self.outcome) != before {
                break;
            }
        }
    }

    /// Waits for the expected result, and then closes the connection.
    async fn finish(mut self) -> Outcome {
        self.probe().await;
        let until = Instant::now() + self.manner.patience;
        if self.is_open() || !self.case.expect.is_http() {
            // An endpoint that has not answered is not sent a Close frame, because its reply would
            // look like a reaction to the input.
            if self.settle(until).await {
                self.take_leave().await;
            }
        } else {
            self.finish_http(until).await;
        }
        self.outcome.took = self.started.elapsed();
        self.outcome
    }

    /// Sends a Ping to an endpoint that does not echo, whose Pong shows that it accepted the input.
    async fn probe(&mut self) {
        let answers = matches!(
            self.case.expect,
            Expect::Answers(_) | Expect::Open(_) | Expect::Survive(_)
        );
        if answers && !self.manner.echoes && self.is_open() {
            self.send_frame(&Frame::new(0x9, PROBE)).await;
        }
    }

    async fn finish_http(&mut self, until: Instant) {
        while self.outcome.head.is_none() && self.outcome.end == End::Open {
            if !self.receive(until).await {
                return;
            }
        }
        if self.is_open() {
            let opens = matches!(self.case.expect, Expect::Open(_));
            if !opens || self.settle(until).await {
                self.take_leave().await;
            }
            return;
        }
        let until = Instant::now() + SECOND_ANSWER_PAUSE;
        while self.outcome.end == End::Open && self.receive(until).await {}
    }

    /// Sends a Close frame, or answers the peer's, and waits for the end of the connection.
    async fn take_leave(&mut self) {
        if self.outcome.end == End::Open && !self.has_closed {
            let code = self
                .outcome
                .close
                .and_then(|closed| closed.code)
                .unwrap_or(1000);
            self.send_frame(&Frame::new(0x8, code.to_be_bytes())).await;
        }
        if self.manner.role == Role::Client {
            // §7.1.1: the server, which is us here, closes the connection first; clients wait for
            // that.
            _ = timeout(self.manner.patience, self.writer.shutdown()).await;
        }
        let close = self.outcome.close;
        let until = Instant::now() + self.manner.patience;
        while self.outcome.end == End::Open && self.receive(until).await {}
        // The answer to our Close frame is not an answer to the input.
        self.outcome.close = close;
    }

    /// Receives until there is nothing left to wait for. Returns false if that takes longer than
    /// `until`.
    async fn settle(&mut self, until: Instant) -> bool {
        while !is_settled(&self.case.expect, &self.outcome, self.manner.echoes) {
            if !self.receive(until).await {
                return false;
            }
        }
        true
    }

    async fn send_frame(&mut self, frame: &Frame) {
        let mut wire = Vec::new();
        frame.encode(self.manner.role, &mut wire);
        self.send(&wire).await;
    }

    /// Sends `bytes`, and receives meanwhile. Gives up if the peer does not read in time or has
    /// closed the connection.
    async fn send(&mut self, mut bytes: &[u8]) {
        if self.answers.is_none() {
            self.sent.extend(bytes);
        }
        let until = Instant::now() + self.manner.patience;
        while !bytes.is_empty() && self.outcome.end == End::Open {
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

    /// Receives once. Returns false if nothing arrives by `until`.
    async fn receive(&mut self, until: Instant) -> bool {
        let mut buffer = [0; 16 << 10];
        let Ok(read) = timeout_at(until, self.reader.read(&mut buffer)).await else {
            return false;
        };
        self.take(read, &buffer);
        true
    }

    fn take(&mut self, read: io::Result<usize>, buffer: &[u8]) {
        match read {
            // A TLS stream that ends without close_notify has ended all the same.
            Ok(0) => self.outcome.end = End::Fin,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.outcome.end = End::Fin
            }
            Err(error) => {
                let fault = error.get_ref().and_then(|inner| inner.downcast_ref());
                self.outcome.fault = fault.map(|Fault(fault)| fault.clone());
                self.outcome.end = End::Reset;
            }
            Ok(count) => {
                self.arrived.extend(&buffer[..count]);
                self.parse();
            }
        }
    }

    fn parse(&mut self) {
        if self.case.input.opening == Opening::Tcp {
            let room = REST_BYTES_MAX - self.outcome.rest.len();
            self.arrived.truncate(room);
            return self.outcome.rest.append(&mut self.arrived);
        }
        if self.outcome.head.is_none() && self.answers.is_none() {
            self.take_head();
        }
        if self.answers.is_some() {
            while self.outcome.fault.is_none() && self.take_frame() {}
        } else if self.outcome.head.is_some() {
            let room = REST_BYTES_MAX - self.outcome.rest.len();
            self.arrived.truncate(room);
            self.outcome.rest.append(&mut self.arrived);
        }
    }

    /// Takes the head of a request or a response from the received bytes, if it is complete.
    fn take_head(&mut self) {
        let Some(head) = Head::take(&mut self.arrived) else {
            self.arrived.truncate(REST_BYTES_MAX);
            return;
        };
        if head.status() == Some(101) && self.manner.role == Role::Server {
            let request = Head::of_request(&self.sent);
            self.outcome.fault = fault_of_opening(&head, &request);
            self.expect_frames();
        }
        self.outcome.head = Some(head);
    }

    /// Processes the next frame. Returns false if it is incomplete.
    fn take_frame(&mut self) -> bool {
        let frame = match take_frame(&mut self.arrived) {
            Ok(Some(frame)) => frame,
            Ok(None) => return false,
            Err(bytes) => {
                self.outcome.fault = Some(format!("a frame of {bytes} bytes"));
                return false;
            }
        };
        let Some(answers) = &mut self.answers else {
            return false;
        };
        let stages = self.outcome.stages;
        match answers.take(frame) {
            Ok(Completed::Answer(answer)) if answer.opcode == 0xA && answer.payload == PROBE => {
                self.outcome.answers_probe = true;
            }
            Ok(Completed::Answer(answer)) => self.outcome.answers.push(answer),
            Ok(Completed::Close(code)) => self.outcome.close = Some(CloseFrame { code, stages }),
            Ok(Completed::Nothing) => {}
            Err(fault) => self.outcome.fault = Some(fault),
        }
        true
    }
}

impl Expect {
    /// Returns whether this is about the response to a request.
    fn is_http(&self) -> bool {
        matches!(
            self,
            Self::Open(_) | Self::OpenOrRefuse | Self::Refuse { .. }
        )
    }
}
