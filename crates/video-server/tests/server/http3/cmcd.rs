//! Requests' CMCD, its effect on the controller's knowledge, and the responses' CMSD.

use std::time::Duration;

use playrate_cc::Playback;
use playrate_units::Bitrate;

use crate::http3::common::{Running, field, get, packaged};
use crate::http3::titles::watch;

#[tokio::test]
async fn without_a_word_the_rate_is_that_of_the_representations_being_sent() {
    let (_running, connection, known) = watch(|setup| setup.media = packaged).await;
    get(&connection, "/manifest.mpd", &[]).await;
    assert_eq!(known.average_rate(), None);
    for (path, kbps) in [
        ("/low-1.m4s", 80),
        ("/sound-1.m4s", 88),
        ("/high-2.m4s", 808),
        ("/sound-2.m4s", 808),
        ("/low-3.m4s", 88),
    ] {
        get(&connection, path, &[]).await;
        assert_eq!(known.average_rate(), Some(Bitrate::from_kbps(kbps)), "{path}");
    }
}

#[tokio::test]
async fn the_controller_knows_what_the_player_says_as_far_as_the_library_agrees() {
    let (running, connection, known) = watch(|setup| setup.media = packaged).await;
    let session = ("cmcd-session", "sid=\"6e2fb550\",sf=d,st=v");
    let starting = [
        session,
        ("cmcd-object", "br=900,ot=v,d=3000,tb=900"),
        ("cmcd-request", "bl=0,su,mtp=5000"),
    ];
    get(&connection, "/high-1.m4s", &starting).await;
    // Measured, not declared.
    assert_eq!(known.average_rate(), Some(Bitrate::from_kbps(800)));
    assert_eq!(known.playback(), Some(Playback::Starting));
    assert_eq!(known.buffered(), Some(Duration::ZERO));

    // The query is equivalent to the fields.
    let sound = "/sound-1.m4s?CMCD=br%3D8%2Cot%3Da%2Cbl%3D3000%2Csu%2Csid%3D%226e2fb550%22";
    get(&connection, sound, &[]).await;
    assert_eq!(known.average_rate(), Some(Bitrate::from_kbps(808)));

    let playing = [
        session,
        ("cmcd-object", "br=90,ot=v,d=3000"),
        ("cmcd-request", "bl=2500,dl=2400"),
    ];
    get(&connection, "/low-2.m4s", &playing).await;
    assert_eq!(known.average_rate(), Some(Bitrate::from_kbps(88)));
    assert_eq!(known.playback(), Some(Playback::Playing));
    assert_eq!(known.buffered(), Some(Duration::from_millis(2_500)));
    assert_eq!(known.deadline(), Some(Duration::from_millis(2_400)));

    for _ in 0..3 {
        get(&connection, "/high-4.m4s", &[]).await;
    }
    let starved = [
        session,
        ("cmcd-object", "br=90,ot=v,d=3000"),
        ("cmcd-status", "bs"),
        ("cmcd-request", "bl=0"),
    ];
    get(&connection, "/low-3.m4s", &starved).await;
    // It received 15 s of media in less time than they play.
    assert_eq!(known.playback(), Some(Playback::Playing));
    assert_eq!(known.buffered(), Some(Duration::ZERO));
    let shown = &running.server.connections()[0];
    assert_eq!(shown.playback, Some(Playback::Starved), "dashboards show reports");

    connection.close();
    let player = running.summaries.nth(0).await.state.player.unwrap();
    assert_eq!((player.requests, player.viewings, player.stalls), (4, 1, 1));
    // 900, 90 and 90 kbit/s for 3 s each.
    assert_eq!(player.mean_bitrate(), Some(Bitrate::from_kbps(360)));
    assert_eq!(player.measured_throughput, Some(Bitrate::from_kbps(5_000)));
}

#[tokio::test]
async fn a_false_low_rate_does_not_lower_what_bounds_a_sender() {
    let (_running, connection, known) = watch(|setup| setup.media = packaged).await;
    for report in [
        "br=1,ot=v,bl=9000",
        "br=(1;v 1;a),ot=v,tb=(1;v),lb=(1;v),bl=(9000;v),v=2",
    ] {
        get(&connection, "/low-1.m4s", &[("cmcd-object", report)]).await;
        assert_eq!(known.average_rate(), Some(Bitrate::from_kbps(1)), "{report}");
        let highest = Some(Bitrate::from_kbps(900));
        assert_eq!(
            known.highest_rate(),
            highest,
            "the player may switch up: {report}"
        );
    }
}

#[tokio::test]
async fn a_player_that_says_something_is_told_something() {
    // Loopback carries everything that the sender has, so only a bounded window makes the sender wait for the path.
    let (_running, connection) = Running::connected(|setup| {
        setup.settings.controller = "cubic+ceiling=pace".parse().unwrap();
        setup.media = packaged;
    })
    .await;
    let (silent, _) = get(&connection, "/high-1.m4s", &[]).await;
    let said = ["cmsd-static", "cmsd-dynamic"].map(|name| field(&silent, name));
    assert_eq!(said, ["", ""]);
    let cmcd = [("cmcd-request", "br=900,bl=9000")];
    for _ in 0..20 {
        // The throughput is measured while there is enough to send.
        get(&connection, "/long.bin", &cmcd).await;
        let (response, _) = get(&connection, "/high-1.m4s", &cmcd).await;
        assert_eq!(field(&response, "cmsd-static"), "ot=v,br=800,d=3000");
        let said = field(&response, "cmsd-dynamic");
        assert!(said.starts_with("\"playrate\""), "{said}");
        assert!(said.contains(";rtt="), "{said}");
        if said.contains(";etp=") {
            assert!(said.contains(";mb=900"), "loopback carries the highest: {said}");
            return;
        }
    }
    panic!("no throughput was ever estimated");
}

#[tokio::test]
async fn the_first_answer_says_how_long_the_round_trip_is() {
    let (_running, connection) = Running::connected(|setup| setup.media = packaged).await;
    let (response, _) = get(&connection, "/low-1.m4s", &[("cmcd-request", "su")]).await;
    let said = field(&response, "cmsd-dynamic");
    let rtt: u64 = said.split_once(";rtt=").unwrap().1.parse().unwrap();
    assert!(rtt > 0, "{said}");
}

#[tokio::test]
async fn hostile_words_change_nothing() {
    let (_running, connection, known) = watch(|setup| setup.media = packaged).await;
    let long = format!("sid=\"{}\",br=99999999999999,bl=-NaN,d=1e308", "x".repeat(3_000));
    let hostile = [("cmcd-object", &*long), ("cmcd-status", "\"\\")];
    let (response, body) = get(&connection, "/low-1.m4s", &hostile).await;
    assert_eq!((response.status().as_u16(), body.len()), (200, 30_000));
    assert_eq!(known.average_rate(), Some(Bitrate::from_kbps(80)));
    assert_eq!(known.buffered(), None);
}
