//! Stores that answer slowly, wrongly or without end.

use std::io::{Read as _, Seek as _, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use object_store::aws::AmazonS3Builder;
use rstest::rstest;

use super::*;
use crate::answers::CheckedConnector;
use crate::{CHUNK, IndexReader};

const FILM: u64 = 4 << 20;

/// An origin of a store whose every request is answered by `answer`, from its number among those for objects and head.
fn origin(
    answer: impl Fn(usize, &str, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> Origin {
    origin_with_timeout(3, answer)
}

/// The same with a timeout of this many seconds.
fn origin_with_timeout(
    seconds: u64,
    answer: impl Fn(usize, &str, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> Origin {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (answer, count) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let (answer, count) = (Arc::clone(&answer), Arc::clone(&count));
            thread::spawn(move || {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    client.read_exact(&mut byte)?;
                    head.extend(byte);
                }
                let head = String::from_utf8(head).unwrap().to_lowercase();
                let number = if head.contains("list-type=2") {
                    0
                } else {
                    count.fetch_add(1, Relaxed)
                };
                answer(number, &head, &mut client)
            });
        }
    });
    let _ = rustls::crypto::ring::default_provider().install_default();
    let store = AmazonS3Builder::new()
        .with_bucket_name("films")
        .with_access_key_id("key")
        .with_secret_access_key("secret")
        .with_region("us-east-1")
        .with_endpoint(endpoint)
        .with_allow_http(true)
        .with_http_connector(CheckedConnector)
        .build()
        .unwrap();
    let mut options = OriginOptions::new("s3://films");
    options.timeout = Duration::from_secs(seconds);
    let started = OriginRuntime::start(Arc::new(store), "s3://films/".to_owned(), &options).unwrap();
    Origin(Arc::new(started))
}

fn whole(client: &mut TcpStream, fields: &str, content: &str) -> std::io::Result<()> {
    let length = content.len();
    write!(
        client,
        "HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\nConnection: close\r\n\r\n{content}"
    )
}

fn listing(keys: &[&str], more: &str) -> String {
    let object = |key: &&str| {
        format!(
            "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;a&quot;</ETag>\
             <Size>{FILM}</Size></Contents>\n"
        )
    };
    let objects: String = keys.iter().map(object).collect();
    format!(
        "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\"><Name>films</Name>{objects}{more}</ListBucketResult>"
    )
}

/// Sends the requested part of the film, zeros, in steps of this many bytes and this time.
fn film(head: &str, client: &mut impl Write, step: usize, pause: Duration) -> std::io::Result<()> {
    let (_, range) = head.split_once("range: bytes=").unwrap();
    let (first, last) = range.lines().next().unwrap().split_once('-').unwrap();
    let length = last.parse::<u64>().unwrap() + 1 - first.parse::<u64>().unwrap();
    write!(
        client,
        "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\
         Content-Range: bytes {first}-{last}/{FILM}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    let mut left = usize::try_from(length).unwrap();
    while left > 0 {
        client.write_all(&vec![0; step.min(left)])?;
        left -= step.min(left);
        sleep(pause);
    }
    Ok(())
}

fn listed(origin: &Origin) -> Object {
    origin.list().unwrap().remove(0).1
}

#[test]
fn a_key_that_is_no_name_is_left_out_and_the_other_objects_are_served() {
    let keys = [
        "a//b.mp4",
        "../c.mp4",
        "./d.mp4",
        "e/../f.mp4",
        "g&#7;.mp4",
        "h\u{7}.mp4",
        "/i.mp4",
        "j/",
        "&#0;",
    ];
    let mut all = vec!["0 &amp; 1.mp4"];
    all.extend(keys);
    all.push("z/last.mp4");
    let page = listing(&all, "");
    let origin = origin(move |_, _, client| whole(client, "", &page));
    for _ in 0..2 {
        let names: Vec<_> = origin.list().unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["0 & 1.mp4", "z/last.mp4"]);
    }
}

#[rstest]
#[case::html("<!DOCTYPE html><html><body>Back soon</body></html>", "got <html>")]
#[case::nothing("", "got no XML")]
#[case::too_long(&" ".repeat(17 << 20), "a page of the listing has more than")]
fn an_answer_that_is_no_listing_or_too_long_is_an_error(#[case] page: &str, #[case] problem: &str) {
    let page = page.to_owned();
    let origin = origin(move |_, _, client| whole(client, "", &page));
    let error = origin.list().unwrap_err();
    let text = error.to_string();
    assert!(text.contains(problem) && error.is_temporary(), "{text}");
}

#[test]
fn an_empty_bucket_is_no_error() {
    let origin = origin(|_, _, client| whole(client, "", &listing(&[], "")));
    assert!(origin.list().unwrap().is_empty());
}

#[test]
fn a_listing_that_repeats_a_page_is_an_error_at_once() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let page = listing(&["film.mp4"], "<NextContinuationToken>1</NextContinuationToken>");
    let origin = origin(move |_, _, client| {
        count.fetch_add(1, Relaxed);
        whole(client, "", &page)
    });
    let error = origin.list().unwrap_err();
    assert!(
        error.to_string().contains("names itself as the next one"),
        "{error}"
    );
    assert_eq!(asked.load(Relaxed), 2);
}

