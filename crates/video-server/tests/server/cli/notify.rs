//! Reports to a service manager, as systemd receives them with `Type=notify` and `Type=notify-reload`.

use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use playrate_test_support::{Media, ServerProcess};
use rstest::rstest;
use rustix::time::{ClockId, clock_gettime};

use crate::cli::process::program;

/// The next report, within a minute.
fn report(manager: &UnixDatagram) -> String {
    let mut bytes = [0; 1024];
    let length = manager.recv(&mut bytes).expect("a report");
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// Microseconds since the system started, as in `MONOTONIC_USEC`.
fn monotonic() -> u128 {
    Duration::try_from(clock_gettime(ClockId::Monotonic))
        .unwrap()
        .as_micros()
}

#[rstest]
#[case::path(false)]
#[case::abstract_name(true)]
fn a_service_manager_learns_of_readiness_reloads_and_the_end(#[case] is_abstract: bool) {
    let media = Media::new();
    let directory = tempfile::tempdir().unwrap();
    let (address, name) = if is_abstract {
        let name = format!("playrate-notify-{}", std::process::id());
        (SocketAddr::from_abstract_name(&name).unwrap(), format!("@{name}"))
    } else {
        let path = directory.path().join("notify");
        let name = path.display().to_string();
        (SocketAddr::from_pathname(path).unwrap(), name)
    };
    let manager = UnixDatagram::bind_addr(&address).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut command = program();
    command.env("NOTIFY_SOCKET", name);
    let options = ["--drain-delay", "100ms", "--drain-timeout", "30s"];
    let server = ServerProcess::start(command, "127.0.0.1:0", media.root(), &options);

    assert_eq!(report(&manager), "READY=1");
    TcpStream::connect(server.address()).expect("an open port, since the server is ready");

    let before = monotonic();
    server.signal("HUP");
    let reloading = report(&manager);
    let at = reloading
        .strip_prefix("RELOADING=1\nMONOTONIC_USEC=")
        .expect(&reloading);
    let at: u128 = at.parse().unwrap();
    assert!(
        (before..=monotonic()).contains(&at),
        "{at} is not the time of the reload"
    );
    assert_eq!(report(&manager), "READY=1");

    server.signal("TERM");
    assert_eq!(report(&manager), "STOPPING=1\nEXTEND_TIMEOUT_USEC=31100000");
    server.exits(0);
}

#[test]
fn a_service_manager_that_is_gone_does_not_stop_the_server() {
    let mut command = program();
    command.env("NOTIFY_SOCKET", "/no/such/socket");
    let server = ServerProcess::start(command, "127.0.0.1:0", Media::new().root(), &[]);
    server.signal("TERM");
    assert!(server.exits(0).contains("cannot report to the service manager"));
}
