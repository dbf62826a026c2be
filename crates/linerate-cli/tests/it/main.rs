//! Integration tests, which run the real binary.
#![allow(clippy::unwrap_used)]

mod applications;
mod bench;
mod brokers;
mod check;
mod connect;
mod crowd;
mod delivery;
mod documents;
mod echo;
mod follow;
mod http2;
mod kafka;
mod limits;
mod logs;
mod logs_screen;
mod memory;
mod operations;
mod pages;
mod postgres;
mod rates;
mod shutdown;
mod stalls;
mod support;
mod takeover;
mod terminal;
mod upload;
mod upload_resume;
mod websockets;
