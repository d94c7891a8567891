//! `check` of titles without a config.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::cli::process::{assert_fields, refused, run};
use playrate_test_support::{Media, assert_contains, fixture, root, text};
use rstest::rstest;
use serde_json::{Value, json};

/// A film, a packaged title, a title with a contradiction, and a file that is no title.
fn media() -> Media {
    let media = Media::new();
    media.copy("progressive-moov-first.mp4", "film.mp4");
    media.copy("fragmented.mp4", "show/one.mp4");
    media.put(
        "show/main.mpd",
        "<MPD mediaPresentationDuration='PT9S'><Period><AdaptationSet mimeType='video/mp4'>\
         <Representation id='low' bandwidth='100000'><BaseURL>one.mp4</BaseURL></Representation>\
         </AdaptationSet></Period></MPD>",
    );
    media.put("notes.txt", "no title");
    media
}

fn with_trailing_bytes(media: &Media) {
    let film = fs::read(fixture("progressive-moov-first.mp4")).unwrap();
    media.put("odd.mp4", [&film[..], &[0; 100]].concat());
}

/// Exit code, stdout and stderr of `check` with these arguments.
fn check(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = run(&[&["check"], arguments].concat());
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[rstest]
#[case::directory("", &["film.mp4", "main.mpd", "\"low\""])]
#[case::file("film.mp4", &["film.mp4", "192x108", "avc1.", "268 frames in 3 segments", "8.9 s", "at peak"])]
#[case::manifest("show/main.mpd", &["main.mpd", "\"low\"", "declared"])]
fn what_the_server_reads_is_printed_in_80_columns(#[case] name: &str, #[case] parts: &[&str]) {
    let media = media();
    let (code, out, error) = check(&[&media.text(name)]);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    assert_contains(&out, parts);
    let words = |line: &&str| line.chars().count() > 80 && line.trim().contains(' ');
    assert_eq!(out.lines().find(words), None);
}

#[test]
fn a_contradiction_is_noted_once_and_does_not_fail() {
    let media = media();
    with_trailing_bytes(&media);
    for input in ["", "odd.mp4"] {
        let (code, out, _) = check(&[&media.text(input)]);
        assert_eq!(code, Some(0), "{out}");
        assert_eq!(out.matches("no box begins at offset").count(), 1, "{out}");
    }
}

/// The files come with ffprobe's values (`crates/media/tests/corpus/make.py`).
#[test]
fn files_of_many_muxers_are_titles_as_ffprobe_reads_them() {
    let directory = root().join("crates/media/tests/corpus/files");
    let (code, out, _) = check(&["--json", directory.to_str().unwrap()]);
    let all: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &all["faults"]), (Some(0), &json!([])));
    let titles = all["titles"].as_array().unwrap();
    assert_eq!(titles.len(), 25);
    for title in titles {
        let values = fs::read(format!("{}.json", title["title"].as_str().unwrap())).unwrap();
        let values: Value = serde_json::from_slice(&values).unwrap();
        let frames = values["frames"].as_array().unwrap();
        assert_eq!(title["frames"], frames.len(), "{title}");
        let end = values["end"].as_f64().unwrap() / 1e6;
        let off = title["duration_s"].as_f64().unwrap() - end;
        // The time of a frame in the slowest titles.
        assert!(off.abs() < 0.042, "{title}: {end} s");
    }
}

#[test]
fn the_same_is_printed_as_json() {
    let media = media();
    with_trailing_bytes(&media);
    let (code, out, _) = check(&["--json", &media.text("odd.mp4"), &media.text("show/main.mpd")]);
    assert_eq!(code, Some(0), "{out}");
    let all: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(all["faults"], json!([]));
    assert_fields(
        &all["titles"][0],
        &json!({
            "width": 192, "height": 108, "frames": 268, "segments": 3, "layout": "progressive_moov_first",
        }),
    );
    assert_eq!(all["titles"][0]["notes"].as_array().unwrap().len(), 1);
    assert!(all["titles"][0]["duration_s"].as_f64() > Some(8.9));
    let low = &all["packaged"][0]["representations"][0];
    assert_fields(
        low,
        &json!({ "id": "low", "missing_segments": 0, "declared_rate_bps": 100_000 }),
    );
}

