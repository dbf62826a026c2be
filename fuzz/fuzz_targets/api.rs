//! Any bytes as requests to the server API, and as revocations that a broker keeps.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_gateway::fuzzing;

fuzz_target!(|data: &[u8]| fuzzing::api(data));
