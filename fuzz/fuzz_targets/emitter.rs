//! Any bytes as packets of Socket.IO's emitter and adapters.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_gateway::fuzzing;

fuzz_target!(|data: &[u8]| fuzzing::emitter(data));
