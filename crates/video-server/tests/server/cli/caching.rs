//! `Cache-Control`, header fields of the operator, and compression, over every version of HTTP.

use std::io::Read as _;

use flate2::read::GzDecoder;
use http::{HeaderMap, Method, StatusCode, Version};
use playrate_test_support::{Media, ServerProcess, assert_contains};
use rstest::rstest;

use crate::cli::process::{checked, refused};
use crate::cli::tcp::{Site, field};
use crate::http3::common::headers;

const VERSIONS: [Version; 3] = [Version::HTTP_3, Version::HTTP_2, Version::HTTP_11];

/// A site with a recording, a live title, a title in one file and other files.
fn site() -> Site {
    let site = Site::new();
    let playlist = |segments: usize, end: &str| {
        let segments = (0..segments).map(|number| format!("#EXTINF:4,\n{number}.m4s\n"));
        format!(
            "#EXTM3U\n#EXT-X-TARGETDURATION:4\n{}{end}",
            segments.collect::<String>()
        )
    };
    for number in 0..40 {
        site.directory
            .put(&format!("media/vod/{number}.m4s"), vec![7; 1_000]);
    }
    site.directory
        .put("media/vod/list.m3u8", playlist(40, "#EXT-X-ENDLIST\n"));
    site.directory
        .put("media/vod/short.m3u8", playlist(1, "#EXT-X-ENDLIST\n"));
    site.directory.put("media/live/0.m4s", vec![7; 1_000]);
    site.directory.put("media/live/list.m3u8", playlist(1, ""));
    site.directory.put("media/now/0.m4s", vec![7; 1_000]);
    site.directory.put("media/now/list.m3u8", playlist(1, ""));
    let main = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=800000\nlist.m3u8\n";
    site.directory.put("media/now/main.m3u8", main);
    site.directory.put("media/page.html", "<p>");
    site.directory.put("media/poster.jpg", "no picture");
    site
}

