//! A server that moves bytes without WebSocket: the reference for the others.
//!
//! Each thread has its own listener, epoll instance and connections, and does the minimum for each
//! readable connection: one read, one write.
#![forbid(unsafe_code)]

mod acknowledge;
mod arguments;
mod connection;
mod hub;
mod worker;

use std::process::ExitCode;
use std::sync::Arc;
use std::{env, io, thread};

use arguments::Arguments;
use hub::Hub;
use worker::Worker;

fn main() -> ExitCode {
    let arguments = match Arguments::parse(env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("raw-tcp: {error}");
            eprintln!("{}", Arguments::USAGE);
            return ExitCode::from(2);
        }
    };
    match serve(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("raw-tcp: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until a thread fails; the main thread is one of them.
fn serve(arguments: &Arguments) -> io::Result<()> {
    let hub = Arc::new(Hub::new(arguments.threads)?);
    // All threads listen before the first one serves, so that none misses the first connections.
    let mut workers = (0..arguments.threads)
        .map(|number| Worker::bind(arguments.port, arguments.service, number, hub.clone()))
        .collect::<io::Result<Vec<_>>>()?;
    let Some(mut first) = workers.pop() else {
        return Ok(());
    };
    for mut worker in workers {
        thread::spawn(move || {
            if let Err(error) = worker.run() {
                eprintln!("raw-tcp: {error}");
                std::process::exit(1);
            }
        });
    }
    first.run()
}
