//! The ring: operations in, completions out.

use std::{
    collections::VecDeque,
    fmt, io, mem,
    num::NonZeroU32,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd},
    rc::Rc,
    time::Duration,
};

use io_uring::{
    IoUring, cqueue, opcode,
    squeue::{self, Flags},
    types::{CancelBuilder, Fd, SubmitArgs, Timespec},
};
use slab::Slab;

use crate::{
    Completion, Input, Setup, SetupError,
    buffers::{Buffers, GROUP},
    setup,
};

/// The largest token; the bits above it encode the kind of operation.
pub const TOKEN_MAX: u64 = (1 << 61) - 1;

/// The maximum amount of memory that is kept for reuse by sends, in bytes.
const SPARE_BYTES_MAX: usize = 256 << 10;

/// The initial capacity for a send, in bytes: enough for most sends, so that it rarely grows.
const SEND_CAPACITY_MIN: usize = 512;

/// The maximum number of attempts to end all operations when the ring is dropped; usually one is
/// enough.
const END_ATTEMPTS: usize = 100;

/// An io_uring for the sockets of the thread that creates it.
///
/// Operations refer to their file by its descriptor number until they are submitted by
/// [`submit_and_wait`](Self::submit_and_wait) or [`submit`](Self::submit); from then on the kernel
/// holds the file. Therefore, close a file with operations by [`close`](Self::close), which keeps
/// the order. Closing it in another way does not endanger memory safety, but an operation could
/// reach a newer file with the same number.
pub struct Ring {
    /// Declared before `buffers`, so that the buffers outlive it.
    io: IoUring,
    buffers: Rc<Buffers>,
    /// INVARIANT: the bytes of a submitted send are not touched before its completion.
    sends: Slab<Send>,
    /// Memory of completed sends, to be reused.
    spare: Vec<Vec<u8>>,
    /// The total capacity of `spare`, in bytes.
    spare_bytes: usize,
    /// Operations that have not been submitted yet, in order.
    queued: VecDeque<Queued>,
    /// The number of sends among them.
    sends_queued: usize,
    /// Completions fetched from the kernel, those of sends first.
    arrived: VecDeque<cqueue::Entry>,
    /// Completions of sends that are being processed.
    complete_sends: Vec<cqueue::Entry>,
    /// The number of operations that are submitted and not complete.
    outstanding: usize,
}

/// Identifies a queued send; see [`Ring::send`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SendKey(NonZeroU32);

impl SendKey {
    fn new(index: usize) -> Self {
        // No machine has enough memory for that many sends.
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("fewer than 2³² sends"))
    }

    const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The state of a send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sending {
    /// The send has not been submitted yet.
    Queued,
    /// The send has been submitted, and its result is not known yet.
    Unsure,
    /// All bytes were sent, or [`Completion::Unsent`] was returned, or the send was withdrawn.
    Over,
}

struct Send {
    token: u64,
    bytes: Vec<u8>,
    state: SendState,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum SendState {
    Queued,
    /// Withdrawn before it was submitted.
    Withdrawn,
    /// Submitted to the kernel.
    Submitted,
}

enum Queued {
    /// An operation that has a completion.
    Operation(squeue::Entry),
    /// An operation that has a completion only if it fails.
    Quiet(squeue::Entry),
    Send(RawFd, usize),
    Close(OwnedFd),
}

/// The kind of an operation, encoded in the bits above its token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Accept,
    Poll,
    Receive,
    /// A send, whose token is its key.
    Send,
    /// An operation whose completion is ignored.
    Quiet,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::Accept,
        Self::Poll,
        Self::Receive,
        Self::Send,
        Self::Quiet,
    ];

    /// Returns the user data of an operation of this kind.
    fn user_data(self, token: u64) -> u64 {
        assert!(token <= TOKEN_MAX, "a token has 61 bits");
        (self as u64) << 61 | token
    }

    fn of(user_data: u64) -> Self {
        Self::ALL[(user_data >> 61) as usize]
    }
}

impl Ring {
    /// Creates a ring for this thread.
    ///
    /// # Errors
    /// Fails if io_uring is not available; see [`SetupError`].
    pub fn new(setup: &Setup) -> Result<Self, SetupError> {
        let io = setup::build(setup)?;
        let buffers = Buffers::register(&io, setup)?;
        Ok(Self {
            io,
            buffers,
            sends: Slab::new(),
            spare: Vec::new(),
            spare_bytes: 0,
            queued: VecDeque::new(),
            sends_queued: 0,
            arrived: VecDeque::new(),
            complete_sends: Vec::new(),
            outstanding: 0,
        })
    }

