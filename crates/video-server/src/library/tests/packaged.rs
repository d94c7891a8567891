//! Titles that DASH and HLS manifests name.

use super::*;

/// DASH and HLS of the same segments: two renditions of 3 segments each, 3 s, 3 s and 1.5 s long.
pub(super) fn packaged() -> Media {
    let directory = Media::new();
    let mut representations = String::new();
    let mut main = String::from("#EXTM3U\n");
    for (id, size) in [("low", 30_000), ("high", 300_000)] {
        for (number, share) in [(1, 2), (2, 2), (3, 1)] {
            directory.put(&format!("film/{id}-{number}.m4s"), vec![0; size * share / 2]);
        }
        representations.extend([format!(
            "<Representation id=\"{id}\" bandwidth=\"7\"><SegmentTemplate \
            media=\"$RepresentationID$-$Number$.m4s\" timescale=\"2\">\
             <SegmentTimeline><S d=\"6\" r=\"1\"/><S d=\"3\"/></SegmentTimeline></SegmentTemplate></Representation>"
        )]);
        main.extend([format!("#EXT-X-STREAM-INF:BANDWIDTH=7\n{id}.m3u8\n")]);
        let playlist = format!(
            "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\n{id}-1.m4s\n#EXTINF:3,\n{id}-2.m4s\n\
            #EXTINF:1.5,\n{id}-3.m4s\n#EXT-X-ENDLIST\n"
        );
        directory.put(&format!("film/{id}.m3u8"), playlist);
    }
    let mpd = format!(
        "<MPD><Period><AdaptationSet mimeType=\"video/mp4\">{representations}</AdaptationSet></Period></MPD>"
    );
    directory.put("film/manifest.mpd", mpd);
    directory.put("film/master.m3u8", main);
    directory
}

/// Removes the manifests with this extension.
pub(super) fn remove(directory: &Media, extension: &str) {
    for file in fs::read_dir(directory.path("film")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().unwrap() == extension {
            fs::remove_file(path).unwrap();
        }
    }
}

/// Manifests of the packaged titles, and their numbers of representations.
fn manifests(library: &Library) -> Vec<(&str, usize)> {
    let titles = library.packaged().iter();
    titles
        .map(|title| (title.manifest.as_str(), title.representations.len()))
        .collect()
}

#[rstest]
#[case::both("")]
#[case::dash_alone("m3u8")]
#[case::hls_alone("mpd")]
fn every_segment_has_the_measured_rate_of_its_representation_and_its_duration(#[case] without: &str) {
    let directory = packaged();
    remove(&directory, without);
    let library = scan(&directory);
    let mut all = vec![("film/manifest.mpd", 2), ("film/master.m3u8", 2)];
    all.retain(|(name, _)| without.is_empty() || !name.ends_with(without));
    assert_eq!(manifests(&library), all);
    // 75 kB and 750 kB in 7.5 s.
    for (id, kbps) in [("low", 80), ("high", 800)] {
        for (number, seconds) in [(1, 3.0), (2, 3.0), (3, 1.5)] {
            let segment = open(&library, &format!("film/{id}-{number}.m4s"));
            assert_eq!(segment.average_rate, Some(Bitrate::from_kbps(kbps)));
            let all = 0..segment.info.length;
            assert_eq!(segment.duration_of(&all), Some(Duration::from_secs_f64(seconds)));
            let summary = segment.representation().unwrap();
            assert_eq!(summary.segments, 3);
            assert_eq!(summary.missing, 0);
            assert_eq!(summary.longest_segment, Duration::from_secs(3));
        }
    }
    let set = |file| open(&library, file).representation().unwrap().set;
    assert_eq!(set("film/low-1.m4s"), set("film/high-1.m4s"));
}

