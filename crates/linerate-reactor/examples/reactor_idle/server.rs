//! The server process.

use std::{
    error::Error,
    io::{self, Read},
    net::Ipv4Addr,
    thread,
};

use linerate_reactor::{DriverKind, Options, Server};

use crate::echo::Echo;

/// Prints the server's address and serves until standard input ends.
pub(crate) fn serve(workers: usize, driver: DriverKind) -> Result<(), Box<dyn Error>> {
    let mut options = Options::default();
    options.driver = driver;
    options.connections_max = usize::MAX;
    // The clients do not answer Pings while they wait for others.
    options.config.ping_interval = None;
    let server = Server::new()
        .with_workers(workers)
        .with_options(options)
        .with_fallback(Echo)
        .listen((Ipv4Addr::LOCALHOST, 0).into())?;
    println!("{}", server.local_addr());
    let remote = server.remote();
    thread::spawn(move || {
        // A read error also ends the server.
        _ = io::stdin().read_to_end(&mut Vec::new());
        remote.shut_down();
    });
    Ok(server.run()?)
}
