//! Manifests made to be expensive: each is read or refused after work in proportion to its length. A reader whose work
//! grows with the square of the length takes minutes for each of them.

use super::*;
use rstest::rstest;
use std::fmt::Write as _;

fn mpd(content: &str) -> Result<Manifest, MediaError> {
    Manifest::read("film/manifest.mpd", content.as_bytes())
}

/// An MPD with this content of its adaptation set.
fn with_set(content: &str) -> String {
    format!(
        "<MPD mediaPresentationDuration=\"PT9S\"><Period><AdaptationSet>{content}</AdaptationSet></Period></MPD>"
    )
}

fn representations(text: &str) -> Vec<ManifestRepresentation> {
    match mpd(text).unwrap() {
        Manifest::Dash(found) => found,
        other => panic!("{other:?}"),
    }
}

fn problem(text: &str) -> String {
    let said = mpd(text).unwrap_err().to_string();
    assert!(said.len() < 1_000, "an error of {} bytes", said.len());
    said
}

#[test]
fn a_hundred_thousand_representations_are_read_and_more_are_refused() {
    let one = |at: usize| format!("<Representation id=\"{at}\" bandwidth=\"{}\"/>", at + 1);
    let template = "<SegmentTemplate media=\"$RepresentationID$-$Number$.m4s\" duration=\"9\"/>";
    // The template stands behind them: a reader that looks for it once for each of them passes all of them.
    let set = |count: usize| with_set(&((0..count).map(one).collect::<String>() + template));
    let found = representations(&set(100_000));
    assert_eq!(found.len(), 100_000);
    let last = found.last().unwrap();
    assert_eq!(last.pieces[0].file.as_deref(), Some("film/99999-1.m4s"));
    let said = problem(&set(100_001));
    assert!(said.contains("more than 100000 representations"), "{said}");
}

#[test]
fn a_hundred_thousand_sets_and_periods_are_read() {
    let set = "<AdaptationSet><Representation id=\"a\"/></AdaptationSet>";
    let sets = format!("<MPD><Period>{}</Period></MPD>", set.repeat(100_000));
    assert_eq!(representations(&sets).last().unwrap().set, 99_999);
    let period = format!("<Period duration=\"PT1S\">{set}</Period>");
    let periods = format!("<MPD>{}</MPD>", period.repeat(100_000));
    assert_eq!(representations(&periods).last().unwrap().period, 99_999);
}

#[test]
fn an_inherited_element_is_walked_once() {
    let junk = "<!---->".repeat(200_000);
    let inside = format!(
        "<SegmentTemplate media=\"$Number$.m4s\">{junk}<SegmentTimeline>{junk}<S d=\"9\"/></SegmentTimeline>\
         </SegmentTemplate>"
    );
    let found = representations(&with_set(&(inside + &"<Representation/>".repeat(50_000))));
    assert!(found.len() == 50_000 && found.iter().all(|it| it.pieces.len() == 1));
}

/// `count` attributes with different names.
fn attributes(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, at| {
        let _ = write!(text, " a{at}='>\"'");
        text
    })
}

#[rstest]
#[case(65)]
#[case(100_000)]
fn an_element_of_too_many_attributes_is_refused_before_they_are_compared(#[case] count: usize) {
    let text = with_set(&format!("\n<Representation{}/>", attributes(count)));
    let said = problem(&text);
    assert!(
        said.starts_with("line 2: an element has more than 64 attributes"),
        "{said}"
    );
}

#[rstest]
#[case::as_many_as_allowed(&format!("<Representation{}/>", attributes(64)))]
#[case::in_a_comment(&format!("<!-- <a{} --><Representation/>", attributes(70)))]
#[case::in_character_data(&format!("<X><![CDATA[<a{}]]></X><Representation/>", attributes(70)))]
#[case::in_an_instruction(&format!("<?target <a{}?><Representation/>", attributes(70)))]
#[case::in_text(&format!("<X>{}</X><Representation/>", attributes(70).replace('>', "")))]
#[case::over_several_elements(&format!("<X{0}/><X{0}></X><Representation/>", attributes(40)))]
fn only_the_attributes_of_one_element_are_counted_together(#[case] content: &str) {
    assert_eq!(representations(&with_set(content)).len(), 1);
}

#[test]
fn namespaces_are_bounded_where_they_are_in_scope_together() {
    let own = "<X xmlns:a='urn:a'><Y xmlns:b='urn:b'/></X>".repeat(1_000);
    assert_eq!(representations(&with_set(&(own + "<Representation/>"))).len(), 1);
    let nested = (0..30_000).fold(String::new(), |mut text, at| {
        let _ = write!(text, "<x xmlns:n{at}='urn:{at}'>");
        text
    });
    let said = problem(&with_set(&(nested + &"</x>".repeat(30_000))));
    assert!(said.contains("more than 64 XML namespaces in scope"), "{said}");
    let said = problem(&with_set(&"<x xmlns='urn:x'/>".repeat(100_001)));
    assert!(said.contains("more than 100000 declarations"), "{said}");
    let renamed = (0..65).fold(String::new(), |mut text, at| {
        let _ = write!(text, "<x xml:xmlns='urn:{at}'>");
        text
    });
    assert!(problem(&with_set(&renamed)).contains("namespaces in scope"));
}

