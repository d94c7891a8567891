//! Manifests as packagers write them, and hostile ones. The fuzz targets `mpd` and `m3u8` read mutations of both.

use super::*;
use rstest::rstest;

/// ffmpeg's `-f dash -use_template 1 -use_timeline 1`, shortened.
const FFMPEG: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011" type="static"
	mediaPresentationDuration="PT8.5S" minBufferTime="PT6.0S">
	<Period id="0" start="PT0.0S">
		<AdaptationSet id="0" contentType="video" startWithSAP="1" segmentAlignment="true">
			<Representation id="0" mimeType="video/mp4" codecs="avc1.640028" bandwidth="4820000" width="1920" height="1080">
				<SegmentTemplate timescale="15360" initialization="init-$RepresentationID$.mp4"
					media="seg-$RepresentationID$-$Number%05d$.m4s" startNumber="1">
					<SegmentTimeline>
						<S t="0" d="46080" r="1" />
						<S d="38400" />
					</SegmentTimeline>
				</SegmentTemplate>
			</Representation>
		</AdaptationSet>
		<AdaptationSet id="1" contentType="audio">
			<Representation id="3" mimeType="audio/mp4" codecs="mp4a.40.2" bandwidth="128000">
				<SegmentTemplate timescale="48000" media="seg-$RepresentationID$-$Time$.m4s"><SegmentTimeline>
				<S t="1024" d="141312" r="-1"/></SegmentTimeline></SegmentTemplate>
			</Representation>
		</AdaptationSet>
	</Period>
</MPD>"#;

const NINE_SECONDS: &str = "mediaPresentationDuration='PT9S'";

/// An MPD with these attributes and with this content in its adaptation set.
fn set(attributes: &str, content: &str) -> String {
    format!("<MPD {attributes}><Period><AdaptationSet>{content}</AdaptationSet></Period></MPD>")
}

fn dash(name: &str, text: &str) -> Vec<ManifestRepresentation> {
    match Manifest::read(name, text.as_bytes(), &Variables::default()).unwrap() {
        Manifest::Dash(representations) => representations,
        other => panic!("{other:?}"),
    }
}

fn playlist(name: &str, text: &str) -> ManifestRepresentation {
    match Manifest::read(name, text.as_bytes(), &Variables::default()).unwrap() {
        Manifest::Media(representation) => *representation,
        other => panic!("{other:?}"),
    }
}

/// A whole media playlist with this content.
fn media(content: &str) -> String {
    format!("#EXTM3U\n#EXT-X-TARGETDURATION:3\n{content}#EXT-X-ENDLIST\n")
}

fn ranges(representation: &ManifestRepresentation) -> Vec<Range<u64>> {
    let pieces = representation.pieces.iter();
    pieces.filter_map(|piece| piece.bytes.clone()).collect()
}

fn files(representation: &ManifestRepresentation) -> Vec<&str> {
    let pieces = representation.pieces.iter();
    pieces.map(|piece| piece.file.as_deref().unwrap_or("-")).collect()
}

fn seconds(representation: &ManifestRepresentation) -> Vec<f64> {
    let pieces = representation.pieces.iter();
    pieces
        .map(|piece| piece.duration.unwrap_or_default().as_secs_f64())
        .collect()
}

/// The whole file of this name, or a part of it.
fn piece(file: &str, bytes: Option<Range<u64>>) -> Piece {
    Piece {
        file: Some(file.to_owned()),
        path: Some(format!("/{}", file.replace(' ', "%20")).into()),
        is_foreign: false,
        bytes,
        duration: None,
        hidden: Duration::ZERO,
        is_gap: false,
    }
}

#[test]
fn a_timeline_tells_every_segment_of_every_representation() {
    let found = dash("films/one/manifest.mpd", FFMPEG);
    let [video, audio] = &found[..] else {
        panic!("{found:?}")
    };
    let declared = ManifestRepresentation {
        pieces: Vec::new(),
        ..video.clone()
    };
    let expected = ManifestRepresentation {
        id: "0".to_owned(),
        component: Component::Video,
        codecs: Some("avc1.640028".to_owned()),
        resolution: Some((1920, 1080)),
        declared_rate: Some(Bitrate::from_kbps(4_820)),
        initializations: vec![(0, piece("films/one/init-0.mp4", None))],
        ..ManifestRepresentation::default()
    };
    assert_eq!(declared, expected);
    let numbers = [1, 2, 3].map(|number| format!("films/one/seg-0-0000{number}.m4s"));
    assert_eq!(files(video), numbers);
    assert_eq!(seconds(video), [3.0, 3.0, 2.5]);
    assert_eq!(audio.initializations, []);
    assert_eq!((audio.set, audio.component), (1, Component::Audio));
    // Segments of 2.944 s each, until they add up to 8.5 s.
    let times = [1_024, 142_336, 283_648].map(|time| format!("films/one/seg-3-{time}.m4s"));
    assert_eq!(files(audio), times);
}

