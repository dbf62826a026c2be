//! Any condition on tags, and any tag to apply it to.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_gateway::fuzzing;

fuzz_target!(|data: &[u8]| fuzzing::tag_filters(data));
