//! Statuses, fields and bytes as a client sees them.

use crate::http3::common::{Running, field, get, headers};
use http::HeaderMap;

#[tokio::test]
async fn a_title_arrives_byte_for_byte_with_its_metadata() {
    let (running, connection) = Running::connected(|_| ()).await;
    for (path, media_type) in [
        ("/film.mp4", "video/mp4"),
        ("/pages/index.html", "text/html; charset=utf-8"),
        ("/long.bin", "application/octet-stream"),
        ("/%66ilm.mp4?session=1", "video/mp4"),
    ] {
        let (response, bytes) = get(&connection, path, &[]).await;
        let file = running.file(&path[1..].replace("%66ilm.mp4?session=1", "film.mp4"));
        assert_eq!(response.status(), 200);
        assert_eq!(field(&response, "content-type"), media_type);
        assert_eq!(field(&response, "content-length"), file.len().to_string());
        assert_eq!(field(&response, "accept-ranges"), "bytes");
        assert_ne!(field(&response, "last-modified"), "");
        assert!(bytes == file, "{path}: {} of {} bytes", bytes.len(), file.len());
    }
}

#[tokio::test]
async fn a_head_has_the_fields_and_no_body() {
    let (running, connection) = Running::connected(|_| ()).await;
    let response = connection.head("/film.mp4", HeaderMap::new()).await.unwrap();
    assert_eq!(response.status(), 200);
    let length = running.file("film.mp4").len().to_string();
    assert_eq!(field(&response, "content-length"), length);
    let missing = connection.head("/none.mp4", HeaderMap::new()).await.unwrap();
    assert_eq!(missing.status(), 404);
}

#[tokio::test]
async fn ranges_put_together_are_the_file() {
    let (running, connection) = Running::connected(|_| ()).await;
    let file = running.file("film.mp4");
    let length = file.len();
    let mut whole = Vec::new();
    for first in (0..length).step_by(length / 7 + 1) {
        let last = (first + length / 7).min(length - 1);
        let range = format!("bytes={first}-{last}");
        let (response, bytes) = get(&connection, "/film.mp4", &[("range", &range)]).await;
        assert_eq!(response.status(), 206);
        let unit = format!("bytes {first}-{last}/{length}");
        assert_eq!(field(&response, "content-range"), unit);
        whole.extend_from_slice(&bytes);
    }
    assert!(whole == file);
    let (response, tail) = get(&connection, "/film.mp4", &[("range", "bytes=-100")]).await;
    assert_eq!(response.status(), 206);
    assert!(tail == file[length - 100..]);
}

#[tokio::test]
async fn what_cannot_be_answered_gets_its_status_and_the_connection_lives_on() {
    let (_running, connection) = Running::connected(|_| ()).await;
    for (path, fields, status) in [
        ("/none.mp4", &[][..], 404),
        ("/", &[], 404),
        ("/pages", &[], 404),
        ("/../film.mp4", &[], 404),
        ("/%2e%2e/film.mp4", &[], 404),
        ("/film.mp4%00", &[], 404),
        ("/%zz", &[], 400),
        ("/film.mp4", &[("range", "bytes=999999999-")], 416),
        ("/film.mp4", &[("if-match", "\"other\"")], 412),
    ] {
        let (response, bytes) = get(&connection, path, fields).await;
        assert_eq!(response.status(), status, "{path}");
        let is_short = bytes.ends_with(b"\n") && bytes.len() < 200;
        assert!(is_short, "{path}: a short reason");
    }
    assert_eq!(get(&connection, "/film.mp4", &[]).await.0.status(), 200);
}

#[tokio::test]
async fn a_client_that_has_it_is_told_so() {
    let (_running, connection) = Running::connected(|_| ()).await;
    let first = connection.head("/film.mp4", headers(&[])).await.unwrap();
    for (name, value) in [
        ("if-none-match", field(&first, "etag")),
        ("if-modified-since", field(&first, "last-modified")),
    ] {
        let (response, bytes) = get(&connection, "/film.mp4", &[(name, value)]).await;
        assert_eq!(response.status(), 304, "{name}");
        assert!(bytes.is_empty());
    }
    let fields = [("range", "bytes=0-0"), ("if-range", field(&first, "etag"))];
    assert_eq!(get(&connection, "/film.mp4", &fields).await.0.status(), 206);
}

#[tokio::test]
async fn a_file_that_comes_while_the_server_runs_is_served() {
    let (running, connection) = Running::connected(|_| ()).await;
    assert_eq!(get(&connection, "/late.txt", &[]).await.0.status(), 404);
    running.directory.put("late.txt", "late");
    let (response, bytes) = get(&connection, "/late.txt", &[]).await;
    assert_eq!((response.status().as_u16(), &bytes[..]), (200, &b"late"[..]));
}
