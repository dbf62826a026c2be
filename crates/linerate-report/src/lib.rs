//! The engine of the reports of `linerate logs --html`, for WebAssembly.
//!
//! A page exchanges bytes with it through one buffer: it reserves space, writes into the memory at
//! the address that it gets, and calls [`report_open`] once with a packed log, and then
//! [`report_answer`] with each question. The questions and answers are text messages of the
//! [session protocol](linerate_logview::session). Nothing here dereferences a pointer; the only
//! unsafe attributes are those that export the functions.
#![deny(unsafe_code)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate_logview::aggregate::Aggregator;
use linerate_logview::session;

/// The bytes that the page has written, or those that it is to read.
static BUFFER: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static LOG: Mutex<Option<Aggregator>> = Mutex::new(None);

/// Makes the buffer `bytes` long, and returns its address.
#[expect(unsafe_code, reason = "exports the function by its name")]
#[unsafe(no_mangle)]
pub extern "C" fn report_reserve(bytes: usize) -> *const u8 {
    let mut buffer = lock(&BUFFER);
    buffer.clear();
    buffer.resize(bytes, 0);
    buffer.as_ptr()
}

/// Opens the packed log in the buffer. Returns 0, or the length of the reason why that is not
/// possible, which is then in the buffer.
#[expect(unsafe_code, reason = "exports the function by its name")]
#[unsafe(no_mangle)]
pub extern "C" fn report_open() -> usize {
    let packed = std::mem::take(&mut *lock(&BUFFER));
    match Aggregator::unpack(&packed) {
        Ok(log) => {
            *lock(&LOG) = Some(log);
            0
        }
        Err(error) => return_text(error.to_string()),
    }
}

/// Answers the question in the buffer. Returns the length of the answer, which is then in the
/// buffer; 0 if there was no question or no log.
#[expect(unsafe_code, reason = "exports the function by its name")]
#[unsafe(no_mangle)]
pub extern "C" fn report_answer() -> usize {
    let question = std::mem::take(&mut *lock(&BUFFER));
    let log = lock(&LOG);
    let answer = log.as_ref().and_then(|log| {
        let question = str::from_utf8(&question).ok()?;
        session::answer(log, question)
    });
    return_text(answer.unwrap_or_default())
}

/// Returns the address of the buffer.
#[expect(unsafe_code, reason = "exports the function by its name")]
#[unsafe(no_mangle)]
pub extern "C" fn report_buffer() -> *const u8 {
    lock(&BUFFER).as_ptr()
}

fn return_text(text: String) -> usize {
    let mut buffer = lock(&BUFFER);
    *buffer = text.into_bytes();
    buffer.len()
}

/// Locks a value. A panic would end the program, so that the value cannot be half-written.
fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use linerate_logview::aggregate::{Aggregator, Detail, Limits};

    use super::{BUFFER, lock, report_answer, report_buffer, report_open, report_reserve};

    fn write(bytes: &[u8]) {
        assert_eq!(report_reserve(bytes.len()), report_buffer());
        lock(&BUFFER).copy_from_slice(bytes);
    }

    fn read(length: usize) -> String {
        let buffer = lock(&BUFFER);
        assert_eq!(buffer.len(), length);
        String::from_utf8(buffer.clone()).unwrap()
    }

    #[test]
    fn a_packed_log_is_opened_and_answers() {
        let mut log = Aggregator::new(Limits::default());
        log.handle_input(
            b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET /a HTTP/1.1\" 200 654\n",
        );
        let question = br#"{"type":"query","seq":1,"query":{}}"#;

        write(b"something else");
        assert_eq!(read(report_open()), "not a packed log of this version");
        write(question);
        assert_eq!(report_answer(), 0);

        let detail = Detail {
            seconds: 1,
            values_max: usize::MAX,
            rounds_numbers: false,
        };
        write(&log.pack(detail).unwrap());
        assert_eq!(report_open(), 0);
        write(question);
        let answer: serde_json::Value = serde_json::from_str(&read(report_answer())).unwrap();
        assert_eq!(answer["summary"]["bytes_sent"], 654);
        write(b"\xff");
        assert_eq!(report_answer(), 0);
    }
}
