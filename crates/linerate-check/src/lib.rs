//! Checks WebSocket endpoints against the standard: a catalogue of valid and invalid inputs, the
//! expected result of each, and a runner that sends the inputs and judges the results.
//!
//! This crate shares no code with linerate's own engine, so a defect in the engine cannot hide
//! itself from the checker.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answers;
mod case;
pub mod catalogue;
mod connect;
mod connection;
mod frame;
mod http;
pub mod http2;
mod judge;
mod listen;
mod outcome;
pub mod report;
mod run;
mod talk;
mod tls;
mod victim;

pub use answers::Answer;
pub use case::{Area, Case, Expect, Input, Opening, Row, Stage, Verdict, Wait};
pub use connect::{Target, TargetError};
pub use connection::End;
pub use frame::Role;
pub use http::Head;
pub use judge::Judgement;
pub use listen::{ClientPlan, listen};
pub use outcome::{CloseFrame, Outcome};
pub use run::{Finding, Plan, greet, offers_http2, run};
pub use tls::{Ending, Shape};
pub use victim::{Aftermath, Claims, Figures, Victim};
