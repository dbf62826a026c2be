//! Whole logs: the real one, generated ones against an oracle, and what they cost in memory.

mod generator;
mod growth;
mod memory;
mod odd_log;
mod oracle;
mod real_log;
