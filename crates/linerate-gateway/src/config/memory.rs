//! The memory that is available to the process.

use std::fs;

/// Returns the memory of this machine in bytes, or the lower limit of a control group of the
/// process; `None` if the system does not report it.
pub(super) fn available_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| of_meminfo(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limit_files(&groups).into_iter();
    let limits = limits.filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    limits.chain(machine).min()
}

/// Returns the files that may contain a limit: for the control group of the process and its
/// ancestors, in both versions of the interface.
fn limit_files(groups: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
        loop {
            files.push(format!("{root}{path}/{file}"));
            let Some(end) = path.rfind('/') else { break };
            path = &path[..end];
        }
    }
    files
}

fn of_meminfo(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::{available_bytes, limit_files, of_meminfo};

    #[test]
    fn the_memory_of_the_machine_is_read() {
        assert_eq!(
            of_meminfo("MemTotal:       16 kB\nMemFree: 2 kB\n"),
            Some(16 << 10)
        );
        for text in [
            "",
            "MemTotal: x kB",
            "MemTotal: 5",
            "MemTotal: 99999999999999999999 kB",
        ] {
            assert_eq!(of_meminfo(text), None, "{text}");
        }
        assert!(available_bytes().is_none_or(|bytes| bytes > 16 << 20));
    }

    #[test]
    fn limits_of_all_groups_around_the_process_count() {
        assert_eq!(
            limit_files("0::/a.slice/b.service\n"),
            [
                "/sys/fs/cgroup/a.slice/b.service/memory.max",
                "/sys/fs/cgroup/a.slice/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
        assert_eq!(
            limit_files("3:cpu,cpuacct:/x\n2:memory:/\nnothing\n"),
            ["/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        );
    }
}