#[test]
fn the_segments_of_a_single_file_are_its_fragments() {
    let directory = Media::new();
    directory.copy("fragmented.mp4", "film.mp4");
    directory.put("film.mpd", mpd("film.mp4", "PT10S"));
    let library = scan(&directory);
    let segments = Title::open(fixture("fragmented.mp4")).unwrap().segments();
    let film = open(&library, "film.mp4");
    assert_eq!(film.representation().unwrap().segments, segments.len());
    for segment in &segments {
        assert_eq!(film.duration_of(&segment.bytes), Some(segment.duration));
    }
    assert_eq!(film.duration_of(&(0..100)), None);
}

#[test]
fn a_manifest_cannot_multiply_the_segments_of_a_file() {
    let directory = Media::new();
    directory.copy("fragmented.mp4", "film.mp4");
    let whole_files = "<SegmentURL/>".repeat(300_000);
    let text = format!(
        "<MPD><Period><AdaptationSet><Representation id=\"v\" bandwidth=\"1000\"><BaseURL>film.mp4</BaseURL>\
         <SegmentList duration=\"1\">{whole_files}</SegmentList></Representation></AdaptationSet></Period></MPD>"
    );
    directory.put("film.mpd", text);
    let library = scan(&directory);
    assert!(library.packaged().is_empty());
    let [why] = library.faults(FaultKind::Manifest)[..] else {
        panic!("{:?}", library.faults(FaultKind::Manifest))
    };
    assert_contains(&why.message, &["film.mpd", "at most 500000"]);
}

#[test]
fn a_bad_manifest_is_named_and_its_files_are_served_beside_the_others() {
    let directory = packaged();
    directory.put("film/bad.mpd", "<MPD>\n<Period></MPD>");
    directory.put("gone.mpd", mpd("gone.mp4", "PT1S"));
    let library = scan(&directory);
    let complaints = library.faults(FaultKind::Manifest);
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    let all: Vec<_> = complaints.iter().map(ToString::to_string).collect();
    let all = all.join("\n");
    let parts = [
        "film/bad.mpd: line 2",
        "not well-formed",
        "gone.mpd: none of the 1 segments",
    ];
    assert_contains(&all, &parts);
    assert!(library.open(&name("film/bad.mpd")).unwrap().is_some());
    assert!(open(&library, "film/low-1.m4s").average_rate.is_some());
    let refused = scan(&directory).strictly().unwrap_err().to_string();
    assert_eq!(refused, all);
}

#[test]
fn main_playlists_are_bounded_as_other_manifests() {
    let directory = Media::new();
    directory.copy("fragmented.mp4", "film.mp4");
    let whole_files = "#EXTINF:1,\nfilm.mp4\n".repeat(300_000);
    let text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:1\n{whole_files}#EXT-X-ENDLIST\n");
    directory.put("list.m3u8", text);
    let mains = 3;
    for number in 0..mains {
        let main = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9\nlist.m3u8\n";
        directory.put(&format!("main-{number}.m3u8"), main);
    }
    let library = scan(&directory);
    assert!(library.packaged().is_empty());
    let bad = library.faults(FaultKind::Manifest);
    assert_eq!(bad.len(), mains);
    assert!(
        bad.iter().all(|why| why.message.contains("at most 500000")),
        "{bad:?}"
    );
}

#[test]
fn a_directory_of_bad_manifests_alone_is_refused() {
    let directory = Media::new();
    directory.put("film.m3u8", "film");
    assert_contains(
        &refused(&directory).to_string(),
        &["film.m3u8", "line 1", "#EXTM3U"],
    );
}

#[test]
fn a_manifest_cannot_reach_out_of_the_directory_or_at_hidden_files() {
    let directory = Media::new();
    directory.put(".hidden.mp4", "x");
    directory.put("a.mpd", mpd("../../../../etc/passwd", "PT1S"));
    directory.put("b.mpd", mpd(".hidden.mp4", "PT1S"));
    directory.put("c.mpd", mpd("https://cdn.example/film.mp4", "PT1S"));
    let bad = refused(&directory);
    assert!(
        matches!(&bad, LibraryError::BadTitles(manifests) if manifests.len() == 3),
        "{bad}"
    );
}

