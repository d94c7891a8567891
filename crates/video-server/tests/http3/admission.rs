//! Who is let in, and what the others are told.

use playrate_units::Bitrate;
use video_server::serve::Settings;

use crate::common::{Running, Wanted, field, get, until};

fn server(settings: fn(&mut Settings)) -> Running {
    Running::with(Wanted {
        settings,
        ..Wanted::default()
    })
}

#[tokio::test]
async fn the_third_session_of_a_server_that_takes_two_is_told_to_come_again() {
    let running = server(|settings| settings.limits.sessions = Some(2));
    let first = running.connect().await;
    let second = running.connect().await;
    let third = running.connect().await;
    for connection in [&first, &second] {
        let (response, bytes) = get(connection, "/film.mp4", &[]).await;
        assert_eq!(
            (response.status().as_u16(), bytes),
            (200, running.file("film.mp4"))
        );
    }
    let (response, why) = get(&third, "/film.mp4", &[]).await;
    assert_eq!(response.status(), 503);
    assert_eq!(field(&response, "retry-after"), "10");
    assert!(String::from_utf8(why).unwrap().contains("come again"));
    // Who is in stays in, and what is no media is there for all.
    let (response, _) = get(&first, "/other.mp4", &[("range", "bytes=0-9")]).await;
    assert_eq!(response.status(), 206);
    for path in ["/pages/index.html", "/long.bin"] {
        let (response, _) = get(&third, path, &[]).await;
        assert_eq!(response.status(), 200, "{path}");
    }
    let load = running.server.admission().load();
    assert_eq!((load.sessions, load.refused), (2, 1));
    assert!(load.rate > Bitrate::ZERO, "{}", load.rate);

    first.close();
    until("the first session ended", || {
        running.server.admission().load().sessions == 1
    })
    .await;
    let (response, _) = get(&third, "/film.mp4", &[]).await;
    assert_eq!(response.status(), 200, "there is room now");
}

#[tokio::test]
async fn a_server_without_room_for_the_rate_of_a_title_does_not_begin_it() {
    let running = server(|settings| settings.limits.capacity = Some(Bitrate::from_kbps(1)));
    let connection = running.connect().await;
    let (response, _) = get(&connection, "/film.mp4", &[]).await;
    assert_eq!(response.status(), 503);
    assert_eq!(running.server.admission().load().rate, Bitrate::ZERO);
}

#[tokio::test]
async fn a_server_that_watches_its_load_measures_it_and_lets_a_viewer_in() {
    let running = server(|settings| {
        // So much that no machine that runs tests is as late.
        settings.limits.lag = Some(std::time::Duration::from_secs(60));
    });
    until("the load was measured", || {
        running.server.admission().load().lag.is_some()
    })
    .await;
    let connection = running.connect().await;
    let (response, _) = get(&connection, "/film.mp4", &[]).await;
    assert_eq!(response.status(), 200);
}
