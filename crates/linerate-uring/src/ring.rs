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

/// The largest token; the bits above say what an operation is.
pub const TOKEN_MAX: u64 = (1 << 61) - 1;

/// Memory that is kept for sends, in bytes.
const SPARE_BYTES_MAX: usize = 256 << 10;

/// The least memory for a send: enough for many, so that it rarely grows.
const SEND_CAPACITY_MIN: usize = 512;

/// Attempts to end all operations when the ring is dropped; one does.
const END_ATTEMPTS: usize = 100;

/// An io_uring for the sockets of the thread that makes it.
///
/// Operations name their file by its number until they are handed over by
/// [`submit_and_wait`](Self::submit_and_wait) or [`submit`](Self::submit); from then on the kernel
/// holds the file. A file with operations is therefore to be closed by [`close`](Self::close), which
/// keeps the order. Closing it otherwise would be no matter of memory, but an operation might reach
/// a newer file of the same number.
pub struct Ring {
    /// Before `buffers`, so that they outlive it.
    io: IoUring,
    buffers: Rc<Buffers>,
    /// INVARIANT: the bytes of a send that was handed over are not touched before its completion.
    sends: Slab<Send>,
    /// Memory of sends that were taken whole, to be used again.
    spare: Vec<Vec<u8>>,
    /// The capacity of all of it.
    spare_bytes: usize,
    /// Operations that the kernel has not got yet, in order.
    queued: VecDeque<Queued>,
    /// Sends among them.
    sends_queued: usize,
    /// Completions taken from the kernel, those of sends first.
    arrived: VecDeque<cqueue::Entry>,
    /// Completions of sends that are being looked at.
    complete_sends: Vec<cqueue::Entry>,
    /// Operations that the kernel has got and that are not over.
    outstanding: usize,
}

/// A send that is queued; see [`Ring::send`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SendKey(NonZeroU32);

impl SendKey {
    fn new(index: usize) -> Self {
        // No machine has memory for as many sends.
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("fewer than 2³² sends"))
    }

    const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// What has become of a send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sending {
    /// The kernel has not got it yet.
    Queued,
    /// The kernel has it, or was done with it before all was sent, which is still to be told.
    Unsure,
    /// All was sent, or [`Completion::Unsent`] told otherwise, or it was withdrawn.
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
    /// Taken back before the kernel got it.
    Withdrawn,
    /// The kernel has it.
    Submitted,
}

enum Queued {
    /// An operation that is complete only with its completion.
    Operation(squeue::Entry),
    /// An operation of which nothing is heard unless it fails.
    Quiet(squeue::Entry),
    Send(RawFd, usize),
    Close(OwnedFd),
}

