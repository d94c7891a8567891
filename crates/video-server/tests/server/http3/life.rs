//! Clients that leave, clients that stall, and servers that stop.

use std::future::poll_fn;
use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use http::HeaderMap;
use playrate_transport::{Body, ClientOptions, Connection};
use playrate_units::Bytes;
use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime};
use video_server::serve::{CHUNK, ResponseLog, ServedResponse, SessionEnd, ShutdownReport};

use crate::http3::common::{Running, get, long, read};
use playrate_test_support::{PATIENCE, client, sleep, until};

/// A client with a small window, so that a long response is never in flight as a whole.
fn narrow(options: &mut ClientOptions) {
    options.transport.stream_receive_window = Bytes::new(64 << 10);
    options.transport.receive_window = Bytes::new(256 << 10);
}

/// A client that has received at least `count` bytes of a long response: its connection, the body, and these bytes.
async fn begin(
    running: &Running,
    change: impl FnOnce(&mut ClientOptions),
    count: usize,
) -> (Connection, Body, Vec<u8>) {
    let connection = running.connect_with(change).await;
    let (_, mut body) = connection.get("/long.bin", HeaderMap::new()).await.unwrap();
    let mut bytes = Vec::new();
    while bytes.len() < count {
        bytes.extend_from_slice(&body.chunk().await.unwrap().expect("the body is longer"));
    }
    (connection, body, bytes)
}

/// Runtime whose tasks stop on demand, as on a machine that has no time for them, or panic.
#[derive(Clone, Debug, Default)]
struct StoppableRuntime {
    is_stopped: Arc<AtomicBool>,
    panics: bool,
}

impl Runtime for StoppableRuntime {
    fn new_timer(&self, due: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(due)
    }

