//! The client protocols as bytes; no other room knows a wire format.

pub mod centrifuge;
