//! The queues between a connection and its session. The session runs on another thread, so that
//! parsing does not delay other connections.

use std::{
    collections::VecDeque,
    iter, mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use linerate::Message;
use linerate_logview::session::Lookup;
use tokio::{
    sync::Notify,
    task::JoinError,
    time::{Instant, sleep},
};

use crate::{
    farewell::Farewell,
    hosted::{HostedSession, SharedSession},
    memory::{Share, UploadBytes},
    parsing,
    sessions::{MemoryShortage, Sessions},
};

/// How much work a session does at once, in decompressed bytes. It takes about a millisecond; then
/// replies are sent and another session may get its turn.
pub(crate) const TURN_WORK: usize = 256 << 10;
/// Maximum number of bytes that may wait: enough that neither side is idle while the other is
/// delayed.
const BYTES_MAX: usize = 8 * TURN_WORK;
/// Minimum number of bytes for which a thread is woken immediately. With fewer, the session runs
/// when its time has come or when more bytes have arrived.
const WORTHWHILE_BYTES: usize = TURN_WORK;
/// Overhead that each input counts for in addition to its bytes, because there may be many empty
/// inputs.
const INPUT_BYTES: usize = 64;
/// Maximum number of reply bytes that may wait for the connection before the session pauses.
const REPLY_BYTES_MAX: u64 = 64 << 10;
/// How long an upload waits for memory that another one has been told to release.
pub(crate) const ROOM_WITHIN: Duration = Duration::from_secs(5);
/// How often a waiting upload checks whether memory is available.
pub(crate) const ROOM_INTERVAL: Duration = Duration::from_millis(5);

/// Input for a session.
#[derive(Debug)]
pub(crate) enum Input {
    /// The end of a binary message.
    End,
    /// Bytes of the log, of which the first `read` have been parsed.
    Piece {
        message: Message,
        read: usize,
    },
    /// The client continues the session on this connection.
    Resumed,
    Text(String),
}

/// The queues of input that waits for a session and of replies that wait for the connection.
#[derive(Debug)]
pub(crate) struct Lane {
    traffic: Mutex<Traffic>,
    /// Notified when there are replies, and when there is room again.
    news: Notify,
    /// True once the connection has ended and replies can no longer be sent.
    is_abandoned: AtomicBool,
}

#[derive(Debug)]
struct Traffic {
    inputs: VecDeque<Input>,
    /// Total size of the inputs that wait or are being parsed.
    input_bytes: usize,
    replies: Vec<String>,
    /// Inputs that have been parsed. The thread that received them drops them, so that its
    /// allocator can reuse the memory.
    used: Vec<Input>,
    used_bytes: usize,
    /// The memory of the inputs and of the replies, including replies that are being sent.
    share: Share,
    reply_bytes: u64,
}

/// The result of a turn.
#[derive(Debug)]
enum TurnResult {
    Done(Completion),
    /// There is not enough memory. The work continues once another upload has released some.
    Lacking(Arc<SharedSession>),
}

/// The session after it has run, because no input is left, its turn is over, or the connection must
/// handle the result.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) shared: Arc<SharedSession>,
    /// Replies to send after those on the lane, unless granting the lookup ends the conversation.
    pub(crate) replies: Vec<String>,
    pub(crate) lookup: Option<Lookup>,
    /// True if the session receives or holds files.
    pub(crate) has_files: bool,
    /// The latest time at which the session must run again.
    pub(crate) due: Duration,
    /// How to close the connection, if the session is finished.
    pub(crate) end: Option<Farewell>,
}

impl Lane {
    pub(crate) fn new(sessions: &Sessions, held: UploadBytes) -> Self {
        Self {
            traffic: Mutex::new(Traffic {
                inputs: VecDeque::new(),
                input_bytes: 0,
                replies: Vec::new(),
                used: Vec::new(),
                used_bytes: 0,
                share: sessions.share(held),
                reply_bytes: 0,
            }),
            news: Notify::new(),
            is_abandoned: AtomicBool::new(false),
        }
    }

