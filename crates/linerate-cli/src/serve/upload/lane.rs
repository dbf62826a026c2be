//! The way from a connection to its session and back, which works elsewhere: parsing holds up
//! nobody else's connection.

use std::{
    collections::VecDeque,
    iter, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use linerate::Message;
use linerate_logview::session::{Session, Wish};
use tokio::{
    sync::Notify,
    task::{JoinError, spawn_blocking},
};

use super::sessions::Sessions;

/// How many bytes of a log are parsed in one go: a millisecond or so, after which replies go out and
/// it may be the turn of another session.
const TURN_BYTES: usize = 1 << 20;
/// How many bytes may wait: enough that neither side stands still while the other is held up.
const BYTES_MAX: usize = 4 * TURN_BYTES;
/// How many bytes are worth waking a thread. Fewer are waited for, or for more to come.
const WORTHWHILE_BYTES: usize = TURN_BYTES / 4;
/// What an input counts for in addition to its own bytes, since there may be many without any.
const INPUT_BYTES: usize = 64;

/// What comes for a session.
#[derive(Debug)]
pub(super) enum Input {
    /// The end of a binary message.
    End,
    /// Bytes of the log.
    Piece(Message),
    Text(String),
}

/// Input that waits for a session, and replies that wait for the connection, in order.
#[derive(Debug, Default)]
pub(super) struct Lane {
    traffic: Mutex<Traffic>,
    /// Is told when there are replies, and when there is room again.
    news: Notify,
}

#[derive(Debug, Default)]
struct Traffic {
    inputs: VecDeque<Input>,
    input_bytes: usize,
    replies: Vec<String>,
    /// Pieces that were parsed. The thread that received them drops them: its memory is used again.
    used: Vec<Input>,
}

/// The session is back, since nothing more waits or somebody has to look at it.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) session: Box<Session>,
    /// To be sent after those on the lane, unless what the session wants is refused.
    pub(super) replies: Vec<String>,
    pub(super) wish: Option<Wish>,
}

impl Lane {
    /// Adds what came. To be called only while there is [room](Self::has_room).
    pub(super) fn push(&self, input: Input) {
        let mut traffic = self.traffic();
        traffic.input_bytes += input.bytes();
        traffic.inputs.push_back(input);
        let used = mem::take(&mut traffic.used);
        drop(traffic);
        drop(used);
    }

    pub(super) fn has_room(&self) -> bool {
        self.traffic().input_bytes < BYTES_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.traffic().inputs.is_empty()
    }

    /// Says whether a session should look at what waits now.
    pub(super) fn is_worthwhile(&self) -> bool {
        let traffic = self.traffic();
        let is_piece = |input: &Input| matches!(input, Input::Piece(_));
        traffic.input_bytes >= WORTHWHILE_BYTES || !traffic.inputs.back().is_none_or(is_piece)
    }

    /// Waits until there may be replies or room.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }

    pub(super) fn take_replies(&self) -> Vec<String> {
        mem::take(&mut self.traffic().replies)
    }

    /// Brings a session what waits, and what comes meanwhile, on a thread of its own when it is this
    /// session's turn. Without any input the session looks at the clock.
    ///
    /// Sessions have their turns in the order in which they ask, and while others ask, a turn is short.
    pub(super) async fn run(
        self: Arc<Self>,
        session: Box<Session>,
        sessions: Arc<Sessions>,
    ) -> Result<Done, JoinError> {
        let turn = sessions.turn().await;
        spawn_blocking(move || {
            let _turn = turn;
            self.work(session, &sessions)
        })
        .await
    }

    fn work(&self, mut session: Box<Session>, sessions: &Sessions) -> Done {
        loop {
            let inputs = self.take_inputs();
            let mut replies = perform(&mut session, &inputs, sessions);
            // A text may want something of the connection, and with the last words it is closed.
            let is_looked_at =
                matches!(inputs.last(), Some(Input::Text(_))) || session.is_finished();
            let on_the_lane = match is_looked_at {
                true => Vec::new(),
                false => mem::take(&mut replies),
            };
            let is_over = self.hand_back(inputs, on_the_lane);
            if is_over || is_looked_at || sessions.is_turn_wanted() {
                return Done {
                    wish: session.take_wish(),
                    session,
                    replies,
                };
            }
        }
    }

    /// Takes as much as is parsed in one go, up to a text at most.
    fn take_inputs(&self) -> Vec<Input> {
        let mut traffic = self.traffic();
        let had_room = traffic.input_bytes < BYTES_MAX;
        let mut inputs = Vec::new();
        let mut bytes = 0;
        while bytes < TURN_BYTES && !matches!(inputs.last(), Some(Input::Text(_))) {
            let Some(input) = traffic.inputs.pop_front() else {
                break;
            };
            bytes += input.bytes();
            inputs.push(input);
        }
        traffic.input_bytes -= bytes;
        if !had_room && traffic.input_bytes < BYTES_MAX {
            self.news.notify_one();
        }
        inputs
    }

    /// Leaves what there is for the connection; returns whether nothing waits for the session.
    fn hand_back(&self, used: Vec<Input>, replies: Vec<String>) -> bool {
        let mut traffic = self.traffic();
        traffic.used.extend(used);
        if !replies.is_empty() {
            traffic.replies.extend(replies);
            self.news.notify_one();
        }
        traffic.inputs.is_empty()
    }

    fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Input {
    fn bytes(&self) -> usize {
        let bytes = match self {
            Self::End => 0,
            Self::Piece(piece) => piece.as_bytes().len(),
            Self::Text(text) => text.len(),
        };
        bytes + INPUT_BYTES
    }
}

/// Hands inputs to a session, with a look at the clock, and returns its replies.
fn perform(session: &mut Session, inputs: &[Input], sessions: &Sessions) -> Vec<String> {
    let now = sessions.now();
    let mut replies = Vec::new();
    for input in inputs {
        match input {
            Input::End => session.handle_chunk(b"", true, now),
            Input::Piece(piece) => session.handle_chunk(piece.as_bytes(), false, now),
            Input::Text(text) => {
                replies.extend(iter::from_fn(|| session.poll_reply(now)));
                session.handle_text(text, now);
            }
        }
    }
    session.handle_timeout(now);
    replies.extend(iter::from_fn(|| session.poll_reply(now)));
    replies
}

#[cfg(test)]
mod tests {
    use std::{future::ready, sync::Arc};

    use linerate_gateway::config::LogsOptions;
    use linerate_logview::session::Session;

    use super::{BYTES_MAX, Done, INPUT_BYTES, Input, Lane, TURN_BYTES, WORTHWHILE_BYTES};
    use crate::serve::upload::sessions::Sessions;

    const LINE: &str = "192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 654\n";

    fn sessions() -> Arc<Sessions> {
        Sessions::new(&LogsOptions::default()).unwrap()
    }

    fn start() -> Input {
        Input::Text(r#"{"type":"start","files":[{"name":"a","size":null}]}"#.to_owned())
    }

    fn piece(lines: usize) -> Input {
        Input::Piece(LINE.repeat(lines).into_bytes().into())
    }

    async fn run(lane: &Arc<Lane>, session: Box<Session>, sessions: &Arc<Sessions>) -> Done {
        lane.clone().run(session, sessions.clone()).await.unwrap()
    }

    #[tokio::test]
    async fn session_comes_back_after_a_text_and_once_nothing_waits() {
        let (lane, sessions) = (Arc::new(Lane::default()), sessions());
        for input in [start(), piece(7), piece(3), Input::End] {
            lane.push(input);
        }
        let done = run(&lane, Box::new(sessions.session()), &sessions).await;
        assert!(done.replies.len() == 1 && done.replies[0].contains("ready"));
        assert!(!lane.is_empty());
        run(&lane, done.session, &sessions).await;
        let ack = format!(r#"{{"type":"ack","bytes":{}}}"#, 10 * LINE.len());
        assert_eq!(lane.take_replies(), [ack]);
        assert!(lane.is_empty());
    }

    #[tokio::test]
    async fn there_is_room_for_so_many_bytes_and_then_again_when_some_are_taken() {
        let (lane, sessions) = (Arc::new(Lane::default()), sessions());
        lane.push(start());
        let done = run(&lane, Box::new(sessions.session()), &sessions).await;
        let mut pushed = 0;
        while lane.has_room() {
            lane.push(piece(1_000));
            pushed += 1_000 * LINE.len() + INPUT_BYTES;
        }
        assert!((BYTES_MAX..BYTES_MAX + 1_000 * LINE.len() + INPUT_BYTES).contains(&pushed));
        run(&lane, done.session, &sessions).await;
        lane.news().await;
        assert!(lane.has_room() && lane.is_empty());
        assert!(lane.traffic().used.len() > 1);
        lane.push(Input::End);
        assert_eq!(lane.traffic().used.len(), 0);
    }

    #[tokio::test]
    async fn turn_is_short_while_another_session_asks_for_one() {
        let mut options = LogsOptions::default();
        options.parse_threads = 1;
        let (lane, sessions) = (Lane::default(), Sessions::new(&options).unwrap());
        lane.push(start());
        let _turn = sessions.turn().await;
        let done = lane.work(Box::new(sessions.session()), &sessions);
        for _ in 0..3 {
            lane.push(piece(TURN_BYTES / LINE.len() + 1));
        }
        let mut asked = Box::pin(sessions.turn());
        tokio::select! {
            biased;
            _ = &mut asked => panic!("there is one turn at a time"),
            () = ready(()) => {}
        }
        let done = lane.work(done.session, &sessions);
        assert_eq!(lane.traffic().inputs.len(), 2, "the first was parsed");
        drop(asked);
        lane.work(done.session, &sessions);
        assert!(lane.is_empty());
    }

    #[test]
    fn messages_without_a_byte_take_up_room_as_well() {
        let lane = Lane::default();
        let pushed = (0..)
            .take_while(|_| lane.has_room())
            .map(|_| lane.push(Input::End));
        assert_eq!(pushed.count(), BYTES_MAX / INPUT_BYTES);
    }

    #[test]
    fn few_bytes_wait_for_more_unless_their_message_ends() {
        let lane = Lane::default();
        assert!(!lane.is_worthwhile());
        lane.push(piece(1));
        assert!(!lane.is_worthwhile());
        lane.push(Input::End);
        assert!(lane.is_worthwhile());
        lane.push(piece(1));
        assert!(!lane.is_worthwhile());
        lane.push(piece(WORTHWHILE_BYTES / LINE.len()));
        assert!(lane.is_worthwhile());
    }
}
