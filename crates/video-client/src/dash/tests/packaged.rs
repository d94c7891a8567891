//! Conversion of manifests, as packagers write them, to presentations.

use std::time::Duration;

use playrate_media::manifest::{Manifest, ManifestRepresentation as Said, Variables};
use playrate_units::Bitrate;
use rstest::rstest;

use super::super::packaged::{choose, needs_index, presentation};
use super::super::presentation::Presentation;
use crate::error::TitleError;

fn mpd(sets: &str) -> Vec<Said> {
    let text = format!("<MPD mediaPresentationDuration=\"PT7S\"><Period>{sets}</Period></MPD>");
    said("films/a b/film.mpd", &text)
}

fn said(name: &str, text: &str) -> Vec<Said> {
    match Manifest::read(name, text.as_bytes(), &Variables::default()).unwrap() {
        Manifest::Dash(all) => all,
        Manifest::Media(one) => vec![*one],
        other => panic!("{other:?}"),
    }
}

fn set(kind: &str, representations: &str) -> String {
    format!(
        "<AdaptationSet mimeType=\"{kind}/mp4\"><SegmentTemplate media=\"$RepresentationID$/$Number$.m4s\" \
         initialization=\"$RepresentationID$/init.mp4\" duration=\"3\"/>{representations}</AdaptationSet>"
    )
}

const LADDER: &str = "<Representation id=\"high\" codecs=\"avc1.64001f\" bandwidth=\"900000\"/>\
    <Representation id=\"low\" codecs=\"avc3.42c01e\" bandwidth=\"100000\"/>";

fn read(all: Vec<Said>) -> Result<(Presentation, Vec<String>), TitleError> {
    let (all, notes) = choose(all)?;
    for one in &all {
        needs_index(one)?;
    }
    Ok((presentation(all)?, notes))
}

#[test]
fn the_first_set_of_h264_is_played_and_the_rest_is_said_to_be_left_out() {
    let hevc = set(
        "video",
        "<Representation id=\"hevc\" codecs=\"hvc1.1\" bandwidth=\"500000\"/>",
    );
    let sound = set(
        "audio",
        "<Representation id=\"en\" codecs=\"mp4a.40.2\" bandwidth=\"64000\"/>\
         <Representation id=\"de\" codecs=\"mp4a.40.2\" bandwidth=\"64000\"/>",
    );
    let all = mpd(&format!("{sound}{hevc}{}", set("video", LADDER)));
    let (film, notes) = read(all).unwrap();
    let all = film.representations().iter();
    let names: Vec<_> = all.map(|it| (&*it.name, it.rate)).collect();
    let expected = [("low", 100), ("high", 900)];
    assert_eq!(
        names,
        expected.map(|(name, kbps)| (name, Bitrate::from_kbps(kbps)))
    );
    assert_eq!(film.duration(), Duration::from_secs(7));
    assert_eq!(film.segment(1, 2).unwrap().path, "/films/a%20b/high/3.m4s");
    let (_, initialization) = &film.representations()[0].initializations[0];
    assert_eq!(initialization.path, "/films/a%20b/low/init.mp4");
    assert_eq!(
        notes,
        [
            "not fetched: 2 representations of sound (mp4a.40.2)",
            "not fetched: 1 representation of video (hvc1.1)"
        ]
    );
}

#[rstest]
#[case::main_after_others(["alternate", "", "main"], "2")]
#[case::main_first(["main", "commentary", ""], "0")]
#[case::none_before_others(["commentary", "sign", ""], "2")]
#[case::only_others(["alternate", "commentary", "sign"], "0")]
#[case::no_roles(["", "", ""], "0")]
fn a_set_in_the_main_role_is_preferred(#[case] roles: [&str; 3], #[case] played: &str) {
    let sets = (0..).zip(roles).map(|(name, role)| {
        let role = match role {
            "" => String::new(),
            role => format!("<Role schemeIdUri=\"urn:mpeg:dash:role:2011\" value=\"{role}\"/>"),
        };
        let one = format!("<Representation id=\"{name}\" codecs=\"avc1.64001f\" bandwidth=\"1\"/>");
        set("video", &(role + &one))
    });
    let (film, notes) = read(mpd(&sets.collect::<String>())).unwrap();
    assert_eq!(film.representations()[0].name, played);
    assert_eq!(notes, ["not fetched: 2 representations of video (avc1.64001f)"]);
}

const TEMPLATE: &str = "<SegmentTemplate initialization=\"i\" media=\"$Number$\" duration=\"3\"/>";

/// A set of one representation with this content.
fn one(content: &str) -> String {
    format!(
        "<AdaptationSet><Representation id=\"v\" bandwidth=\"1\">{content}</Representation></AdaptationSet>"
    )
}

/// A period of 3 s with one representation.
fn period() -> String {
    format!("<Period duration=\"PT3S\">{}</Period>", one(TEMPLATE))
}

const REPRESENTATION: &str = "<Representation id=\"r\" bandwidth=\"1\"><SegmentTemplate initialization=\"i\" \
    media=\"$Number$\" duration=\"3\"/></Representation>";