    /// Reserves memory for an input. Call this before [pushing](Self::push) it.
    pub(crate) fn reserve(&self, input: &Input, sessions: &Sessions) -> Result<(), MemoryShortage> {
        let mut traffic = self.traffic();
        let used = traffic.take_used();
        let reserved = sessions.grow(&mut traffic.share, input.bytes() as u64);
        drop(traffic);
        drop(used);
        reserved
    }

    /// Adds an input. Call this only while there is [room](Self::has_room).
    pub(crate) fn push(&self, input: Input) {
        let mut traffic = self.traffic();
        traffic.input_bytes += input.bytes();
        traffic.inputs.push_back(input);
    }

    /// Stops the session because its connection has ended. Input that has not been parsed is
    /// dropped.
    pub(crate) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
        let mut traffic = self.traffic();
        let inputs = mem::take(&mut traffic.inputs);
        let bytes: usize = inputs.iter().map(Input::bytes).sum();
        traffic.input_bytes -= bytes;
        traffic.share.shrink(bytes as u64);
        drop(traffic);
        drop(inputs);
    }

    /// Belongs to another session from now on, which the connection has resumed: charges the memory
    /// to it, and informs it.
    pub(crate) fn resume(&self, held: &UploadBytes) {
        let mut traffic = self.traffic();
        traffic.share.belong_to(held.clone());
        let bytes = traffic.share.bytes() + Input::Resumed.bytes() as u64;
        traffic.share.set(bytes);
        traffic.input_bytes += Input::Resumed.bytes();
        traffic.inputs.push_front(Input::Resumed);
    }

    pub(crate) fn has_room(&self) -> bool {
        self.traffic().input_bytes < BYTES_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.traffic().inputs.is_empty()
    }

    /// Returns whether the waiting input is worth running the session immediately: there is enough
    /// of it, or a message is complete.
    pub(crate) fn is_worthwhile(&self) -> bool {
        let traffic = self.traffic();
        let is_piece = |input: &Input| matches!(input, Input::Piece { .. });
        traffic.input_bytes >= WORTHWHILE_BYTES || !traffic.inputs.back().is_none_or(is_piece)
    }

    /// Waits until there are replies or room. May also return early.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }

    /// Removes and returns the waiting replies. [Release](Self::release) each one after sending it.
    pub(crate) fn take_replies(&self) -> Vec<String> {
        let mut traffic = self.traffic();
        let used = traffic.take_used();
        let replies = mem::take(&mut traffic.replies);
        drop(traffic);
        drop(used);
        replies
    }

    /// Releases the memory of a reply that has been sent.
    pub(crate) fn release(&self, reply: &String) {
        let mut traffic = self.traffic();
        let bytes = (reply.capacity() as u64).min(traffic.reply_bytes);
        traffic.reply_bytes -= bytes;
        traffic.share.shrink(bytes);
    }

    /// Runs a session on a parser thread when it is its turn. The session processes the waiting
    /// input and any that arrives meanwhile; without input it only handles its timeouts.
    ///
    /// Sessions get their turns in the order in which they ask, and a turn is short while others
    /// are waiting.
    ///
    /// While the session waits for memory that another upload releases, it does not hold a turn.
    pub(crate) async fn run(
        self: Arc<Self>,
        mut shared: Arc<SharedSession>,
        sessions: Arc<Sessions>,
    ) -> Result<Completion, JoinError> {
        let mut lacks_until = None;
        loop {
            let turn = sessions.turn().await;
            let (lane, all) = (self.clone(), sessions.clone());
            let may_wait = lacks_until.is_none_or(|until| Instant::now() < until);
            let worked = parsing::spawn(turn, move || lane.work(shared, &all, may_wait));
            match worked.await? {
                TurnResult::Done(done) => return Ok(done),
                TurnResult::Lacking(waiting) => shared = waiting,
            }
            lacks_until.get_or_insert_with(|| Instant::now() + ROOM_WITHIN);
            sleep(ROOM_INTERVAL).await;
        }
    }

    fn work(
        &self,
        shared: Arc<SharedSession>,
        sessions: &Sessions,
        mut may_wait: bool,
    ) -> TurnResult {
        loop {
            let mut hosted = shared.lock();
            if self.is_abandoned.load(Ordering::Relaxed) {
                let done = Completion::new(&mut hosted, &shared, Vec::new());
                return TurnResult::Done(done);
            }
            let mut inputs = self.take_inputs();
            let mut used = Vec::new();
            let mut promised = 0;
            match self.reserve_turn(&mut hosted, text_of(&inputs), sessions) {
                Ok(reply_bytes) => (promised, may_wait) = (reply_bytes, true),
                Err(MemoryShortage::Soon) if may_wait => {
                    self.hand_back(inputs, used, Vec::new());
                    drop(hosted);
                    return TurnResult::Lacking(shared);
                }
                Err(_) => hosted.session.refuse(sessions.no_memory()),
            }
            let mut replies = perform(&mut hosted, &mut inputs, &mut used, sessions);
            self.charge(&replies, promised);
            shared.settle(&mut hosted, &replies);
            // The connection must handle the result of a text, which may contain a lookup, and the
            // end of a session, which closes the connection.
            let is_looked_at =
                matches!(used.last(), Some(Input::Text(_))) || hosted.session.is_finished();
            let on_the_lane = match is_looked_at {
                true => Vec::new(),
                false => mem::take(&mut replies),
            };
            let must_wait = self.hand_back(inputs, used, on_the_lane);
            if must_wait || is_looked_at || sessions.is_turn_wanted() {
                return TurnResult::Done(Completion::new(&mut hosted, &shared, replies));
            }
        }
    }

    /// Removes and returns the input for one turn. A text is always the last one.
    fn take_inputs(&self) -> VecDeque<Input> {
        let mut traffic = self.traffic();
        let mut inputs = VecDeque::new();
        let mut bytes = 0;
        while bytes < TURN_WORK && !matches!(inputs.back(), Some(Input::Text(_))) {
            let Some(input) = traffic.inputs.pop_front() else {
                break;
            };
            bytes += input.bytes();
            inputs.push_back(input);
        }
        inputs
    }

    /// Reserves memory for a turn; returns how many bytes of it are for replies, which are charged
    /// to the lane.
    fn reserve_turn(
        &self,
        hosted: &mut HostedSession,
        text: Option<&str>,
        sessions: &Sessions,
    ) -> Result<u64, MemoryShortage> {
        let reply_bytes = hosted.reply_bytes_max(text);
        sessions.grow(&mut self.traffic().share, reply_bytes)?;
        if let Err(lack) = sessions.reserve(hosted, TURN_WORK) {
            self.traffic().share.shrink(reply_bytes);
            return Err(lack);
        }
        Ok(reply_bytes)
    }

    /// Replaces the `promised` memory for replies by the memory that they actually take.
    fn charge(&self, replies: &[String], promised: u64) {
        let bytes: u64 = replies.iter().map(|reply| reply.capacity() as u64).sum();
        let mut traffic = self.traffic();
        let kept = traffic.share.bytes().saturating_sub(promised) + bytes;
        traffic.share.set(kept);
        traffic.reply_bytes += bytes;
    }

    /// Returns used inputs and replies to the connection, and unparsed input to the queue. Returns
    /// true if the session must stop because there is no input or too many replies wait.
    fn hand_back(&self, rest: VecDeque<Input>, used: Vec<Input>, replies: Vec<String>) -> bool {
        let mut traffic = self.traffic();
        let had_room = traffic.input_bytes < BYTES_MAX;
        let bytes: usize = used.iter().map(Input::bytes).sum();
        traffic.input_bytes -= bytes;
        traffic.used_bytes += bytes;
        traffic.used.extend(used);
        if self.is_abandoned.load(Ordering::Relaxed) {
            return true;
        }
        for input in rest.into_iter().rev() {
            traffic.inputs.push_front(input);
        }
        let has_room = traffic.input_bytes < BYTES_MAX;
        let has_news = !replies.is_empty() || has_room && !had_room;
        traffic.replies.extend(replies);
        let must_wait = traffic.inputs.is_empty() || traffic.reply_bytes > REPLY_BYTES_MAX;
        // The connection's thread takes precedence over this one as soon as it is woken, and must
        // not find the queues locked.
        drop(traffic);
        if has_news {
            self.news.notify_one();
        }
        must_wait
    }

    fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Completion {
    fn new(hosted: &mut HostedSession, shared: &Arc<SharedSession>, replies: Vec<String>) -> Self {
        let session = &mut hosted.session;
        let is_finished = session.is_finished();
        Self {
            shared: shared.clone(),
            replies,
            lookup: session.take_lookup(),
            has_files: session.has_files(),
            due: session.poll_timeout().unwrap_or_default(),
            end: is_finished.then(|| Farewell::of_outcome(session.outcome())),
        }
    }
}

