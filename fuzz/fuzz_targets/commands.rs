//! Any bytes as input from clients of the protocols of Centrifuge and Pusher.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_gateway::fuzzing;

fuzz_target!(|data: &[u8]| fuzzing::commands(data));
