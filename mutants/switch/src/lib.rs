//! Selects the mutant that is on in code with many mutants.
//!
//! The first environment variable decides: `LINERATE_MUTANT=17` switches one on,
//! `LINERATE_MUTANT=/a/path` appends the number of each mutant that is reached to a file. Without
//! it, all are off. Nothing here allocates, because some tests count allocations; this is why the
//! environment is read from `/proc`.

#![forbid(unsafe_code)]

use std::{
    fs::File,
    io::{Read, Write},
    str,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

enum Mode {
    Off,
    On(u32),
    Record(File),
}

/// The text before the number or the path.
const NAME: &[u8] = b"LINERATE_MUTANT=";
/// Number of bytes of the environment that are read; the path has to fit.
const ENVIRONMENT_BYTES_MAX: usize = 1024;
/// Mutants from this number on are recorded every time that they are reached, which takes longer.
const RECORDED_ONCE_MAX: usize = 1 << 16;

static MODE: OnceLock<Mode> = OnceLock::new();
static RECORDED: [AtomicBool; RECORDED_ONCE_MAX] =
    [const { AtomicBool::new(false) }; RECORDED_ONCE_MAX];

/// Returns whether a mutant is on.
///
/// # Panics
///
/// If a reached mutant cannot be recorded: such a failure tells nothing about a mutant.
#[inline]
pub fn is_on(mutant: u32) -> bool {
    match MODE.get_or_init(read_mode) {
        Mode::Off => false,
        Mode::On(one) => *one == mutant,
        Mode::Record(file) => {
            record(file, mutant);
            false
        }
    }
}

#[cold]
fn read_mode() -> Mode {
    let mut environment = [0; ENVIRONMENT_BYTES_MAX];
    let length = File::open("/proc/self/environ")
        .and_then(|mut file| file.read(&mut environment))
        .expect("Linux has the environment there");
    let first = environment[..length].split(|&byte| byte == 0).next();
    let Some(value) = first.and_then(|first| first.strip_prefix(NAME)) else {
        return Mode::Off;
    };
    let value = str::from_utf8(value).expect("a number or a path");
    match value.parse() {
        Ok(mutant) => Mode::On(mutant),
        Err(_) => Mode::Record(
            File::options()
                .create(true)
                .append(true)
                .open(value)
                .expect("a path to write to"),
        ),
    }
}

#[cold]
fn record(mut file: &File, mutant: u32) {
    if RECORDED
        .get(mutant as usize)
        .is_some_and(|recorded| recorded.swap(true, Relaxed))
    {
        return;
    }
    let mut line = [0; 11];
    let mut rest = &mut line[..];
    writeln!(rest, "{mutant}").expect("ten digits and the end of a line fit");
    let length = 11 - rest.len();
    file.write_all(&line[..length])
        .expect("the record can be written");
}
