//! The buffers into which the kernel receives, and the inputs that borrow them.
//!
//! The kernel takes buffers from a ring of entries in shared memory. If it can (Linux 6.12), it
//! fills each of them piece by piece, so that few buffers are enough for many small inputs;
//! otherwise each input takes a whole buffer. A buffer belongs to the kernel from
//! [`Buffers::provide`] until the kernel reports that it is done with it. Each piece that the
//! kernel has reported belongs to its [`Input`] until that is dropped. A buffer is provided again
//! once the kernel is done with it and no input borrows it.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    cell::Cell,
    fmt, io,
    ops::{Deref, DerefMut},
    ptr::NonNull,
    rc::Rc,
    slice,
    sync::atomic::{AtomicU16, Ordering},
};

use io_uring::{IoUring, types::BufRingEntry};

use crate::{Setup, SetupError, setup::explain};

/// The only buffer group of a ring.
pub(crate) const GROUP: u16 = 0;

/// The kernel's flag `IOU_PBUF_RING_INC`: buffers are filled piece by piece.
const INCREMENTAL: u16 = 2;

/// The alignment of the entries, which the kernel requires, and of the buffers.
const PAGE: usize = 4_096;

/// Buffers, and the entries through which the kernel gets them.
pub(crate) struct Buffers {
    /// INVARIANT: `states.len()` entries. The kernel reads those that are provided, and may write
    /// their address and length.
    entries: Memory,
    /// INVARIANT: `states.len()` times `bytes`. Each byte belongs to the kernel, to one [`Input`],
    /// or to neither.
    memory: Memory,
    /// The size of a buffer.
    bytes: u32,
    states: Box<[Cell<State>]>,
    /// How many buffers have been provided so far, modulo 2¹⁶.
    provided: Cell<u16>,
}

/// The state of a buffer since it was provided.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// How many bytes the kernel has reported.
    filled: u32,
    /// How many inputs borrow a piece of the buffer.
    lent: u32,
    /// True if the kernel is done with the buffer.
    is_full: bool,
}

impl Buffers {
    /// Creates buffers and provides all of them.
    pub(crate) fn register(io: &IoUring, setup: &Setup) -> Result<Rc<Self>, SetupError> {
        let step = "registering buffers";
        if setup.piecewise {
            let piecewise = Self::new(setup.buffers, setup.buffer_bytes);
            match piecewise.register_with(io, INCREMENTAL) {
                Ok(()) => return Ok(Rc::new(piecewise)),
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                Err(error) => return Err(explain(step, error)),
            }
        }
        let (count, bytes) = setup.whole_buffers;
        let whole = Self::new(count, bytes);
        match whole.register_with(io, 0) {
            Ok(()) => Ok(Rc::new(whole)),
            Err(error) => Err(explain(step, error)),
        }
    }

    fn new(count: u16, bytes: u32) -> Self {
        let count = count.clamp(1, 1 << 15).next_power_of_two();
        let bytes = bytes.max(1);
        let states = vec![Cell::new(State::default()); usize::from(count)];
        Self {
            entries: Memory::zeroed(usize::from(count) * size_of::<BufRingEntry>()),
            memory: Memory::zeroed(usize::from(count) * bytes as usize),
            bytes,
            states: states.into_boxed_slice(),
            provided: Cell::new(0),
        }
    }

    fn register_with(&self, io: &IoUring, flags: u16) -> io::Result<()> {
        let entries = self.entries.start.as_ptr().addr() as u64;
        // SAFETY: there are as many entries as stated, aligned to a page. `Ring` frees them only
        // after the io_uring.
        unsafe {
            io.submitter().register_buf_ring_with_flags(
                entries,
                self.states.len() as u16,
                GROUP,
                flags,
            )?;
        }
        (0..self.states.len()).for_each(|number| self.provide(number as u16));
        Ok(())
    }

    /// Returns the input that a completion has reported: `bytes` bytes in buffer `number`.
    /// `is_full` is true if the kernel is done with the buffer.
    ///
    /// # Safety
    /// The kernel must have reported these values, and this must be called only once for each
    /// report.
    ///
    /// # Panics
    /// Panics if the kernel reports impossible values.
    pub(crate) unsafe fn lend(self: &Rc<Self>, number: u16, bytes: u32, is_full: bool) -> Input {
        let cell = &self.states[usize::from(number)];
        let state = cell.get();
        let start = state.filled;
        let filled = start.checked_add(bytes);
        let filled = filled.filter(|filled| *filled <= self.bytes && !state.is_full);
        let filled = filled.expect("the kernel fills a buffer once, within its size");
        cell.set(State {
            filled,
            lent: state.lent + 1,
            is_full,
        });
        Input {
            buffers: self.clone(),
            number,
            start,
            bytes,
        }
    }

    /// Takes back a piece that is no longer borrowed; provides its buffer again if it was the last
    /// one and the kernel is done with the buffer.
    fn take_back(&self, number: u16) {
        let cell = &self.states[usize::from(number)];
        let mut state = cell.get();
        state.lent -= 1;
        cell.set(state);
        if state.lent == 0 && state.is_full {
            cell.set(State::default());
            self.provide(number);
        }
    }

