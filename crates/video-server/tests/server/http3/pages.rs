//! The web page of a library, and the state of a connection for its own client.

use http::HeaderMap;
use playrate_transport::Identity;
use rstest::rstest;
use serde_json::Value;
use video_server::pages::Pages;

use crate::http3::common::{Running, Setup, field, get};
use playrate_test_support::{Media, assert_contains, until};

const CONNECTION: &str = "/.playrate/connection.json";

fn with_pages(setup: &mut Setup) {
    setup.settings.pages = Some(Pages::new(setup.options.certificates.identities()[0].pin()));
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn the_page_lists_titles_and_loads_nothing_from_elsewhere() {
    let (running, connection) = Running::connected(with_pages).await;
    let (response, page) = get(&connection, "/", &[]).await;
    let page = text(&page);
    assert_eq!(response.status(), 200);
    assert_eq!(field(&response, "content-type"), "text/html; charset=utf-8");
    let pin = running.pin().to_string();
    assert_contains(
        page,
        &["href=\"./film.mp4\"", "href=\"./other.mp4\"", "2 titles", &pin],
    );
    assert!(!page.contains("long.bin") && !page.contains("%%"), "{page}");
    for elsewhere in ["http://", "https://", "//cdn", "<style", "onclick"] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    for (path, kind) in [
        (".playrate/page.js", "text/javascript; charset=utf-8"),
        (".playrate/page.css", "text/css; charset=utf-8"),
    ] {
        assert!(page.contains(&format!("\"{path}\"")), "{path}");
        let (response, content) = get(&connection, &format!("/{path}"), &[]).await;
        assert_eq!(response.status(), 200);
        assert_eq!(field(&response, "content-type"), kind);
        assert!(!content.is_empty());
    }
}

#[tokio::test]
async fn no_part_of_the_page_runs_a_foreign_script_or_is_read_by_another_origin() {
    let (_running, connection) = Running::connected(|setup| {
        with_pages(setup);
        setup.settings.cors = Some("*".parse().unwrap());
    })
    .await;
    for path in ["/", "/.playrate/page.js", CONNECTION] {
        let (response, _) = get(&connection, path, &[("origin", "https://other.example")]).await;
        let policy = field(&response, "content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"));
        assert_contains(policy, &["frame-ancestors 'none'"]);
        assert_eq!(field(&response, "access-control-allow-origin"), "", "{path}");
        assert_eq!(field(&response, "cross-origin-resource-policy"), "same-origin");
        assert_eq!(field(&response, "x-content-type-options"), "nosniff");
    }
    let (response, _) = get(&connection, "/film.mp4", &[("origin", "https://other.example")]).await;
    assert_eq!(field(&response, "access-control-allow-origin"), "*");
}

#[tokio::test]
async fn a_title_with_markup_in_its_name_is_shown_as_text() {
    let (_running, connection) = Running::connected(|setup| {
        with_pages(setup);
        setup.media = |media| {
            for name in ["<img src=x onerror=alert(1)>\"'&.mp4", "%%pin%%.mp4"] {
                media.copy("progressive-moov-first.mp4", name);
            }
        };
    })
    .await;
    let (_, page) = get(&connection, "/", &[]).await;
    let page = text(&page);
    assert!(!page.contains("<img"), "{page}");
    let parts = [
        ">&#60;img src=x onerror=alert(1)&#62;&#34;&#39;&#38;.mp4<",
        "href=\"./%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E%22%27%26.mp4\"",
        ">%%pin%%.mp4<",
    ];
    assert_contains(page, &parts);
}

/// DASH and HLS of `film/1.m4s` to `film/3.m4s`.
fn put_film(media: &Media, mpd: &str, playlist: &str, end: &str) {
    let dash = "<MPD TYPE mediaPresentationDuration=\"PT9S\"><Period><AdaptationSet contentType=\"video\">\
        <SegmentTemplate media=\"$Number$.m4s\" duration=\"3\"/><Representation id=\"v\" bandwidth=\"7\"/>\
        </AdaptationSet></Period></MPD>";
    let kind = if end.is_empty() { "type=\"dynamic\"" } else { "" };
    media.put(mpd, dash.replace("TYPE", kind));
    let segments = "#EXTINF:3,\n1.m4s\n#EXTINF:3,\n2.m4s\n#EXTINF:3,\n3.m4s\n";
    media.put(
        playlist,
        format!("#EXTM3U\n#EXT-X-TARGETDURATION:3\n{segments}{end}"),
    );
    for number in 1..=3 {
        media.put(&format!("film/{number}.m4s"), [0; 1_000]);
    }
}

