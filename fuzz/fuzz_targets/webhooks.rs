//! Any bytes as a publication of a client of which webhooks are told, and which is written to
//! Kafka.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_gateway::fuzzing;

fuzz_target!(|data: &[u8]| fuzzing::webhooks(data));
