//! A connection's requests choose its controller.

use video_server::serve::SessionSummary;
use video_server::serve::arms::{Arms, ChooseBy};

use crate::http3::common::{Running, get, packaged};

fn arms(by: ChooseBy, arms: &[&str]) -> Arms {
    let arms = arms.iter().map(|arm| arm.parse().unwrap()).collect();
    Arms::new(by, arms).unwrap()
}

/// Requests `paths` on one connection and returns the summary.
async fn session(arms: Option<&Arms>, paths: &[&str]) -> SessionSummary {
    let running = Running::with(|setup| {
        setup.media = packaged;
        setup.settings.arms = arms.cloned();
    });
    let connection = running.connect().await;
    for path in paths {
        let (response, body) = get(&connection, path, &[]).await;
        assert!(response.status().is_success() && !body.is_empty(), "{path}");
    }
    connection.close();
    running.summaries.nth(0).await
}

fn chosen(session: &SessionSummary) -> (Option<&str>, &str, u64) {
    let state = &session.state;
    (
        state.arm.as_deref(),
        &state.controller,
        session.other_arm_requests,
    )
}

#[tokio::test]
async fn by_path_a_prefix_names_the_arm_and_no_file() {
    let arms = Some(&arms(ChooseBy::Path, &["a=reno", "b=vegas"]));
    let media = ["/b/manifest.mpd", "/b/low-1.m4s", "/b/film.mp4"];
    let b = session(arms, &[&["/pages/index.html"][..], &media].concat()).await;
    assert_eq!(chosen(&b), (Some("b"), "vegas", 0));
    assert_eq!(b.connection.controller, "cubic", "what it began with");
    let none = session(arms, &["/film.mp4", "/a/film.mp4", "/b/film.mp4"]).await;
    assert_eq!(chosen(&none), (Some("default"), "cubic", 2), "the first decides");
    let page = session(arms, &["/pages/index.html"]).await;
    assert_eq!(chosen(&page), (None, "cubic", 0), "a page is no media");
}

#[tokio::test]
async fn by_query_the_first_one_counts_and_others_keep_it() {
    let arms = Some(&arms(ChooseBy::Query, &["a=quinn-newreno", "b=ccp"]));
    let a = session(arms, &["/film.mp4?x=1&arm=a", "/film.mp4", "/other.mp4?arm=b"]).await;
    assert_eq!(chosen(&a), (Some("a"), "quinn-newreno", 1));
    let unknown = session(arms, &["/film.mp4?arm=c", "/film.mp4?arm=b"]).await;
    assert_eq!(chosen(&unknown), (Some("default"), "cubic", 1));
}

#[tokio::test]
async fn by_representation_the_first_video_counts_and_audio_does_not() {
    let arms = Some(&arms(ChooseBy::Representation, &["high=reno"]));
    let high = session(arms, &["/manifest.mpd", "/sound-1.m4s", "/high-1.m4s"]).await;
    assert_eq!(chosen(&high), (Some("high"), "reno", 0));
    let low = session(arms, &["/low-1.m4s", "/high-1.m4s"]).await;
    assert_eq!(chosen(&low), (Some("default"), "cubic", 1));
}

#[tokio::test]
async fn without_arms_nothing_is_chosen() {
    let film = session(None, &["/film.mp4?arm=a"]).await;
    assert_eq!(chosen(&film), (None, "cubic", 0));
}
