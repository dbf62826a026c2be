//! What abuse by some clients does to the others: `make stress`, or
//! `cargo run --release --example reactor_stress -- [DRIVER [ABUSE]]`
//!
//! A server, its live clients and the attackers are processes of their own. Each abuse runs in
//! phases of half a second, with as many phases without it between them; what is compared are the medians
//! over the phases of the 99th percentile of the live clients' round trips. Besides, the server's
//! memory must stay within the bound that its options set, every live client must be answered, and
//! the connections of the attackers must be gone in the end; if one of these fails, so does the
//! program.
//!
//! What is to be measured is how a server shares its time, not what is left of a machine of two
//! cores. So the server has a core of its own, the live clients have another, where the attackers
//! only run when these have nothing to do; and the attackers keep to a rate that the server
//! can serve with a part of its core (see `attack.rs`). On a busy machine the ratios mean nothing.

mod abuse;
mod attack;
#[path = "../reactor_idle/child.rs"]
mod child;
mod cores;
#[path = "../reactor_idle/echo.rs"]
mod echo;
mod live;
mod phases;
mod server;

use std::{env, error::Error};

use linerate_reactor::DriverKind;

use self::abuse::Abuse;

/// The first argument of a process that serves.
const SERVE: &str = "--serve";

/// The first argument of a process that attacks.
const ATTACK: &str = "--attack";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [SERVE, driver] => server::serve(driver.parse()?),
        [ATTACK, abuse, address] => attack::obey(Abuse::parse(abuse)?, address.parse()?),
        [] => stress(&[DriverKind::Epoll, DriverKind::IoUring], &Abuse::ALL),
        [driver] => stress(&[driver.parse()?], &Abuse::ALL),
        [driver, abuse] => stress(&[driver.parse()?], &[Abuse::parse(abuse)?]),
        _ => Err("usage: reactor_stress [DRIVER [ABUSE]]".into()),
    }
}

fn stress(drivers: &[DriverKind], abuses: &[Abuse]) -> Result<(), Box<dyn Error>> {
    cores::take(cores::LIVE)?;
    cores::prefer();
    println!(
        "{:8}  {:16} {:>9} {:>9} {:>6} {:>11} {:>11}",
        "driver", "abuse", "p99 alone", "p99 with", "ratio", "memory +KiB", "bound KiB"
    );
    let mut broken = 0;
    for driver in drivers {
        if let Err(missing) = driver.resolve() {
            println!("{driver:8}  {missing}");
            continue;
        }
        for abuse in abuses {
            let outcome = phases::run(*driver, *abuse)?;
            broken += u32::from(outcome.is_broken());
            println!("{driver:8}  {abuse:16} {outcome}", abuse = abuse.as_str());
        }
    }
    match broken {
        0 => Ok(()),
        _ => Err(format!("{broken} of the abuses broke the server's bounds").into()),
    }
}
