//! Titles are served from a real S3 server, cold and warm, and while it is slow, fails, or has its objects replaced.
//!
//! Needs versitygw, which `tests/store/install` installs.

mod faults;
mod measure;
mod start;
mod store;

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use libtest_mimic::Trial;
use playrate_transport::Connection;
use tokio::runtime::Runtime;

use self::store::{Fault, Proxy, Store, environment};
use crate::support::{self, until};
use playrate_test_support::{ServerProcess, program, root, title};

const LOCATION: &str = "s3://films/published";

pub(crate) fn tests() -> Vec<Trial> {
    let text = "versitygw is not there; run `tests/store/install`";
    let missing = support::required(store::program().exists(), text)
        .and_then(|()| support::on_the_path(&[("curl", "--version")]));
    let mut tests = tests![
        &missing,
        every_byte_is_the_objects_cold_and_warm,
        an_index_at_the_end_is_read_without_the_media,
        a_thousand_viewers_of_a_segment_cause_one_request,
        a_replaced_object_never_mixes_with_the_new_one,
        what_is_new_or_gone_is_noticed,
        start::wrong_settings_are_an_error_that_names_them,
        faults::a_store_that_refuses_the_credentials_is_a_bad_gateway,
        start::a_manifest_that_the_store_does_not_deliver_may_be_there_at_the_next_start,
        faults::a_failing_store_holds_up_only_what_is_not_kept,
        faults::a_slow_store_holds_up_only_what_waits_for_it,
        faults::a_connection_that_breaks_is_resumed,
        what_is_on_disk_outlives_the_server,
        the_next_segment_is_fetched_ahead
    ];
    // It takes a while and checks nothing.
    let measure = tests![
        &missing,
        measure::warm_objects_beside_files_and_cold_ones_beside_the_store
    ];
    tests.extend(measure.into_iter().map(|test| test.with_ignored_flag(true)));
    tests
}

/// A server of a store's objects, with a fault in between.
struct Site {
    store: Store,
    proxy: Proxy,
    /// `None` only between two of them.
    server: Option<ServerProcess>,
    runtime: Runtime,
}

/// A response: status, fields, and its content as far as it arrived.
struct Answer {
    status: u16,
    fields: HeaderMap,
    content: Vec<u8>,
    is_whole: bool,
}

impl Site {
    /// A server of the objects that `fill` puts into the store, with these further arguments.
    fn start(fill: impl FnOnce(&Store), arguments: &[&str]) -> Self {
        let store = Store::start();
        fill(&store);
        let proxy = Proxy::start(store.address());
        let server = serve(&proxy, arguments);
        Self {
            store,
            proxy,
            server: Some(server),
            runtime: Runtime::new().expect("a runtime"),
        }
    }

    fn server(&self) -> &ServerProcess {
        self.server.as_ref().expect("it has started")
    }

    /// Stops the server in order, and starts another one.
    fn restart(&mut self, arguments: &[&str]) {
        self.server.take().expect("it has started").stop();
        self.server = Some(serve(&self.proxy, arguments));
    }

    fn connect(&self) -> Connection {
        connect(&self.runtime, self.server())
    }

    fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[])
    }

    fn get_with(&self, path: &str, fields: &[(&'static str, &'static str)]) -> Answer {
        let connection = self.connect();
        self.runtime.block_on(get(&connection, path, fields))
    }

    /// Value of a metric.
    fn metric(&self, name: &str) -> u64 {
        self.server().metric(name)
    }
}

fn connect(runtime: &Runtime, server: &ServerProcess) -> Connection {
    runtime.block_on(server.connect())
}

fn serve(proxy: &Proxy, arguments: &[&str]) -> ServerProcess {
    let mut command = Command::new(program("video-server"));
    command.env("RUST_LOG", "info,video_server=debug,playrate_origin=debug");
    command.envs(environment(proxy.address));
    let always = [
        ("--metrics", "127.0.0.1:0"),
        ("--store-freshness", "500ms"),
        ("--store-timeout", "2s"),
    ];
    let always = always.iter().filter(|(name, _)| !arguments.contains(name));
    let always: Vec<_> = always.flat_map(|&(name, value)| [name, value]).collect();
    let arguments = [&always, arguments].concat();
    support::serve_with(command, LOCATION.as_ref(), &arguments)
}

