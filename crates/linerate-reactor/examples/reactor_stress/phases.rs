//! One abuse on one driver: phases with and without it.

use std::{
    error::Error,
    fmt, fs, thread,
    time::{Duration, Instant},
};

use linerate_reactor::DriverKind;

use crate::{
    ATTACK, SERVE,
    abuse::Abuse,
    child::Child,
    live::{CLIENTS, Live},
};

/// The length of a phase.
const PHASE: Duration = Duration::from_millis(500);

/// Phases of each kind.
const PHASES: usize = 11;

/// The ratio that the server is to keep to.
const RATIO_MAX: f64 = 1.5;

/// Connections of attackers must be gone so soon after these are.
const RELEASE_MAX: Duration = Duration::from_secs(10);

/// What an abuse did.
pub(crate) struct Outcome {
    p99_alone: Duration,
    p99_with: Duration,
    memory: usize,
    memory_max: usize,
    is_released: bool,
}

/// Runs an abuse against a server of its own.
pub(crate) fn run(driver: DriverKind, abuse: Abuse) -> Result<Outcome, Box<dyn Error>> {
    let mut server = Child::start(&[SERVE, driver.as_str()])?;
    let address = server.answer()?;
    let mut attackers = Child::start(&[ATTACK, abuse.as_str(), &address])?;
    let mut live = Live::open(address.parse()?)?;
    live.p99(PHASE)?;
    let memory_before = resident_bytes(&server)?;

    let (mut alone, mut with, mut memory) = (Vec::new(), Vec::new(), 0);
    for _ in 0..PHASES {
        alone.push(live.p99(PHASE)?);
        order(&mut attackers, "on")?;
        with.push(live.p99(PHASE)?);
        memory = memory.max(resident_bytes(&server)?);
        order(&mut attackers, "off")?;
    }
    let is_released = wait_for_release(&mut server, &mut live)?;
    drop(live);
    attackers.end()?;
    server.end()?;
    Ok(Outcome {
        p99_alone: median(alone),
        p99_with: median(with),
        memory: memory.saturating_sub(memory_before),
        memory_max: abuse.memory_max(),
        is_released,
    })
}

impl Outcome {
    /// Returns whether a bound does not hold that has nothing to do with time.
    pub(crate) const fn is_broken(&self) -> bool {
        !self.is_released || self.memory > self.memory_max
    }

    fn ratio(&self) -> f64 {
        self.p99_with.as_secs_f64() / self.p99_alone.as_secs_f64()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |time: Duration| time.as_micros();
        write!(
            f,
            "{:6} µs {:6} µs {:6.2} {:11} {:11}  ",
            micros(self.p99_alone),
            micros(self.p99_with),
            self.ratio(),
            self.memory >> 10,
            self.memory_max >> 10,
        )?;
        f.write_str(match self {
            Self {
                is_released: false, ..
            } => "BROKEN: connections are left",
            _ if self.is_broken() => "BROKEN: too much memory",
            _ if self.ratio() > RATIO_MAX => "served, but slower",
            _ => "good",
        })
    }
}

/// Tells the attackers something, and waits until it has become so.
fn order(attackers: &mut Child, order: &str) -> Result<(), Box<dyn Error>> {
    attackers.tell(order)?;
    match attackers.answer()?.as_str() {
        "done" => Ok(()),
        other => Err(other.into()),
    }
}

/// Waits until the live clients are the only ones, and serves these meanwhile; returns whether that
/// came to be.
fn wait_for_release(server: &mut Child, live: &mut Live) -> Result<bool, Box<dyn Error>> {
    let deadline = Instant::now() + RELEASE_MAX;
    while Instant::now() < deadline {
        server.tell("how many?")?;
        if server.answer()?.parse() == Ok(CLIENTS) {
            return Ok(true);
        }
        live.p99(Duration::from_millis(10))?;
        thread::sleep(Duration::from_millis(50));
    }
    Ok(false)
}

fn resident_bytes(server: &Child) -> Result<usize, Box<dyn Error>> {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("a status without VmRSS")?.parse::<usize>()? << 10)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
