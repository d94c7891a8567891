//! Information about the video that a connection's controller receives.

use std::sync::Arc;

use http::HeaderMap;
use playrate_cc::VideoKnowledge;
use playrate_media::Title;
use playrate_scripted::Known;
use playrate_transport::{Connection, ControllerChoice};
use playrate_units::Bytes;

use crate::http3::common::{Running, Setup, get, read};
use playrate_test_support::fixture;

/// CUBIC, recording what each connection knows.
fn watched() -> (ControllerChoice, Known) {
    let (registry, known) = playrate_scripted::watched();
    let watched = ControllerChoice::from_registry(&registry, "watched");
    (watched.unwrap(), known)
}

/// A server with `change` applied to the defaults, a connection to it, and that connection's controller knowledge.
pub(crate) async fn watch(change: impl FnOnce(&mut Setup)) -> (Running, Connection, Arc<VideoKnowledge>) {
    let (controller, seen) = watched();
    let running = Running::with(|setup| {
        setup.settings.controller = controller;
        change(setup);
    });
    let connection = running.connect().await;
    // quinn may build a connection's controller more than once; all of them share their knowledge.
    let known = Arc::clone(seen.lock().last().unwrap());
    (running, connection, known)
}

#[tokio::test]
async fn the_rate_is_that_of_the_title_asked_for_last() {
    let buffer = Some(Bytes::from_kb(656));
    let (_running, connection, known) = watch(|setup| setup.settings.playout_buffer = buffer).await;
    let rate = |name| Some(Title::open(fixture(name)).unwrap().average_rate());
    let (film, other) = (rate("progressive-moov-first.mp4"), rate("fragmented.mp4"));
    assert_ne!(film, other);
    get(&connection, "/pages/index.html", &[]).await;
    assert_eq!(known.average_rate(), None);
    assert_eq!(known.playout_buffer(), buffer);
    connection.head("/film.mp4", HeaderMap::new()).await.unwrap();
    assert_eq!(known.average_rate(), None, "a HEAD watches nothing");
    get(&connection, "/film.mp4", &[]).await;
    assert_eq!(known.average_rate(), film);
    get(&connection, "/long.bin", &[]).await;
    assert_eq!(known.average_rate(), film, "other files are no titles");
    get(&connection, "/other.mp4", &[("range", "bytes=0-99")]).await;
    assert_eq!(known.average_rate(), other);
}

#[tokio::test]
async fn two_connections_know_different_things() {
    let (controller, seen) = watched();
    let running = Running::with(|setup| setup.settings.controller = controller);
    let known = || Arc::clone(seen.lock().last().unwrap());
    let one = running.connect().await;
    get(&one, "/film.mp4", &[]).await;
    let first = known();
    let two = running.connect().await;
    get(&two, "/other.mp4", &[]).await;
    let second = known();
    assert!(first.average_rate().is_some() && second.average_rate().is_some());
    assert_ne!(first.average_rate(), second.average_rate());
}

#[tokio::test]
async fn many_requests_side_by_side_all_arrive_whole() {
    let (running, connection) = Running::connected(|_| ()).await;
    let mut bodies = Vec::new();
    for turn in 0..20 {
        let name = ["film.mp4", "other.mp4"][turn % 2];
        let response = connection.get(&format!("/{name}"), HeaderMap::new()).await;
        bodies.push((name, response.unwrap().1));
    }
    for (name, mut body) in bodies {
        assert!(read(&mut body).await.unwrap() == running.file(name), "{name}");
    }
    connection.close();
    let summary = running.summaries.nth(0).await;
    let state = &summary.state;
    assert_eq!((state.requests, state.responses, summary.aborted), (20, 20, 0));
}
