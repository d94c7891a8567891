//! Parts of manifests that decide which segments exist, as tables: each is honoured or ends in an error that names it.
//! The texts are ISO/IEC 23009-1:2022, RFC 8216 and RFC 8216bis.

use super::*;
use rstest::rstest;

/// The representations of an MPD with these attributes and this content.
fn dash(attributes: &str, content: &str) -> Result<Vec<ManifestRepresentation>, String> {
    let text = format!("<MPD xmlns:xlink='http://www.w3.org/1999/xlink' {attributes}>{content}</MPD>");
    let url = Url::parse("https://films.example:4433/f/m.mpd?token=1").unwrap();
    match Manifest::read_at(&url, text.as_bytes(), &Variables::default()) {
        Ok(Manifest::Dash(all)) => Ok(all),
        other => Err(other.unwrap_err().to_string()),
    }
}

/// A period with these attributes and one representation with this content.
fn period(attributes: &str, content: &str) -> String {
    format!(
        "<Period {attributes}><AdaptationSet><Representation id='v'>{content}</Representation></AdaptationSet>\
         </Period>"
    )
}

/// A template of 2 s segments with these attributes and this content; the timescale is 10 per second.
fn template(attributes: &str, content: &str) -> String {
    format!(
        "<SegmentTemplate timescale='10' media='$Number$-$Time$' {attributes}>{content}</SegmentTemplate>"
    )
}

/// Name and playing time in seconds of each piece.
fn pieces(representation: &ManifestRepresentation) -> String {
    let pieces = representation.pieces.iter().map(|piece| {
        let file = piece.file.as_deref().unwrap_or_default();
        let seconds = piece.duration.unwrap_or_default().as_secs_f64();
        let gap = if piece.is_gap { " gap" } else { "" };
        format!("{}:{seconds}{gap}", file.trim_start_matches("f/"))
    });
    pieces.collect::<Vec<_>>().join(" ")
}

const LINE: &str = "<SegmentTimeline><S t='0' d='20' r='3'/></SegmentTimeline>";

#[rstest]
// §5.3.2.1: the period ends what it contains.
#[case::timeline_past_the_period("PT5S", "", LINE, "1-0:2 2-20:2 3-40:1")]
#[case::timeline_shorter_than_the_period("PT50S", "", LINE, "1-0:2 2-20:2 3-40:2 4-60:2")]
#[case::duration_with_a_rest("PT5S", "duration='20'", "", "1-0:2 2-20:2 3-40:1")]
#[case::a_fraction_of_a_tick("PT4.05S", "duration='20'", "", "1-0:2 2-20:2 3-40:0.05")]
#[case::no_fraction("PT4S", "duration='20'", "", "1-0:2 2-20:2")]
// §5.3.9.2: @endNumber and @startNumber.
#[case::end_number("PT9S", "duration='20' endNumber='3'", "", "1-0:2 2-20:2 3-40:2")]
#[case::end_number_of_a_timeline("PT9S", "startNumber='7' endNumber='8'", LINE, "7-0:2 8-20:2")]
#[case::start_number_zero("PT3S", "duration='20' startNumber='0'", "", "0-0:2 1-20:1")]
#[case::start_number_and_offset(
    "PT3S",
    "duration='20' startNumber='5' presentationTimeOffset='1000'",
    "",
    "5-1000:2 6-1020:1"
)]
// §5.3.9.6: S@n, S@t, S@r.
#[case::numbers_of_entries(
    "PT9S",
    "",
    "<SegmentTimeline><S n='4' d='20' r='1'/><S d='20'/><S n='9' d='20'/></SegmentTimeline>",
    "4-0:2 5-20:2 6-40:2 9-60:2"
)]
#[case::repeats_up_to_the_period(
    "PT5S",
    "",
    "<SegmentTimeline><S d='20' r='-1'/></SegmentTimeline>",
    "1-0:2 2-20:2 3-40:1"
)]
#[case::repeats_up_to_the_next_entry(
    "PT9S",
    "",
    "<SegmentTimeline><S d='20' r='-1'/><S t='50' d='10'/></SegmentTimeline>",
    "1-0:2 2-20:2 3-40:2 4-50:1"
)]
#[case::a_gap_between_entries(
    "PT9S",
    "",
    "<SegmentTimeline><S t='0' d='20'/><S t='60' d='20'/></SegmentTimeline>",
    "1-0:2 2-60:2"
)]
#[case::repeats_from_before_the_offset(
    "PT5S",
    "presentationTimeOffset='30' startNumber='2'",
    "<SegmentTimeline><S t='20' d='20' r='-1'/></SegmentTimeline>",
    "2-20:1 3-40:2 4-60:2"
)]
#[case::segments_before_the_offset("PT2S", "presentationTimeOffset='40'", LINE, "3-40:2")]
#[case::a_long_recording_before_the_offset(
    "PT2S",
    "presentationTimeOffset='20000000000'",
    "<SegmentTimeline><S t='0' d='20' r='2000000000'/></SegmentTimeline>",
    "1000000001-20000000000:2"
)]
// §5.3.9.2.2: differences between the representation and its period.
#[case::earliest_time_before_the_period(
    "PT4S",
    "duration='20' presentationTimeOffset='100' eptDelta='-5'",
    "",
    "1-95:1.5 2-115:2 3-135:0.5"
)]
#[case::earliest_time_within_the_period("PT4S", "duration='20' eptDelta='5'", "", "1-5:2 2-25:1.5")]
#[case::shorter_than_the_period("PT9S", "duration='20' pdDelta='-50'", "", "1-0:2 2-20:2")]
fn a_template_has_the_segments_that_its_period_plays(
    #[case] length: &str,
    #[case] attributes: &str,
    #[case] timeline: &str,
    #[case] expected: &str,
) {
    let content = period("", &template(attributes, timeline));
    let found = dash(&format!("mediaPresentationDuration='{length}'"), &content).unwrap();
    assert_eq!(pieces(&found[0]), expected);
}