#[rstest]
#[case("<x/>", 2_000_001)]
#[case("=", 4_000_001)]
fn markup_is_bounded_before_memory_is_reserved_for_it(#[case] repeated: &str, #[case] count: usize) {
    let said = problem(&with_set(&repeated.repeat(count)));
    assert!(said.contains("holds more than"), "{said}");
}

#[rstest]
#[case::identifiers_in_a_template(&format!(
    "<SegmentTemplate media='{}$Number$' duration='1'/><Representation id='{}'/>",
    "$RepresentationID$".repeat(100_000), "i".repeat(1_000_000)
))]
#[case::a_template_of_many_representations(&format!(
    "<SegmentTemplate media='{}$Number$' duration='9'/>{}",
    "m".repeat(1_000_000), "<Representation/>".repeat(50_000)
))]
#[case::codecs_of_many_representations(&format!(
    "<X/>{}</AdaptationSet><AdaptationSet codecs='{}'>{}",
    "", "c".repeat(1_000_000), "<Representation/>".repeat(50_000)
))]
#[case::a_number_of_many_representations(&format!(
    "<SegmentTemplate timescale='{}1' media='$Number$' duration='9'/>{}",
    "0".repeat(1_000_000), "<Representation/>".repeat(50_000)
))]
#[case::a_base_of_many_representations(&format!(
    "<BaseURL>{}/</BaseURL>{}", "b".repeat(1_000_000), "<Representation/>".repeat(50_000)
))]
#[case::a_base_of_many_segments(&format!(
    "<Representation><BaseURL>{}/</BaseURL><SegmentList>{}</SegmentList></Representation>",
    "b".repeat(1_000_000), "<SegmentURL/>".repeat(50_000)
))]
fn text_that_is_used_many_times_counts_each_time(#[case] content: &str) {
    let said = problem(&with_set(content));
    assert!(said.contains("bytes of names, repetitions included"), "{said}");
}

#[rstest]
#[case(&format!("<Representation bandwidth='{}'/>", "x".repeat(5_000_000)))]
#[case(&format!("<SegmentTemplate media='${}'/><Representation/>", "x".repeat(5_000_000)))]
#[case(&format!("<SegmentTemplate media='${}$'/><Representation/>", "x".repeat(5_000_000)))]
#[case(&format!("<SegmentTemplate media='$Number%{}$'/><Representation/>", "x".repeat(5_000_000)))]
fn an_error_shows_the_begin_of_a_long_value(#[case] content: &str) {
    assert!(problem(&with_set(content)).contains("xxx"));
}

fn playlist(lines: &str) -> Result<Manifest, MediaError> {
    Manifest::read("film/list.m3u8", format!("#EXTM3U\n{lines}").as_bytes())
}

#[test]
fn lists_without_attributes_cost_their_own_line() {
    let keys = "#EXT-X-KEY:x\n#EXT-X-DATERANGE:y\n".repeat(200_000);
    let Manifest::Media(found) = playlist(&(keys + "#EXTINF:2,\na.ts\n#EXT-X-ENDLIST\n")).unwrap() else {
        panic!()
    };
    assert_eq!(found.pieces.len(), 1);
}

#[test]
fn lines_that_name_nothing_do_not_look_for_their_stream() {
    let seeking = "#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI=\"i\"\n".repeat(50_000);
    let text = format!(
        "#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n{seeking}{}",
        "u\n".repeat(1_000_000)
    );
    let Manifest::Main(found) = playlist(&text).unwrap() else {
        panic!()
    };
    assert_eq!(found.len(), 1);
}

#[test]
fn every_rendition_group_is_a_set() {
    let mut text = "#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n".to_owned();
    for at in 0..50_000 {
        let _ = writeln!(
            text,
            "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"{at}\",NAME=\"n\",URI=\"{at}.m3u8\""
        );
    }
    let Manifest::Main(found) = playlist(&text).unwrap() else {
        panic!()
    };
    let sets: Vec<usize> = found.iter().map(|it| it.representation.set).collect();
    assert_eq!(sets, (0..=50_000).collect::<Vec<_>>());
}

#[test]
fn lines_of_a_playlist_are_bounded_as_segments() {
    let said = playlist(&"#EXTINF:1,\na\n".repeat(500_001))
        .unwrap_err()
        .to_string();
    assert!(said.contains("more than 500000 segments"), "{said}");
    let said = playlist(&"a\n".repeat(8_000_000)).unwrap_err().to_string();
    assert!(said.starts_with("line 2: `a` needs an #EXTINF"), "{said}");
}