#[test]
fn an_absolute_url_counts_by_its_path_a_gap_does_not_count_and_an_implausible_duration_is_named() {
    let directory = Media::new();
    directory.put("f/a.m4s", [0; 1_000]);
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nhttps://films.example/f/a.m4s\n#EXT-X-GAP\n\
        #EXTINF:2,\nnone.m4s\n#EXTINF:86400,\na.m4s\n#EXT-X-ENDLIST\n";
    directory.put("f/list.m3u8", text);
    let library = scan(&directory);
    let summary = &library.packaged()[0].representations[0];
    assert_eq!((summary.segments, summary.missing), (2, 0));
    assert_eq!(summary.average_rate, Some(Bitrate::from_kbps(4)));
    let [warning] = library.faults(FaultKind::Warning)[..] else {
        panic!("{:?}", library.faults(FaultKind::Warning))
    };
    assert_contains(
        &warning.message,
        &["f/list.m3u8", "86400s (#EXTINF) is implausible"],
    );
}

#[test]
fn an_encrypted_packaged_title_is_named_as_such_and_served() {
    let directory = packaged();
    remove(&directory, "mpd");
    for id in ["low", "high"] {
        let text = fs::read_to_string(directory.path(&format!("film/{id}.m3u8"))).unwrap();
        let key = "#EXT-X-KEY:METHOD=AES-128,URI=\"key\"\n#EXTINF";
        directory.put(&format!("film/{id}.m3u8"), text.replacen("#EXTINF", key, 1));
    }
    let main = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9\nlow.m3u8\n";
    directory.put("film/master.m3u8", main);
    let library = scan(&directory);
    assert_eq!(
        manifests(&library),
        [("film/master.m3u8", 1), ("film/high.m3u8", 1)]
    );
    let warnings = library.faults(FaultKind::Warning);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    for (warning, name) in warnings.into_iter().zip(["master.m3u8", "high.m3u8"]) {
        assert_contains(
            &warning.message,
            &[name, "encrypted (AES-128): players need a key"],
        );
    }
}

#[test]
fn streams_that_differ_in_their_sound_alone_are_one_representation() {
    let directory = packaged();
    remove(&directory, "mpd");
    let main = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9,AUDIO=\"a\"\nlow.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=10,AUDIO=\"b\"\nlow.m3u8\n";
    directory.put("film/master.m3u8", main);
    directory.put(
        "film/lost.m3u8",
        "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=9\nnone.m3u8\n",
    );
    let library = scan(&directory);
    assert_eq!(
        manifests(&library),
        [("film/master.m3u8", 1), ("film/high.m3u8", 1)]
    );
    let [lost] = library.faults(FaultKind::Manifest)[..] else {
        panic!("{:?}", library.faults(FaultKind::Manifest))
    };
    assert_contains(&lost.message, &["lost.m3u8: none of the playlists"]);
}

#[test]
fn a_film_without_frames_is_bad_alone_and_a_part_with_a_manifest() {
    let directory = Media::new();
    let film = fs::read(fixture("fragmented.mp4")).unwrap();
    let fragments = film.windows(4).position(|name| name == b"moof").unwrap() - 4;
    directory.put("sound.mp4", &film[..fragments]);
    assert!(matches!(refused(&directory), LibraryError::BadTitles { .. }));
    directory.put("manifest.mpd", mpd("sound.mp4", "PT10S"));
    let library = scan(&directory);
    assert_eq!((library.titles().count(), library.other_files()), (0, 2));
    let part = open(&library, "sound.mp4");
    let size = part.info.length;
    assert_eq!(
        part.average_rate,
        Some(Bitrate::from_bits_per_second(size * 8 / 10))
    );
}

