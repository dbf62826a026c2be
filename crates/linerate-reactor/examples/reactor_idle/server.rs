//! The process that serves.

use std::{
    error::Error,
    io::{self, Read},
    net::Ipv4Addr,
    thread,
};

use linerate_reactor::{DriverKind, Options, Server};

use crate::echo::Echo;

/// Prints where it serves, and does so until its standard input ends.
pub(crate) fn serve(workers: usize, driver: DriverKind) -> Result<(), Box<dyn Error>> {
    let mut options = Options::default();
    options.driver = driver;
    options.connections_max = usize::MAX;
    // The clients only wait while others do something, and so would not answer.
    options.config.ping_interval = None;
    let server = Server::builder()
        .workers(workers)
        .options(options)
        .fallback(Echo)
        .listen((Ipv4Addr::LOCALHOST, 0).into())?;
    println!("{}", server.local_addr());
    let remote = server.remote();
    thread::spawn(move || {
        // An error is an end, too.
        _ = io::stdin().read_to_end(&mut Vec::new());
        remote.shut_down();
    });
    Ok(server.run()?)
}
