//! Crashes, suspensions and new addresses of hosts.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU32;

use quinn::Runtime;

use super::sockets::{receive, send};
use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Spawns a task on `host` that counts once per second, and returns the counter.
fn count_on(sim: &Simulation, host: Host) -> Arc<AtomicU32> {
    let (runtime, counter) = (sim.runtime_on(host), Arc::new(AtomicU32::new(0)));
    let shared = Arc::clone(&counter);
    let sleeping = Arc::clone(&runtime);
    runtime.spawn(Box::pin(async move {
        loop {
            sleeping.sleep(SECOND).await;
            shared.fetch_add(1, Ordering::Relaxed);
        }
    }));
    counter
}

fn sleep(sim: &Simulation, time: Duration) {
    sim.run(Simulation::DAY, sim.runtime().sleep(time)).unwrap();
}

#[test]
fn a_crash_ends_the_tasks_of_its_host_only() {
    let (sim, server, client, _) = pair(Seed::new(1), &twenty_mbps());
    let (on_server, on_client) = (count_on(&sim, server), count_on(&sim, client));
    sleep(&sim, SECOND * 3 + SECOND / 2);
    assert_eq!((sim.tasks_on(server), sim.tasks_on(client)), (1, 1));
    sim.crash(server);
    assert_eq!((sim.tasks_on(server), sim.tasks_on(client)), (0, 1));
    sleep(&sim, SECOND * 3);
    let counts = [on_server, on_client].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(counts, [3, 6]);
}

#[test]
fn a_crashed_host_sends_nothing_more_and_its_port_is_free() {
    let (sim, server, client, _) = pair(Seed::new(1), &twenty_mbps());
    let (from, to) = (sim.bind(server, 443).unwrap(), sim.bind(client, 9).unwrap());
    send(&from, to.address(), b"sent before", None);
    sim.crash(server);
    send(&from, to.address(), b"sent after", None);
    send(&to, from.address(), b"answer", None);
    let received = sim.run(Simulation::DAY, async {
        let (data, _) = receive(&to).await;
        sim.runtime().sleep(SECOND).await;
        data
    });
    assert_eq!(received.unwrap(), b"sent before");
    let stats = sim.network_stats();
    assert_eq!((stats.delivered, stats.unclaimed), (1, 1));
    let again = sim.bind(server, 443).unwrap();
    // Closing the old socket leaves the port to the new one.
    drop(from);
    send(&to, again.address(), b"answer", None);
    let received = sim.run(Simulation::DAY, receive(&again));
    assert_eq!(received.unwrap().0, b"answer");
}

#[test]
fn a_task_that_crashes_its_own_host_ends_after_its_poll() {
    let (sim, server, _, _) = pair(Seed::new(1), &twenty_mbps());
    let (runtime, counter) = (sim.runtime_on(server), Arc::new(AtomicU32::new(0)));
    let (polls, shared) = (Arc::clone(&counter), Arc::clone(&sim.shared));
    runtime.clone().spawn(Box::pin(async move {
        shared.executor.crash(server.ip());
        polls.fetch_add(1, Ordering::Relaxed);
        runtime.sleep(SECOND).await;
        polls.fetch_add(1, Ordering::Relaxed);
    }));
    sleep(&sim, SECOND * 3);
    assert_eq!(counter.load(Ordering::Relaxed), 1);
    assert_eq!(sim.tasks_on(server), 0);
}

#[test]
fn timers_of_a_suspended_host_fire_late_and_datagrams_wait() {
    let (sim, server, client, _) = pair(Seed::new(1), &twenty_mbps());
    let (on_server, on_client) = (count_on(&sim, server), count_on(&sim, client));
    sleep(&sim, SECOND * 2 + SECOND / 2);
    sim.suspend(server, SECOND * 2);
    // Overlaps the first one and ends after it, 5.5 s into the run.
    sleep(&sim, SECOND);
    sim.suspend(server, SECOND * 2);
    sleep(&sim, SECOND);
    sim.suspend(server, SECOND / 2);
    sleep(&sim, SECOND / 4);
    let counts = || [&on_server, &on_client].map(|count| count.load(Ordering::Relaxed));
    assert_eq!((sim.now(), counts()), (Time::from_millis(4_750), [2, 4]));
    sleep(&sim, SECOND);
    assert_eq!(counts(), [3, 5]);
    sleep(&sim, SECOND);
    // A second after the late one, not after its due time.
    assert_eq!(counts(), [4, 6]);
}

#[test]
fn a_socket_behind_a_nat_is_reached_at_its_new_address_only() {
    let (sim, server, client, path) = pair(Seed::new(1), &twenty_mbps());
    let other = sim.add_host(HostConfig::default());
    sim.connect(server, other, &[path]);
    let (near, far) = (sim.bind(client, 9).unwrap(), sim.bind(server, 443).unwrap());
    let seen_from = |address: SocketAddr| {
        send(&near, far.address(), b"?", None);
        let (_, meta) = sim.run(Simulation::DAY, receive(&far)).unwrap();
        assert_eq!(meta.addr, address);
        send(&far, address, b"!", None);
        sim.run(Simulation::DAY, receive(&near)).unwrap();
    };
    seen_from(near.address());
    let port = sim.rebind(&near, client).unwrap();
    assert_eq!(port.ip(), client.ip());
    assert_ne!(port.port(), 9);
    seen_from(port);
    let address = sim.rebind(&near, other).unwrap();
    assert_eq!(address.ip(), other.ip());
    seen_from(address);
    for gone in [near.address(), port] {
        send(&far, gone, b"!", None);
    }
    sleep(&sim, SECOND);
    assert_eq!(sim.network_stats().unclaimed, 2);
}