#[rstest]
#[case::far_from_zero("", "<S t='36000' d='20' r='2'/>", "1-36000:2 2-36020:2 3-36040:1", 1)]
#[case::far_and_endless("", "<S t='36000' d='20' r='-1'/>", "1-36000:2 2-36020:2 3-36040:1", 1)]
#[case::far_with_a_gap("", "<S t='50' d='20'/><S t='90' d='20'/>", "1-50:2 2-90:1", 1)]
#[case::within_the_period("", "<S t='20' d='20' r='-1'/>", "1-20:2 2-40:1", 0)]
#[case::a_declared_offset("presentationTimeOffset='0'", "<S t='36000' d='20' r='2'/>", "", 0)]
#[case::an_offset_behind_it("presentationTimeOffset='99999'", "<S t='36000' d='20' r='2'/>", "", 0)]
#[case::zero_and_far("", "<S t='0' d='20'/><S t='36000' d='20'/>", "1-0:2", 0)]
#[case::no_time("startNumber='4'", "<S d='20' r='9'/>", "4-0:2 5-20:2 6-40:1", 0)]
fn players_begin_with_the_first_segment_of_a_timeline_without_an_offset(
    #[case] attributes: &str,
    #[case] entries: &str,
    #[case] expected: &str,
    #[case] warnings: usize,
) {
    let timeline = format!("<SegmentTimeline>{entries}</SegmentTimeline>");
    let content = period("", &template(attributes, &timeline));
    let found = dash("mediaPresentationDuration='PT5S'", &content).unwrap();
    assert_eq!(pieces(&found[0]), expected);
    assert_eq!(found[0].warnings.len(), warnings, "{:?}", found[0].warnings);
    let live = dash("mediaPresentationDuration='PT5S' type='dynamic'", &content).unwrap();
    assert_eq!(live[0].pieces.is_empty(), expected.is_empty() || warnings > 0);
}

#[rstest]
// §5.8.5.5: what a role says of its set.
#[case::none("", None)]
#[case::main("<Role schemeIdUri='urn:mpeg:dash:role:2011' value='main'/>", Some(true))]
#[case::alternate(
    "<Role schemeIdUri='urn:mpeg:dash:role:2011' value='alternate'/>",
    Some(false)
)]
#[case::no_value("<Role schemeIdUri='urn:mpeg:dash:role:2011'/>", Some(false))]
#[case::another_scheme("<Role schemeIdUri='urn:tva' value='1'/>", None)]
#[case::several(
    "<Role schemeIdUri='urn:mpeg:dash:role:2011' value='main'/>\
     <Role schemeIdUri='urn:mpeg:dash:role:2011' value='caption'/>",
    Some(true)
)]
fn a_set_is_main_if_one_of_its_roles_is(#[case] roles: &str, #[case] expected: Option<bool>) {
    let content = period("", "").replace("<Representation", &format!("{roles}<Representation"));
    assert_eq!(dash("", &content).unwrap()[0].is_main, expected);
}

