//! Any messages of a process that takes over from another, or is taken over.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_gateway::fuzzing;

fuzz_target!(|data: &[u8]| fuzzing::takeover(data));