/// What an operation is, in the bits above its token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Accept,
    Poll,
    Receive,
    /// Its token is the key of the send.
    Send,
    /// Its completion says nothing that anybody wants to know.
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
    /// Makes a ring for this thread.
    ///
    /// # Errors
    /// What is missing; see [`SetupError`].
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

    /// Accepts connections of a listener until that fails or is [cancelled](Self::cancel_accept).
    ///
    /// # Panics
    /// If the token is above [`TOKEN_MAX`]; so do the operations below.
    pub fn accept(&mut self, listener: BorrowedFd<'_>, token: u64) {
        let accept = opcode::AcceptMulti::new(Fd(listener.as_raw_fd()))
            .flags(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK);
        self.queue(accept.build(), Kind::Accept, token);
    }

    /// Receives from a socket until the end of its stream, or until that fails or is
    /// [cancelled](Self::cancel_receive). There may be one such operation for a token.
    pub fn receive(&mut self, socket: BorrowedFd<'_>, token: u64) {
        let receive = opcode::RecvMulti::new(Fd(socket.as_raw_fd()), GROUP);
        self.queue(receive.build(), Kind::Receive, token);
    }

    /// Waits once until a file can be read.
    pub fn poll(&mut self, file: BorrowedFd<'_>, token: u64) {
        let poll = opcode::PollAdd::new(Fd(file.as_raw_fd()), libc::POLLIN as u32);
        self.queue(poll.build(), Kind::Poll, token);
    }

    /// Returns memory for a send, used before if possible.
    pub fn memory(&mut self) -> Vec<u8> {
        match self.spare.pop() {
            Some(memory) => {
                self.spare_bytes -= memory.capacity();
                memory
            }
            None => Vec::with_capacity(SEND_CAPACITY_MIN),
        }
    }

    /// Takes [memory](Self::memory) back, for the next sends.
    pub fn give_back(&mut self, mut memory: Vec<u8>) {
        if self.spare_bytes + memory.capacity() <= SPARE_BYTES_MAX {
            memory.clear();
            self.spare_bytes += memory.capacity();
            self.spare.push(memory);
        }
    }

    /// Sends `bytes` as far as the socket takes them at once. There is a completion only if that is
    /// not all of them. The order of sends on a socket is kept, but a later one does not know that
    /// an earlier one fell short: there should be but one for a token at a time, which can be
    /// [extended](Self::queued_send) or [withdrawn](Self::withdraw) until the kernel gets it.
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

    /// Returns how many sends the kernel has not got yet.
    #[inline]
    pub fn queued_sends(&self) -> usize {
        self.sends_queued
    }

    /// Returns what has become of a send.
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

    /// Returns the bytes of a send that the kernel has not got yet, to be added to.
    #[inline]
    pub fn queued_send(&mut self, key: SendKey, token: u64) -> Option<&mut Vec<u8>> {
        let send = self.sends.get_mut(key.index())?;
        let is_queued = send.state == SendState::Queued && send.token == token;
        is_queued.then_some(&mut send.bytes)
    }

    /// Takes back a send that the kernel has not got yet; there is no completion then.
    pub fn withdraw(&mut self, key: SendKey, token: u64) -> Option<Vec<u8>> {
        let bytes = mem::take(self.queued_send(key, token)?);
        self.sends[key.index()].state = SendState::Withdrawn;
        self.sends_queued -= 1;
        Some(bytes)
    }

    /// Ends [`accept`](Self::accept); its last completion says when.
    pub fn cancel_accept(&mut self, token: u64) {
        self.cancel(Kind::Accept.user_data(token));
    }

    /// Ends [`receive`](Self::receive); its last completion says when.
    pub fn cancel_receive(&mut self, token: u64) {
        self.cancel(Kind::Receive.user_data(token));
    }

    /// Closes a file behind all operations that are queued.
    pub fn close(&mut self, file: OwnedFd) {
        self.queued.push_back(Queued::Close(file));
    }

    /// Hands over what is queued, waits for a completion beyond those of the sends, at most for
    /// `timeout`, and takes what is complete. All of that is one system call, unless very much is
    /// queued.
    ///
    /// # Errors
    /// The kernel does not take operations any more.
    pub fn submit_and_wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let sends = self.push_queued()?;
        // A send does not wait, so that it is complete at once; to wait for it alone would be a
        // call in vain.
        let want = if self.arrived.is_empty() {
            sends + 1
        } else {
            0
        };
        self.enter(want, timeout)?;
        self.reap();
        Ok(())
    }

    /// Hands over what is queued and takes what is complete, without waiting.
    ///
    /// # Errors
    /// The kernel does not take operations any more.
    pub fn submit(&mut self) -> io::Result<()> {
        self.push_queued()?;
        self.enter(0, None)?;
        self.reap();
        Ok(())
    }

    /// Returns the next of the completions that have been taken.
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

    /// Moves what is queued to the kernel's queue, by system calls where that is full. Returns how
    /// many sends are in it at last.
    fn push_queued(&mut self) -> io::Result<usize> {
        let (mut sends, mut room) = (0, self.room());
        while let Some(queued) = self.queued.pop_front() {
            if room == 0 {
                self.enter(0, None)?;
                self.reap();
                (sends, room) = (0, self.room());
            }
            if room == 0 {
                // The kernel takes nothing for now, for lack of memory.
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

    /// Moves an operation to the kernel's queue, which has room. Returns what it is, unless it was
    /// withdrawn.
    fn push(&mut self, queued: Queued) -> Option<Kind> {
        let entry = match queued {
            Queued::Operation(entry) => entry,
            Queued::Quiet(entry) => quiet(entry),
            Queued::Close(file) => quiet(opcode::Close::new(Fd(file.into_raw_fd())).build()),
            Queued::Send(socket, key) => self.take_send(socket, key)?,
        };
        let kind = Kind::of(entry.get_user_data());
        self.outstanding += usize::from(kind != Kind::Quiet);
        // SAFETY: the only memory that an operation of ours refers to is that of sends, which stays
        // where it is until the completion (see `sends`), and the buffers, which outlive the
        // io_uring; what if operations are left then, `drop` sees to.
        let pushed = unsafe { self.io.submission().push(&entry) };
        debug_assert!(pushed.is_ok(), "there is room");
        Some(kind)
    }

    /// Makes the entry of a send, unless it was withdrawn.
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
                // Time is up, or a signal came, or what is complete has to be taken first.
                Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Takes what is complete.
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

    /// Returns whether a completion says that a send was taken whole.
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
                // SAFETY: the kernel has made this descriptor for us, and this is the only place
                // that learns of it.
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

    /// Turns a completion of [`receive`](Self::receive) into what has arrived.
    #[inline]
    fn received(
        &self,
        entry: &cqueue::Entry,
        result: io::Result<u32>,
    ) -> io::Result<Option<Input>> {
        let flags = entry.flags();
        let input = cqueue::buffer_select(flags).map(|number| {
            let bytes = result.as_ref().copied().unwrap_or(0);
            // SAFETY: each completion is taken once, and comes here once.
            unsafe {
                self.buffers
                    .lend(number, bytes, !cqueue::buffer_more(flags))
            }
        });
        result.map(|bytes| input.filter(|_| bytes > 0))
    }
}

impl Drop for Ring {
    /// Ends all operations and waits for that.
    fn drop(&mut self) {
        _ = self.submit();
        for _ in 0..END_ATTEMPTS {
            // Accepted sockets are closed by this, and inputs given back.
            while self.next_completion().is_some() {}
            if self.outstanding == 0 {
                return;
            }
            let any = CancelBuilder::any();
            _ = self.io.submitter().register_sync_cancel(None, any);
            _ = self.enter(1, Some(Duration::from_millis(10)));
            self.reap();
        }
        // The kernel may still use this memory; nobody else will.
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

/// Returns where a send is kept that is complete.
fn key_of(entry: &cqueue::Entry) -> usize {
    (entry.user_data() & TOKEN_MAX) as usize
}

/// Lets an operation say something only if it fails.
fn quiet(entry: squeue::Entry) -> squeue::Entry {
    let entry = entry.flags(Flags::SKIP_SUCCESS);
    entry.user_data(Kind::Quiet.user_data(0))
}

#[cfg(test)]
mod tests;
