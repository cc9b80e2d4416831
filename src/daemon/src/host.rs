//! Whether the host has room for new work: load per core and free memory, as configured. Every path asks here.

use yard_engine::Settings;

/// Why nothing should start now, if so. A host that cannot be read has room.
pub(crate) fn too_busy(settings: &Settings) -> Option<String> {
    if let Some(max) = settings.max_load_per_core {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let load = load_average()? / cores as f64;
        if load > max {
            return Some(format!("the host's load is {load:.2} per core, above {max:.2}"));
        }
    }
    if let Some(min) = settings.min_free_memory {
        let free = free_memory()?;
        if free < min {
            let mib = |bytes: u64| bytes / (1024 * 1024);
            return Some(format!("the host has {} MiB of memory free, below {} MiB", mib(free), mib(min)));
        }
    }
    None
}

fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
