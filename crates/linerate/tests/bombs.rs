//! The cost of a hundred decompression bombs (RFC 7692): memory is bounded by the message size
//! limit, not by the size that the bombs claim.
#![cfg(all(target_os = "linux", feature = "deflate"))]
#![allow(clippy::unwrap_used, reason = "a failing test should panic")]

use std::{net::SocketAddr, thread};

use linerate::{Request, Result, WebSocket};
use linerate_testkit::bombs;

#[test]
fn x01_a_hundred_bombs_are_answered_1009_in_bounded_memory() {
    bombs::assert_bounded(serve(), "/");
}

/// Starts a server with the default settings on its own thread.
fn serve() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let serving = linerate::serve(listener, receive, std::future::pending());
            serving.await.unwrap();
        });
    });
    address
}

async fn receive(mut ws: WebSocket, _: Request) -> Result<()> {
    while ws.recv().await?.is_some() {}
    Ok(())
}
