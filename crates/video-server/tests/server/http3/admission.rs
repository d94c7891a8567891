//! Admission of sessions, and the responses to refused ones.

use playrate_units::Bitrate;

use crate::http3::common::{Running, field, get};
use playrate_test_support::until;

#[tokio::test]
async fn the_third_session_of_a_server_with_a_limit_of_two_gets_retry_after() {
    let running = Running::with(|setup| setup.settings.limits.sessions = Some(2));
    let first = running.connect().await;
    let second = running.connect().await;
    let third = running.connect().await;
    for connection in [&first, &second] {
        let (response, bytes) = get(connection, "/film.mp4", &[]).await;
        assert_eq!(response.status(), 200);
        assert_eq!(bytes, running.file("film.mp4"));
    }
    let (response, why) = get(&third, "/film.mp4", &[]).await;
    assert_eq!(response.status(), 503);
    assert_eq!(field(&response, "retry-after"), "10");
    assert!(String::from_utf8(why).unwrap().contains("try again"));
    // Admitted sessions go on, and resources other than media are served to all.
    let (response, _) = get(&first, "/other.mp4", &[("range", "bytes=0-9")]).await;
    assert_eq!(response.status(), 206);
    for path in ["/pages/index.html", "/long.bin"] {
        assert_eq!(get(&third, path, &[]).await.0.status(), 200, "{path}");
    }
    let load = running.server.admission().load();
    assert_eq!((load.sessions, load.refused), (2, 1));
    assert!(load.rate > Bitrate::ZERO, "{}", load.rate);

    first.close();
    until("the first session ended", async || {
        running.server.admission().load().sessions == 1
    })
    .await;
    let (response, _) = get(&third, "/film.mp4", &[]).await;
    assert_eq!(response.status(), 200, "there is room now");
}

#[tokio::test]
async fn a_server_without_room_for_the_rate_of_a_title_does_not_begin_it() {
    let capacity = Some(Bitrate::from_kbps(1));
    let (running, connection) = Running::connected(|setup| setup.settings.limits.capacity = capacity).await;
    assert_eq!(get(&connection, "/film.mp4", &[]).await.0.status(), 503);
    assert_eq!(running.server.admission().load().rate, Bitrate::ZERO);
}

#[tokio::test]
async fn a_server_that_watches_its_load_measures_it_and_lets_a_viewer_in() {
    // More lateness than any test machine has.
    let lag = Some(std::time::Duration::from_secs(60));
    let running = Running::with(|setup| setup.settings.limits.lag = lag);
    until("the load was measured", async || {
        running.server.admission().load().lag.is_some()
    })
    .await;
    let connection = running.connect().await;
    assert_eq!(get(&connection, "/film.mp4", &[]).await.0.status(), 200);
}
