//! Any text messages of clients that upload files, and any names of files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_files::fuzzing;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    fuzzing::read_message(&text);
    fuzzing::check_name(&text);
});
