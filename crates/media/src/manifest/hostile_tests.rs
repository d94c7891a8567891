//! Manifests designed to be expensive: each is read or refused after work proportional to its length. The reader counts
//! visited nodes and read text, so a reader that repeats its work would refuse manifests that pass here.

use super::*;
use rstest::rstest;
use std::fmt::Write as _;

fn mpd(content: &str) -> Result<Manifest, MediaError> {
    Manifest::read("film/manifest.mpd", content.as_bytes(), &Variables::default())
}

/// An MPD with this content in its adaptation set.
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

/// Checks that `text` is refused with an error of limited length that contains `words`.
fn refused(text: &str, words: &str) {
    let said = mpd(text).unwrap_err().to_string();
    assert!(said.contains(words), "{said}");
    assert!(said.len() < 1_000, "an error of {} bytes", said.len());
}

#[test]
fn a_hundred_thousand_representations_are_read_and_more_are_refused() {
    let one = |at: usize| format!("<Representation id=\"{at}\" bandwidth=\"{}\"/>", at + 1);
    let template = "<SegmentTemplate media=\"$RepresentationID$-$Number$.m4s\" duration=\"9\"/>";
    // The template comes after them: a reader that searches for it once per element passes all of them each time.
    let set = |count: usize| with_set(&((0..count).map(one).collect::<String>() + template));
    let found = representations(&set(100_000));
    assert_eq!(found.len(), 100_000);
    let last = found.last().unwrap();
    assert_eq!(last.pieces[0].file.as_deref(), Some("film/99999-1.m4s"));
    refused(&set(100_001), "more than 100000 representations");
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
#[case(33)]
#[case(100_000)]
fn an_element_of_too_many_attributes_is_refused_before_they_are_compared(#[case] count: usize) {
    let text = with_set(&format!("\n<Representation{}/>", attributes(count)));
    refused(&text, "line 2: an element has more than 32 attributes");
}

#[rstest]
#[case::as_many_as_allowed(&format!("<Representation{}/>", attributes(32)))]
#[case::in_a_comment(&format!("<!-- <a{} --><Representation/>", attributes(70)))]
#[case::in_character_data(&format!("<X><![CDATA[<a{}]]></X><Representation/>", attributes(70)))]
#[case::in_an_instruction(&format!("<?target <a{}?><Representation/>", attributes(70)))]
#[case::in_text(&format!("<X>{}</X><Representation/>", attributes(70).replace('>', "")))]
#[case::over_several_elements(&format!("<X{0}/><X{0}></X><Representation/>", attributes(20)))]
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
    refused(
        &with_set(&(nested + &"</x>".repeat(30_000))),
        "more than 16 XML namespaces in scope",
    );
    refused(
        &with_set(&"<x xmlns='urn:x'/>".repeat(100_001)),
        "more than 100000 declarations",
    );
    let renamed = (0..17).fold(String::new(), |mut text, at| {
        let _ = write!(text, "<x xml:xmlns='urn:{at}'>");
        text
    });
    refused(&with_set(&renamed), "namespaces in scope");
}

/// `count` declarations of the default namespace.
fn defaults(count: usize) -> String {
    " xmlns=''".repeat(count)
}

#[rstest]
#[case::at_the_end_of_the_text("", "not well-formed XML")]
#[case::at_another_tag("<x>", "more than 16 XML namespaces")]
#[case::in_a_value(" y='>", "not well-formed XML")]
fn a_tag_that_does_not_end_is_refused_before_it_is_parsed(#[case] end: &str, #[case] words: &str) {
    for count in [17, 33] {
        refused(&format!("<MPD{}{end}", defaults(count)), words);
    }
}

#[test]
fn declarations_of_a_tag_that_does_not_end_are_not_compared() {
    let prefixed = (0..65_000).fold(String::new(), |mut text, at| {
        let _ = write!(text, " xmlns:a{at}=''");
        text
    });
    refused(
        &format!("<MPD{}{prefixed}", defaults(1_600_000)),
        "not well-formed XML",
    );
}

#[test]
fn declarations_of_namespaces_are_short() {
    let with = |value: usize| with_set(&format!("<Representation\n xmlns:a = '{}'/>", "u".repeat(value)));
    assert_eq!(representations(&with(249)).len(), 1);
    refused(
        &with(250),
        "more than 256 bytes in the declaration of an XML namespace",
    );
}

#[rstest]
#[case::a_namespace_of_many_attributes(&format!(
    "<MPD xmlns:p='{}'>{}", "u".repeat(8_000_000), "<x p:a='' p:b='' p:c='' p:d=''/>".repeat(100_000)
))]
#[case::prefixes_of_many_elements(&format!(
    "<MPD xmlns:{0}a='' xmlns:{0}b='' xmlns:{0}c=''>{1}", "p".repeat(100_000), "<x xmlns=''/>".repeat(700_000)
))]
fn long_declarations_are_refused_before_they_are_compared(#[case] text: &str) {
    refused(text, "more than 256 bytes in the declaration of an XML namespace");
}

