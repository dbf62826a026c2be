//! Threads that parse one log.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::{Chunk, Cutter, Worker};
use crate::aggregate::{Aggregator, Batch, Limits};
use crate::format::{Format, FormatFit};
use crate::summary::Damage;

/// How many chunks each thread may hold: one being parsed and one waiting.
const CHUNKS_MAX: usize = 2;

/// Reads a log like an [`Aggregator`], but on several threads.
///
/// The threads parse; the caller's thread merges. Calls block while all threads are busy, so that
/// memory is bounded: two chunks of 1 MiB and their requests for each thread.
///
/// ```
/// use std::num::NonZeroUsize;
/// use linerate_logview::aggregate::Limits;
/// use linerate_logview::parallel::Pool;
///
/// let threads = NonZeroUsize::new(2).ok_or("no thread")?;
/// let mut pool = Pool::new(Limits::default(), threads);
/// pool.handle_input(b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET /a HTTP/1.1\" 200 654\n");
/// pool.handle_eof();
/// assert_eq!(pool.log().summary().requests, 1);
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
pub struct Pool {
    log: Aggregator,
    cutter: Cutter,
    format: Arc<Format>,
    /// The threads take turns, both for the next chunk and for the next batch.
    threads: Vec<Thread>,
    submitted: usize,
    merged: usize,
    /// Batches to be reused.
    spare: Vec<Batch>,
}

#[derive(Debug)]
struct Thread {
    /// `None` only while the pool is dropped.
    jobs: Option<SyncSender<Job>>,
    batches: Receiver<Batch>,
    handle: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Job {
    chunk: Chunk,
    format: Arc<Format>,
    spare: Option<Batch>,
}

impl Pool {
    /// Starts `threads` threads for a log.
    pub fn new(limits: Limits, threads: NonZeroUsize) -> Self {
        let threads = (0..threads.get()).map(|_| Thread::start(limits.clone()));
        Self {
            cutter: Cutter::new(limits.line_bytes_max),
            threads: threads.collect(),
            log: Aggregator::new(limits),
            format: Arc::default(),
            submitted: 0,
            merged: 0,
            spare: Vec::new(),
        }
    }

    /// Processes the next bytes of the log, of any number. Blocks while all threads are busy.
    pub fn handle_input(&mut self, input: &[u8]) {
        self.with_cutter(|cutter, each| cutter.handle_input(input, each));
    }

    /// Ends a file, whose last line need not have a line feed. Blocks until all of it is counted.
    pub fn handle_eof(&mut self) {
        self.with_cutter(|cutter, each| cutter.handle_eof(each));
        self.merge_all();
    }

    /// Ends a file that is damaged: counts its whole lines, forgets an unfinished one, and notes
    /// the damage. Blocks until all of it is counted.
    pub fn handle_damage(&mut self, damage: Damage) {
        self.with_cutter(|cutter, each| cutter.discard_line(each));
        self.merge_all();
        self.log.handle_damage(damage);
    }

    /// Blocks until all whole lines are counted.
    pub fn settle(&mut self) {
        self.with_cutter(|cutter, each| cutter.flush(each));
        self.merge_all();
    }

    /// Sets the format of all lines that follow. Call it between two files.
    pub fn set_format(&mut self, format: Format) {
        self.log.set_format(format.clone());
        self.format = Arc::new(format);
    }

    /// Records how well the detected format of a file fits: see [`Aggregator::set_fit`].
    pub fn set_fit(&mut self, fit: FormatFit) {
        self.log.set_fit(fit);
    }

    /// Returns the figures of the part of the log that is counted: all but the last few chunks
    /// while the log is being read.
    pub fn log(&self) -> &Aggregator {
        &self.log
    }

    /// Cuts chunks and submits them to the threads.
    fn with_cutter(&mut self, cut: impl FnOnce(&mut Cutter, &mut dyn FnMut(Chunk))) {
        // Taken out because submitting borrows the whole pool.
        let mut cutter = std::mem::replace(&mut self.cutter, Cutter::new(0));
        cut(&mut cutter, &mut |chunk| self.submit(chunk));
        self.spare
            .iter_mut()
            .filter(|batch| batch.text.capacity() > 0)
            .for_each(|batch| cutter.recycle(std::mem::take(&mut batch.text)));
        self.cutter = cutter;
    }

    /// Submits a chunk to the next thread.
    fn submit(&mut self, chunk: Chunk) {
        if self.submitted - self.merged == self.threads.len() * CHUNKS_MAX {
            self.merge_next();
        }
        let job = Job {
            chunk,
            format: self.format.clone(),
            spare: self.spare.pop(),
        };
        let thread = &self.threads[self.submitted % self.threads.len()];
        let is_sent = thread.jobs.as_ref().is_some_and(|it| it.send(job).is_ok());
        assert!(is_sent, "threads run as long as the pool exists");
        self.submitted += 1;
    }

    /// Merges the batch of the oldest chunk.
    fn merge_next(&mut self) {
        let thread = &self.threads[self.merged % self.threads.len()];
        let batch = thread.batches.recv();
        let batch = batch.expect("threads run as long as the pool exists");
        self.log.merge(&batch);
        self.merged += 1;
        self.spare.push(batch);
    }

    fn merge_all(&mut self) {
        while self.merged < self.submitted {
            self.merge_next();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for thread in &mut self.threads {
            thread.jobs = None;
        }
        for thread in &mut self.threads {
            // The thread has no result, and a panic in it was reported already.
            _ = thread.handle.take().map(JoinHandle::join);
        }
    }
}

impl Thread {
    fn start(limits: Limits) -> Self {
        let (jobs, chunks) = sync_channel::<Job>(CHUNKS_MAX);
        let (done, batches) = sync_channel(CHUNKS_MAX);
        let handle = thread::spawn(move || {
            let mut worker = Worker::new(limits);
            for job in chunks {
                let batch = worker.parse(job.chunk, &job.format, job.spare);
                if done.send(batch).is_err() {
                    return;
                }
            }
        });
        Self {
            jobs: Some(jobs),
            batches,
            handle: Some(handle),
        }
    }
}