#[rstest]
#[case::text("text.mp4", "just a text", "text.mp4")]
#[case::manifest("bad.mpd", "<MPD/>", "no Representation")]
#[case::missing("no/such.mp4", "", "No such file")]
#[case::missing_manifest("no/such.mpd", "", "No such file")]
#[case::hidden_manifest(".hidden.mpd", "", "no title found")]
#[case::directory_without_titles("pages/", "", "no title found")]
fn what_cannot_be_served_is_named_and_the_rest_is_still_shown(
    #[case] name: &str,
    #[case] content: &str,
    #[case] problem: &str,
) {
    let media = media();
    media.put("pages/index.html", "no title");
    fs::copy(media.path("show/main.mpd"), media.path(".hidden.mpd")).unwrap();
    if !content.is_empty() {
        media.put(name, content);
    }
    let (code, out, error) = check(&[&media.text("film.mp4"), &media.text(name)]);
    assert_eq!(code, Some(2), "{out}");
    assert_contains(&out, &["268 frames", "error: ", problem]);
    assert_contains(&error, &["not all of it can be served"]);
}

#[test]
fn video_that_browsers_do_not_play_is_noted() {
    let media = media();
    let film = fs::read(media.path("film.mp4")).unwrap();
    let at = film.windows(4).rposition(|name| name == b"avc1").unwrap();
    media.put("old.mp4", [&film[..at], b"mp4v", &film[at + 4..]].concat());
    let (code, out, error) = check(&[&media.text("film.mp4"), &media.text("old.mp4")]);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    assert_eq!(out.matches("note: ").count(), 1, "{out}");
    assert_contains(
        &out,
        &["mp4v, mp4a.40.2", "note: browsers do not play MPEG-4 Part 2"],
    );
}

#[test]
fn a_bad_title_is_named_although_a_good_one_has_the_end_of_its_path() {
    let media = media();
    with_trailing_bytes(&media);
    media.put("copies/odd.mp4", "just a text");
    let (code, out, _) = check(&[&media.text("")]);
    assert_eq!(code, Some(2), "{out}");
    assert_eq!(out.matches("error: ").count(), 1, "{out}");
    assert_contains(&out, &["copies/odd.mp4"]);
    assert_eq!(out.matches("no box begins at offset").count(), 1, "{out}");
}

#[test]
fn a_file_name_that_is_not_utf_8_is_readable_in_json() {
    let media = media();
    let name: &OsStr = OsStrExt::from_bytes(b"\xff.mp4");
    fs::write(media.root().join(name), "x").unwrap();
    let (code, out, error) = check(&["--json", &media.text("")]);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    let all: Value = serde_json::from_str(&out).unwrap();
    let path = all["faults"][0]["path"].as_str().unwrap();
    assert!(path.ends_with("/\u{fffd}.mp4"), "{path}");
}

/// A main playlist, the media playlist that it names, a bad title, and too many levels of directories.
fn hls(low: &str) -> Media {
    let media = Media::new();
    media.copy("fragmented.mp4", "one.mp4");
    media.put(
        "main.m3u8",
        "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=100000\nlow.m3u8\n",
    );
    media.put("low.m3u8", low);
    media.put("other.mp4", "just a text");
    media.put(&format!("{}page.html", "deep/".repeat(17)), "");
    media
}

const LOW: &str = "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:8.9,\none.mp4\n#EXT-X-ENDLIST\n";

#[rstest]
#[case::main("main.m3u8")]
#[case::named_by_main("low.m3u8")]
fn of_a_manifest_only_the_files_that_it_names_are_read(#[case] name: &str) {
    let (code, out, error) = check(&[&hls(LOW).text(name)]);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    assert_contains(&out, &[name, "\"low.m3u8\": ", "8.9 s"]);
}

#[test]
fn faults_of_the_files_that_a_manifest_names_are_its_own() {
    let media = hls("#EXTM3U\n#EXTINF:fast,\none.mp4\n");
    let (code, out, _) = check(&[&media.text("main.m3u8")]);
    assert_eq!(code, Some(2), "{out}");
    assert_contains(&out, &["error: ", "low.m3u8: line 3", "note: "]);
    media.put("low.m3u8", LOW);
    let film = fs::read(fixture("progressive-moov-first.mp4")).unwrap();
    media.put("one.mp4", &film[..film.len() - 1_000]);
    let (code, out, _) = check(&[&media.text("main.m3u8")]);
    assert_eq!(code, Some(2), "{out}");
    assert_contains(&out, &["one.mp4: mdat box at offset"]);
}

#[rstest]
#[case::json(&["--json", "server.toml"])]
#[case::beside_a_title(&["server.TOML", "film.mp4"])]
#[case::after_a_title(&["film.mp4", "server.toml"])]
fn a_config_file_is_checked_alone(#[case] arguments: &[&str]) {
    let complaint = refused(&[&["check"], arguments].concat());
    assert_contains(
        &complaint,
        &["server.", "a config file is checked alone, without --json"],
    );
}