#[test]
fn an_object_with_a_content_encoding_is_refused_and_not_cached() {
    let origin = origin(|_, head, client| {
        if head.contains("list-type=2") {
            return whole(client, "", &listing(&["film.mp4"], ""));
        }
        let fields =
            "Content-Encoding: gzip\r\nETag: \"a\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n";
        whole(client, fields, "no film")
    });
    let object = listed(&origin);
    let handle = origin.0.shared.handle.clone();
    let error = handle.block_on(object.reader().read(0..FILM, 1)).unwrap_err();
    assert!(
        matches!(&error, OriginError::Encoded { encoding, .. } if &**encoding == "gzip"),
        "{error}"
    );
    assert!(!error.is_temporary());
    assert_eq!(origin.totals().memory, ByteCount::new(0));
}

#[test]
fn an_index_is_of_one_version_although_the_store_ignores_the_condition() {
    let origin = origin(|number, head, client| {
        if head.contains("list-type=2") {
            return whole(client, "", &listing(&["film.mp4"], ""));
        }
        let mut answer = Vec::new();
        film(head, &mut answer, 1 << 20, Duration::ZERO)?;
        if number > 0 {
            let tag = answer.windows(3).position(|text| text == b"\"a\"").unwrap();
            answer[tag + 1] = b'b';
        }
        client.write_all(&answer)
    });
    let mut reader = IndexReader::new(listed(&origin));
    reader.read_exact(&mut [0; 8]).unwrap();
    reader.seek(SeekFrom::End(-8)).unwrap();
    let error = reader.read_exact(&mut [0; 8]).unwrap_err();
    assert!(error.to_string().contains("was replaced"), "{error}");
}

#[test]
fn a_request_that_trickles_is_replaced_and_the_rest_comes_by_another_one() {
    let origin = origin(|number, head, client| {
        if head.contains("list-type=2") {
            return whole(client, "", &listing(&["film.mp4"], ""));
        }
        let pause = Duration::from_millis(if number == 0 { 100 } else { 0 });
        film(head, client, if number == 0 { 400 } else { 1 << 20 }, pause)
    });
    let (mut reader, handle) = (listed(&origin).reader(), origin.0.shared.handle.clone());
    let begun = Instant::now();
    let mut at = 0;
    while at < FILM {
        at += handle.block_on(reader.read(at..FILM, CHUNK)).unwrap().len() as u64;
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "it would take 1,000 s");
    assert!(origin.totals().gets >= 2);
}

#[test]
fn a_request_without_an_answer_is_replaced() {
    let origin = origin(|number, head, client| {
        if head.contains("list-type=2") {
            return whole(client, "", &listing(&["film.mp4"], ""));
        }
        if number == 0 {
            sleep(Duration::from_secs(60));
        }
        film(head, client, 1 << 20, Duration::ZERO)
    });
    let (mut reader, handle) = (listed(&origin).reader(), origin.0.shared.handle.clone());
    assert!(!handle.block_on(reader.read(0..FILM, CHUNK)).unwrap().is_empty());
    assert_eq!(origin.totals().gets, 2);
}

#[test]
fn a_store_that_is_slow_to_answer_gets_two_requests() {
    let origin = origin_with_timeout(8, |_, head, client| {
        if head.contains("list-type=2") {
            return whole(client, "", &listing(&["film.mp4"], ""));
        }
        sleep(Duration::from_millis(2_500));
        film(head, client, 1 << 20, Duration::ZERO)
    });
    let (mut reader, handle) = (listed(&origin).reader(), origin.0.shared.handle.clone());
    assert!(!handle.block_on(reader.read(0..1, CHUNK)).unwrap().is_empty());
    assert_eq!(origin.totals().gets, 2);
}

