//! Any bytes as packets of a Socket.IO client, with attachments, and as the body of a request.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_gateway::fuzzing;

fuzz_target!(|data: &[u8]| fuzzing::socketio(data));
