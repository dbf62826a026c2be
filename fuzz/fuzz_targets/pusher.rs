//! Any bytes as the URL of a Pusher client, and as requests to Pusher's HTTP API.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_gateway::fuzzing;

fuzz_target!(|data: &[u8]| fuzzing::pusher(data));