#[test]
fn a_description_of_an_error_without_end_is_not_read_further() {
    let written = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&written);
    let origin = origin(move |_, _, client| {
        write!(client, "HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n")?;
        loop {
            client.write_all(&[b'x'; 4_096])?;
            counted.fetch_add(4_096, Relaxed);
        }
    });
    let error = origin.list().unwrap_err().to_string();
    assert!(error.contains("403"), "{}", &error[..error.len().min(500)]);
    assert!(error.len() < 200_000, "{}", error.len());
    // The description, and the buffers of both sockets.
    assert!(written.load(Relaxed) < 16 << 20);
}

#[test]
fn a_store_that_only_trickles_is_an_error_for_those_who_wait() {
    let origin = origin(|_, head, client| {
        if head.contains("list-type=2") {
            return whole(client, "", &listing(&["film.mp4"], ""));
        }
        film(head, client, 400, Duration::from_millis(100))
    });
    let (mut reader, handle) = (listed(&origin).reader(), origin.0.shared.handle.clone());
    let error = handle.block_on(reader.read(0..FILM, 1)).unwrap_err();
    assert!(
        error.is_temporary() && error.to_string().contains("the store sent less than"),
        "{error}"
    );
    assert!(origin.0.shared.fetching.lock().is_empty());
}

#[test]
fn a_fetch_ends_when_its_last_reader_has_left() {
    let origin = origin(|_, head, client| {
        if head.contains("list-type=2") {
            return whole(client, "", &listing(&["film.mp4"], ""));
        }
        film(head, client, CHUNK, Duration::from_millis(50))
    });
    let (mut reader, handle) = (listed(&origin).reader(), origin.0.shared.handle.clone());
    handle.block_on(reader.read(0..FILM, 1)).unwrap();
    drop(reader);
    while !origin.0.shared.fetching.lock().is_empty() {
        sleep(Duration::from_millis(10));
    }
    assert!(origin.totals().bytes < ByteCount::new(FILM));
}

/// Peak of the resident memory of this process in bytes.
#[cfg(target_os = "linux")]
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[cfg(target_os = "linux")]
#[rstest]
#[case::many_objects("objects")]
#[case::long_names("names")]
#[case::long_pages("pages")]
fn a_hostile_listing_takes_bounded_memory(#[case] kind: &str) {
    // The peak is that of a whole process.
    let test = "origin::tests::hostile::a_hostile_listing_in_a_process_of_its_own";
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("LISTING", kind)
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout).into_owned();
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(
        child.status.success() && output.contains("1 passed"),
        "{output} {errors}"
    );
    println!("{output}");
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "another test runs it in a process of its own"]
fn a_hostile_listing_in_a_process_of_its_own() {
    let kind = std::env::var("LISTING").unwrap();
    let (objects, name) = match &*kind {
        "objects" => (5_000, 12),
        "names" => (1_000, 900),
        "pages" => (0, 0),
        _ => panic!("{kind}"),
    };
    let pages = AtomicUsize::new(0);
    let filler = " ".repeat(15 << 20);
    let long = ["1", "2", ""].map(|next| {
        let token = format!("<NextContinuationToken>{next}</NextContinuationToken>");
        let token = if next.is_empty() { "" } else { &token };
        listing(&["film.mp4"], &format!("{filler}{token}"))
    });
    drop(filler);
    let origin = origin(move |_, _, client| {
        let page = pages.fetch_add(1, Relaxed);
        if objects == 0 {
            return whole(client, "", &long[page.min(2)]);
        }
        let keys: Vec<_> = (0..objects).map(|key| format!("{page}/{key:0name$}")).collect();
        let keys: Vec<_> = keys.iter().map(|key| &**key).collect();
        let more = format!("<NextContinuationToken>{page}</NextContinuationToken>");
        whole(client, "", &listing(&keys, &more))
    });
    let before = peak();
    let begun = Instant::now();
    let listed = origin.list();
    let taken = peak().saturating_sub(before);
    println!("{taken} B, {:?}", begun.elapsed());
    match listed {
        Ok(listed) => assert_eq!((objects, listed.len()), (0, 3), "one title of each page"),
        Err(error) => assert!(objects > 0 && error.to_string().contains("of memory"), "{error}"),
    }
    // Half of the default cache.
    assert!(taken <= 128_000_000, "{taken}");
}