    fn spawn(&self, mut task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        let Self { is_stopped, panics } = self.clone();
        TokioRuntime.spawn(Box::pin(poll_fn(move |context| {
            if is_stopped.load(Relaxed) {
                assert!(!panics, "a fault of the server");
                Poll::Pending
            } else {
                task.as_mut().poll(context)
            }
        })));
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        TokioRuntime.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}

/// Numbers of aborted responses, of sessions and of complete responses.
fn ended(report: &ShutdownReport) -> (u64, u64, u64) {
    (report.cut, report.totals.sessions, report.totals.responses)
}

#[tokio::test]
async fn a_response_that_the_client_gives_up_leaves_the_connection_usable() {
    let running = Running::start();
    let (connection, body, _) = begin(&running, narrow, 100_000).await;
    drop(body);
    let (response, bytes) = get(&connection, "/film.mp4", &[]).await;
    assert_eq!(response.status(), 200);
    assert!(bytes == running.file("film.mp4"));
    connection.close();
    let summary = running.summaries.nth(0).await;
    let state = &summary.state;
    assert_eq!((state.requests, state.responses, summary.aborted), (2, 1, 1));
    assert_eq!(summary.end, SessionEnd::Orderly);
}

#[test]
fn a_client_that_is_killed_mid_stream_is_timed_out_and_others_are_served() {
    let server = tokio::runtime::Runtime::new().unwrap();
    let running = server.block_on(async { Running::with(|setup| setup.options.transport.keep_alive = None) });
    // On this thread only, so that nothing keeps running afterwards.
    let doomed = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let body = doomed.block_on(async {
        let impatient = |options: &mut ClientOptions| {
            narrow(options);
            options.transport.idle_timeout = Duration::from_secs(5);
        };
        begin(&running, impatient, 100_000).await.1
    });
    // Nothing is dropped either: the end of one task would make another say goodbye.
    std::mem::forget((doomed, body));
    server.block_on(async {
        let other = running.connect().await;
        assert!(get(&other, "/long.bin", &[]).await.1 == long());
        other.close();
        until("both connections are gone", async || {
            running.server.transport().open_connections() == 0
        })
        .await;
        let (one, two) = (running.summaries.nth(0).await, running.summaries.nth(1).await);
        let killed = [one, two].into_iter().find(|session| session.aborted == 1);
        let killed = killed.unwrap();
        let why = killed.end.to_string();
        assert!(why.contains("nothing was received"), "{why}");
        assert!(killed.end != SessionEnd::Orderly, "{why}");
        assert_eq!(killed.state.responses, 0);
        let bytes = killed.bytes;
        assert!(
            (Bytes::new(100_000)..Bytes::from_mib(16)).contains(&bytes),
            "{bytes}"
        );
    });
}

#[tokio::test]
async fn a_client_that_does_not_read_costs_a_bounded_amount_and_is_given_up() {
    let running = Running::with(|setup| {
        setup.options.transport.send_window = Bytes::new(256 << 10);
        setup.options.stall_timeout = Duration::from_millis(1_500);
    });
    let (connection, mut body, _) = begin(&running, narrow, 0).await;
    until("the response is given up", async || {
        running.server.connections()[0].aborted == 1
    })
    .await;
    // The stream was reset: a part is not mistaken for the whole.
    let cut = read(&mut body).await;
    assert!(cut.is_err(), "{:?} bytes arrived", cut.map(|bytes| bytes.len()));
    assert!(get(&connection, "/pages/index.html", &[]).await.0.status() == 200);
    connection.close();
    let summary = running.summaries.nth(0).await;
    assert_eq!(summary.aborted, 1);
    let most = Bytes::new(256 << 10) + Bytes::new(256 << 10) + CHUNK + Bytes::from_kb(1);
    assert!(summary.bytes <= most, "{} handed over", summary.bytes);
}

#[tokio::test]
async fn a_shutdown_lets_a_running_response_end_and_turns_new_clients_away() {
    let running = Running::start();
    let (_connection, mut body, mut bytes) = begin(&running, narrow, 100_000).await;
    let server = running.server.clone();
    let (report, rest) = tokio::join!(server.shutdown(PATIENCE), async {
        sleep(Duration::from_millis(200)).await;
        let refused = client(running.pin(), |_| {});
        let refused = refused.connect(&running.target()).await.unwrap_err();
        assert!(refused.to_string().contains("refused"), "{refused}");
        read(&mut body).await.unwrap()
    });
    bytes.extend_from_slice(&rest);
    assert!(bytes == long(), "{} bytes", bytes.len());
    assert!(report.drained, "{report:?}");
    assert_eq!(ended(&report), (0, 1, 1));
    assert_eq!(report.totals.bytes, Bytes::from_mib(16));
}

#[tokio::test]
async fn a_shutdown_breaks_off_at_its_deadline_what_will_not_end() {
    let running = Running::start();
    let (_connection, mut body, _) = begin(&running, narrow, 1_000).await;
    let report = running.server.shutdown(Duration::from_millis(300)).await;
    assert!(!report.drained, "{report:?}");
    assert_eq!(ended(&report), (1, 1, 0));
    assert!(read(&mut body).await.is_err());
    let summary = running.summaries.nth(0).await;
    assert_eq!((summary.aborted, summary.state.responses), (1, 0));
}

#[tokio::test]
async fn a_second_shutdown_overtakes_the_first() {
    let running = Running::start();
    let (_connection, _body, _) = begin(&running, narrow, 1_000).await;
    let report = tokio::select! {
        biased;
        _ = running.server.shutdown(Duration::from_secs(600)) => panic!("the client does not read, so it cannot drain"),
        () = sleep(Duration::from_millis(200)) => running.server.shutdown(Duration::ZERO).await,
    };
    assert!(!report.drained);
    assert_eq!(report.cut, 1);
}

#[tokio::test]
async fn an_idle_server_stops_at_once() {
    let (running, connection) = Running::connected(|_| ()).await;
    get(&connection, "/film.mp4", &[]).await;
    let report = running.server.shutdown(PATIENCE).await;
    assert!(report.drained);
    assert_eq!(ended(&report), (0, 1, 1));
}

#[tokio::test]
async fn an_observer_sees_each_connection_from_its_first_sample_to_its_summary() {
    let running = Running::with(|setup| setup.settings.sample_interval = Duration::ZERO);
    for number in 0..2 {
        let connection = running.connect().await;
        get(&connection, "/long.bin", &[]).await;
        connection.close();
        let summary = running.summaries.nth(number).await;
        let samples = running.summaries.series.lock().unwrap()[number].samples();
        let last = samples.last().unwrap();
        assert_eq!(summary.connection.controller, "cubic");
        assert_eq!(summary.connection.id, number as u64);
        assert!(samples.len() > 2, "{last:?}");
        assert!(last.delivered >= Bytes::from_mib(16), "{last:?}");
        // Both count from the beginning of the connection.
        assert!(last.at <= summary.state.age + PATIENCE && last.smoothed_rtt.is_some());
        assert_eq!(last.lost.as_u64(), summary.transport.path.lost_bytes);
        assert!(summary.transport.udp_tx.bytes > summary.bytes.as_u64());
    }
}

#[tokio::test]
async fn a_response_whose_task_does_not_end_in_time_counts_as_aborted() {
    let tasks = StoppableRuntime::default();
    let running = Running::with(|setup| setup.runtime = Arc::new(tasks.clone()));
    let (_connection, _body, _) = begin(&running, narrow, 100_000).await;
    tasks.is_stopped.store(true, Relaxed);
    let report = running.server.shutdown(Duration::from_millis(100)).await;
    assert_eq!((report.drained, ended(&report)), (false, (1, 0, 0)));
}

/// Keeps the records of all responses.
#[derive(Debug, Default)]
struct Records(Mutex<Vec<ServedResponse>>);

impl ResponseLog for Records {
    fn ended(&self, response: &ServedResponse) {
        self.0.lock().unwrap().push(response.clone());
    }
}

#[tokio::test]
async fn the_record_of_a_response_whose_task_panics_is_complete() {
    let (tasks, log) = (
        StoppableRuntime {
            panics: true,
            ..StoppableRuntime::default()
        },
        Arc::new(Records::default()),
    );
    let running = Running::with(|setup| {
        setup.runtime = Arc::new(tasks.clone());
        setup.settings.response_log = Some(Arc::clone(&log) as _);
    });
    let (_connection, mut body, _) = begin(&running, narrow, 100_000).await;
    tasks.is_stopped.store(true, Relaxed);
    assert!(read(&mut body).await.is_err());
    until("it is reported", async || !log.0.lock().unwrap().is_empty()).await;
    let record = log.0.lock().unwrap().pop().unwrap();
    assert!(
        record.sent >= Bytes::new(100_000) && !record.is_complete,
        "{record:?}"
    );
    assert_eq!(record.controller.as_deref(), Some("cubic"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_counts_each_connection_once_while_they_come_and_go() {
    const CONNECTIONS: u64 = 40;
    let running = Running::start();
    let server = running.server.clone();
    let counting = std::thread::spawn(move || {
        let (mut before, mut looks, begun) = (0, 0_u64, TokioRuntime.now());
        while before < CONNECTIONS || !server.connections().is_empty() {
            assert!(TokioRuntime.now() - begun < PATIENCE, "{before} connections");
            let (states, totals) = server.snapshot();
            let count = states.len() as u64 + totals.sessions;
            assert!((before..=CONNECTIONS).contains(&count), "{count} after {before}");
            (before, looks) = (count, looks + 1);
        }
        looks
    });
    for _ in 0..CONNECTIONS {
        let connection = running.connect().await;
        // If it closed before the server has established it, it would count as a failed handshake.
        get(&connection, "/pages/index.html", &[]).await;
        connection.close();
    }
    assert!(counting.join().unwrap() > CONNECTIONS);
}