/// The cards of the page of a library that has these files, too.
async fn cards(media: fn(&Media)) -> Vec<String> {
    let (_running, connection) = Running::connected(|setup| {
        with_pages(setup);
        setup.media = media;
    })
    .await;
    let (_, page) = get(&connection, "/", &[]).await;
    let cards = text(&page).split("<li class=\"title card\"").skip(1);
    cards.map(str::to_owned).collect()
}

#[tokio::test]
async fn dash_and_hls_of_the_same_segments_or_of_one_name_are_one_title() {
    let cards = cards(|media| {
        put_film(media, "film/manifest.mpd", "film/main.m3u8", "#EXT-X-ENDLIST\n");
        // Of other segments.
        media.put(
            "film.m3u8",
            "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfilm.ts\n#EXT-X-ENDLIST\n",
        );
        media.put("film.ts", [0; 1_000]);
        // Of the same segments, but of the same format too.
        media.put(
            "other.m3u8",
            "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfilm.ts\n#EXT-X-ENDLIST\n",
        );
        let dash = "<MPD mediaPresentationDuration=\"PT9S\"><Period><AdaptationSet>\
            <Representation id=\"v\" bandwidth=\"7\"><BaseURL>film.m4v</BaseURL></Representation>\
            </AdaptationSet></Period></MPD>";
        media.put("film.mpd", dash);
        media.copy("fragmented.mp4", "film.m4v");
    })
    .await;
    let cards: Vec<_> = cards.iter().filter(|card| card.contains("HLS")).collect();
    assert_eq!(cards.len(), 3, "{cards:?}");
    assert_contains(cards[2], &["href=\"./other.m3u8\"", "HLS · 1 representation<"]);
    let names = [
        ["href=\"./film.mpd\"", "href=\"./film.m3u8\""],
        ["href=\"./film/manifest.mpd\"", "href=\"./film/main.m3u8\""],
    ];
    for (card, names) in cards.iter().zip(names) {
        assert_contains(card, &names);
        assert_contains(card, &["DASH and HLS · 1 representation<"]);
    }
}

#[rstest]
#[tokio::test]
async fn a_live_title_is_named_as_live_without_a_duration(#[values(true, false)] live: bool) {
    let media: fn(&Media) = if live {
        |media| put_film(media, "film/manifest.mpd", "film/main.m3u8", "")
    } else {
        |media| put_film(media, "film/manifest.mpd", "film/main.m3u8", "#EXT-X-ENDLIST\n")
    };
    let cards = cards(media).await;
    let card = &cards[0];
    assert_contains(card, &["DASH and HLS"]);
    assert_eq!(card.contains("<b>live</b>"), live, "{card}");
    assert_eq!(card.contains("9.0 s"), !live, "{card}");
}

#[tokio::test]
async fn a_title_has_the_captions_and_the_picture_of_its_name() {
    let cards = cards(|media| {
        for film in ["film.mp4", "film2.mp4"] {
            media.copy("progressive-moov-first.mp4", film);
        }
        for file in [
            "film.jpg",
            "film.de.jpg",
            "film.vtt",
            "film.pt-BR.vtt",
            "fil.vtt",
            "film.trailer.vtt",
            "films/film.en.vtt",
        ] {
            media.put(file, "-");
        }
    })
    .await;
    let (film, other) = (&cards[0], &cards[1]);
    assert_contains(
        film,
        &[
            "<img src=\"./film.jpg\"",
            "<a data-language=\"pt-BR\" href=\"./film.pt-BR.vtt\">pt-BR</a>",
            "<a data-language=\"\" href=\"./film.vtt\">film.vtt</a>",
        ],
    );
    assert_eq!(film.matches("data-language").count(), 2, "{film}");
    // Without a picture its name takes the place.
    assert_contains(other, &["<div class=\"poster\" aria-hidden=\"true\">film2</div>"]);
    assert!(
        !other.contains("<img") && !other.contains("data-language"),
        "{other}"
    );
}

