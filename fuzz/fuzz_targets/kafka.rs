//! Any bytes as a record of a Kafka topic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_kafka::fuzzing;

fuzz_target!(|data: &[u8]| fuzzing::kafka(data));