#[test]
fn what_a_representation_lacks_its_set_and_period_give() {
    let text = r#"<MPD mediaPresentationDuration="PT1M10S"><BaseURL>media/</BaseURL><Period>
        <SegmentTemplate timescale="1000" duration="30000" startNumber="0"/>
        <AdaptationSet mimeType="video/mp4"><SegmentTemplate media="$Bandwidth$/$Number%03d$.m4s"/>
        <Representation id="a" bandwidth="500"/><Representation id="b" bandwidth="900"><BaseURL>up/</BaseURL>
        </Representation>
        </AdaptationSet></Period></MPD>"#;
    let found = dash("film.mpd", text);
    for (found, folder) in found.iter().zip(["media/500", "media/up/900"]) {
        let expected = ["000", "001", "002"].map(|number| format!("{folder}/{number}.m4s"));
        assert_eq!(files(found), expected);
    }
    assert_eq!(seconds(&found[0]), [30.0, 30.0, 10.0]);
    assert_eq!(found[0].set, found[1].set);
}

#[test]
fn a_single_file_and_a_list_of_ranges_are_pieces_too() {
    let text = r#"<MPD mediaPresentationDuration="PT10S"><Period>
        <AdaptationSet contentType="video"><Representation id="v" bandwidth="500"><BaseURL>video%201.mp4</BaseURL>
        <SegmentBase indexRange="800-1000"><Initialization range="0-799"/></SegmentBase></Representation>
        </AdaptationSet>
        <AdaptationSet contentType="audio"><Representation id="a" bandwidth="100"><BaseURL>sound.mp4</BaseURL>
        <SegmentList timescale="10" duration="50"><SegmentURL mediaRange="100-199"/>
        <SegmentURL mediaRange="200-299"/></SegmentList>
        </Representation></AdaptationSet></Period></MPD>"#;
    let found = dash("a/b.mpd", text);
    let whole = Piece {
        duration: Some(Duration::from_secs(10)),
        ..piece("a/video 1.mp4", None)
    };
    assert_eq!(found[0].pieces, [whole]);
    let initialization = piece("a/video 1.mp4", Some(0..800));
    assert_eq!(found[0].initializations, [(0, initialization)]);
    assert_eq!(found[0].index, Some(800..1_001));
    assert_eq!(files(&found[1]), ["a/sound.mp4"; 2]);
    assert_eq!(ranges(&found[1]), [100..200, 200..300]);
    assert_eq!(seconds(&found[1]), [5.0, 5.0]);
}

#[rstest]
#[case("https://cdn.example/x/", Some("x/seg-0-00001.m4s"))]
#[case("data:,", None)]
#[case("../../", Some("seg-0-00001.m4s"))]
#[case("/top/", Some("top/seg-0-00001.m4s"))]
#[case("deep?token=x", Some("a/b/seg-0-00001.m4s"))]
fn references_lead_below_the_root_of_a_server_or_nowhere(#[case] base: &str, #[case] file: Option<&str>) {
    let text = FFMPEG.replace("<Period id", &format!("<BaseURL>{base}</BaseURL><Period id"));
    let found = dash("a/b/manifest.mpd", &text);
    assert_eq!(found[0].pieces[0].file.as_deref(), file);
}

#[rstest]
#[case::absolute("../..//etc/passwd")]
#[case::encoded_slash("..%2f..%2fetc/passwd")]
#[case::encoded_dots("%2e%2e%2f%2e%2e%2fetc/passwd")]
#[case::encoded_dot("a/.%2fb")]
#[case::nul("a%00.m4s")]
fn no_reference_leads_out_of_the_media_directory(#[case] reference: &str) {
    let base = format!("<Representation><BaseURL>{reference}</BaseURL></Representation>");
    let text = set("", &base);
    assert_eq!(dash("films/film.mpd", &text)[0].pieces[0].file, None);
}

