//! Threads and listeners: one of each, and a single-threaded runtime, for each `--threads`.

use std::{
    future::Future,
    net::{Ipv4Addr, SocketAddr},
    thread,
};

use socket2::{Domain, Socket, Type};
use tokio::{net::TcpListener, runtime};

use crate::{Arguments, Result};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4_096;

/// Runs `serve` on each thread with its own listener on the same port; the kernel distributes
/// connections among them.
///
/// # Errors
///
/// The port is unavailable, or `serve` failed on the first thread that ended.
pub fn on_each_thread<S, F>(arguments: &Arguments, serve: S) -> Result
where
    S: Fn(TcpListener) -> F + Clone + Send + 'static,
    F: Future<Output = Result>,
{
    let listeners = (0..arguments.threads)
        .map(|_| listen(arguments.port))
        .collect::<Result<Vec<_>>>()?;
    let mut threads = Vec::new();
    for listener in listeners {
        let serve = serve.clone();
        threads.push(thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async { serve(TcpListener::from_std(listener)?).await })
        }));
    }
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked")??;
    }
    Ok(())
}

fn listen(port: u16) -> Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
