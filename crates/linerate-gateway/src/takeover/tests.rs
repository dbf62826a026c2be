//! Tests of both sides: the state machines against each other, and each side with its sockets
//! against a peer that follows the protocol up to some step.

mod machines;
mod new;
mod old;
mod stage;
