//! The web page over TCP, and its options.

use http::{StatusCode, Version};
use rstest::rstest;

use crate::cli::access::{KEY, keep, sign};
use crate::cli::tcp::{Site, field};
use playrate_test_support::{Media, assert_contains, text};

#[rstest]
#[case(Version::HTTP_11, "HTTP/1.1")]
#[case(Version::HTTP_2, "HTTP/2.0")]
#[tokio::test]
async fn the_page_is_there_over_tcp_and_its_connection_is_named_as_such(
    #[case] version: Version,
    #[case] name: &str,
) {
    let site = Site::new();
    let serving = site.serve(&[]);
    let mut client = site.connect(serving.address(), version).await;
    let port = serving.address().port();
    assert_eq!(serving.announced("Page"), format!("https://127.0.0.1:{port}/"));
    let (status, fields, page) = client.get("/", &[]).await;
    assert_eq!(status, StatusCode::OK);
    assert_contains(field(&fields, "content-security-policy"), &["script-src 'self'"]);
    assert!(field(&fields, "alt-svc").starts_with("h3="));
    assert_contains(&text(&page), &["href=\"./film.mp4\"", serving.announced("Pin")]);
    let (status, fields, state) = client.get("/.playrate/connection.json", &[]).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(field(&fields, "cache-control"), "no-store");
    assert_eq!(text(&state), format!("{{\"protocol\":\"{name}\"}}"));
}

#[rstest]
#[case(Version::HTTP_11)]
#[case(Version::HTTP_2)]
#[tokio::test]
async fn no_pages_leaves_nothing_at_the_root(#[case] version: Version) {
    let site = Site::new();
    let serving = site.serve(&["--no-pages"]);
    let mut client = site.connect(serving.address(), version).await;
    for path in [
        "/",
        "/.playrate/page.css",
        "/.playrate/page.js",
        "/.playrate/connection.json",
    ] {
        assert_eq!(client.get(path, &[]).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(client.get("/film.mp4", &[]).await.0, StatusCode::OK);
    let announcement = serving.announcement();
    assert!(!announcement.contains("\nPage"), "{announcement}");
}

#[tokio::test]
async fn a_directory_of_players_is_served_as_npm_or_by_hand_put_them_there() {
    let site = Site::new();
    site.directory.put("scripts/dash.all.min.js", "dash()");
    site.directory.put("scripts/hls.js/dist/hls.min.js", "hls()");
    let serving = site.serve(&["--player-scripts", &site.text("scripts")]);
    let mut client = site.connect(serving.address(), Version::HTTP_2).await;
    let page = text(&client.get("/", &[]).await.2);
    assert_contains(&page, &["data-scripts=\"dash.js hls.js\""]);
    for (path, script) in [("/.playrate/dash.js", "dash()"), ("/.playrate/hls.js", "hls()")] {
        let (status, fields, content) = client.get(path, &[]).await;
        assert_eq!((status, text(&content).as_str()), (StatusCode::OK, script));
        assert_eq!(fields["content-type"], "text/javascript; charset=utf-8");
    }
}

#[tokio::test]
async fn the_page_and_its_titles_work_below_a_token_in_the_path() {
    let (site, keys) = (Site::new(), Media::new());
    let key = keep(&keys, "key", KEY);
    let serving = site.serve(&["--signing-key", &key]);
    let mut client = site.connect(serving.address(), Version::HTTP_2).await;
    let signed = sign(&key, "/film.mp4", &["--prefix", "/"]);
    let root = signed.strip_suffix("film.mp4").unwrap();
    let (status, _, page) = client.get(root, &[]).await;
    assert_eq!(status, StatusCode::OK);
    let page = text(&page);
    let addresses = page
        .split(['"', '\''])
        .filter(|part| part.contains("playrate/") || part.ends_with("film.mp4"));
    let addresses: Vec<_> = addresses.collect();
    assert!(addresses.len() >= 3, "{addresses:?}");
    for address in addresses {
        // As a browser resolves it: an absolute path would lose the token.
        assert!(!address.starts_with('/'), "{address}");
        let path = format!("{root}{}", address.trim_start_matches("./"));
        assert_eq!(client.get(&path, &[]).await.0, StatusCode::OK, "{path}");
    }
    let state = format!("{root}.playrate/connection.json");
    assert_eq!(client.get(&state, &[]).await.0, StatusCode::OK);
    assert_eq!(client.get("/", &[]).await.0, StatusCode::FORBIDDEN);
}
