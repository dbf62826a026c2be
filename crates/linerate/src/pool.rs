//! Memory that belongs to the worker thread: its read buffer, and recycled buffers for payloads.
//!
//! A buffer goes back to the pool of the thread that drops it. What a thread keeps is bounded; the
//! rest is freed.

use std::cell::RefCell;

/// The size of a read: large enough for many small messages, small enough to stay in the cache.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// A buffer class holds buffers of at least and a thread keeps of them at most:
const CLASSES: [Class; 4] = [
    Class {
        bytes_min: 256,
        kept_max: 1_024,
    },
    Class {
        bytes_min: 4 << 10,
        kept_max: 128,
    },
    Class {
        bytes_min: 64 << 10,
        kept_max: 16,
    },
    Class {
        bytes_min: 1 << 20,
        kept_max: 1,
    },
];

/// Buffers above this capacity are freed, not kept.
const KEPT_BYTES_MAX: usize = 32 << 20;

struct Class {
    bytes_min: usize,
    kept_max: usize,
}

/// How many read buffers a thread keeps besides the one in use.
const READ_BUFFERS_MAX: usize = 16;

thread_local! {
    static READ: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    static FREE: RefCell<[Vec<Vec<u8>>; 4]> = const { RefCell::new([const { Vec::new() }; 4]) };
}

/// Lends the thread's read buffer: [`READ_BYTES`] long, with arbitrary content.
///
/// `f` may keep the buffer by taking it out; the thread then gets another one.
pub(crate) fn with_read_buffer<T>(f: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let recycled = READ.try_with(|read| read.borrow_mut().pop());
    let mut buffer = recycled
        .ok()
        .flatten()
        .unwrap_or_else(|| vec![0; READ_BYTES]);
    let result = f(&mut buffer);
    give_input(buffer);
    result
}

/// Gives a buffer back that holds input: the read buffer, or a copy of a short read.
pub(crate) fn give_input(buffer: Vec<u8>) {
    if buffer.len() != READ_BYTES {
        return give(buffer);
    }
    _ = READ.try_with(|read| {
        let mut read = read.borrow_mut();
        if read.len() < READ_BUFFERS_MAX {
            read.push(buffer);
        }
    });
}

/// Returns an empty buffer with a capacity of about `bytes` or more, recycled if possible.
pub(crate) fn take(bytes: usize) -> Vec<u8> {
    let class = CLASSES
        .iter()
        .rposition(|class| class.bytes_min <= bytes)
        .unwrap_or(0);
    let recycled = FREE.try_with(|free| {
        let mut free = free.borrow_mut();
        free[class].pop()
    });
    match recycled {
        Ok(Some(buffer)) => buffer,
        _ => Vec::with_capacity(bytes.clamp(CLASSES[0].bytes_min, KEPT_BYTES_MAX)),
    }
}

/// Gives a buffer back.
pub(crate) fn give(mut buffer: Vec<u8>) {
    let capacity = buffer.capacity();
    let Some(class) = CLASSES
        .iter()
        .rposition(|class| class.bytes_min <= capacity)
    else {
        return;
    };
    if capacity > KEPT_BYTES_MAX {
        return;
    }
    buffer.clear();
    _ = FREE.try_with(|free| {
        let mut free = free.borrow_mut();
        if free[class].len() < CLASSES[class].kept_max {
            free[class].push(buffer);
        }
    });
}