async fn get(connection: &Connection, path: &str, fields: &[(&'static str, &'static str)]) -> Answer {
    let fields = fields.iter().map(|&(name, value)| {
        let name = http::HeaderName::from_static(name);
        (name, HeaderValue::from_static(value))
    });
    let (head, mut body) = connection.get(path, fields.collect()).await.expect("an answer");
    let mut content = Vec::new();
    let is_whole = loop {
        match body.chunk().await {
            Ok(Some(chunk)) => content.extend_from_slice(&chunk),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    Answer {
        status: head.status().as_u16(),
        fields: head.headers().clone(),
        content,
        is_whole,
    }
}

/// Bytes without repetition that differ between seeds.
fn noise(length: usize, seed: u32) -> Vec<u8> {
    let words = (0..).map(|word: u32| word.wrapping_add(seed << 24).wrapping_mul(0x9e37_79b9));
    words.flat_map(u32::to_le_bytes).take(length).collect()
}

fn every_byte_is_the_objects_cold_and_warm() {
    let film = fs::read(title()).expect("the title is there");
    let site = Site::start(
        |store| {
            store.put("published/a film/title.mp4", film.clone());
            store.put("published/empty.txt", []);
            store.put("elsewhere/other.bin", [1; 100]);
        },
        &[],
    );
    let path = "/a%20film/title.mp4";
    let cold = site.get(path);
    assert_eq!((cold.status, cold.content == film), (200, true));
    let requests = || {
        (
            site.store.gets("published/a"),
            site.metric("playrate_origin_misses_total"),
        )
    };
    let before = requests();
    assert!(before.0 >= 1, "{before:?}");
    let warm = site.get(path);
    assert!(warm.content == film);
    assert_eq!(warm.fields["etag"], cold.fields["etag"]);
    for (range, bytes) in [
        ("bytes=0-0", 0..1),
        ("bytes=65530-200000", 65_530..200_001),
        ("bytes=-7", film.len() - 7..film.len()),
    ] {
        let part = site.get_with(path, &[("range", range)]);
        assert_eq!((part.status, part.content == film[bytes]), (206, true), "{range}");
    }
    assert_eq!(requests(), before, "what is kept is not requested again");
    assert_eq!(site.get("/empty.txt").content, b"");
    assert_eq!(site.get("/other.bin").status, 404);
    let url = format!("https://{}{path}", site.server().address());
    let curl = Command::new("curl")
        .args(["--silent", "--insecure", &url])
        .output();
    assert!(curl.expect("curl runs").stdout == film);
    println!("{} requests to the store for {} bytes", before.0, film.len());
}

/// The progressive fixture, with 8 MiB between its media and its index.
fn film_with_index_at_the_end() -> Vec<u8> {
    let film = fs::read(root().join("assets/fixtures/progressive-moov-last.mp4")).expect("the fixture");
    let moov = film.windows(4).position(|word| word == b"moov");
    let (media, index) = film.split_at(moov.expect("a moov box") - 4);
    let padding: u32 = 8 << 20;
    let zeros = vec![0; padding as usize - 8];
    [media, &padding.to_be_bytes(), b"free", &zeros, index].concat()
}

fn an_index_at_the_end_is_read_without_the_media() {
    let film = film_with_index_at_the_end();
    let site = Site::start(
        |store| store.put("published/film.mp4", film.clone()),
        &["--strict"],
    );
    let serving = site.server().announced("Serving");
    assert!(serving.starts_with("1 title"), "{serving}");
    let received = site.metric("playrate_origin_received_bytes_total");
    assert!(received < 300_000, "{received} bytes were read for the index");
    assert!(site.get("/film.mp4").content == film);
}

fn a_thousand_viewers_of_a_segment_cause_one_request() {
    let segment = Arc::new(noise(2_500_000, 1));
    let site = Site::start(
        |store| store.put("published/seg.m4s", segment.to_vec()),
        &["--max-connections-per-address", "1000"],
    );
    // All of them have made their requests before the first byte arrives.
    site.proxy.set(Fault::Delay(Duration::from_millis(300)));
    let connections: Vec<_> = (0..20).map(|_| site.connect()).collect();
    let viewers = (0..1_000).map(|viewer| {
        let (connection, segment) = (
            connections[viewer % connections.len()].clone(),
            Arc::clone(&segment),
        );
        site.runtime.spawn(async move {
            let answer = get(&connection, "/seg.m4s", &[]).await;
            assert!(answer.status == 200 && answer.content == *segment);
        })
    });
    // All of them begin before the first one is waited for.
    for viewer in viewers.collect::<Vec<_>>() {
        site.runtime.block_on(viewer).expect("a viewer is served");
    }
    let gets = site.store.gets("published/seg.m4s");
    assert_eq!(gets, 1, "the store was asked more than once");
    assert_eq!(site.metric("playrate_origin_get_requests_total"), 1);
    let coalesced = site.metric("playrate_origin_coalesced_reads_total");
    println!("{coalesced} reads waited together");
}

fn a_replaced_object_never_mixes_with_the_new_one() {
    let (old, new) = (noise(24 << 20, 1), noise(24 << 20, 2));
    let site = Site::start(|store| store.put("published/film.bin", old.clone()), &[]);
    site.proxy.set(Fault::Rate(8 << 20));
    let connection = site.connect();
    let reading = site
        .runtime
        .spawn(async move { get(&connection, "/film.bin", &[]).await });
    until("the first bytes came", || {
        site.metric("playrate_origin_received_bytes_total") > 1_000_000
    });
    site.store.put("published/film.bin", new.clone());
    site.proxy.set(Fault::None);
    let begun = site.runtime.block_on(reading).expect("the reader ends");
    assert!(
        !begun.is_whole,
        "the object was read whole although it was replaced"
    );
    let is_old = begun.content.len() > 1 << 20 && old.starts_with(&begun.content);
    assert!(is_old, "two versions mixed");
    let again = site.get("/film.bin");
    assert!(again.is_whole && again.content == new);
    assert_ne!(again.fields["etag"], begun.fields["etag"]);
    // The replacement of a warm object is noticed once the knowledge about it is no longer fresh.
    site.store.put("published/film.bin", old.clone());
    until("the replaced object is noticed", || {
        site.get_with("/film.bin", &[("range", "bytes=0-99")]).content == old[..100]
    });
    let parts =
        ["bytes=100-5000000", "bytes=5000001-"].map(|range| site.get_with("/film.bin", &[("range", range)]));
    assert!(parts[0].content == old[100..=5_000_000] && parts[1].content == old[5_000_001..]);
    assert!(site.metric("playrate_origin_replaced_objects_total") >= 2);
}

fn what_is_new_or_gone_is_noticed() {
    let site = Site::start(
        |store| store.put("published/a.bin", [7; 1_000]),
        &["--store-listing", "1s"],
    );
    assert_eq!(site.get("/b.bin").status, 404);
    assert_eq!(site.get("/a.bin/b.bin").status, 404);
    site.store.put("published/b.bin", [8; 1_000]);
    until("the new object is served", || {
        site.get("/b.bin").content == [8; 1_000]
    });
    site.store.delete("published/a.bin");
    until("the deleted object is gone", || site.get("/a.bin").status == 404);
    // A title is listed, and its rate known, after the next listing.
    let film = fs::read(root().join("assets/fixtures/fragmented.mp4")).expect("the fixture");
    site.store.put("published/film.mp4", film);
    let is_listed = || String::from_utf8_lossy(&site.get("/").content).contains("film.mp4");
    until("the new title is listed", is_listed);
}

fn what_is_on_disk_outlives_the_server() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let kept = directory.path().display().to_string();
    let film = noise(40 << 20, 1);
    let line = format!("--cache-dir {kept} --disk-cache 200MB --cache 32MiB --store-freshness 60s");
    let arguments: Vec<_> = line.split(' ').collect();
    let mut site = Site::start(|store| store.put("published/film.bin", film.clone()), &arguments);
    // Chunks for which the disk was too slow are not written, and are requested again.
    until("all is written", || {
        assert!(site.get("/film.bin").content == film);
        site.metric("playrate_origin_disk_bytes") >= film.len() as u64
    });
    let gets = site.store.gets("published/film.bin");
    // More than memory holds.
    assert!(site.get("/film.bin").content == film);
    site.restart(&arguments);
    assert!(site.get("/film.bin").content == film);
    assert!(site.metric("playrate_origin_disk_hits_total") >= 600);
    let again = site.store.gets("published/film.bin");
    assert_eq!(again, gets, "what is on disk is not requested again");
}

fn the_next_segment_is_fetched_ahead() {
    let segments: Vec<_> = (0..4).map(|number| noise(500_000, number)).collect();
    let entries = [0, 1, 2, 3].map(|number| format!("#EXTINF:4,\n{number}.m4s\n"));
    let entries = entries.concat();
    let playlist = format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n{entries}#EXT-X-ENDLIST\n");
    let site = Site::start(
        |store| {
            store.put("published/film/list.m3u8", playlist);
            for (number, segment) in segments.iter().enumerate() {
                store.put(&format!("published/film/{number}.m4s"), segment.clone());
            }
        },
        &["--strict"],
    );
    let connection = site.connect();
    let get = |path: &str, fields: &[(&'static str, &'static str)]| {
        site.runtime.block_on(get(&connection, path, fields))
    };
    assert!(get("/film/0.m4s", &[]).content == segments[0]);
    until("the next segment is fetched", || {
        site.store.gets("published/film/1.m4s") == 1
    });
    let gets = || [1, 2, 3].map(|number| site.store.gets(&format!("published/film/{number}.m4s")));
    assert_eq!(gets()[1], 0, "only the next one");
    // The player announces that it will skip one.
    assert!(get("/film/1.m4s", &[("cmcd-request", "nor=\"3.m4s\"")]).content == segments[1]);
    until("the named segment is fetched", || {
        site.store.gets("published/film/3.m4s") == 1
    });
    assert!(get("/film/3.m4s", &[]).content == segments[3]);
    assert_eq!(gets(), [1, 0, 1]);
    assert_eq!(site.metric("playrate_origin_read_ahead_total"), 2);
}