impl Traffic {
    /// Removes the parsed inputs and releases their memory; the caller drops them.
    fn take_used(&mut self) -> Vec<Input> {
        let bytes = mem::take(&mut self.used_bytes);
        self.share.shrink(bytes as u64);
        mem::take(&mut self.used)
    }
}

impl Input {
    pub(crate) fn piece(message: Message) -> Self {
        Self::Piece { message, read: 0 }
    }

    /// Returns the number of bytes that this input counts for.
    fn bytes(&self) -> usize {
        let bytes = match self {
            Self::End | Self::Resumed => 0,
            Self::Piece { message, .. } => message.as_bytes().len(),
            Self::Text(text) => text.capacity(),
        };
        bytes + INPUT_BYTES
    }
}

/// Passes inputs to a session until it has done the work of one turn, then handles its timeouts;
/// returns its replies. Inputs that were processed completely move to `used`.
fn perform(
    hosted: &mut HostedSession,
    inputs: &mut VecDeque<Input>,
    used: &mut Vec<Input>,
    sessions: &Sessions,
) -> Vec<String> {
    let now = sessions.now();
    let session = &mut hosted.session;
    let mut replies = Vec::new();
    let mut work = 0;
    while work < TURN_WORK
        && let Some(mut input) = inputs.pop_front()
    {
        work += INPUT_BYTES;
        match &mut input {
            Input::End => session.handle_chunk(b"", true, now),
            Input::Piece { message, read } => {
                let rest = &message.as_bytes()[*read..];
                let work_max = TURN_WORK.saturating_sub(work).max(1);
                let progress = session.handle_some(rest, false, work_max, now);
                *read += progress.read;
                work += progress.work;
                if !progress.is_done {
                    inputs.push_front(input);
                    break;
                }
            }
            Input::Resumed => session.handle_resume(now),
            Input::Text(text) => {
                replies.extend(iter::from_fn(|| session.poll_reply(now)));
                session.handle_text(text, now);
            }
        }
        used.push(input);
    }
    session.handle_timeout(now);
    replies.extend(iter::from_fn(|| session.poll_reply(now)));
    replies
}