/// Status and fields of the response to a HEAD over this version.
async fn head(
    (site, serving): (&Site, &ServerProcess),
    version: Version,
    path: &str,
    fields: &[(&'static str, &str)],
) -> (StatusCode, HeaderMap) {
    if version != Version::HTTP_3 {
        let mut client = site.connect(serving.address(), version).await;
        let (status, fields, _) = client.request(Method::HEAD, path, fields).await;
        return (status, fields);
    }
    let connection = serving.connect().await;
    let (answer, ()) = connection.head(path, headers(fields)).await.unwrap().into_parts();
    (answer.status, answer.headers)
}

/// One response over this version.
async fn get(
    (site, serving): (&Site, &ServerProcess),
    version: Version,
    path: &str,
    fields: &[(&'static str, &str)],
) -> (StatusCode, HeaderMap, Vec<u8>) {
    if version != Version::HTTP_3 {
        let mut client = site.connect(serving.address(), version).await;
        let (status, fields, body) = client.get(path, fields).await;
        return (status, fields, body.to_vec());
    }
    let connection = serving.connect().await;
    let (response, mut body) = connection.get(path, headers(fields)).await.unwrap();
    let mut content = Vec::new();
    while let Some(chunk) = body.chunk().await.unwrap() {
        content.extend_from_slice(&chunk);
    }
    let (head, ()) = response.into_parts();
    (head.status, head.headers, content)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_kind_of_response_may_be_cached_for_its_time() {
    let site = site();
    let serving = site.serve(&[]);
    for version in VERSIONS {
        for (path, fields, status, expected) in [
            ("/vod/list.m3u8", &[][..], 200, "max-age=300"),
            ("/vod/39.m4s", &[], 200, "max-age=86400"),
            ("/vod/39.m4s", &[("range", "bytes=0-0")], 206, "max-age=86400"),
            ("/vod/39.m4s", &[("range", "bytes=9999-")], 416, "no-store"),
            ("/vod/39.m4s", &[("if-none-match", "*")], 304, "max-age=86400"),
            ("/vod/39.m4s", &[("if-match", "\"other\"")], 412, "no-store"),
            ("/vod/40.m4s", &[], 404, "max-age=1"),
            ("/live/list.m3u8", &[], 200, "max-age=1"),
            ("/live/0.m4s", &[], 200, "max-age=60"),
            ("/now/main.m3u8", &[], 200, "max-age=300"),
            ("/now/list.m3u8", &[], 200, "max-age=1"),
            ("/now/0.m4s", &[], 200, "max-age=60"),
            ("/film.mp4", &[], 200, "max-age=3600"),
            ("/page.html", &[], 200, "no-cache"),
            ("/poster.jpg", &[], 200, "max-age=60"),
            ("/", &[], 200, "private, no-cache"),
            ("/%zz", &[], 400, "no-store"),
            // It is no manifest.
            ("/manifest.mpd", &[], 200, "max-age=1"),
        ] {
            let (found, answer, _) = get((&site, &serving), version, path, fields).await;
            let found = (found.as_u16(), field(&answer, "cache-control"));
            assert_eq!(found, (status, expected), "{path} {fields:?} over {version:?}");
        }
    }
    serving.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manifest_that_has_changed_may_grow() {
    let site = site();
    let serving = site.serve(&["--no-watch"]);
    site.directory
        .put("media/vod/list.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:4\n");
    let (_, answer, _) = get((&site, &serving), Version::HTTP_2, "/vod/list.m3u8", &[]).await;
    assert_eq!(field(&answer, "cache-control"), "max-age=1");
    serving.stop();
}

#[rstest]
#[case(Version::HTTP_3)]
#[case(Version::HTTP_2)]
#[case(Version::HTTP_11)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifests_and_pages_are_compressed_for_clients_that_accept_it(#[case] version: Version) {
    let site = site();
    let serving = site.serve(&["--cors", "https://player.example"]);
    let gzip = ("accept-encoding", "br;q=1, gzip;q=0.5");
    let get =
        async |path, fields: &[(&'static str, &str)]| get((&site, &serving), version, path, fields).await;
    for path in ["/vod/list.m3u8", "/"] {
        let (_, plain, content) = get(path, &[]).await;
        assert!(!plain.contains_key("content-encoding"), "{plain:?}");
        for _ in 0..2 {
            let (status, fields, encoded) = get(path, &[gzip]).await;
            assert_eq!(
                (status, field(&fields, "content-encoding")),
                (StatusCode::OK, "gzip")
            );
            assert_eq!(field(&fields, "content-length"), encoded.len().to_string());
            assert_eq!(field(&fields, "etag"), format!("W/{}", field(&plain, "etag")));
            assert!(!fields.contains_key("accept-ranges"));
            let mut decoded = Vec::new();
            GzDecoder::new(&encoded[..]).read_to_end(&mut decoded).unwrap();
            assert!(decoded == content && encoded.len() < content.len() / 2);
            // The response to a HEAD has the same fields, but for the length, which it may leave out.
            let (status, mut known) = head((&site, &serving), version, path, &[gzip]).await;
            let mut fields = fields;
            for name in ["content-length", "date"] {
                fields.remove(name);
                known.remove(name);
            }
            assert_eq!((status, known), (StatusCode::OK, fields));
        }
        let (_, known) = head((&site, &serving), version, path, &[]).await;
        assert_eq!(field(&known, "content-length"), content.len().to_string());
        assert_eq!(field(&known, "etag"), field(&plain, "etag"));
    }

    let path = "/vod/list.m3u8";
    let (_, plain, content) = get(path, &[("accept-encoding", "gzip;q=0")]).await;
    let varies: Vec<_> = plain.get_all("vary").iter().collect();
    assert_eq!(varies, ["accept-encoding", "Origin"]);
    let tag = field(&plain, "etag");
    let weak = format!("W/{tag}");
    for known in [tag, &weak] {
        for (fields, expected) in [(&[][..], tag), (&[gzip], &weak)] {
            let fields = [&[("if-none-match", known)], fields].concat();
            let (status, answer, _) = get(path, &fields).await;
            assert_eq!(status, StatusCode::NOT_MODIFIED, "{fields:?}");
            assert_eq!(field(&answer, "etag"), expected);
            assert!(
                answer
                    .get_all("vary")
                    .iter()
                    .any(|name| name == "accept-encoding")
            );
        }
    }
    // Ranges are those of the plain content, and a weak tag allows none.
    let range = [gzip, ("range", "bytes=0-6")];
    let (status, answer, part) = get(path, &range).await;
    assert_eq!(
        (status, &part[..]),
        (StatusCode::PARTIAL_CONTENT, &b"#EXTM3U"[..])
    );
    assert_eq!(field(&answer, "etag"), tag);
    let (status, answer, whole) = get(path, &[&range[..], &[("if-range", &weak)]].concat()).await;
    assert!(status == StatusCode::OK && whole == content && !answer.contains_key("content-encoding"));

    // Too short, and media.
    for path in [
        "/vod/short.m3u8",
        "/vod/0.m4s",
        "/film.mp4",
        "/.playrate/connection.json",
    ] {
        let (_, answer, _) = get(path, &[gzip]).await;
        assert!(!answer.contains_key("content-encoding"), "{path}");
        assert!(
            answer.get_all("vary").iter().all(|name| name == "Origin"),
            "{path}"
        );
    }
    serving.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_of_the_operator_are_in_successful_responses() {
    let site = site();
    let year = "max-age=31536000, immutable";
    let rules = [
        "--header=*.m4s: Cache-Control: max-age=1",
        "--header=/vod/**: X-Kind: recording: \"a\"",
        &format!("--header=*.m4s: cache-control: {year}"),
        "--header=/: Strict-Transport-Security: max-age=600",
    ];
    let serving = site.serve(&rules);
    for version in VERSIONS {
        for (path, fields, name, expected) in [
            ("/vod/0.m4s", &[][..], "cache-control", year),
            ("/vod/0.m4s", &[("if-none-match", "*")], "cache-control", year),
            ("/vod/0.m4s", &[], "x-kind", "recording: \"a\""),
            ("/vod/list.m3u8", &[], "cache-control", "max-age=300"),
            ("/vod/list.m3u8", &[], "x-kind", "recording: \"a\""),
            ("/vod/none.m4s", &[], "cache-control", "max-age=1"),
            (
                "/vod/0.m4s",
                &[("range", "bytes=9999-")],
                "cache-control",
                "no-store",
            ),
            ("/film.mp4", &[], "x-kind", ""),
            ("/", &[], "strict-transport-security", "max-age=600"),
        ] {
            let (_, answer, _) = get((&site, &serving), version, path, fields).await;
            assert_eq!(field(&answer, name), expected, "{path} over {version:?}");
            assert!(answer.get_all(name).iter().count() <= 1);
        }
    }
    serving.stop();
}

#[test]
fn a_config_file_has_a_list_or_a_table_of_fields_and_bad_ones_are_refused() {
    let (media, config) = (Media::film(), Media::new());
    let (films, file) = (media.text(""), config.text("server.toml"));
    let put = |fields: &str| config.put("server.toml", format!("media = {films:?}\n{fields}\n"));
    for good in [
        "header = [\"*.m3u8: Cache-Control: no-cache\", \"*: X-A: b\"]",
        "[header]\n\"*.m3u8\" = \"Cache-Control: no-cache\"\n\"/films/**\" = \"X-A: b\"",
    ] {
        put(good);
        checked(&file);
    }
    put("[header]\n\"*\" = \"Content-Length: 1\"");
    assert_contains(
        &refused(&["check", &file]),
        &["server.toml:3", "`content-length` cannot be set"],
    );
    let complaint = refused(&[
        "serve",
        "--media",
        &films,
        "--header",
        "*: X-A: b\r\nSet-Cookie: c",
    ]);
    assert_contains(&complaint, &["the value of `x-a` must have no line breaks"]);
}
