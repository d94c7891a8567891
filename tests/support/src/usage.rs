//! [`Process`]: memory and processor time of a process. `benches/peers` includes this file by its path.

use std::time::Duration;

use playrate_units::Bytes;

/// Memory and processor time of a process.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// Resident memory at present.
    pub resident: Bytes,
    /// User and system time so far.
    pub processor_time: Duration,
}

impl Process {
    /// Reads `/proc` of Linux; `None` elsewhere, or if the process does not exist.
    pub fn read(number: u32) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{number}/status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        // Processor time of each thread in nanoseconds.
        let mut time = Duration::ZERO;
        for thread in std::fs::read_dir(format!("/proc/{number}/task")).ok()? {
            let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            time += Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?);
        }
        Some(Self {
            resident: Bytes::new(kib << 10),
            processor_time: time,
        })
    }
}
