//! Whole logs: a real one, generated ones compared with an oracle, and their memory use.

mod generator;
mod growth;
mod memory;
mod odd_log;
mod oracle;
mod real_log;
mod spilled;