#[rstest]
#[case::the_last_fills_the_rest("PT5S", "duration='20'", "", "a:2 b:2 c:1")]
#[case::the_last_is_no_longer_than_the_others("PT9S", "duration='20'", "", "a:2 b:2 c:2")]
#[case::past_the_period("PT4S", "duration='20'", "", "a:2 b:2")]
#[case::end_number("PT9S", "duration='20' startNumber='4' endNumber='5'", "", "a:2 b:2")]
#[case::before_the_offset("PT9S", "presentationTimeOffset='20'", LINE, "b:2 c:2")]
#[case::a_timeline("PT5S", "", LINE, "a:2 b:2 c:1")]
fn a_list_has_the_segments_that_its_period_plays(
    #[case] length: &str,
    #[case] attributes: &str,
    #[case] timeline: &str,
    #[case] expected: &str,
) {
    let urls = ["a", "b", "c"]
        .map(|name| format!("<SegmentURL media='{name}'/>"))
        .concat();
    let list = |attributes: &str, content: &str| {
        format!("<SegmentList timescale='10' {attributes}>{content}</SegmentList>")
    };
    let length = format!("mediaPresentationDuration='{length}'");
    let found = dash(
        &length,
        &period("", &list(attributes, &(timeline.to_owned() + &urls))),
    )
    .unwrap();
    assert_eq!(pieces(&found[0]), expected);
    // What the representation's list lacks, the period's gives.
    let inner = list(attributes, timeline);
    let outer = period("", &inner).replace("<AdaptationSet>", &(list("", &urls) + "<AdaptationSet>"));
    assert_eq!(pieces(&dash(&length, &outer).unwrap()[0]), expected);
}

#[test]
fn a_period_of_no_length_has_no_segments_wherever_its_timeline_starts() {
    let timeline = "<SegmentTimeline><S t='36000' d='20'/></SegmentTimeline>";
    let content = period("duration='PT0S'", &template("", timeline));
    let found = dash("", &content).unwrap();
    assert_eq!((pieces(&found[0]).as_str(), found[0].warnings.len()), ("", 0));
}

#[test]
fn the_innermost_element_decides_how_segments_are_located() {
    let content = period("", "<SegmentBase indexRange='5-9'/>").replace(
        "<Representation",
        &(template("duration='20'", "") + "<Representation"),
    );
    let found = dash("mediaPresentationDuration='PT4S'", &content).unwrap();
    assert_eq!((found[0].pieces.len(), found[0].index.clone()), (1, Some(5..10)));
}

#[rstest]
// §5.3.2.1: the start of a period, or else the end of the previous one.
#[case::declared("start='PT0S'", "start='PT4S'", [2, 2])]
#[case::derived("duration='PT4S'", "", [2, 2])]
#[case::derived_from_a_late_start("start='PT2S' duration='PT4S'", "", [2, 1])]
#[case::until_the_next_start("duration='PT9S'", "start='PT2S'", [1, 3])]
#[case::no_length("start='PT0S' duration='PT0S'", "", [0, 4])]
fn a_period_lasts_until_the_next(#[case] first: &str, #[case] second: &str, #[case] expected: [usize; 2]) {
    let content = [first, second].map(|attributes| period(attributes, &template("duration='20'", "")));
    let found = dash("mediaPresentationDuration='PT8S'", &content.concat()).unwrap();
    assert_eq!([0, 1].map(|at: usize| found[at].pieces.len()), expected);
    assert_eq!([0, 1].map(|at: usize| found[at].period), [0, 1]);
}

#[rstest]
#[case("P0Y0M0DT0H0M8.000S", 8_000)]
#[case("P0DT0H0M8S", 8_000)]
#[case("PT8S", 8_000)]
#[case("PT0H0.5M", 30_000)]
#[case("P1DT1S", 86_401_000)]
#[case("P1M", 2_592_000_000)]
#[case("P1Y", 31_536_000_000)]
#[case(" -PT0S ", 0)]
fn a_duration_may_have_all_units_of_xml_schema(#[case] text: &str, #[case] millis: u64) {
    assert_eq!(values::duration(text), Some(Duration::from_millis(millis)));
}

