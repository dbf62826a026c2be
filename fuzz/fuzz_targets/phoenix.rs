//! Any bytes as URLs, bodies and messages of Phoenix clients.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_gateway::fuzzing;

fuzz_target!(|data: &[u8]| fuzzing::phoenix(data));
