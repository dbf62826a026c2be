//! The process that serves.

use std::{
    error::Error,
    io::{self, BufRead},
    net::Ipv4Addr,
    thread,
    time::Duration,
};

use linerate_reactor::{DriverKind, Options, Server};

use crate::{cores, echo::Echo};

/// How long a peer may be silent, refuse to read, or take for its handshake. All are short, so that
/// the ends of abused connections fall into the phases, too.
pub(crate) const PATIENCE: Duration = Duration::from_millis(500);

/// The option of that name.
pub(crate) const BACKLOG_BYTES_MAX: usize = 64 << 10;

/// Prints where it serves, and does so until its standard input ends; answers each line of that with
/// the number of connections.
pub(crate) fn serve(driver: DriverKind) -> Result<(), Box<dyn Error>> {
    cores::take(cores::SERVER)?;
    cores::prefer();
    let mut options = Options::default();
    options.driver = driver;
    options.backlog_bytes_max = BACKLOG_BYTES_MAX;
    options.write_timeout = PATIENCE;
    options.handshake.time_max = PATIENCE;
    options.config.ping_interval = Some(PATIENCE);
    options.config.ping_timeout = PATIENCE;
    options.config.close_timeout = PATIENCE;
    let server = Server::builder()
        .workers(1)
        .options(options)
        .fallback(Echo)
        .listen((Ipv4Addr::LOCALHOST, 0).into())?;
    println!("{}", server.local_addr());
    let remote = server.remote();
    thread::spawn(move || {
        for _ in io::stdin().lock().lines() {
            println!("{}", remote.counters().connections());
        }
        remote.shut_down();
    });
    Ok(server.run()?)
}