#[rstest]
#[case("-PT1S")]
#[case("P2Y")]
#[case("PT1S1M")]
#[case("P1S")]
#[case("PT-1S")]
#[case("8S")]
fn a_duration_that_is_none_is_refused(#[case] text: &str) {
    let said = dash(&format!("mediaPresentationDuration='{text}'"), "").unwrap_err();
    assert!(said.contains(&format!("`{text}` is not a duration")), "{said}");
}

#[rstest]
#[case::remote_period("<Period xlink:href='p.xml'/>", "xlink:href `p.xml`")]
#[case::remote_list(&period("", "<SegmentList xlink:href='l.xml'/>"), "xlink:href `l.xml`")]
#[case::another_mpd("<Period><ImportedMPD>a.mpd</ImportedMPD></Period>", "ImportedMPD")]
#[case::sequences(&period("", &template("", "<SegmentTimeline><S d='9' k='3'/></SegmentTimeline>")), "S@k")]
#[case::pattern(&period("", &template("", "<SegmentTimeline><Pattern/></SegmentTimeline>")), "Pattern")]
#[case::sub_number(&period("", &template("", "").replace("$Time$", "$SubNumber$")), "$SubNumber$")]
#[case::part_of_a_base(&period("", "<BaseURL byteRange='1-2'>a</BaseURL>"), "BaseURL@byteRange")]
#[case::failover(&period("", &template("", "<FailoverContent/>")), "FailoverContent")]
#[case::endless(&period("", &template("", "<SegmentTimeline><S d='9' r='-1'/></SegmentTimeline>")), "@r=\"-1\"")]
#[case::negative_offset(&period("", &template("presentationTimeOffset='-5'", LINE)), "@presentationTimeOffset `-5`")]
fn what_is_not_supported_is_named(#[case] content: &str, #[case] words: &str) {
    let said = dash("", content).unwrap_err();
    assert!(said.contains(words), "{said}");
}

#[test]
fn an_element_that_resolves_to_nothing_is_removed() {
    let nothing = "<Period xlink:href='urn:mpeg:dash:resolve-to-zero:2013'/>";
    let content = nothing.to_owned() + &period("", "");
    assert_eq!(dash("", &content).unwrap().len(), 1);
}

#[rstest]
#[case::of_its_type("contentType='text'", Component::Text)]
#[case::as_a_file("mimeType='text/vtt'", Component::Text)]
#[case::video("mimeType='video/mp4'", Component::Video)]
#[case::another("contentType='application'", Component::Other)]
fn an_adaptation_set_of_text_has_captions(#[case] set: &str, #[case] expected: Component) {
    let content = period("", "").replace("<AdaptationSet>", &format!("<AdaptationSet {set}>"));
    assert_eq!(dash("", &content).unwrap()[0].component, expected);
}

#[rstest]
#[case::trick_mode(
    "<EssentialProperty schemeIdUri='http://dashif.org/guidelines/trickmode'/>",
    "",
    Component::Other
)]
#[case::of_the_representation("", "<EssentialProperty schemeIdUri='urn:unknown'/>", Component::Other)]
#[case::thumbnails(
    "<EssentialProperty schemeIdUri='http://dashif.org/guidelines/thumbnail_tile'/>",
    "",
    Component::Other
)]
#[case::colours(
    "<EssentialProperty schemeIdUri='urn:mpeg:mpegB:cicp:MatrixCoefficients'/>",
    "",
    Component::Video
)]
#[case::supplemental("<SupplementalProperty schemeIdUri='urn:unknown'/>", "", Component::Video)]
fn essential_properties_that_are_not_understood_exclude_what_has_them(
    #[case] set: &str,
    #[case] representation: &str,
    #[case] expected: Component,
) {
    let content =
        period("", representation).replace("<AdaptationSet>", "<AdaptationSet contentType='video'>");
    let content = content.replace("<Representation", &format!("{set}<Representation"));
    assert_eq!(dash("", &content).unwrap()[0].component, expected);
}