#[test]
fn queries_of_references_stay_with_them() {
    let text = FFMPEG.replace(".m4s", ".m4s?token=a%2Fb");
    let found = dash("a/manifest.mpd", &text);
    let first = &found[0].pieces[0];
    assert_eq!(first.file.as_deref(), Some("a/seg-0-00001.m4s"));
    assert!(
        first.path.as_ref().unwrap().ends_with("?token=a%2Fb"),
        "{first:?}"
    );
    assert_eq!(found[0].initializations, [(0, piece("a/init-0.mp4", None))]);
}

#[test]
fn a_long_title_with_signed_urls_is_read() {
    let query = format!("Signature={}", "s".repeat(690));
    let template = format!("<SegmentTemplate media='$RepresentationID$/$Number$.m4s?{query}' duration='2'/>");
    let content = template + &"<Representation id='v' bandwidth='1'/>".repeat(10);
    let text = set("mediaPresentationDuration='PT4H'", &content);
    let found = dash("film/manifest.mpd", &text);
    assert_eq!(found.len(), 10);
    let last = &found[9].pieces[7_199];
    assert_eq!(last.file.as_deref(), Some("film/v/7200.m4s"));
    assert!(
        last.path.as_ref().unwrap().ends_with(&format!("?{query}")),
        "{last:?}"
    );
}

#[test]
fn a_live_presentation_without_a_list_has_no_pieces() {
    let content = "<SegmentTemplate media='$Number$' duration='2'/><Representation id='a' bandwidth='5'/>";
    let text = set("type='dynamic'", content);
    assert!(dash("live.mpd", &text)[0].pieces.is_empty());
}

#[rstest]
#[case::not_xml("<MPD>\n<Period>\n</MPD>", 3, "not well-formed")]
#[case::another_root("<html/>", 1, "html, not MPD")]
#[case::nothing("<MPD/>", 1, "no Representation")]
#[case::entities("<!DOCTYPE a [<!ENTITY b \"&b;\">]>\n<MPD>&b;</MPD>", 1, "DTD")]
#[case::no_media(&set("", "\n<Representation><SegmentTemplate/></Representation>"), 2, "@media is missing")]
#[case::one_file(
    &set(NINE_SECONDS, "\n<SegmentTemplate media='a.m4s' duration='3'/><Representation/>"), 2, "all one file"
)]
#[case::endless(
    &set("", "\n<SegmentTemplate media='$Number$' duration='3'/><Representation/>"), 2, "mediaPresentationDuration"
)]
#[case::duration(
    &set("mediaPresentationDuration='9 s'", "<Representation/>"), 1, "`9 s` is not a duration"
)]
#[case::number(&set("", "\n\n<Representation bandwidth='fast'/>"), 3, "@bandwidth `fast`")]
#[case::identifier(
    &set(NINE_SECONDS, "<SegmentTemplate media='$No$' duration='3'/><Representation/>"), 1, "`$No$` is not known"
)]
#[case::dollar(
    &set(NINE_SECONDS, "<SegmentTemplate media='$Number' duration='3'/><Representation/>"), 1, "unmatched"
)]
fn a_bad_mpd_names_line_problem_and_fix(#[case] text: &str, #[case] line: usize, #[case] problem: &str) {
    refused("bad.mpd", text, line, problem);
}

/// Checks that the error names the line, the problem and the fix.
fn refused(name: &str, text: &str, line: usize, problem: &str) {
    let said = Manifest::read(name, text.as_bytes(), &Variables::default())
        .unwrap_err()
        .to_string();
    assert!(said.contains(problem), "{said}");
    let place = format!("line {line}: ");
    assert!(said.starts_with(&place) && said.contains("packager"), "{said}");
}

#[test]
fn a_few_bytes_cannot_ask_for_endless_segments() {
    for (template, timeline) in [
        (
            "",
            "<SegmentTimeline><S d='1' r='999999999999'/></SegmentTimeline>",
        ),
        ("duration='1' timescale='1000000000'", ""),
    ] {
        let template = format!("<SegmentTemplate media='$Number$' {template}>{timeline}</SegmentTemplate>");
        let text = set(
            "mediaPresentationDuration='P9D'",
            &(template + "<Representation/>"),
        );
        let error = Manifest::read("bad.mpd", text.as_bytes(), &Variables::default()).unwrap_err();
        assert!(
            matches!(error, MediaError::ManifestTooLarge { what: "segments", .. }),
            "{error}"
        );
    }
}

