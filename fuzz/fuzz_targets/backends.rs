//! Any bytes as the answer of a backend, and as a payload that it receives.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_gateway::fuzzing;

fuzz_target!(|data: &[u8]| fuzzing::backends(data));