#[tokio::test]
async fn a_client_reads_the_state_of_its_own_connection_and_nothing_of_others() {
    let running = Running::with(with_pages);
    let (own, other) = (running.connect().await, running.connect().await);
    let (_, film) = get(&other, "/film.mp4", &[]).await;
    let (_, long) = get(&own, "/long.bin", &[]).await;
    let (response, state) = get(&own, CONNECTION, &[]).await;
    assert_eq!(field(&response, "cache-control"), "no-store");
    let state: Value = serde_json::from_slice(&state).unwrap();
    assert_eq!(state["protocol"], "HTTP/3.0");
    assert_eq!(state["controller"], "cubic");
    for known in ["window", "rtt_ms", "in_flight", "phase"] {
        assert!(!state[known].is_null(), "{known}: {state}");
    }
    // Contains neither a connection number nor an address.
    assert!(state["id"].is_null() && state["peer"].is_null() && !state.to_string().contains("127.0.0.1"));
    // A fast transfer outruns the samples; each request brings acknowledgements and so another sample.
    until("half of the title delivered", async || {
        let (_, state) = get(&own, CONNECTION, &[]).await;
        let state: Value = serde_json::from_slice(&state).unwrap();
        state["delivered"].as_u64().unwrap() > long.len() as u64 / 2
    })
    .await;
    let (_, state) = get(&other, CONNECTION, &[]).await;
    let state: Value = serde_json::from_slice(&state).unwrap();
    assert!(
        state["delivered"].as_u64().unwrap() < 2 * film.len() as u64 + 10_000,
        "{state}"
    );
    assert_eq!(state["requests"], 2);
}

#[tokio::test]
async fn a_page_is_asked_for_again_in_vain_until_the_library_changes() {
    let (running, connection) = Running::connected(with_pages).await;
    let (response, _) = get(&connection, "/", &[]).await;
    let tag = field(&response, "etag").to_owned();
    let (response, page) = get(&connection, "/", &[("if-none-match", &tag)]).await;
    assert_eq!((response.status().as_u16(), page.len()), (304, 0));
    running.server.set_library(video_server::library::Library::new());
    let (response, page) = get(&connection, "/", &[("if-none-match", &tag)]).await;
    assert_eq!(response.status(), 200);
    assert!(text(&page).contains("No titles"));
}

#[tokio::test]
async fn a_renewed_certificate_has_its_pin_on_the_page() {
    let (running, connection) = Running::connected(with_pages).await;
    let renewed = Identity::development(&[]).unwrap();
    running.server.set_identities(vec![renewed.clone()]);
    let (_, page) = get(&connection, "/", &[]).await;
    let page = text(&page);
    assert!(page.contains(&renewed.pin().to_string()) && !page.contains(&running.pin().to_string()));
}

#[tokio::test]
async fn an_index_html_of_the_library_takes_the_place_of_the_page() {
    let (_running, connection) = Running::connected(|setup| {
        with_pages(setup);
        setup.media = |media| media.put("index.html", "<p>Mine</p>");
    })
    .await;
    for path in ["/", "/index.html"] {
        let (response, page) = get(&connection, path, &[]).await;
        let answer = (response.status().as_u16(), text(&page));
        assert_eq!(answer, (200, "<p>Mine</p>"), "{path}");
        assert_eq!(field(&response, "content-security-policy"), "");
    }
    assert_eq!(get(&connection, CONNECTION, &[]).await.0.status(), 200);
}

#[tokio::test]
async fn a_page_has_the_methods_of_every_resource() {
    let (_running, connection) = Running::connected(with_pages).await;
    let (response, page) = get(&connection, "/", &[]).await;
    let head = connection.head("/", HeaderMap::new()).await.unwrap();
    assert_eq!(field(&response, "content-length"), page.len().to_string());
    let length = "content-length";
    assert_eq!(head.headers()[length], response.headers()[length]);
    let below = ["", "/", "/dash.js", "/../film.mp4"].map(|name| format!("/.playrate{name}"));
    for path in &below {
        assert_eq!(get(&connection, path, &[]).await.0.status(), 404, "{path}");
    }
}