#[rstest]
#[case::sibling("manifests/film.mpd", "../segments/")]
#[case::below_a_sibling("manifests/a/film.mpd", "../../segments/")]
#[case::parent("film.mpd", "segments/")]
#[case::child("segments/a/film.mpd", "../")]
#[case::own_origin("manifests/film.mpd", "/segments/")]
fn parts_named_mp4_belong_to_the_title_whose_manifest_names_them(#[case] manifest: &str, #[case] base: &str) {
    let directory = Media::new();
    let film = fs::read(fixture("fragmented.mp4")).unwrap();
    let first = film.windows(4).position(|name| name == b"moof").unwrap() - 4;
    directory.put("segments/init.mp4", &film[..first]);
    directory.put("segments/1.mp4", &film[first..]);
    directory.put("segments/stray.mp4", &film[first..]);
    directory.copy("fragmented.mp4", "other.mp4");
    let template = format!(
        "<SegmentTemplate initialization=\"{base}init.mp4\" media=\"{base}$Number$.mp4\" duration=\"10\"/>"
    );
    directory.put(
        manifest,
        mpd("", "PT10S").replace("<BaseURL></BaseURL>", &template),
    );
    let library = scan(&directory);
    assert_eq!(titles(&library), ["other.mp4"]);
    let faults = library.faults(FaultKind::Title);
    let names: Vec<_> = faults.iter().filter_map(|fault| fault.path.file_name()).collect();
    // A file in a directory with a manifest above counts as a part, whether it is named or not.
    let stray = (manifest != "film.mpd").then_some("stray.mp4");
    assert_eq!(names, Vec::from_iter(stray), "{faults:?}");
    assert_eq!(library.packaged()[0].representations[0].missing, 0);
}

#[test]
fn segments_with_variables_of_the_main_playlist_are_measured() {
    let directory = packaged();
    remove(&directory, "mpd");
    directory.put(
        "film/master.m3u8",
        "#EXTM3U\n#EXT-X-DEFINE:NAME=\"id\",VALUE=\"high\"\n#EXT-X-STREAM-INF:BANDWIDTH=7\nlow.m3u8\n",
    );
    directory.put(
        "film/low.m3u8",
        "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXT-X-DEFINE:IMPORT=\"id\"\n#EXTINF:3,\n{$id}-1.m4s\n#EXT-X-ENDLIST\n",
    );
    let library = scan(&directory);
    let segment = open(&library, "film/high-1.m4s");
    assert_eq!(segment.average_rate, Some(Bitrate::from_kbps(800)));
    assert_eq!(library.packaged()[0].representations[0].missing, 0);
}

#[cfg(feature = "cli")]
#[test]
fn a_main_playlist_is_read_alone_with_its_variables() {
    let directory = Media::new();
    directory.copy("fragmented.mp4", "film/high.mp4");
    directory.put(
        "film/main.m3u8",
        "#EXTM3U\n#EXT-X-DEFINE:NAME=\"id\",VALUE=\"high\"\n#EXT-X-STREAM-INF:BANDWIDTH=7\nlow.m3u8\n",
    );
    directory.put(
        "film/low.m3u8",
        "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXT-X-DEFINE:IMPORT=\"id\"\n#EXTINF:9,\n{$id}.mp4\n#EXT-X-ENDLIST\n",
    );
    let alone = Library::scan_manifest(&directory.path("film/main.m3u8")).unwrap();
    let all = scan(&directory);
    // The segments come from the file that the variable names.
    assert_eq!(alone.packaged()[0].representations[0].segments, 3);
    assert_eq!(all.packaged()[0].representations[0].segments, 3);
}

#[test]
fn a_playlist_is_read_once_for_each_set_of_variables_of_at_most_sixteen() {
    let directory = Media::new();
    let head = "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXT-X-DEFINE:IMPORT=\"id\"\n";
    directory.put(
        "film/low.m3u8",
        format!("{head}#EXTINF:3,\n{{$id}}.m4s\n#EXT-X-ENDLIST\n"),
    );
    // Two main playlists for each value of the variable.
    for main in 0..34 {
        let value = main / 2;
        directory.put(&format!("film/{value}.m4s"), [0; 1_000]);
        let list = format!(
            "#EXTM3U\n#EXT-X-DEFINE:NAME=\"id\",VALUE=\"{value}\"\n#EXT-X-STREAM-INF:BANDWIDTH=7\nlow.m3u8\n"
        );
        directory.put(&format!("film/main{main:02}.m3u8"), list);
    }
    let library = scan(&directory);
    assert_eq!(library.packaged().len(), 32);
    let faults = library.faults(FaultKind::Warning).into_iter();
    let reported: Vec<_> = faults
        .filter(|fault| fault.message.contains("in more than 16 ways"))
        .collect();
    assert_eq!(reported.len(), 2, "{reported:?}");
    for value in 0..16 {
        let segment = open(&library, &format!("film/{value}.m4s"));
        assert_eq!(
            segment.duration_of(&(0..1_000)),
            Some(Duration::from_secs(3)),
            "{value}"
        );
    }
}

