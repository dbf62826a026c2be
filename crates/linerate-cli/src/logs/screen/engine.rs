//! The thread that reads the log and answers the view's questions in between.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::time::{Duration, Instant};

use linerate_logview::{aggregate::Limits, format::Format};

use super::super::{
    check_requests,
    counter::Counter,
    files::is_stdin,
    follow::Follower,
    source::{read_each, size},
    stdin::Stdin,
    watch::POLL_INTERVAL,
};
use super::answers::Answers;
use super::message::{Closed, Event, Phase, Progress, Question, Update};

/// How often progress is reported.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// How long the engine waits for standard input before it looks for questions.
const STDIN_PATIENCE: Duration = Duration::from_millis(20);

/// The log to be read.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) files: Vec<PathBuf>,
    pub(super) format: Option<Format>,
    /// True if files are read as they grow.
    pub(super) follows: bool,
    pub(super) limits: Limits,
}

/// Reads a log and answers questions until the view is closed.
pub(super) fn run(source: &Source, questions: Receiver<Question>, events: SyncSender<Event>) {
    let mut engine = Engine {
        questions,
        answers: Answers::new(events.clone()),
        events,
        progress: Progress {
            size: size(&source.files).filter(|_| !source.follows),
            ..Progress::default()
        },
        started: Instant::now(),
        reported: None,
    };
    let mut log = Counter::new(source.limits.clone());
    // Ends only when the view is closed.
    _ = engine.read_and_answer(source, &mut log);
}

struct Engine {
    questions: Receiver<Question>,
    answers: Answers,
    events: SyncSender<Event>,
    progress: Progress,
    started: Instant,
    /// When progress was reported last.
    reported: Option<Instant>,
}

impl Engine {
    fn read_and_answer(&mut self, source: &Source, log: &mut Counter) -> Result<(), Closed> {
        let read = match source.follows {
            true => self.follow(source, log),
            false => self.read(source, log),
        };
        let counted = log.settled();
        let format = source.format.as_ref();
        let read = read.and_then(|()| check_requests(&source.files, format, counted));
        self.answers.note_growth();
        self.report(log, Phase::Complete)?;
        if let Err(error) = read {
            let error = match error.downcast::<Closed>() {
                Ok(closed) => return Err(closed),
                Err(error) => error,
            };
            self.send(Update::Failed(error))?;
        }
        loop {
            self.answer(log, Duration::MAX)?;
        }
    }

    fn read(&mut self, source: &Source, log: &mut Counter) -> anyhow::Result<()> {
        let stdin = source.files.iter().any(|file| is_stdin(file));
        let stdin = stdin.then(Stdin::start).transpose()?;
        let mut read_stdin = |buffer: &mut [u8]| match &stdin {
            Some(stdin) => stdin.read(buffer, STDIN_PATIENCE),
            None => Ok(Some(0)),
        };
        let mut after_read = |log: &mut Counter, bytes: usize| -> anyhow::Result<()> {
            self.progress.bytes += bytes as u64;
            if bytes > 0 {
                self.answers.note_growth();
            }
            self.report_if_due(log)?;
            Ok(self.answer(log, Duration::ZERO)?)
        };
        let format = source.format.as_ref();
        read_each(&source.files, format, log, &mut read_stdin, &mut after_read)
    }

    fn follow(&mut self, source: &Source, log: &mut Counter) -> anyhow::Result<()> {
        let mut follower = Follower::open(&source.files, source.format.clone())?;
        loop {
            let has_grown = follower.poll(log)?;
            if follower.has_ended() {
                return Ok(());
            }
            if has_grown {
                self.answers.note_growth();
                self.progress.bytes = log.log().bytes_read();
                self.report_if_due(log)?;
            } else if self.progress.phase == Phase::Reading {
                self.report(log, Phase::Following)?;
            }
            let patience = if has_grown {
                Duration::ZERO
            } else {
                POLL_INTERVAL
            };
            self.answer(log, patience)?;
        }
    }

    /// Works on the answers. If there is nothing to do, waits for a question for up to `patience`.
    fn answer(&mut self, log: &mut Counter, patience: Duration) -> Result<(), Closed> {
        let patience = self.answers.idle_time().min(patience);
        if !patience.is_zero() {
            match self.questions.recv_timeout(patience) {
                Ok(question) => self.answers.ask(log, question)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Closed),
            }
        }
        loop {
            match self.questions.try_recv() {
                Ok(question) => self.answers.ask(log, question)?,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Err(Closed),
            }
        }
        self.answers.work(log)
    }

    fn report_if_due(&mut self, log: &mut Counter) -> Result<(), Closed> {
        let is_due = self
            .reported
            .is_none_or(|at| at.elapsed() >= PROGRESS_INTERVAL);
        match is_due {
            true => self.report(log, self.progress.phase),
            false => Ok(()),
        }
    }

    fn report(&mut self, log: &mut Counter, phase: Phase) -> Result<(), Closed> {
        self.reported = Some(Instant::now());
        let seconds = self.started.elapsed().as_secs_f64().max(0.001);
        self.progress = Progress {
            rate: self.progress.bytes as f64 / seconds,
            requests: log.log().requests(),
            phase,
            ..self.progress
        };
        self.send(Update::Progress(self.progress))
    }

    fn send(&self, update: Update) -> Result<(), Closed> {
        self.events.send(Event::Update(update)).map_err(|_| Closed)
    }
}
