//! What players send, and what nobody should.

use super::*;
use http::{HeaderName, HeaderValue};
use proptest::prelude::*;
use rstest::rstest;

fn fields(fields: &[(&'static str, &str)]) -> HeaderMap {
    let field =
        |&(name, value): &(&'static str, &str)| (HeaderName::from_static(name), value.parse().unwrap());
    fields.iter().map(field).collect()
}

fn in_field(text: &str) -> Cmcd {
    Cmcd::of(&fields(&[("cmcd-request", text)]), &Uri::from_static("/")).unwrap()
}

#[test]
fn header_fields_as_in_the_specification() {
    // CTA-5004 §4, example 1.
    let headers = fields(&[
        (
            "cmcd-request",
            "bl=21300,dl=18500,mtp=48100,nor=\"..%2Fsegment6.m4s\",nrr=\"0-1500\",su",
        ),
        ("cmcd-object", "br=3200,d=4004,ot=v,tb=6000"),
        ("cmcd-status", "bs,rtp=15000"),
        (
            "cmcd-session",
            "sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\",cid=\"faec5fc2\",pr=1.08,sf=d,st=v,v=1",
        ),
    ]);
    let cmcd = Cmcd::of(&headers, &Uri::from_static("/")).unwrap();
    let expected = Cmcd {
        bitrate: Some(Bitrate::from_kbps(3_200)),
        buffer_length: Some(Duration::from_millis(21_300)),
        starved: true,
        content: Some("faec5fc2".into()),
        object_duration: Some(Duration::from_millis(4_004)),
        deadline: Some(Duration::from_millis(18_500)),
        measured_throughput: Some(Bitrate::from_kbps(48_100)),
        next_object: Some("..%2Fsegment6.m4s".into()),
        next_range: Some(0..1_501),
        object_type: Some(ObjectType::Video),
        playback_rate: Some(1.08),
        requested_throughput: Some(Bitrate::from_kbps(15_000)),
        streaming_format: Some('d'),
        session: Some("6e2fb550-c457-11e9-bb97-0800200c9a66".into()),
        stream_type: Some('v'),
        startup: true,
        top_bitrate: Some(Bitrate::from_kbps(6_000)),
        ignored: 0,
    };
    assert_eq!(cmcd, expected);
}

#[test]
fn the_query_says_the_same_and_fields_win() {
    let uri: Uri = "/a.m4s?t=1&CMCD=br%3D3200%2Cbl%3D21300%2Cbs%2Csid%3D%226e2f%2C+%5C%22b%5C%22%22&x=2"
        .parse()
        .unwrap();
    let cmcd = Cmcd::of(&HeaderMap::new(), &uri).unwrap();
    assert_eq!(cmcd.bitrate, Some(Bitrate::from_kbps(3_200)));
    assert_eq!(cmcd.buffer_length, Some(Duration::from_millis(21_300)));
    assert_eq!(
        (cmcd.starved, cmcd.session.as_deref(), cmcd.ignored),
        (true, Some("6e2f,+\"b\""), 0)
    );
    let both = Cmcd::of(&fields(&[("cmcd-object", "br=100")]), &uri).unwrap();
    assert_eq!(
        (both.bitrate, both.starved),
        (Some(Bitrate::from_kbps(100)), true)
    );
}

#[rstest]
#[case("/film.mp4", &[])]
#[case("/film.mp4?cmcd=br%3D1&xCMCD=br%3D1", &[])]
#[case("/film.mp4?CMCD=", &[])]
#[case("/film.mp4?CMCD", &[("cmcd-request", "  ")])]
fn a_request_without_cmcd_says_nothing(#[case] uri: &str, #[case] headers: &[(&'static str, &str)]) {
    assert_eq!(Cmcd::of(&fields(headers), &uri.parse().unwrap()), None);
}

#[rstest]
#[case::unknown("com.example-key=1,br=100")]
#[case::negative("bl=-5x,br=100")]
#[case::beyond("bl=999999999999,br=100")]
#[case::overflow("mtp=99999999999999999999,br=100")]
#[case::too_fast("mtp=10000001,br=100")]
#[case::not_finite("bl=NaN,br=100")]
#[case::type_of_nothing("ot=x,br=100")]
#[case::empty_key("=5,br=100")]
#[case::after_quote("sid=\"a\"b,br=100")]
#[case::flag_with_a_number("bs=5,br=100")]
#[case::list("mtp=(1 2),br=100")]
#[case::range("nrr=\"9-3\",br=100")]
fn what_is_not_understood_costs_nothing_but_itself(#[case] text: &str) {
    let cmcd = in_field(text);
    let expected = Cmcd {
        bitrate: Some(Bitrate::from_kbps(100)),
        ignored: 1,
        ..Cmcd::default()
    };
    assert_eq!(cmcd, expected);
}

#[test]
fn as_players_write_it() {
    let cmcd = in_field(" bl=-120 , dl=1500.5,sid=bare,bs=false , su=?1,nor=next.m4s");
    assert_eq!(cmcd.buffer_length, Some(Duration::ZERO));
    assert_eq!(cmcd.deadline, Some(Duration::from_micros(1_500_500)));
    assert_eq!(
        (cmcd.session.as_deref(), cmcd.starved, cmcd.startup, cmcd.ignored),
        (Some("bare"), false, true, 0)
    );
}

#[test]
fn length_and_number_are_bounded() {
    let long = "s".repeat(IDENTIFIER + 1);
    assert_eq!(in_field(&format!("sid=\"{long}\"")).session, None);
    assert_eq!(
        in_field(&format!("br=1,sid=\"{}\"", "s".repeat(LONGEST))).bitrate,
        None
    );
    let many = "br=1,".repeat(PAIRS) + "bl=1";
    let cmcd = in_field(&many);
    assert_eq!((cmcd.buffer_length, cmcd.ignored), (None, 1));
}

proptest! {
    #[test]
    fn no_field_makes_it_panic_or_keep_much(text in "[ -~]{0,600}", query in "[!-~&&[^#]]{0,600}") {
        let headers: HeaderMap = [(HeaderName::from_static("cmcd-status"), HeaderValue::from_str(&text).unwrap())].into_iter().collect();
        let Ok(uri) = format!("/?CMCD={query}").parse::<Uri>() else { return Ok(()) };
        if let Some(cmcd) = Cmcd::of(&headers, &uri) {
            prop_assert!(cmcd.ignored <= PAIRS + 2);
            prop_assert!(cmcd.session.is_none_or(|session| session.len() <= IDENTIFIER));
            prop_assert!(cmcd.bitrate.is_none_or(|rate| rate <= FASTEST));
            prop_assert!(cmcd.buffer_length.is_none_or(|length| length <= LONGEST_TIME));
        }
    }

    #[test]
    fn what_is_written_is_read(br in 0..10_000_000_u64, bl in 0..86_400_000_u64, sid in "[ -~&&[^\"\\\\]]{1,64}", bs: bool) {
        let starved = if bs { ",bs" } else { "" };
        let cmcd = in_field(&format!("br={br},bl={bl}{starved},sid=\"{sid}\""));
        prop_assert_eq!(cmcd.bitrate, Some(Bitrate::from_kbps(br)));
        prop_assert_eq!(cmcd.buffer_length, Some(Duration::from_millis(bl)));
        prop_assert_eq!((cmcd.starved, cmcd.session, cmcd.ignored), (bs, Some(sid), 0));
    }
}
