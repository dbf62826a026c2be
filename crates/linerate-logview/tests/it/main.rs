//! Whole logs: a real one, generated ones compared with an oracle, and their memory use.

mod generator;
mod growth;
mod memory;
mod odd_log;
mod oracle;
mod random_queries;
mod real_log;
mod spilled;