/// The player decodes nothing, so it plays any codec; it prefers H.264, and sound is played if there is no video.
#[rstest]
#[case::another_codec(&[("video", "hvc1.1")], "hvc1.1")]
#[case::two_codecs(&[("video", "hvc1.1"), ("video", "avc1.64001f")], "avc1.64001f")]
#[case::other_codecs(&[("video", "av01.0"), ("video", "hvc1.1")], "av01.0")]
#[case::video_after_sound(&[("audio", "mp4a.40.2"), ("video", "vp09.00")], "vp09.00")]
#[case::sound_only(&[("text", "wvtt"), ("audio", "opus")], "opus")]
fn the_preferred_media_is_played(#[case] sets: &[(&str, &str)], #[case] played: &str) {
    let one = |(kind, codecs): &(&str, &str)| {
        let codecs = format!("id=\"{codecs}\" codecs=\"{codecs}\"");
        set(kind, &REPRESENTATION.replace("id=\"r\"", &codecs))
    };
    let (film, _) = read(mpd(&sets.iter().map(one).collect::<String>())).unwrap();
    let names: Vec<_> = film.representations().iter().map(|it| &*it.name).collect();
    assert_eq!(names, [played]);
}

/// As in titles of MPEG-TS segments.
#[test]
fn segments_without_an_initialisation_segment_are_played() {
    let (film, _) = read(mpd(&one(&TEMPLATE.replace("initialization=\"i\"", "")))).unwrap();
    assert_eq!(film.representations()[0].initializations, []);
    assert_eq!(film.duration(), Duration::from_secs(7));
}

#[rstest]
#[case::live(said("a.mpd", &format!("<MPD type=\"dynamic\">{}</MPD>", period())), "it is live")]
#[case::no_index(
    mpd(&one("<BaseURL>v.mp4</BaseURL><SegmentBase><Initialization range=\"0-9\"/></SegmentBase>")),
    "SegmentBase@indexRange"
)]
#[case::no_initialization(
    mpd(&one("<BaseURL>v.mp4</BaseURL><SegmentBase indexRange=\"0-99\"/>")),
    "no Initialization"
)]
#[case::elsewhere(mpd(&one(&format!("<BaseURL>https://cdn.example/</BaseURL>{TEMPLATE}"))), "on another host")]
#[case::subtitles_only(
    mpd(
        "<AdaptationSet contentType=\"text\"><Representation id=\"t\" codecs=\"wvtt\" bandwidth=\"1\"/></AdaptationSet>"
    ),
    "neither video nor sound, only other data (wvtt)"
)]
#[case::no_segments(
    mpd(&one(&TEMPLATE.replace("duration=", "eptDelta=\"9\" duration="))),
    "no segment of `v` lies in its period"
)]
#[case::encrypted(
    mpd(&one(&format!("<ContentProtection schemeIdUri=\"urn:cenc\"/>{TEMPLATE}"))), "`v` is encrypted (urn:cenc)"
)]
#[case::encrypted_video_with_clear_sound(
    mpd(&format!(
        "{}{}",
        set("video", &format!("<ContentProtection schemeIdUri=\"urn:cenc\"/>{REPRESENTATION}")),
        set("audio", REPRESENTATION)
    )),
    "is encrypted (urn:cenc)"
)]
#[case::no_rate(mpd(&one(TEMPLATE).replace(" bandwidth=\"1\"", "")), "with @bandwidth")]
fn what_is_not_played_is_refused_with_a_fix(#[case] all: Vec<Said>, #[case] words: &str) {
    let error = read(all).unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
}

#[test]
fn a_playlist_still_being_written_is_live_and_ranges_tell_the_rate() {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXT-X-MAP:URI=\"v.mp4\",BYTERANGE=\"50@0\"\n#EXTINF:3,\n\
        #EXT-X-BYTERANGE:300000@50\nv.mp4\n#EXTINF:1,\n#EXT-X-BYTERANGE:100000\nv.mp4\n";
    assert_eq!(read(said("v.m3u8", text)), Err(TitleError::Live));
    let (film, _) = read(said("v.m3u8", &format!("{text}#EXT-X-ENDLIST\n"))).unwrap();
    assert_eq!(film.representations()[0].rate, Bitrate::from_kbps(800));
    let (_, initialization) = &film.representations()[0].initializations[0];
    assert_eq!(initialization.bytes, Some(0..50));
    assert_eq!(film.segment(0, 1).unwrap().bytes, Some(300_050..400_050));
}

#[test]
fn playlists_of_one_name_are_told_apart_by_their_directories() {
    let text =
        "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXT-X-MAP:URI=\"i.mp4\"\n#EXTINF:3,\n1.m4s\n#EXT-X-ENDLIST\n";
    let all = [("film/720p/index.m3u8", 900), ("film/480p/index.m3u8", 400)].map(|(name, kbps)| {
        let mut all = said(name, text);
        all[0].declared_rate = Some(Bitrate::from_kbps(kbps));
        all
    });
    let (film, _) = read(all.concat()).unwrap();
    let names: Vec<_> = film.representations().iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["film/480p/index.m3u8", "film/720p/index.m3u8"]);
}

