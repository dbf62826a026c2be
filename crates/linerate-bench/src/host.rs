//! The machine: a description of it, and the cores that servers and load run on.

mod cores;
mod tools;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use linerate_harness::machine::MachineTimes;
use rustix::system::uname;

use crate::record::Host;
pub(crate) use cores::list;
pub use cores::{Cores, CoresError};

/// How long the cores are watched before a run, and the largest share of that time in which they
/// may be busy.
const WATCHED: Duration = Duration::from_millis(400);
const BUSY_MAX: f64 = 0.05;

/// Describes the machine.
pub fn describe(cores: &Cores) -> Host {
    let cpuinfo = read("/proc/cpuinfo");
    let uname = uname();
    Host {
        cpu: cpu_name(&cpuinfo),
        server_cores: cores.server.clone(),
        load_cores: cores.load.clone(),
        cores: cpuinfo
            .lines()
            .filter(|line| line.starts_with("processor"))
            .count() as u32,
        memory_bytes: memory_bytes(&read("/proc/meminfo")),
        kernel: format!(
            "{} {}",
            uname.sysname().to_string_lossy(),
            uname.release().to_string_lossy()
        ),
        hypervisor: hypervisor(&cpuinfo),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        mitigations: mitigations(Path::new("/sys/devices/system/cpu/vulnerabilities")),
        tools: tools::versions(),
    }
}

/// Returns the share of the time in which the cores of the machine are busy with other work, if
/// that is enough to disturb measurements.
pub fn disturbance() -> Option<f64> {
    let before = MachineTimes::now().ok()?;
    thread::sleep(WATCHED);
    let after = MachineTimes::now().ok()?;
    let all = after.all.checked_sub(before.all)?;
    let idle = after.idle.saturating_sub(before.idle);
    let busy = 1.0 - idle.div_duration_f64(all);
    // Without any tick in between, this is not a number.
    (busy > BUSY_MAX).then_some(busy)
}

/// Returns the text of a file without surrounding white space, or an empty string if the file
/// cannot be read, as is true of many files in `/sys` on some machine.
fn read(path: impl AsRef<Path>) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.trim().to_owned()
}

/// Returns the value of the first line of the form `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim_end() == name).then(|| value.trim())
    })
}

fn cpu_name(cpuinfo: &str) -> String {
    // On Arm, `/proc/cpuinfo` has numbers instead of a name.
    let arm = || {
        let part = field(cpuinfo, "CPU part")?;
        Some(format!(
            "{} part {part}",
            field(cpuinfo, "CPU implementer")?
        ))
    };
    let name = field(cpuinfo, "model name").map(str::to_owned);
    name.or_else(arm).unwrap_or_else(|| "unknown".into())
}

fn memory_bytes(meminfo: &str) -> u64 {
    let total = field(meminfo, "MemTotal").and_then(|value| value.strip_suffix(" kB"));
    1_024
        * total
            .and_then(|kilobytes| kilobytes.parse().ok())
            .unwrap_or(0)
}

/// Returns the name of the hypervisor, "unknown" if it does not tell its name, or an empty string
/// on a physical machine.
fn hypervisor(cpuinfo: &str) -> String {
    let is_virtual = field(cpuinfo, "flags")
        .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let names = [
        read("/sys/hypervisor/type"),
        read("/sys/class/dmi/id/sys_vendor"),
    ];
    let name = names.into_iter().find(|name| !name.is_empty());
    match (is_virtual, name) {
        (true, Some(name)) => name,
        (true, None) => "unknown".into(),
        // On a physical machine, this is the vendor of the hardware.
        (false, _) => String::new(),
    }
}

fn mitigations(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut lines: Vec<String> = entries
        .map(|entry| {
            let flaw = entry.file_name();
            format!("{}: {}", flaw.to_string_lossy(), read(entry.path()))
        })
        .collect();
    lines.sort();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 167\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu hypervisor\n";
        assert_eq!(cpu_name(text), "Some CPU @ 2 GHz");
        assert_eq!(
            cpu_name("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"),
            "0x41 part 0xd0c"
        );
        assert_eq!(cpu_name(""), "unknown");
        assert_eq!(hypervisor("flags : fpu hypervisors"), "");
        assert_ne!(hypervisor(text), "");
    }

    #[test]
    fn memory_is_given_in_bytes() {
        assert_eq!(
            memory_bytes("MemTotal:        2048 kB\nMemFree: 1 kB\n"),
            2 << 20
        );
        assert_eq!(memory_bytes(""), 0);
    }

    #[test]
    fn this_machine_can_be_described() {
        let cores = Cores::choose(None, None).unwrap();
        let host = describe(&cores);
        assert!(host.cores >= 1 && host.memory_bytes > 0);
        assert!(host.kernel.starts_with("Linux "));
        assert_eq!(host.server_cores, cores.server);
    }
}