#[rstest]
#[case(
    "bad.m3u8",
    "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:10000000000000000000,\na.ts\n#EXTINF:10000000000000000000,\n\
    b.ts\n#EXT-X-ENDLIST\n"
)]
#[case("bad.mpd", &set("mediaPresentationDuration='P99999999D'", "<Representation/>"))]
fn times_whose_sum_overflows_are_refused(#[case] name: &str, #[case] text: &str) {
    assert!(Manifest::read(name, text.as_bytes(), &Variables::default()).is_err());
}

const MAIN: &str = "#EXTM3U\n#EXT-X-VERSION:6\n\
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"audio_1\",DEFAULT=YES,URI=\"sound/media_3.m3u8\"\n\
#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID=\"t\",NAME=\"English\",URI=\"text.m3u8\"\n\
#EXT-X-STREAM-INF:BANDWIDTH=5302000,AVERAGE-BANDWIDTH=4820000,RESOLUTION=1920x1080,CODECS=\"avc1.640028,mp4a.40.2\",\
AUDIO=\"a\"\nmedia_0.m3u8\n\n\
#EXT-X-STREAM-INF:BANDWIDTH=440000,RESOLUTION=848x480,CODECS=\"avc1.64001f\"\nmedia_2.m3u8\n";

/// A main playlist whose stream has these attributes, with the lines after them.
fn main(stream: &str) -> String {
    format!("#EXTM3U\n#EXT-X-STREAM-INF:{stream}")
}

#[test]
fn a_main_playlist_names_its_streams_their_sound_and_captions() {
    let Manifest::Main(found) =
        Manifest::read("f/master.m3u8", MAIN.as_bytes(), &Variables::default()).unwrap()
    else {
        panic!()
    };
    let said = found.iter().map(|variant| {
        let declared = &variant.representation;
        (
            variant.playlist.file.as_deref(),
            declared.set,
            declared.declared_rate,
            declared.component,
        )
    });
    let rate = |kbps| Some(Bitrate::from_kbps(kbps));
    let expected = [
        (Some("f/media_0.m3u8"), 0, rate(4_820), Component::Video),
        (Some("f/media_2.m3u8"), 0, rate(440), Component::Video),
        (Some("f/sound/media_3.m3u8"), 1, None, Component::Audio),
        (Some("f/text.m3u8"), 2, None, Component::Text),
    ];
    assert_eq!(said.collect::<Vec<_>>(), expected);
}

#[test]
fn renditions_of_a_group_are_a_set_and_those_without_a_playlist_are_none() {
    let media = |group: &str, uri: &str| {
        format!("#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"{group}\",NAME=\"n\",URI=\"{uri}\"\n")
    };
    let media = [("a", "1"), ("b", "2"), ("b", ""), ("a", "3")].map(|(group, uri)| media(group, uri));
    let text = main(&format!("BANDWIDTH=1\nv\n{}", media.concat()));
    let Manifest::Main(found) = Manifest::read("main.m3u8", text.as_bytes(), &Variables::default()).unwrap()
    else {
        panic!()
    };
    let sets = found
        .iter()
        .map(|it| (it.playlist.file.as_deref(), it.representation.set));
    assert!(sets.eq([(Some("v"), 0), (Some("1"), 1), (Some("2"), 2), (Some("3"), 1)]));
}

#[rstest]
#[case::nothing("4.5")]
#[case::a_title("4.5,Title, with commas, 3")]
#[case::a_title_without_a_comma("4.5 title")]
#[case::spaces(" 4.5 ,")]
fn a_segment_has_its_duration_whatever_stands_behind_it(#[case] text: &str) {
    let text = media(&format!("#EXTINF:{text}\na.ts\n"));
    assert_eq!(seconds(&playlist("m.m3u8", &text)), [4.5]);
}