    /// Accepts connections from a listener until this fails or is [cancelled](Self::cancel_accept).
    ///
    /// # Panics
    /// Panics if the token is greater than [`TOKEN_MAX`], like all other operations.
    pub fn accept(&mut self, listener: BorrowedFd<'_>, token: u64) {
        let accept = opcode::AcceptMulti::new(Fd(listener.as_raw_fd()))
            .flags(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK);
        self.queue(accept.build(), Kind::Accept, token);
    }

    /// Receives from a socket until the end of its stream, or until this fails or is
    /// [cancelled](Self::cancel_receive). There may be only one such operation for each token.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, token: u64) {
        let receive = opcode::RecvMulti::new(Fd(socket.as_raw_fd()), GROUP);
        self.queue(receive.build(), Kind::Receive, token);
    }

    /// Waits once until a file is readable.
    pub fn poll(&mut self, file: BorrowedFd<'_>, token: u64) {
        let poll = opcode::PollAdd::new(Fd(file.as_raw_fd()), libc::POLLIN as u32);
        self.queue(poll.build(), Kind::Poll, token);
    }

    /// Returns an empty buffer for a send, reusing memory if possible.
    pub fn memory(&mut self) -> Vec<u8> {
        match self.spare.pop() {
            Some(memory) => {
                self.spare_bytes -= memory.capacity();
                memory
            }
            None => Vec::with_capacity(SEND_CAPACITY_MIN),
        }
    }

    /// Takes back [memory](Self::memory), for reuse by other sends.
    pub fn give_back(&mut self, mut memory: Vec<u8>) {
        if self.spare_bytes + memory.capacity() <= SPARE_BYTES_MAX {
            memory.clear();
            self.spare_bytes += memory.capacity();
            self.spare.push(memory);
        }
    }

    /// Sends as many of `bytes` as the socket accepts without blocking.
    ///
    /// There is a completion only if not all of them could be sent. Sends on a socket are executed
    /// in order, but a later one is executed even if an earlier one was incomplete. Therefore,
    /// start only one send at a time for each token; it can be [extended](Self::queued_send) or
    /// [withdrawn](Self::withdraw) until it is submitted.
    pub fn send(&mut self, socket: BorrowedFd<'_>, token: u64, bytes: Vec<u8>) -> SendKey {
        assert!(token <= TOKEN_MAX, "a token has 61 bits");
        let key = self.sends.insert(Send {
            token,
            bytes,
            state: SendState::Queued,
        });
        self.queued.push_back(Queued::Send(socket.as_raw_fd(), key));
        self.sends_queued += 1;
        SendKey::new(key)
    }

    /// Returns how many sends have not been submitted yet.
    #[inline]
    pub fn queued_sends(&self) -> usize {
        self.sends_queued
    }

    /// Returns the state of a send.
    #[inline]
    pub fn sending(&self, key: SendKey, token: u64) -> Sending {
        match self.sends.get(key.index()) {
            Some(send) if send.token == token => match send.state {
                SendState::Queued => Sending::Queued,
                SendState::Submitted => Sending::Unsure,
                SendState::Withdrawn => Sending::Over,
            },
            _ => Sending::Over,
        }
    }

    /// Returns the bytes of a send that has not been submitted yet, so that more can be appended.
    #[inline]
    pub fn queued_send(&mut self, key: SendKey, token: u64) -> Option<&mut Vec<u8>> {
        let send = self.sends.get_mut(key.index())?;
        let is_queued = send.state == SendState::Queued && send.token == token;
        is_queued.then_some(&mut send.bytes)
    }

    /// Withdraws a send that has not been submitted yet; it then has no completion.
    pub fn withdraw(&mut self, key: SendKey, token: u64) -> Option<Vec<u8>> {
        let bytes = mem::take(self.queued_send(key, token)?);
        self.sends[key.index()].state = SendState::Withdrawn;
        self.sends_queued -= 1;
        Some(bytes)
    }

    /// Cancels [`accept`](Self::accept); it ends with its last completion.
    pub fn cancel_accept(&mut self, token: u64) {
        self.cancel(Kind::Accept.user_data(token));
    }

    /// Cancels [`receive`](Self::receive); it ends with its last completion.
    pub fn cancel_receive(&mut self, token: u64) {
        self.cancel(Kind::Receive.user_data(token));
    }

    /// Closes a file after all operations that are queued now.
    pub fn close(&mut self, file: OwnedFd) {
        self.queued.push_back(Queued::Close(file));
    }

    /// Submits the queued operations, waits at most `timeout` for a completion other than those of
    /// the sends, and fetches the completions.
    ///
    /// This takes a single system call unless more operations are queued than fit into the kernel's
    /// queue.
    ///
    /// # Errors
    /// Fails if the kernel no longer accepts operations.
    pub fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let sends = self.push_queued()?;
        // A send does not block, so it completes immediately. Waiting for only that would return
        // without anything to do.
        let want = if self.arrived.is_empty() {
            sends + 1
        } else {
            0
        };
        self.enter(want, timeout)?;
        self.reap();
        Ok(())
    }

    /// Submits the queued operations and fetches the completions, without waiting.
    ///
    /// # Errors
    /// Fails if the kernel no longer accepts operations.
    pub fn submit(&mut self) -> io::Result<()> {
        self.push_queued()?;
        self.enter(0, None)?;
        self.reap();
        Ok(())
    }

    /// Returns the next of the completions that have been fetched.
    pub fn next_completion(&mut self) -> Option<Completion> {
        while let Some(entry) = self.arrived.pop_front() {
            let completion = self.complete(&entry);
            if completion.is_some() {
                return completion;
            }
        }
        None
    }

    fn queue(&mut self, entry: squeue::Entry, kind: Kind, token: u64) {
        let entry = entry.user_data(kind.user_data(token));
        self.queued.push_back(Queued::Operation(entry));
    }

    fn cancel(&mut self, user_data: u64) {
        let entry = opcode::AsyncCancel::new(user_data).build();
        self.queued.push_back(Queued::Quiet(entry));
    }

    /// Moves the queued operations to the kernel's queue, with system calls if that is full.
    /// Returns how many sends are in the kernel's queue at the end.
    fn push_queued(&mut self) -> io::Result<usize> {
        let (mut sends, mut room) = (0, self.room());
        while let Some(queued) = self.queued.pop_front() {
            if room == 0 {
                self.enter(0, None)?;
                self.reap();
                (sends, room) = (0, self.room());
            }
            if room == 0 {
                // The kernel accepts nothing for now, because it lacks memory.
                self.queued.push_front(queued);
                break;
            }
            if let Some(kind) = self.push(queued) {
                sends += usize::from(kind == Kind::Send);
                room -= 1;
            }
        }
        Ok(sends)
    }

    /// Returns how many operations fit into the kernel's queue.
    fn room(&mut self) -> usize {
        let queue = self.io.submission();
        queue.capacity() - queue.len()
    }

    /// Moves an operation to the kernel's queue, which must have room. Returns its kind, or `None`
    /// if it was withdrawn.
    fn push(&mut self, queued: Queued) -> Option<Kind> {
        let entry = match queued {
            Queued::Operation(entry) => entry,
            Queued::Quiet(entry) => quiet(entry),
            Queued::Close(file) => quiet(opcode::Close::new(Fd(file.into_raw_fd())).build()),
            Queued::Send(socket, key) => self.take_send(socket, key)?,
        };
        let kind = Kind::of(entry.get_user_data());
        self.outstanding += usize::from(kind != Kind::Quiet);
        // SAFETY: the only memory that our operations refer to is that of sends, which does not
        // change or move until the completion (see `sends`), and the buffers, which outlive the
        // io_uring. `drop` handles operations that are not complete at that time.
        let pushed = unsafe { self.io.submission().push(&entry) };
        debug_assert!(pushed.is_ok(), "there is room");
        Some(kind)
    }

    /// Creates the entry of a send, unless it was withdrawn.
    fn take_send(&mut self, socket: RawFd, key: usize) -> Option<squeue::Entry> {
        let send = &mut self.sends[key];
        if send.state == SendState::Withdrawn {
            self.sends.remove(key);
            return None;
        }
        send.state = SendState::Submitted;
        self.sends_queued -= 1;
        let len = u32::try_from(send.bytes.len()).unwrap_or(u32::MAX);
        let entry = opcode::Send::new(Fd(socket), send.bytes.as_ptr(), len)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT);
        Some(entry.build().user_data(Kind::Send.user_data(key as u64)))
    }

    fn enter(&self, want: usize, timeout: Option<Duration>) -> io::Result<()> {
        let submitter = self.io.submitter();
        let entered = match timeout {
            Some(timeout) => {
                let timeout = Timespec::from(timeout);
                submitter.submit_with_args(want, &SubmitArgs::new().timespec(&timeout))
            }
            None => submitter.submit_and_wait(want),
        };
        match entered {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // The timeout expired, or a signal arrived, or completions must be fetched first.
                Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Fetches the completions.
    fn reap(&mut self) {
        for entry in self.io.completion() {
            let kind = Kind::of(entry.user_data());
            if kind != Kind::Quiet && !cqueue::more(entry.flags()) {
                self.outstanding -= 1;
            }
            match kind {
                Kind::Quiet => {}
                Kind::Send => self.complete_sends.push(entry),
                Kind::Accept | Kind::Poll | Kind::Receive => self.arrived.push_back(entry),
            }
        }
        while let Some(entry) = self.complete_sends.pop() {
            if self.is_sent(&entry) {
                let Send { bytes, .. } = self.sends.remove(key_of(&entry));
                self.give_back(bytes);
            } else {
                self.arrived.push_front(entry);
            }
        }
    }

    /// Returns whether a completion reports that all bytes of a send were sent.
    fn is_sent(&self, entry: &cqueue::Entry) -> bool {
        usize::try_from(entry.result()) == Ok(self.sends[key_of(entry)].bytes.len())
    }

    #[inline]
    fn complete(&mut self, entry: &cqueue::Entry) -> Option<Completion> {
        let token = entry.user_data() & TOKEN_MAX;
        let more = cqueue::more(entry.flags());
        let result = u32::try_from(entry.result())
            .map_err(|_| io::Error::from_raw_os_error(-entry.result()));
        Some(match Kind::of(entry.user_data()) {
            Kind::Accept => Completion::Accepted {
                token,
                // SAFETY: the kernel has created this descriptor for us, and nothing else owns it.
                accepted: result.map(|fd| unsafe { OwnedFd::from_raw_fd(fd as RawFd) }),
                more,
            },
            Kind::Poll => Completion::Polled { token },
            Kind::Receive => Completion::Received {
                token,
                received: self.received(entry, result),
                more,
            },
            Kind::Send => {
                let Send { token, bytes, .. } = self.sends.remove(key_of(entry));
                Completion::Unsent {
                    token,
                    sent: result.map(|bytes| bytes as usize),
                    bytes,
                }
            }
            Kind::Quiet => return None,
        })
    }

    /// Returns the input of a completion of [`receive`](Self::receive).
    #[inline]
    fn received(
        &self,
        entry: &cqueue::Entry,
        result: io::Result<u32>,
    ) -> io::Result<Option<Input>> {
        let flags = entry.flags();
        let input = cqueue::buffer_select(flags).map(|number| {
            let bytes = result.as_ref().copied().unwrap_or(0);
            // SAFETY: each completion is fetched once, and passed to this method once.
            unsafe {
                self.buffers
                    .lend(number, bytes, !cqueue::buffer_more(flags))
            }
        });
        result.map(|bytes| input.filter(|_| bytes > 0))
    }
}

impl Drop for Ring {
    /// Cancels all operations and waits until they have ended.
    fn drop(&mut self) {
        _ = self.submit();
        for _ in 0..END_ATTEMPTS {
            // This closes accepted sockets and gives inputs back.
            while self.next_completion().is_some() {}
            if self.outstanding == 0 {
                return;
            }
            let any = CancelBuilder::any();
            _ = self.io.submitter().register_sync_cancel(None, any);
            _ = self.enter(1, Some(Duration::from_millis(10)));
            self.reap();
        }
        // Leak the memory, because the kernel may still use it.
        mem::forget(mem::take(&mut self.sends));
        mem::forget(self.buffers.clone());
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("queued", &self.queued.len())
            .field("outstanding", &self.outstanding)
            .finish_non_exhaustive()
    }
}

/// Returns the key of a completed send.
fn key_of(entry: &cqueue::Entry) -> usize {
    (entry.user_data() & TOKEN_MAX) as usize
}

/// Suppresses the completion of an operation unless it fails.
fn quiet(entry: squeue::Entry) -> squeue::Entry {
    let entry = entry.flags(Flags::SKIP_SUCCESS);
    entry.user_data(Kind::Quiet.user_data(0))
}

#[cfg(test)]
mod tests;
