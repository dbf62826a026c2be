//! Tests of the public interface: what filters mean, compared with a naive evaluator.

mod differential;
mod language;
mod oracle;
mod sets;
