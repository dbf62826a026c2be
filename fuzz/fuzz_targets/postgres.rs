//! Any bytes as the replication stream of a Postgres server.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_postgres::fuzzing;

fuzz_target!(|data: &[u8]| fuzzing::postgres(data));
