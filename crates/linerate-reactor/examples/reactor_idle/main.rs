//! Measures the memory that idle connections use.
//!
//! ```sh
//! cargo run --release --example reactor_idle -- 200000
//! ```
//!
//! Opens connections (10,000 by default) from several loopback addresses, has each of them echo a
//! message of 16 KiB, and prints how much memory one connection costs the server and the kernel
//! before and after that. The server and the clients run in separate processes. Where the limit on
//! open files cannot be raised far enough, there are several processes of each. The optional second
//! argument is the number of workers of each server, the third the driver.

mod child;
mod clients;
mod echo;
mod memory;
mod server;

use std::{env, error::Error, thread, time::Duration, time::Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::{child::Child, memory::Memory};

/// The first argument of a server process.
const SERVE: &str = "--serve";

/// The first argument of a client process.
const CONNECT: &str = "--connect";

/// The number of files that a process has open besides its connections, with some to spare.
const OTHER_FILES: usize = 100;

/// The number of connections to open first, because the first ones cost more than the others.
const FIRST: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [SERVE, workers, driver] => server::serve(workers.parse()?, driver.parse()?),
        [CONNECT, address, number] => clients::obey(address.parse()?, number.parse()?),
        [] => measure(10_000, "1", "epoll"),
        [connections] => measure(connections.parse()?, "1", "epoll"),
        [connections, workers] => measure(connections.parse()?, workers, "epoll"),
        [connections, workers, driver] => measure(connections.parse()?, workers, driver),
        _ => Err("usage: reactor_idle [CONNECTIONS [WORKERS [DRIVER]]]".into()),
    }
}

fn measure(connections: usize, workers: &str, driver: &str) -> Result<(), Box<dyn Error>> {
    let each_max = connections_of_a_process(connections)?;
    let pairs = connections.div_ceil(each_max);
    let each = connections.div_ceil(pairs);
    let connections = each * pairs;
    let (mut servers, mut clients) = (Vec::new(), Vec::new());
    for number in 0..pairs {
        let mut server = Child::start(&[SERVE, workers, driver])?;
        let address = server.answer()?;
        clients.push(Child::start(&[CONNECT, &address, &number.to_string()])?);
        servers.push(server);
    }
    // The memory that a server allocates for its first connections is not part of the cost of
    // another.
    tell_all(&mut clients, &format!("open {FIRST}"))?;
    tell_all(&mut clients, "echo")?;
    let before = memory(&servers)?;

    println!(
        "{connections} connections, {pairs} server(s) of {workers} worker(s), driver {driver}, and as many clients"
    );
    let opened = tell_all(&mut clients, &format!("open {each}"))?;
    before.print("idle", &memory(&servers)?, connections - FIRST * pairs);
    let echoed = tell_all(&mut clients, "echo")?;
    let after = memory(&servers)?;
    before.print("after 16 KiB each", &after, connections - FIRST * pairs);
    println!("opened in {opened:.1?}, echoed 16 KiB each in {echoed:.1?}");

    clients.into_iter().try_for_each(Child::end)?;
    let left = memory(&servers)?.resident.saturating_sub(before.resident);
    println!("{left} bytes remain in use by the server(s) after all clients have left");
    servers.into_iter().try_for_each(Child::end)
}

/// Returns how many connections one process can have, at most `wanted`. Raises the limit on open
/// files, which child processes inherit, as far as allowed.
fn connections_of_a_process(wanted: usize) -> Result<usize, Box<dyn Error>> {
    let needed = (wanted + OTHER_FILES) as u64;
    let limit = getrlimit(Resource::Nofile);
    let raised = |current: u64, maximum: Option<u64>| Rlimit {
        current: Some(current),
        maximum,
    };
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(wanted);
    }
    let maximum = limit.maximum.map(|maximum| maximum.max(needed));
    if setrlimit(Resource::Nofile, raised(needed, maximum)).is_ok() {
        return Ok(wanted);
    }
    let allowed = limit.maximum.unwrap_or(needed).min(needed);
    setrlimit(Resource::Nofile, raised(allowed, limit.maximum))?;
    println!(
        "a process can open {allowed} files here, so connections are split; to use one process, \
         run as root with CAP_SYS_RESOURCE: prlimit --pid $$ --nofile={needed}:{needed}"
    );
    let connections = usize::try_from(allowed)?.checked_sub(OTHER_FILES);
    connections
        .filter(|connections| *connections > FIRST)
        .ok_or_else(|| format!("the limit of {allowed} open files is too low").into())
}

/// Sends a command to all clients at once; returns how long it took.
fn tell_all(clients: &mut [Child], command: &str) -> Result<Duration, Box<dyn Error>> {
    let started = Instant::now();
    for client in &mut *clients {
        client.tell(command)?;
    }
    for client in clients {
        match client.answer()? {
            answer if answer == clients::DONE => {}
            answer => return Err(answer.into()),
        }
    }
    Ok(started.elapsed())
}

/// Returns the memory in use after the servers have had time to settle.
fn memory(servers: &[Child]) -> Result<Memory, Box<dyn Error>> {
    thread::sleep(Duration::from_millis(500));
    Memory::now(servers.iter().map(Child::id))
}
