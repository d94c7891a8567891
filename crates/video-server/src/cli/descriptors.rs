//! The process's limit of file descriptors.

/// Descriptors that a server may have to hold: a TCP connection each, and one for each file that is being read.
#[cfg(unix)]
const NEEDED: u64 = 65_536;

/// Raises the soft limit of file descriptors, 1,024 by default on Linux, towards the hard one.
#[cfg(unix)]
pub(super) fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    let Some(now) = limit.current.filter(|&now| now < NEEDED) else {
        return;
    };
    let raised = limit.maximum.map_or(NEEDED, |hard| hard.min(NEEDED));
    if raised <= now {
        return;
    }
    let raising = Rlimit {
        current: Some(raised),
        ..limit
    };
    match setrlimit(Resource::Nofile, raising) {
        Ok(()) => tracing::debug!(from = now, to = raised, "raised the limit of file descriptors"),
        Err(error) => tracing::warn!(%error, limit = now, "cannot raise the limit of file descriptors"),
    }
}

/// Does nothing: only Unix has such a limit.
#[cfg(not(unix))]
pub(super) fn raise_limit() {}
