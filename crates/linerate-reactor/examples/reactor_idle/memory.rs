//! The memory in use, as reported by the kernel (proc(5)).

use std::{error::Error, fs};

/// The memory in use in bytes. Except for `resident`, the figures are for the whole machine.
pub(crate) struct Memory {
    /// Resident memory of the servers.
    pub(crate) resident: u64,
    slab: u64,
    /// Slab memory that the kernel can reclaim: directory entries and inodes.
    reclaimable: u64,
    /// The buffers of TCP sockets.
    buffers: u64,
    available: u64,
}

impl Memory {
    pub(crate) fn now(servers: impl Iterator<Item = u32>) -> Result<Self, Box<dyn Error>> {
        let resident = servers.map(|id| -> Result<u64, Box<dyn Error>> {
            let status = fs::read_to_string(format!("/proc/{id}/status"))?;
            kibibytes(&status, "VmRSS:")
        });
        let resident = resident.sum::<Result<u64, _>>()?;
        let all = fs::read_to_string("/proc/meminfo")?;
        let sockets = fs::read_to_string("/proc/net/sockstat")?;
        let tcp = sockets.lines().find(|line| line.starts_with("TCP:"));
        let pages = tcp.and_then(|line| line.split_whitespace().last());
        let pages: u64 = pages.ok_or("no TCP line in /proc/net/sockstat")?.parse()?;
        Ok(Self {
            resident,
            slab: kibibytes(&all, "SUnreclaim:")?,
            reclaimable: kibibytes(&all, "SReclaimable:")?,
            buffers: pages * rustix::param::page_size() as u64,
            available: kibibytes(&all, "MemAvailable:")?,
        })
    }

    /// Prints what each connection has added since `self`. The kernel has two sockets for each
    /// connection, one of which is the server's.
    pub(crate) fn print(&self, when: &str, now: &Self, connections: usize) {
        let each = |before: u64, now: u64, ends: i128| {
            (i128::from(now) - i128::from(before)) / ends / connections as i128
        };
        let server = each(self.resident, now.resident, 1);
        let machine = each(now.available, self.available, 1);
        println!("{when}, bytes for each connection:");
        println!("  server  {server:5} resident");
        println!(
            "  kernel  {:5} unreclaimable slab, {} reclaimable, {} in TCP's buffers (each end)",
            each(self.slab, now.slab, 2),
            each(self.reclaimable, now.reclaimable, 2),
            each(self.buffers, now.buffers, 2),
        );
        println!("  machine {machine:5} less available (server, clients and both ends)");
    }
}

/// Returns the value of a line such as `VmRSS:  1234 kB`, in bytes.
fn kibibytes(text: &str, name: &str) -> Result<u64, Box<dyn Error>> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    let number: u64 = number
        .ok_or_else(|| format!("no {name} line in /proc"))?
        .parse()?;
    Ok(number << 10)
}