#[rstest]
// RFC 3986 §5, RFC 6454: an origin is a scheme, a host and a port.
#[case::own(&["https://films.example:4433/f/"], Some("f/1"), false)]
#[case::own_without_a_scheme(&["//films.example:4433/x/"], Some("x/1"), false)]
#[case::another_port(&["https://films.example/f/"], Some("f/1"), true)]
#[case::another_scheme(&["http://films.example:4433/f/"], Some("f/1"), true)]
#[case::no_path(&["data:text/plain,"], None, true)]
// §5.6.5: alternatives of the same content.
#[case::the_second(&["https://cdn.invalid/", "./"], Some("f/1"), false)]
#[case::the_first(&["a/", "b/"], Some("f/a/1"), false)]
#[case::the_root(&["https://cdn.invalid/", "/"], Some("1"), false)]
#[case::none(&["https://cdn.invalid/a/", "https://cdn.invalid/b/"], Some("a/1"), true)]
fn the_first_base_on_the_own_server_counts(
    #[case] bases: &[&str],
    #[case] file: Option<&str>,
    #[case] is_foreign: bool,
) {
    let bases = bases.iter().map(|base| format!("<BaseURL>{base}</BaseURL>"));
    let bases = bases.collect::<Vec<_>>().concat();
    let segments = template("duration='20'", "").replace("-$Time$", "");
    let content = bases + &period("", &segments);
    let found = dash("mediaPresentationDuration='PT2S'", &content).unwrap();
    let piece = &found[0].pieces[0];
    assert_eq!((piece.file.as_deref(), piece.is_foreign), (file, is_foreign));
}

#[test]
fn encryption_is_named() {
    let protection = "<ContentProtection schemeIdUri='urn:mpeg:dash:mp4protection:2011' value='cenc'/>";
    let found = dash("", &period("", protection)).unwrap();
    assert_eq!(
        found[0].encryption.as_deref(),
        Some("urn:mpeg:dash:mp4protection:2011")
    );
    let key = |method: &str| playlist(&format!("#EXT-X-KEY:METHOD={method},URI=\"k\"\n#EXTINF:2,\na\n"));
    for method in ["AES-128", "SAMPLE-AES", "SAMPLE-AES-CTR"] {
        assert_eq!(key(method).unwrap().encryption.as_deref(), Some(method));
    }
    assert_eq!(key("NONE").unwrap().encryption, None);
}

/// A whole media playlist with this content, whose URL has the query `token=1`.
fn playlist(content: &str) -> Result<ManifestRepresentation, String> {
    let text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n{content}#EXT-X-ENDLIST\n");
    let url = Url::parse("https://films.example:4433/f/m.m3u8?token=1").unwrap();
    match Manifest::read_at(&url, text.as_bytes(), &Variables::default()) {
        Ok(Manifest::Media(one)) => Ok(*one),
        other => Err(other.unwrap_err().to_string()),
    }
}

#[rstest]
// RFC 8216bis §4.3 and §4.4.2.3.
#[case::variable(
    "#EXT-X-DEFINE:NAME=\"p\",VALUE=\"seg\"\n#EXTINF:2,\n{$p}-1{$p}\n",
    "seg-1seg:2"
)]
#[case::variable_of_the_url("#EXT-X-DEFINE:QUERYPARAM=\"token\"\n#EXTINF:2,\na-{$token}\n", "a-1:2")]
#[case::no_variable("#EXTINF:2,{$title}\n#{$comment}\na{$\n", "a{$:2")]
// RFC 8216bis §4.4.4.7.
#[case::gap(
    "#EXTINF:2,\na\n#EXT-X-GAP\n#EXTINF:2,\nb\n#EXTINF:2,\nc\n",
    "a:2 b:2 gap c:2"
)]
#[case::no_duration(
    "#EXTINF:2,\na\n#EXTINF:0,\nb\n#EXTINF:0.000,\n#EXT-X-GAP\nc\n#EXTINF:1,\nd\n",
    "a:2 d:1"
)]
#[case::ranges_over_a_segment_of_no_duration(
    "#EXTINF:2,\n#EXT-X-BYTERANGE:5@0\na\n#EXTINF:0,\n#EXT-X-BYTERANGE:3\na\n#EXTINF:2,\n#EXT-X-BYTERANGE:4\na\n",
    "a:2 a:2"
)]
#[case::discontinuity("#EXTINF:2,\na\n#EXT-X-DISCONTINUITY\n#EXTINF:2,\nb\n", "a:2 b:2")]
#[case::own_origin("#EXTINF:2,\nhttps://films.example:4433/f/a\n", "a:2")]
// §4.4.3.1: a duration is at most the target, rounded.
#[case::implausible("#EXTINF:2,\na\n#EXTINF:86400,\nb\n#EXTINF:2,\nc\n", "a:2 b:2 c:2")]
#[case::implausible_and_alone("#EXTINF:86400,\na\n", "a:2")]
#[case::a_wrong_target("#EXTINF:9,\na\n#EXTINF:9,\nb\n#EXTINF:20,\nc\n", "a:9 b:9 c:20")]
fn a_playlist_has_the_segments_that_play(#[case] content: &str, #[case] expected: &str) {
    let found = playlist(content).unwrap();
    assert_eq!(pieces(&found), expected);
    assert_eq!(found.warnings.len(), usize::from(content.contains("86400")));
    assert!(found.pieces.iter().all(|piece| !piece.is_foreign));
}

