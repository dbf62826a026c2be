//! What idle connections cost in memory: `cargo run --release --example reactor_idle -- 200000`
//!
//! Opens connections (10,000 without an argument) from several loopback addresses, has each echo a
//! message of 16 KiB, and prints what one connection costs the server and the kernel before and
//! after that. Server and clients are processes of their own; where the limit on open files can't be
//! raised as far as needed, they are several of each. A second argument sets the number of workers
//! of each server, a third the driver.

mod child;
mod clients;
mod echo;
mod memory;
mod server;

use std::{env, error::Error, thread, time::Duration, time::Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::{child::Child, memory::Memory};

/// The first argument of a process that serves.
const SERVE: &str = "--serve";

/// The first argument of a process with clients.
const CONNECT: &str = "--connect";

/// Files that a process has open besides connections, and some to spare.
const OTHER_FILES: usize = 100;

/// Connections from which on one more costs what each does.
const FIRST: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [SERVE, workers, driver] => server::serve(workers.parse()?, driver.parse()?),
        [CONNECT, address, number] => clients::obey(address.parse()?, number.parse()?),
        [] => measure(10_000, "1", "auto"),
        [connections] => measure(connections.parse()?, "1", "auto"),
        [connections, workers] => measure(connections.parse()?, workers, "auto"),
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
    // What a server allocates for its first connections is not what one more costs.
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
    println!("{left} bytes stay with the server(s) once all are gone");
    servers.into_iter().try_for_each(Child::end)
}

/// Returns how many connections one process may have, at most `wanted`; raises the limit on open
/// files, which child processes inherit, as far as that is allowed.
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
        "a process may open {allowed} files here, so that several share the connections; for one, \
         run as root with CAP_SYS_RESOURCE: prlimit --pid $$ --nofile={needed}:{needed}"
    );
    let connections = usize::try_from(allowed)?.checked_sub(OTHER_FILES);
    connections
        .filter(|connections| *connections > FIRST)
        .ok_or_else(|| format!("{allowed} open files are too few").into())
}

/// Has all clients do something at once; returns how long it took.
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

/// Returns what is in use once the servers have had time to settle.
fn memory(servers: &[Child]) -> Result<Memory, Box<dyn Error>> {
    thread::sleep(Duration::from_millis(500));
    Memory::now(servers.iter().map(Child::id))
}
