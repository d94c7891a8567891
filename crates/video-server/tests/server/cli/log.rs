//! A log whose reader is stuck or slow.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use http::HeaderMap;
use playrate_test_support::{Media, PATIENCE, ServerProcess, fetch};
use quinn::TokioRuntime;

const PROGRAM: &str = env!("CARGO_BIN_EXE_video-server");
const LOST: &str = "playrate_lost_access_log_lines_total";
const DROPPED: &str = "playrate_dropped_log_lines_total";
/// Time limit for the end: longer than the last lines may take.
const LIMIT: Duration = Duration::from_secs(10);

/// A named pipe in `directory`, and its end for a reader.
fn pipe(directory: &Media, name: &str) -> (String, File) {
    let pipe = directory.text(name);
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Opened in both directions, so that opening does not wait for the server.
    let reader = File::options().read(true).write(true).open(&pipe).unwrap();
    (pipe, reader)
}

/// A server whose stderr is a named pipe, and the end of that pipe for its reader.
fn start(media: &Media, log_level: &str, more: &[&str]) -> (ServerProcess, File) {
    let directory = Media::new();
    let (pipe, reader) = pipe(&directory, "log");
    let mut server = Command::new("sh");
    server.args(["-c", "exec \"$0\" \"$@\" 2>\"$LOG\"", PROGRAM]);
    server.env("LOG", &pipe).env("RUST_LOG", log_level);
    let options = [&["--metrics", "127.0.0.1:0"], more].concat();
    let server = ServerProcess::start(server, "127.0.0.1:0", media.root(), &options);
    (server, reader)
}

/// Reads 1 kB/s until the test ends.
fn read_slowly(mut pipe: File) {
    thread::spawn(move || {
        while pipe.read(&mut [0; 100]).is_ok() {
            #[expect(
                clippy::disallowed_methods,
                reason = "a thread of the test, which reads in real time"
            )]
            thread::sleep(Duration::from_millis(100));
        }
    });
}

/// Fetches the title until the server has dropped lines.
async fn fetch_until_lines_are_dropped(server: &ServerProcess) {
    let fetching = async {
        let connection = server.connect().await;
        while server.metric(DROPPED) == 0 {
            assert!(fetch(&connection, "/film.mp4", HeaderMap::new()).await > 0);
        }
    };
    let fetched = playrate_transport::time::timeout(&TokioRuntime, PATIENCE, fetching).await;
    fetched.expect("the server answers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_nobody_reads_stops_neither_responses_nor_the_shutdown() {
    let media = Media::film();
    let (server, _reader) = start(&media, "trace", &[]);
    fetch_until_lines_are_dropped(&server).await;
    let (status, _) = server.end_within(LIMIT);
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_says_how_many_of_its_lines_were_dropped() {
    let media = Media::film();
    let (server, reader) = start(&media, "trace", &[]);
    fetch_until_lines_are_dropped(&server).await;
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(reader).lines();
        lines.map(Result::unwrap).try_for_each(|line| sender.send(line))
    });
    let mut reported = 0;
    let mut read_until = |part: &str| {
        for line in std::iter::from_fn(|| lines.recv_timeout(PATIENCE).ok()) {
            if line.contains("lines of a log were dropped") {
                let (_, count) = line.split_once(" lines=").expect("a number of lines");
                reported += count.trim().parse::<u64>().expect("a number");
            }
            if line.contains(part) {
                return;
            }
        }
        panic!("no line with {part}");
    };
    read_until("lines of a log were dropped");
    let dropped = server.metric(DROPPED);
    server.signal("TERM");
    // The last line, although the process ends right after it.
    read_until("server stopped");
    assert!(reported >= dropped, "{reported} of {dropped}");
    assert_eq!(server.end().0, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_1_kilobyte_per_second_stop_neither_responses_nor_the_shutdown() {
    let (media, directory) = (Media::film(), Media::new());
    let (access, reader) = pipe(&directory, "access");
    let (server, log) = start(&media, "trace", &["--access-log", &access]);
    read_slowly(reader);
    read_slowly(log);
    let connection = server.connect().await;
    let requesting = async {
        // Until the pipes and queues of both logs are full.
        for number in 0.. {
            let path = format!("/{number}?{}", "x".repeat(3_000));
            fetch(&connection, &path, HeaderMap::new()).await;
            if number % 100 == 0 && server.metric(DROPPED) > 0 && server.metric(LOST) > 0 {
                break;
            }
        }
        assert!(fetch(&connection, "/film.mp4", HeaderMap::new()).await > 0);
    };
    let answered = playrate_transport::time::timeout(&TokioRuntime, PATIENCE, requesting).await;
    answered.expect("the server answers, and drops lines of both logs");
    connection.close();
    let (status, _) = server.end_within(LIMIT);
    assert!(status.is_some_and(|status| status.success()), "{status:?}");
}