#[rstest]
#[case::undefined("#EXTINF:2,\n{$p}\n", "the variable `p` is not defined")]
#[case::imported(
    "#EXT-X-DEFINE:IMPORT=\"p\"\n#EXTINF:2,\na\n",
    "or an IMPORT from the main playlist"
)]
#[case::no_parameter(
    "#EXT-X-DEFINE:QUERYPARAM=\"p\"\n#EXTINF:2,\na\n",
    "QUERYPARAM of the playlist's URL"
)]
#[case::defined_twice(
    "#EXT-X-DEFINE:NAME=\"token\",VALUE=\"a\"\n#EXT-X-DEFINE:QUERYPARAM=\"token\"\n#EXTINF:2,\n{$token}\n",
    "`token` is defined twice"
)]
#[case::delta("#EXT-X-SKIP:SKIPPED-SEGMENTS=3\n#EXTINF:2,\na\n", "#EXT-X-SKIP")]
#[case::nothing_plays("#EXTINF:0,\na\n", "no segments")]
#[case::negative("#EXTINF:-1,\na\n", "`a` needs an #EXTINF")]
fn what_a_playlist_cannot_mean_is_named(#[case] content: &str, #[case] words: &str) {
    let said = playlist(content).unwrap_err();
    assert!(said.contains(words), "{said}");
}