#[test]
fn a_media_playlist_tells_every_segment() {
    let text = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:3\n#EXT-X-MAP:URI=\"init-0.mp4\"\n\
        #EXTINF:3.000000,\nseg-0-00001.m4s\n#EXTINF:2.500000,\nseg-0-00002.m4s\n#EXT-X-ENDLIST\n";
    let found = playlist("f/media_0.m3u8", text);
    assert_eq!(files(&found), ["f/seg-0-00001.m4s", "f/seg-0-00002.m4s"]);
    assert_eq!(seconds(&found), [3.0, 2.5]);
    assert_eq!(found.id, "media_0.m3u8");
}

#[test]
fn ranges_without_an_offset_follow_each_other() {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXT-X-MAP:URI=\"all.mp4\",BYTERANGE=\"50@0\"\n\
        #EXTINF:3,\n#EXT-X-BYTERANGE:100@50\nall.mp4\n#EXTINF:3,\n#EXT-X-BYTERANGE:60\nall.mp4\n#EXT-X-ENDLIST\n";
    let found = playlist("m.m3u8", text);
    assert_eq!(ranges(&found), [50..150, 150..210]);
    assert_eq!(found.initializations, [(0, piece("all.mp4", Some(0..50)))]);
    assert!(!found.live);
}

#[rstest]
#[case::text("hello", 1, "#EXTM3U")]
#[case::no_duration(&media("#EXTINF:3,\na.ts\nb.ts\n"), 5, "b.ts")]
#[case::bad_duration(&media("#EXTINF:long,\na.ts\n"), 4, "a.ts")]
#[case::empty(&media(""), 1, "no segments")]
#[case::no_offset(&media("#EXTINF:3,\n#EXT-X-BYTERANGE:5\na.ts\n"), 5, "no offset")]
#[case::bad_range(&media("#EXTINF:3,\n#EXT-X-BYTERANGE:5@x\na.ts\n"), 4, "BYTERANGE `x` is not a number")]
#[case::no_uri(&main("BANDWIDTH=1\n"), 2, "without its playlist")]
#[case::two_streams_one_uri(&main("BANDWIDTH=1\n#EXT-X-STREAM-INF:BANDWIDTH=2\na\n"), 2, "without its playlist")]
#[case::bad_rate(&main("BANDWIDTH=fast\na.m3u8\n"), 2, "BANDWIDTH `fast` is not a number")]
#[case::no_rate(&main("RESOLUTION=16x9\na.m3u8\n"), 2, "no BANDWIDTH")]
#[case::no_tags("#EXTM3U\n# a comment\n", 1, "neither segments")]
#[case::lines_that_end_with_cr(
    "#EXTM3U\r#EXT-X-TARGETDURATION:3\r#EXTINF:3,\ra.ts\r#EXT-X-ENDLIST\r",
    1,
    "neither segments"
)]
#[case::no_tag_but_a_file("#EXTM3U\na.ts\n", 2, "`a.ts` needs an #EXTINF")]
#[case::empty_map_uri("#EXTM3U\n#EXTINF:3,\n#EXT-X-MAP:URI=\"\"\na.ts\n", 3, "no URI")]
#[case::bad_map("#EXTM3U\n#EXTINF:3,\n#EXT-X-MAP:FILE=\"a\"\na.ts\n", 3, "no URI")]
fn a_bad_playlist_names_line_problem_and_fix(#[case] text: &str, #[case] line: usize, #[case] problem: &str) {
    refused("bad.m3u8", text, line, problem);
}

#[test]
fn an_error_names_the_file_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bad.mpd");
    std::fs::write(&path, "<MPD/>").unwrap();
    let said = Manifest::open(&path, "bad.mpd", &Variables::default())
        .unwrap_err()
        .to_string();
    assert_eq!(said.matches("bad.mpd").count(), 1, "{said}");
}

#[test]
fn files_of_a_manifest_are_its_playlists_its_initialisation_segments_and_its_media() {
    let files = |name: &str, text: &str| -> Vec<String> {
        let manifest = Manifest::read(name, text.as_bytes(), &Variables::default()).unwrap();
        manifest.files().map(str::to_owned).collect()
    };
    let main = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=100000\nlow.m3u8\n";
    assert_eq!(files("a/main.m3u8", main), ["a/low.m3u8"]);
    let low = "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXT-X-MAP:URI=\"init.mp4\"\n#EXTINF:9,\none.m4s\n#EXT-X-ENDLIST\n";
    assert_eq!(files("a/low.m3u8", low), ["a/init.mp4", "a/one.m4s"]);
}
