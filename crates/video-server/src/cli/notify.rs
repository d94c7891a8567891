//! Reports the server's state to its service manager, as `sd_notify(3)` does. Without one, nothing happens.

use std::io;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Reports that new clients are served.
pub(super) fn ready() {
    send("READY=1");
}

/// Reports that the server will stop within `limit`.
pub(super) fn stopping(limit: Duration) {
    // A second for the work after the last response.
    let limit = limit.saturating_add(Duration::from_secs(1)).as_micros();
    send(&format!("STOPPING=1\nEXTEND_TIMEOUT_USEC={limit}"));
}

/// Reports the beginning of a reload, which ends with [`ready`].
pub(super) fn reloading() {
    let now = Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default();
    send(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.as_micros()));
}

fn send(state: &str) {
    if let Err(error) = try_send(state) {
        tracing::warn!(%error, state, "cannot report to the service manager (NOTIFY_SOCKET)");
    }
}

#[cfg(target_os = "linux")]
fn try_send(state: &str) -> io::Result<()> {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else {
        return Ok(());
    };
    let address = match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(path),
    };
    // A datagram is sent whole or not at all.
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address?)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
fn try_send(_: &str) -> io::Result<()> {
    Ok(())
}