/// They are read as titles, since the manifest lies in another directory.
#[rstest]
#[case::of_a_manifest(true)]
#[case::of_none(false)]
fn more_parts_than_titles_are_allowed_if_a_manifest_names_them(#[case] named: bool) {
    let count = scan::TITLES + 1;
    let directory = Media::new();
    let film = fs::read(fixture("fragmented.mp4")).unwrap();
    let first = film.windows(4).position(|name| name == b"moof").unwrap() - 4;
    for part in 0..count {
        directory.put(&format!("segments/{part}.mp4"), &film[first..]);
    }
    let template = "<SegmentTemplate media=\"../segments/$Number$.mp4\" startNumber=\"0\" duration=\"1\"/>";
    let manifest = mpd("", &format!("PT{count}S")).replace("<BaseURL></BaseURL>", template);
    directory.put("manifests/film.mpd", if named { &manifest } else { "<MPD/>" });
    if named {
        let library = scan(&directory);
        assert_eq!(library.packaged()[0].representations[0].segments, count);
        assert!(library.faults(FaultKind::Title).is_empty());
    } else {
        assert_contains(&refused(&directory).to_string(), &["1000 titles"]);
    }
}

/// While a manifest is rewritten, its parts do not become titles.
#[test]
fn parts_stay_parts_while_their_manifest_cannot_be_read() {
    let directory = Media::new();
    let film = fs::read(fixture("fragmented.mp4")).unwrap();
    let first = film.windows(4).position(|name| name == b"moof").unwrap() - 4;
    directory.put("segments/init.mp4", &film[..first]);
    directory.put("segments/1.mp4", &film[first..]);
    let template = "<SegmentTemplate initialization=\"../segments/init.mp4\" media=\"../segments/$Number$.mp4\" \
                    duration=\"10\"/>";
    let manifest = mpd("", "PT10S").replace("<BaseURL></BaseURL>", template);
    directory.put("manifests/film.mpd", manifest);
    let library = scan(&directory);
    assert_eq!(library.packaged().len(), 1);
    directory.put("manifests/film.mpd", "<MPD");
    let library = rescan(&library, now());
    assert!(library.faults(FaultKind::Title).is_empty());
}

#[test]
fn segments_of_files_named_by_variables_are_limited() {
    let directory = Media::new();
    directory.copy("fragmented.mp4", "film/high.mp4");
    let pieces = "#EXTINF:3,\n{$id}.mp4\n".repeat(200_000);
    directory.put(
        "film/main.m3u8",
        "#EXTM3U\n#EXT-X-DEFINE:NAME=\"id\",VALUE=\"high\"\n#EXT-X-STREAM-INF:BANDWIDTH=7\nlow.m3u8\n",
    );
    let head = "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXT-X-DEFINE:IMPORT=\"id\"\n";
    directory.put("film/low.m3u8", format!("{head}{pieces}#EXT-X-ENDLIST\n"));
    let library = scan(&directory);
    assert!(library.packaged().is_empty());
    let faults = library.faults(FaultKind::Manifest);
    assert!(faults[0].to_string().contains("split the title"), "{faults:?}");
}

#[test]
fn a_film_in_any_codec_is_a_title() {
    let directory = Media::new();
    directory.copy("not-h264.mov", "film.mp4");
    assert_eq!(titles(&scan(&directory)), ["film.mp4"]);
}