    /// Gives a whole buffer to the kernel. No input may borrow it.
    fn provide(&self, number: u16) {
        let provided = self.provided.get();
        let index = usize::from(provided) & (self.states.len() - 1);
        let base: NonNull<BufRingEntry> = self.entries.start.cast();
        // SAFETY: the index is within the entries, which are initialized with zeros. There are
        // never more buffers provided than entries, so the kernel does not read this entry before
        // the tail is updated below. The tail is in a part of the first entry that the setters do
        // not change.
        let entry = unsafe { base.add(index).as_mut() };
        entry.set_addr(self.at(number, 0).as_ptr().addr() as u64);
        entry.set_len(self.bytes);
        entry.set_bid(number);
        self.provided.set(provided.wrapping_add(1));
        // SAFETY: the entries are initialized and live. The tail is aligned, written only here, and
        // read atomically by the kernel.
        let tail = unsafe {
            let tail = BufRingEntry::tail(base.as_ptr()).cast_mut();
            AtomicU16::from_ptr(tail)
        };
        tail.store(self.provided.get(), Ordering::Release);
    }

    /// Returns the address of a byte of a buffer.
    fn at(&self, number: u16, offset: u32) -> NonNull<u8> {
        let offset = usize::from(number) * self.bytes as usize + offset as usize;
        debug_assert!(offset <= self.memory.layout.size());
        // SAFETY: all callers ensure that `number` is less than the number of buffers and `offset`
        // is at most the size of one, so the sum is within the memory.
        unsafe { self.memory.start.add(offset) }
    }
}

/// Zeroed memory at an address that does not change, aligned to a page.
struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    fn zeroed(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, PAGE).expect("at most 2¹⁵ times 2³² bytes");
        // SAFETY: there is at least one buffer of at least one byte, so the size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        Self { start, layout }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and never freed elsewhere.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// The bytes received on a socket: a part of a ring's buffers, returned to the ring on drop.
///
/// A ring has few buffers: process an input immediately, or copy it instead of keeping it.
pub struct Input {
    buffers: Rc<Buffers>,
    number: u16,
    /// INVARIANT: the bytes were reported by the kernel, are within the buffer, and belong to no
    /// other input.
    start: u32,
    bytes: u32,
}

impl Deref for Input {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let start = self.buffers.at(self.number, self.start);
        // SAFETY: the bytes are initialized and within the memory, which lives as long as
        // `buffers`. They belong only to this input: the kernel does not touch bytes that it has
        // reported, and gets the buffer again only after the input is dropped.
        unsafe { slice::from_raw_parts(start.as_ptr(), self.bytes as usize) }
    }
}

impl DerefMut for Input {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        let start = self.buffers.at(self.number, self.start);
        // SAFETY: as in `deref`, and borrowed mutably like the input.
        unsafe { slice::from_raw_parts_mut(start.as_ptr(), self.bytes as usize) }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.buffers.take_back(self.number);
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(buffers: &Buffers, index: usize) -> (u64, u32, u16) {
        let base: NonNull<BufRingEntry> = buffers.entries.start.cast();
        // SAFETY: within the entries, which are not shared with the kernel.
        let entry = unsafe { base.add(index).as_ref() };
        (entry.addr(), entry.len(), entry.bid())
    }

    #[test]
    fn a_buffer_is_provided_again_when_it_is_full_and_nothing_of_it_is_lent() {
        let buffers = Rc::new(Buffers::new(2, 100));
        buffers.provide(0);
        buffers.provide(1);
        let lend = |bytes, is_full| {
            // SAFETY: this test acts as the kernel.
            unsafe { buffers.lend(0, bytes, is_full) }
        };
        let mut first = lend(60, false);
        let second = lend(40, true);
        first.fill(1);
        assert_eq!((first.len(), second.len()), (60, 40));
        assert_eq!(second[0], 0, "pieces must not overlap");
        drop(first);
        assert_eq!(buffers.provided.get(), 2);
        drop(second);
        assert_eq!(buffers.provided.get(), 3);
        let address = buffers.at(0, 0).as_ptr().addr() as u64;
        assert_eq!(entry(&buffers, 0), (address, 100, 0));
        let again = lend(100, true);
        assert_eq!(again[59..61], [1, 0]);
    }

    #[test]
    fn an_input_outlives_the_ring_it_came_from() {
        let buffers = Rc::new(Buffers::new(1, 10));
        buffers.provide(0);
        // SAFETY: this test acts as the kernel.
        let input = unsafe { buffers.lend(0, 10, true) };
        drop(buffers);
        assert_eq!(input[..], [0; 10]);
    }

    #[test]
    #[should_panic(expected = "within its size")]
    fn a_report_beyond_a_buffer_is_not_believed() {
        let buffers = Rc::new(Buffers::new(1, 10));
        // SAFETY: this test acts as the kernel.
        drop(unsafe { buffers.lend(0, 11, true) });
    }
}