#[test]
fn cuts_that_differ_by_rounding_are_one_and_others_are_refused() {
    let list = |id: &str, rate: u32, ticks: &str| {
        format!(
            "<Representation id=\"{id}\" bandwidth=\"{rate}\">\
             <SegmentTemplate timescale=\"1000\" initialization=\"{id}\" \
             media=\"{id}$Number$\"><SegmentTimeline>{ticks}</SegmentTimeline></SegmentTemplate></Representation>"
        )
    };
    let both = |ticks: &str| {
        let one = list("one", 1_000, "<S d=\"3000\" r=\"1\"/>");
        let two = list("two", 2_000, ticks);
        read(mpd(&format!(
            "<AdaptationSet contentType=\"video\">{one}{two}</AdaptationSet>"
        )))
    };
    let (film, _) = both("<S d=\"3001\"/><S d=\"2999\"/>").unwrap();
    assert_eq!(film.segment(1, 0).unwrap().duration, Duration::from_secs(3));
    let error = both("<S d=\"4000\"/><S d=\"2000\"/>").unwrap_err().to_string();
    assert!(error.contains("begin at different times"), "{error}");
}

#[test]
fn what_references_carry_behind_their_paths_is_asked_for_too() {
    let text = "<AdaptationSet contentType=\"video\"><SegmentTemplate media=\"$Number$.m4s?token=a%26b\" \
        initialization=\"init.mp4?token=c\" duration=\"3\"/><Representation id=\"v\" bandwidth=\"900000\"/>\
         </AdaptationSet>";
    let (film, _) = read(mpd(text)).unwrap();
    assert_eq!(film.segment(0, 1).unwrap().path, "/films/a%20b/2.m4s?token=a%26b");
    let (_, initialization) = &film.representations()[0].initializations[0];
    assert_eq!(initialization.path, "/films/a%20b/init.mp4?token=c");
}

#[rstest]
#[case::many_segments("", 3_000)]
#[case::a_long_name("?PADDING", 3)]
fn copies_for_each_representation_are_bounded(#[case] query: &str, #[case] seconds: u32) {
    let query = query.replace("PADDING", &"p".repeat(200_000));
    let template = TEMPLATE.replace("$Number$", &format!("$Number${query}"));
    let one = |rate: usize| format!("<Representation id=\"{rate}\" bandwidth=\"{rate}\"/>");
    let period = |seconds: u32, template: &str, representations: &str| {
        let set = format!("<AdaptationSet>{template}{representations}</AdaptationSet>");
        format!("<Period duration=\"PT{seconds}S\">{set}</Period>")
    };
    // The longest period has one segment in each of many representations.
    let longest = TEMPLATE.replace("duration=\"3\"", "duration=\"9999\"");
    let many: String = (1..1_500).map(one).collect();
    let text = period(seconds, &template, &one(1)) + &period(9_999, &longest, &many);
    let error = read(said("a.mpd", &format!("<MPD>{text}</MPD>")))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("segments, repeated for each representation"),
        "{error}"
    );
}

#[test]
fn a_set_that_cannot_be_fetched_gives_way_to_the_next() {
    let encrypted = "<ContentProtection schemeIdUri=\"urn:cenc\"/>";
    let trick = "<EssentialProperty schemeIdUri=\"http://dashif.org/guidelines/trickmode\"/>";
    let elsewhere = "<BaseURL>https://cdn.example/</BaseURL>";
    for others in [encrypted, trick, elsewhere] {
        let first = one(TEMPLATE).replace("<Representation", &format!("{others}<Representation"));
        let (film, notes) = read(mpd(&(first + &set("video", LADDER)))).unwrap();
        assert_eq!((film.representations().len(), notes.len()), (2, 1), "{others}");
    }
}

#[test]
fn a_period_with_fewer_representations_plays_the_nearest_below() {
    let period = |seconds: u32, representations: &str| {
        let set = set("video", representations);
        format!("<Period duration=\"PT{seconds}S\">{set}</Period>")
    };
    let advert = "<Representation id=\"ad\" bandwidth=\"500000\"/>";
    let text = [period(3, advert), period(6, LADDER), period(4, advert)].concat();
    let (film, _) = read(said("a.mpd", &format!("<MPD>{text}</MPD>"))).unwrap();
    assert_eq!(film.duration(), Duration::from_secs(13));
    for (number, main) in ["low", "high"].into_iter().enumerate() {
        let one = &film.representations()[number];
        assert_eq!(one.name, main);
        let main = |segment| format!("/{main}/{segment}.m4s");
        let paths: Vec<_> = one.segments.iter().map(|segment| segment.path.clone()).collect();
        assert_eq!(paths, ["/ad/1.m4s", &main(1), &main(2), "/ad/1.m4s", "/ad/2.m4s"]);
        let firsts: Vec<_> = one.initializations.iter().map(|(first, _)| *first).collect();
        assert_eq!(firsts, [0, 1, 3]);
    }
}