#[rstest]
// RFC 8216bis §4.4.2.3: a media playlist imports what its main playlist defines.
#[case::path("#EXT-X-DEFINE:IMPORT=\"p\"\n#EXTINF:2,\n{$p}/a\n", Ok("seg/a:2"))]
#[case::parameter_of_the_main_playlist("#EXT-X-DEFINE:IMPORT=\"token\"\n#EXTINF:2,\n{$token}\n", Ok("1:2"))]
#[case::own_origin("#EXT-X-DEFINE:IMPORT=\"base\"\n#EXTINF:2,\n{$base}a\n", Ok("a:2"))]
#[case::map(
    "#EXT-X-DEFINE:IMPORT=\"p\"\n#EXT-X-MAP:URI=\"{$p}\"\n#EXTINF:2,\na\n",
    Ok("a:2")
)]
#[case::beside_its_own(
    "#EXT-X-DEFINE:NAME=\"q\",VALUE=\"b\"\n#EXT-X-DEFINE:IMPORT=\"p\"\n#EXTINF:2,\n{$p}{$q}\n",
    Ok("segb:2")
)]
#[case::not_imported("#EXTINF:2,\n{$p}\n", Err("the variable `p` is not defined"))]
#[case::unknown(
    "#EXT-X-DEFINE:IMPORT=\"x\"\n#EXTINF:2,\na\n",
    Err("IMPORT from the main playlist")
)]
#[case::twice(
    "#EXT-X-DEFINE:IMPORT=\"p\"\n#EXT-X-DEFINE:NAME=\"p\",VALUE=\"b\"\n#EXTINF:2,\na\n",
    Err("`p` is defined twice")
)]
fn a_playlist_imports_variables_of_its_main_playlist(
    #[case] content: &str,
    #[case] expected: Result<&str, &str>,
) {
    let main = "#EXTM3U\n#EXT-X-DEFINE:NAME=\"p\",VALUE=\"seg\"\n#EXT-X-DEFINE:QUERYPARAM=\"token\"\n\
                #EXT-X-DEFINE:NAME=\"base\",VALUE=\"https://films.example:4433/f/\"\n\
                #EXT-X-STREAM-INF:BANDWIDTH=1\nm.m3u8\n";
    let url = Url::parse("https://films.example:4433/f/main.m3u8?token=1").unwrap();
    let Ok(Manifest::Main(variants)) = Manifest::read_at(&url, main.as_bytes(), &Variables::new()) else {
        panic!("no main playlist")
    };
    let text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n{content}#EXT-X-ENDLIST\n");
    let url = Url::parse("https://films.example:4433/f/m.m3u8").unwrap();
    match (
        Manifest::read_at(&url, text.as_bytes(), &variants[0].variables),
        expected,
    ) {
        (Ok(Manifest::Media(found)), Ok(expected)) => {
            assert_eq!(
                (pieces(&found).as_str(), found.pieces[0].is_foreign),
                (expected, false)
            );
            let maps = found.initializations.iter().map(|(_, map)| map.file.as_deref());
            assert!(maps.eq(content.contains("EXT-X-MAP").then_some(Some("f/seg"))));
        }
        (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
        (other, _) => panic!("{other:?}"),
    }
}

#[test]
fn a_server_knows_the_files_of_a_playlist_without_the_query_of_its_url() {
    let text =
        "#EXTM3U\n#EXT-X-DEFINE:QUERYPARAM=\"t\"\n#EXTINF:2,\na?t={$t}\n#EXTINF:2,\n{$t}\n#EXT-X-ENDLIST\n";
    let Ok(Manifest::Media(found)) = Manifest::read("f/m.m3u8", text.as_bytes(), &Variables::default())
    else {
        panic!("no media playlist")
    };
    let files: Vec<_> = found.pieces.iter().map(|piece| piece.file.as_deref()).collect();
    assert_eq!(files, [Some("f/a"), None]);
}

#[rstest]
// RFC 8216 §4.3.2.5: a map applies until the next.
#[case::one("#EXT-X-MAP:URI=\"i\"\n#EXTINF:2,\na\n#EXTINF:2,\nb\n", &[(0, "f/i")])]
#[case::two("#EXT-X-MAP:URI=\"i\"\n#EXTINF:2,\na\n#EXT-X-MAP:URI=\"j\"\n#EXTINF:2,\nb\n", &[(0, "f/i"), (1, "f/j")])]
#[case::repeated("#EXT-X-MAP:URI=\"i\"\n#EXTINF:2,\na\n#EXT-X-MAP:URI=\"i\"\n#EXTINF:2,\nb\n", &[(0, "f/i")])]
#[case::back_again(
    "#EXT-X-MAP:URI=\"i\"\n#EXTINF:2,\na\n#EXT-X-MAP:URI=\"j\"\n#EXTINF:2,\nb\n#EXT-X-MAP:URI=\"i\"\n#EXTINF:2,\nc\n",
    &[(0, "f/i"), (1, "f/j"), (2, "f/i")]
)]
#[case::replaced_before_use("#EXT-X-MAP:URI=\"i\"\n#EXT-X-MAP:URI=\"j\"\n#EXTINF:2,\na\n", &[(0, "f/j")])]
fn every_map_counts(#[case] content: &str, #[case] expected: &[(usize, &str)]) {
    let found = playlist(content).unwrap();
    let maps = found.initializations.iter();
    let maps: Vec<_> = maps
        .map(|(first, map)| (*first, map.file.as_deref().unwrap()))
        .collect();
    assert_eq!(maps, expected);
}

#[rstest]
#[case::vod("#EXT-X-PLAYLIST-TYPE:VOD\n", false)]
#[case::event("#EXT-X-PLAYLIST-TYPE:EVENT\n", true)]
#[case::no_type("", true)]
fn a_playlist_that_cannot_change_is_not_live(#[case] kind: &str, #[case] live: bool) {
    let text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n{kind}#EXTINF:2,\na\n");
    let Ok(Manifest::Media(found)) = Manifest::read("m.m3u8", text.as_bytes(), &Variables::default()) else {
        panic!("no media playlist")
    };
    assert_eq!(found.live, live);
}

#[test]
fn frames_for_trick_modes_are_not_played() {
    let content = "#EXT-X-I-FRAMES-ONLY\n#EXTINF:2,\na\n";
    assert_eq!(playlist(content).unwrap().component, Component::Other);
    let main = "#EXTM3U\n#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI=\"i\"\n#EXT-X-DEFINE:NAME=\"d\",VALUE=\"x\"\n\
                #EXT-X-STREAM-INF:BANDWIDTH=1\n{$d}/v\n";
    let Ok(Manifest::Main(found)) = Manifest::read("m.m3u8", main.as_bytes(), &Variables::default()) else {
        panic!("no main playlist")
    };
    let files: Vec<_> = found.iter().map(|it| it.playlist.file.as_deref()).collect();
    assert_eq!(files, [Some("x/v")]);
}
