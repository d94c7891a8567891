//! Stores with keys or answers that cannot be used.

use std::io::{Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;

use super::*;
use crate::answers::CheckedConnector;

const FILM: u64 = 4 << 20;

/// An origin of a store whose every request is answered by `answer`, from its number among those for objects and head.
fn origin(
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
    options.timeout = Duration::from_secs(3);
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

#[test]
fn an_empty_bucket_is_no_error() {
    let origin = origin(|_, _, client| whole(client, "", &listing(&[], "")));
    assert!(origin.list().unwrap().is_empty());
}