#[rstest]
#[case("<x/>", 2_000_001)]
#[case("=", 4_000_001)]
fn markup_is_bounded_before_memory_is_reserved_for_it(#[case] repeated: &str, #[case] count: usize) {
    refused(&with_set(&repeated.repeat(count)), "holds more than");
}

#[rstest]
#[case::identifiers_in_a_template(&format!(
    "<SegmentTemplate media='{}$Number$' duration='1'/><Representation id='{}'/>",
    "$RepresentationID$".repeat(30), "i".repeat(4_000_000)
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
    refused(&with_set(content), "bytes of names, repetitions included");
}

#[test]
fn identifiers_in_a_template_are_bounded_even_if_they_become_no_text() {
    let with = |count: usize| {
        let identifiers = "$RepresentationID$".repeat(count);
        with_set(&format!(
            "<SegmentTemplate media='{identifiers}$Number$' duration='1'/><Representation/>"
        ))
    };
    assert_eq!(representations(&with(30))[0].pieces.len(), 9);
    for count in [32, 800_000] {
        refused(
            &with(count),
            "@media: a template of more than 64 texts and identifiers",
        );
    }
}

#[rstest]
#[case(&format!("<Representation bandwidth='{}'/>", "x".repeat(5_000_000)))]
#[case(&format!("<SegmentTemplate media='${}'/><Representation/>", "x".repeat(5_000_000)))]
#[case(&format!("<SegmentTemplate media='${}$'/><Representation/>", "x".repeat(5_000_000)))]
#[case(&format!("<SegmentTemplate media='$Number%{}$'/><Representation/>", "x".repeat(5_000_000)))]
#[case(&format!("</{}>", "x".repeat(5_000_000)))]
fn an_error_shows_the_beginning_of_a_long_value(#[case] content: &str) {
    refused(&with_set(content), "xxx");
}

#[test]
fn lines_of_a_playlist_are_bounded_as_segments() {
    let text = format!("#EXTM3U\n{}", "#EXTINF:1,\na\n".repeat(SEGMENT_LIMIT + 1));
    let error = Manifest::read("film/list.m3u8", text.as_bytes(), &Variables::default()).unwrap_err();
    assert!(error.to_string().contains("more than 500000 segments"), "{error}");
}

#[test]
fn values_of_variables_count_each_time() {
    let value = "v".repeat(1_000_000);
    let text = format!(
        "#EXTM3U\n#EXT-X-DEFINE:NAME=\"v\",VALUE=\"{value}\"\n{}",
        "#EXTINF:1,\n{$v}{$v}\n".repeat(1_000)
    );
    let error = Manifest::read("film/list.m3u8", text.as_bytes(), &Variables::default()).unwrap_err();
    assert!(
        error.to_string().contains("bytes of names, repetitions included"),
        "{error}"
    );
}

#[test]
fn a_query_counts_each_time_that_a_parameter_is_looked_up() {
    let padding = "p".repeat(1_000_000);
    let parameters = (0..200)
        .map(|at| format!("&q{at}=1"))
        .collect::<Vec<_>>()
        .concat();
    let url = format!("https://site.example/list.m3u8?{padding}{parameters}");
    let definitions = (0..200).map(|at| format!("#EXT-X-DEFINE:QUERYPARAM=\"q{at}\"\n"));
    let text = format!("#EXTM3U\n{}#EXTINF:1,\na\n", definitions.collect::<String>());
    let error =
        Manifest::read_at(&Url::parse(&url).unwrap(), text.as_bytes(), &Variables::default()).unwrap_err();
    assert!(
        error.to_string().contains("bytes of names, repetitions included"),
        "{error}"
    );
}

#[test]
fn entries_outside_the_period_count_for_each_representation() {
    let entries = format!("<S t='9' d='1'/>{}", "<S d='1'/>".repeat(50_000));
    let template = format!(
        "<SegmentTemplate media='$Time$'><SegmentTimeline>{entries}</SegmentTimeline></SegmentTemplate>"
    );
    refused(
        &with_set(&(template + &"<Representation/>".repeat(1_000))),
        "XML nodes, repetitions included",
    );
}

#[rstest]
#[case(
    "timescale='1' presentationTimeOffset='18446744073709551615' eptDelta='-9223372036854775808' duration='1'",
    ""
)]
#[case("timescale='18446744073709551615' duration='1'", "")]
#[case(
    "startNumber='18446744073709551615' eptDelta='9223372036854775807' duration='18446744073709551615'",
    ""
)]
#[case(
    "",
    "<S t='18446744073709551615' d='18446744073709551615' r='9223372036854775807'/><S d='1' r='-1'/>"
)]
fn the_largest_numbers_do_not_overflow(#[case] attributes: &str, #[case] entries: &str) {
    let timeline = Some(entries).filter(|entries| !entries.is_empty());
    let timeline = timeline.map_or(String::new(), |it| {
        format!("<SegmentTimeline>{it}</SegmentTimeline>")
    });
    let template = format!("<SegmentTemplate media='$Number$' {attributes}>{timeline}</SegmentTemplate>");
    // Refused for too many segments, or read.
    if let Err(error) = mpd(&with_set(&(template + "<Representation/>"))) {
        assert!(error.to_string().contains("more than 500000 segments"), "{error}");
    }
}
