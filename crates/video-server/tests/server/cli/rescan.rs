//! Titles come, change and go while the server runs.

use std::fs::{self, File};
use std::io::Write as _;

use http::HeaderMap;
use playrate_transport::Connection;

use crate::cli::process::start_with_metrics;
use playrate_test_support::{Media, ServerProcess, assert_contains, fixture, until};

const FILM: &str = "progressive-moov-first.mp4";
const OTHER_FILM: &str = "fragmented-dash.mp4";

/// A media directory with a title.
fn directory() -> Media {
    let media = Media::new();
    put(&media, FILM, "film.mp4");
    media
}

/// Renames a copy of the fixture `from` to `name`, so that it appears complete.
fn put(media: &Media, from: &str, name: &str) {
    media.copy(from, ".copy");
    fs::rename(media.path(".copy"), media.path(name)).unwrap();
}

/// The rate of `path` in kbit/s according to CMSD, if the server knows one.
async fn rate(connection: &Connection, path: &str) -> Option<u64> {
    let mut fields = HeaderMap::new();
    fields.insert("cmcd-request", "bl=1000".parse().unwrap());
    let (response, _) = connection.get_range(path, 0, Some(0), fields).await.unwrap();
    let about = response.headers().get("cmsd-static")?.to_str().unwrap();
    let rate = about.split(',').find_map(|pair| pair.strip_prefix("br="))?;
    Some(rate.parse().unwrap())
}

/// Numbers of unplayable titles and unusable manifests.
fn bad(serving: &ServerProcess) -> (u64, u64) {
    let names = ["playrate_unplayable_titles", "playrate_unusable_manifests"];
    names.map(|name| serving.metric(name)).into()
}

/// Sum of the field `name` over all log lines about rescans.
#[cfg(target_os = "linux")]
fn total(log: &str, name: &str) -> u64 {
    let readings = log.lines().filter(|line| line.contains("read again"));
    let fields = readings.flat_map(str::split_whitespace);
    let values = fields.filter_map(|field| field.strip_prefix(name)?.strip_prefix('='));
    values.map(|value| value.parse::<u64>().unwrap()).sum()
}

/// Returns true if the server has a thread that watches directories.
#[cfg(target_os = "linux")]
fn watches(serving: &ServerProcess) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", serving.id())).unwrap();
    let mut names = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.any(|name| name.trim_end() == "media-watch")
}

/// Closes the connection, stops the server once it has been informed, and returns its log.
async fn close(connection: Connection, serving: ServerProcess) -> String {
    connection.close();
    serving.logs("session finished", 1).await;
    serving.stop()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_changed_and_removed_titles_are_noticed_while_responses_go_on() {
    let media = directory();
    media.put("long.bin", vec![7; 8 << 20]);
    let serving = start_with_metrics(&media, &[]);
    let connection = serving.connect().await;
    let first = rate(&connection, "/film.mp4").await.unwrap();
    let (_, mut body) = connection.get("/long.bin", HeaderMap::new()).await.unwrap();
    body.chunk().await.unwrap().unwrap();

    fs::remove_file(media.path("long.bin")).unwrap();
    fs::create_dir_all(media.path("new/films")).unwrap();
    put(&media, OTHER_FILM, "new/films/later.mp4");
    put(&media, OTHER_FILM, "film.mp4");
    until("the titles' rates are known", async || {
        rate(&connection, "/new/films/later.mp4").await.is_some()
            && rate(&connection, "/film.mp4")
                .await
                .is_some_and(|rate| rate != first)
    })
    .await;
    // The directory has been watched since it was found.
    put(&media, FILM, "new/films/last.mp4");
    until("the rate of a title in a new directory is known", async || {
        rate(&connection, "/new/films/last.mp4").await == Some(first)
    })
    .await;
    fs::remove_file(media.path("film.mp4")).unwrap();
    serving.logs("removed=1", 1).await;
    while body.chunk().await.unwrap().is_some() {}
    assert_eq!(body.received(), 8 << 20, "of a file that is gone");
    let log = close(connection, serving).await;
    let counts = ["added", "changed", "removed"].map(|name| total(&log, name));
    assert_eq!(counts, [2, 1, 1], "{log}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_title_that_is_being_copied_is_no_title_until_it_is_complete() {
    let media = directory();
    let serving = start_with_metrics(&media, &[]);
    let connection = serving.connect().await;
    let whole = fs::read(fixture(FILM)).unwrap();
    let (begin, end) = whole.split_at(whole.len() / 2);
    let mut file = File::create(media.path("copy.mp4")).unwrap();
    file.write_all(begin).unwrap();
    // The copy pauses for longer than the server waits.
    until("half of a title is unplayable", async || bad(&serving) == (1, 0)).await;
    assert_eq!(rate(&connection, "/copy.mp4").await, None);
    file.write_all(end).unwrap();
    drop(file);
    until("the whole of it is playable", async || bad(&serving) == (0, 0)).await;
    let same = rate(&connection, "/film.mp4").await.unwrap();
    assert_eq!(rate(&connection, "/copy.mp4").await, Some(same));

    media.put("film.mpd", "<MPD>");
    until("half of a manifest is unusable", async || bad(&serving) == (0, 1)).await;
    fs::remove_file(media.path("film.mpd")).unwrap();
    until("it is gone", async || bad(&serving) == (0, 0)).await;
    let log = close(connection, serving).await;
    assert_eq!(log.matches("cannot be played").count(), 1);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_is_watched_unless_that_is_switched_off() {
    let media = directory();
    let serving = start_with_metrics(&media, &[]);
    until("the server watches", async || watches(&serving)).await;
    // The thread would have started before the server announces its address.
    assert!(!watches(&start_with_metrics(&media, &["--no-watch"])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_is_not_watched_is_read_again_on_a_hang_up() {
    let media = directory();
    let serving = start_with_metrics(&media, &["--no-watch"]);
    let connection = serving.connect().await;
    put(&media, OTHER_FILM, "later.mp4");
    assert_eq!(rate(&connection, "/later.mp4").await, None);
    serving.signal("HUP");
    until("the new title is known", async || {
        rate(&connection, "/later.mp4").await.is_some()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_strict_server_keeps_its_titles_while_one_cannot_be_played() {
    let media = directory();
    let serving = start_with_metrics(&media, &["--no-watch", "--strict"]);
    let connection = serving.connect().await;
    put(&media, OTHER_FILM, "good.mp4");
    media.put("broken.mp4", "x");
    serving.signal("HUP");
    serving.logs("the previous titles stay in use", 1).await;
    assert_eq!(rate(&connection, "/good.mp4").await, None);
    assert!(rate(&connection, "/film.mp4").await.is_some());
    assert_eq!(bad(&serving), (0, 0));
    fs::remove_file(media.path("broken.mp4")).unwrap();
    serving.signal("HUP");
    until("the new title is known", async || {
        rate(&connection, "/good.mp4").await.is_some()
    })
    .await;
    let log = close(connection, serving).await;
    assert_contains(&log, &["broken.mp4", "the previous titles stay in use"]);
}