/// Returns the text if the last of these inputs is one.
fn text_of(inputs: &VecDeque<Input>) -> Option<&str> {
    match inputs.back() {
        Some(Input::Text(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::{future::ready, sync::Arc};

    use linerate_budget::Budget;

    use super::{
        BYTES_MAX, Completion, INPUT_BYTES, Input, Lane, TURN_WORK, TurnResult, WORTHWHILE_BYTES,
    };
    use crate::{
        hosted::SharedSession, memory::UploadBytes, options::LogsOptions, sessions::Sessions,
    };

    const LINE: &str = "192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n";

    fn sessions() -> Arc<Sessions> {
        Sessions::new(&LogsOptions::default(), Budget::unbounded()).unwrap()
    }

    fn start() -> Input {
        Input::Text(r#"{"type":"start","files":[{"name":"a","size":null}]}"#.to_owned())
    }

    fn piece(lines: usize) -> Input {
        Input::piece(LINE.repeat(lines).into_bytes().into())
    }

    fn lane(sessions: &Sessions) -> Lane {
        Lane::new(sessions, UploadBytes::default())
    }

    fn push(lane: &Lane, input: Input, sessions: &Sessions) {
        lane.reserve(&input, sessions).unwrap();
        lane.push(input);
    }

    fn work(lane: &Lane, shared: Arc<SharedSession>, sessions: &Sessions) -> Completion {
        match lane.work(shared, sessions, true) {
            TurnResult::Done(done) => done,
            TurnResult::Lacking(_) => panic!("there is enough memory"),
        }
    }

    async fn run(
        lane: &Arc<Lane>,
        shared: Arc<SharedSession>,
        sessions: &Arc<Sessions>,
    ) -> Completion {
        lane.clone().run(shared, sessions.clone()).await.unwrap()
    }

    #[tokio::test]
    async fn session_comes_back_after_a_text_and_once_nothing_waits() {
        let sessions = sessions();
        let lane = Arc::new(lane(&sessions));
        for input in [start(), piece(7), piece(3), Input::End] {
            push(&lane, input, &sessions);
        }
        let done = run(&lane, sessions.session(), &sessions).await;
        assert!(done.replies.len() == 1 && done.replies[0].contains("ready"));
        assert!(!lane.is_empty());
        run(&lane, done.shared, &sessions).await;
        let ack = format!(r#"{{"type":"ack","bytes":{}}}"#, 10 * LINE.len());
        assert_eq!(lane.take_replies(), [ack]);
        assert!(lane.is_empty());
    }

    #[tokio::test]
    async fn there_is_room_for_so_many_bytes_and_then_again_when_some_are_taken() {
        let sessions = sessions();
        let lane = Arc::new(lane(&sessions));
        push(&lane, start(), &sessions);
        let done = run(&lane, sessions.session(), &sessions).await;
        let mut pushed = 0;
        while lane.has_room() {
            push(&lane, piece(1_000), &sessions);
            pushed += 1_000 * LINE.len() + INPUT_BYTES;
        }
        assert!((BYTES_MAX..BYTES_MAX + 1_000 * LINE.len() + INPUT_BYTES).contains(&pushed));
        run(&lane, done.shared, &sessions).await;
        lane.news().await;
        assert!(lane.has_room() && lane.is_empty());
        assert!(lane.traffic().used.len() > 1);
        push(&lane, Input::End, &sessions);
        assert_eq!(lane.traffic().used.len(), 0);
    }

    #[tokio::test]
    async fn turn_is_short_while_another_session_asks_for_one() {
        let options = LogsOptions {
            parse_threads: 1,
            ..LogsOptions::default()
        };
        let sessions = Sessions::new(&options, Budget::unbounded()).unwrap();
        let lane = lane(&sessions);
        push(&lane, start(), &sessions);
        let _turn = sessions.turn().await;
        let done = work(&lane, sessions.session(), &sessions);
        for _ in 0..3 {
            push(&lane, piece(TURN_WORK / LINE.len() + 1), &sessions);
        }
        let mut asked = Box::pin(sessions.turn());
        tokio::select! {
            biased;
            _ = &mut asked => panic!("only one turn at a time"),
            () = ready(()) => {}
        }
        let done = work(&lane, done.shared, &sessions);
        assert!(lane.traffic().inputs.len() >= 2, "only one was parsed");
        drop(asked);
        work(&lane, done.shared, &sessions);
        assert!(lane.is_empty());
    }

    #[test]
    fn messages_without_a_byte_take_up_room_as_well() {
        let sessions = sessions();
        let lane = lane(&sessions);
        let pushed = (0..)
            .take_while(|_| lane.has_room())
            .map(|_| push(&lane, Input::End, &sessions));
        assert_eq!(pushed.count(), BYTES_MAX / INPUT_BYTES);
    }

    #[test]
    fn few_bytes_wait_for_more_unless_their_message_ends() {
        let sessions = sessions();
        let lane = lane(&sessions);
        assert!(!lane.is_worthwhile());
        push(&lane, piece(1), &sessions);
        assert!(!lane.is_worthwhile());
        push(&lane, Input::End, &sessions);
        assert!(lane.is_worthwhile());
        push(&lane, piece(1), &sessions);
        assert!(!lane.is_worthwhile());
        push(&lane, piece(WORTHWHILE_BYTES / LINE.len()), &sessions);
        assert!(lane.is_worthwhile());
    }

    /// Returns the number of decompressed bytes that a session has read.
    fn bytes_read(shared: &SharedSession, sessions: &Sessions) -> u64 {
        let now = sessions.now();
        let mut hosted = shared.lock();
        hosted.session.handle_resume(now);
        let replies = std::iter::from_fn(|| hosted.session.poll_reply(now));
        let last: serde_json::Value = serde_json::from_str(&replies.last().unwrap()).unwrap();
        last["summary"]["bytes_read"].as_u64().unwrap()
    }

    #[tokio::test]
    async fn turn_of_a_bomb_ends_in_the_middle_of_it_while_a_neighbour_waits() {
        let options = LogsOptions {
            parse_threads: 1,
            ..LogsOptions::default()
        };
        let sessions = Sessions::new(&options, Budget::unbounded()).unwrap();
        let lane = lane(&sessions);
        let lines = LINE.repeat((64 << 20) / LINE.len());
        let bomb = zstd::bulk::compress(lines.as_bytes(), 1).unwrap();
        assert!(bomb.len() < TURN_WORK / 4, "one input that is not split");
        push(&lane, start(), &sessions);
        push(&lane, Input::piece(bomb.into()), &sessions);
        let _turn = sessions.turn().await;
        let mut neighbour = Box::pin(sessions.turn());
        tokio::select! {
            biased;
            _ = &mut neighbour => panic!("only one turn at a time"),
            () = ready(()) => {}
        }
        let mut done = work(&lane, sessions.session(), &sessions);
        for turn in 1..=4 {
            done = work(&lane, done.shared, &sessions);
            let read = bytes_read(&done.shared, &sessions);
            assert!(
                read > 0 && read <= turn * (TURN_WORK as u64 + (64 << 10)),
                "{read}"
            );
            assert!(!lane.is_empty());
        }
        drop(neighbour);
        work(&lane, done.shared, &sessions);
        assert!(
            lane.is_empty(),
            "without a neighbour it continues to the end"
        );
    }

    #[test]
    fn work_ends_with_its_connection() {
        let sessions = sessions();
        let lane = lane(&sessions);
        push(&lane, start(), &sessions);
        let done = work(&lane, sessions.session(), &sessions);
        push(&lane, piece(1_000), &sessions);
        lane.abandon();
        assert!(lane.is_empty(), "unparsed input is dropped");
        push(&lane, piece(1_000), &sessions);
        let done = work(&lane, done.shared, &sessions);
        assert!(!lane.is_empty() && done.has_files);
    }

    #[tokio::test]
    async fn session_waits_while_its_replies_are_not_sent() {
        let sessions = sessions();
        let lane = lane(&sessions);
        push(&lane, start(), &sessions);
        let done = work(&lane, sessions.session(), &sessions);
        lane.charge(&["x".repeat(1 << 20)], 0);
        for _ in 0..4 {
            push(&lane, piece(TURN_WORK / LINE.len()), &sessions);
        }
        work(&lane, done.shared, &sessions);
        assert!(!lane.is_empty());
        let used = sessions.memory_used();
        lane.release(&"x".repeat(1 << 20));
        assert!(sessions.memory_used() < used - (1 << 19));
    }
}
