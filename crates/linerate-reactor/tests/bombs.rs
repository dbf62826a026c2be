//! A hundred decompression bombs (RFC 7692): memory is limited by the size that messages may have,
//! not by the size that they would inflate to.
#![cfg(all(target_os = "linux", feature = "deflate"))]
#![allow(clippy::unwrap_used, reason = "a failing test should panic")]

use std::thread;

use linerate_reactor::{Context, Deflate, DriverKind, Handler, Message, Opened, Options, Server};
use linerate_testkit::bombs;

/// Accepts whole messages without a reply.
#[derive(Clone)]
struct Take;

impl Handler for Take {
    type Data = ();

    fn open(&mut self, _: &mut Context<'_>, _: Opened<'_>) {}

    fn message(&mut self, (): &mut (), _: &mut Context<'_>, message: Message<'_>) {
        panic!("a bomb was accepted as a message: {message:?}");
    }
}

#[test]
fn x01_a_hundred_bombs_are_answered_1009_in_bounded_memory() {
    for driver in DriverKind::ALL {
        if let Err(missing) = driver.check() {
            linerate_testkit::skip(missing);
            continue;
        }
        let mut options = Options::default();
        options.driver = driver;
        options.deflate = Some(Deflate::default());
        let server = Server::new()
            .with_workers(1)
            .with_options(options)
            .with_fallback(Take);
        let server = server.listen(([127, 0, 0, 1], 0).into()).unwrap();
        let (address, remote) = (server.local_addr(), server.remote());
        let serving = thread::spawn(move || server.run());
        bombs::assert_bounded(address, "/");
        remote.shut_down();
        serving.join().unwrap().unwrap();
    }
}
