//! The real binary, from the outside.
#![allow(clippy::unwrap_used)]

mod limits;
mod pages;
mod shutdown;
mod support;
mod upload;
mod websockets;
