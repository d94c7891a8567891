//! CMCD as players send it, hostile texts, and the round trip.

use super::*;
use http::{HeaderMap, HeaderName, Uri};
use proptest::prelude::*;
use rstest::rstest;

fn fields(fields: &[(&'static str, &str)]) -> HeaderMap {
    let field =
        |&(name, value): &(&'static str, &str)| (HeaderName::from_static(name), value.parse().unwrap());
    fields.iter().map(field).collect()
}

fn in_field(text: &str) -> Cmcd {
    Cmcd::read(&fields(&[("cmcd-request", text)]), &Uri::from_static("/")).unwrap()
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
    let cmcd = Cmcd::read(&headers, &Uri::from_static("/")).unwrap();
    let expected = Cmcd {
        bitrate: Some(Bitrate::from_kbps(3_200)),
        buffer_length: Some(Duration::from_millis(21_300)),
        underflow: true,
        content: Some("faec5fc2".into()),
        object_duration: Some(Duration::from_millis(4_004)),
        deadline: Some(Duration::from_millis(18_500)),
        measured_throughput: Some(Bitrate::from_kbps(48_100)),
        next_object: Some("..%2Fsegment6.m4s".into()),
        next_range: Some(0..1_501),
        object_type: Some(ObjectType::Video),
        playback_rate: Some(1.08),
        requested_throughput: Some(Bitrate::from_kbps(15_000)),
        streaming_format: Some("d"),
        session: Some("6e2fb550-c457-11e9-bb97-0800200c9a66".into()),
        stream_type: Some("v"),
        startup: true,
        top_bitrate: Some(Bitrate::from_kbps(6_000)),
        ..Cmcd::default()
    };
    assert_eq!(cmcd, expected);
}

#[test]
fn the_query_says_the_same_and_fields_win() {
    let uri: Uri = "/a.m4s?t=1&CMCD=br%3D3200%2Cbl%3D21300%2Cbs%2Csid%3D%226e2f%2C+%5C%22b%5C%22%22&x=2"
        .parse()
        .unwrap();
    let cmcd = Cmcd::read(&HeaderMap::new(), &uri).unwrap();
    assert_eq!(cmcd.bitrate, Some(Bitrate::from_kbps(3_200)));
    assert_eq!(cmcd.buffer_length, Some(Duration::from_millis(21_300)));
    assert!(cmcd.underflow);
    assert_eq!(cmcd.session.as_deref(), Some("6e2f,+\"b\""));
    assert_eq!(cmcd.ignored, 0);
    let both = Cmcd::read(&fields(&[("cmcd-object", "br=100")]), &uri).unwrap();
    assert_eq!(both.bitrate, Some(Bitrate::from_kbps(100)));
    assert!(both.underflow);
}

#[rstest]
#[case("/film.mp4", &[])]
#[case("/film.mp4?cmcd=br%3D1&xCMCD=br%3D1", &[])]
#[case("/film.mp4?CMCD=", &[])]
#[case("/film.mp4?CMCD", &[("cmcd-request", "  ")])]
fn a_request_without_cmcd_says_nothing(#[case] uri: &str, #[case] headers: &[(&'static str, &str)]) {
    assert_eq!(Cmcd::read(&fields(headers), &uri.parse().unwrap()), None);
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
#[case::empty_list("mtp=(),br=100")]
#[case::list_without_an_end("mtp=(1 2,br=100")]
#[case::list_of_another_type("mtp=(\"1\"),br=100")]
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

/// CTA-5004-B: a list has a value for each type of object.
#[rstest]
#[case::of_one_type("ot=v,br=(4820)", 4_820)]
#[case::of_this_type("ot=a,br=(4820;v 128;a)", 128)]
#[case::the_type_comes_later("br=(4820;v 128;a),ot=a", 128)]
#[case::of_other_types("ot=av,br=(4820;v 128;a)", 4_820)]
#[case::without_a_type("br=( 4820;v  128;a )", 4_820)]
#[case::version_1("br=4820,ot=v", 4_820)]
fn the_value_of_a_list_is_that_of_the_requested_type(#[case] text: &str, #[case] kbps: u64) {
    let cmcd = in_field(text);
    assert_eq!((cmcd.bitrate, cmcd.ignored), (Some(Bitrate::from_kbps(kbps)), 0));
}

#[test]
fn version_2_as_a_player_writes_it() {
    let headers = fields(&[
        (
            "cmcd-object",
            "br=(4820),d=4000,lb=(400),ot=v,tb=(6000),tpb=(6000)",
        ),
        (
            "cmcd-request",
            "bl=(12300),dl=12300,ltc=4200,mtp=(48100),nor=(\"seg%206.m4s\"),pb=(4820),sn=7,sta=p,tbl=(20000)",
        ),
        ("cmcd-status", "bg=?0,bs=?0,pt=1000,rtp=15000"),
        ("cmcd-session", "cid=\"film\",msd=310,sf=d,sid=\"6e2f\",st=v,v=2"),
    ]);
    let cmcd = Cmcd::read(&headers, &Uri::from_static("/")).unwrap();
    let expected = Cmcd {
        bitrate: Some(Bitrate::from_kbps(4_820)),
        buffer_length: Some(Duration::from_millis(12_300)),
        content: Some("film".into()),
        object_duration: Some(Duration::from_secs(4)),
        deadline: Some(Duration::from_millis(12_300)),
        measured_throughput: Some(Bitrate::from_kbps(48_100)),
        next_object: Some("seg%206.m4s".into()),
        object_type: Some(ObjectType::Video),
        requested_throughput: Some(Bitrate::from_kbps(15_000)),
        streaming_format: Some("d"),
        session: Some("6e2f".into()),
        stream_type: Some("v"),
        state: Some("p"),
        lowest_bitrate: Some(Bitrate::from_kbps(400)),
        top_bitrate: Some(Bitrate::from_kbps(6_000)),
        version_2: true,
        ..Cmcd::default()
    };
    assert_eq!(cmcd, expected);
}

#[test]
fn as_players_write_it() {
    let cmcd = in_field(" bl=-120 , dl=1500.5,sid=bare,bs=false , su=?1,nor=next.m4s");
    assert_eq!(cmcd.buffer_length, Some(Duration::ZERO));
    assert_eq!(cmcd.deadline, Some(Duration::from_micros(1_500_500)));
    assert_eq!(cmcd.session.as_deref(), Some("bare"));
    assert!(!cmcd.underflow && cmcd.startup);
    assert_eq!(cmcd.ignored, 0);
}

#[rstest]
#[case::fraction("br=(1499.6)", "br=1500")]
#[case::low_latency("st=ll", "st=ll")]
#[case::long_fraction("br=1499.6000001", "br=1500")]
fn values_that_players_do_not_round_are_read(#[case] text: &str, #[case] written: &str) {
    let mut headers = HeaderMap::new();
    in_field(text).write_headers(&mut headers);
    assert_eq!(headers.values().next().unwrap(), written);
}

#[test]
fn a_report_has_an_event_in_each_line() {
    let report = "e=ps,sid=\"6e2f\",sta=p,ts=1764200000123,v=2\n\r\n \
        bl=(8000;v 4000;a),br=(2500),e=t,mtp=(48100),ot=a,ts=1\r\ne=zz,bl=(1)\nnonsense";
    let events: Vec<_> = Cmcd::read_events(report).collect();
    let [state, interval, unknown, nonsense] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((state.event, state.state), (Some("ps"), Some("p")));
    assert_eq!(state.time, Some(Duration::from_millis(1_764_200_000_123)));
    assert_eq!(interval.event, Some("t"));
    assert_eq!(interval.buffer_length, Some(Duration::from_secs(4)));
    assert_eq!((unknown.event, unknown.ignored), (None, 1));
    assert_eq!(unknown.buffer_length, Some(Duration::from_millis(1)));
    assert_eq!((nonsense.event, nonsense.ignored), (None, 1));
}

#[test]
fn version_2_is_written_with_lists_and_its_own_keys() {
    let said = Cmcd {
        next_object: Some("6.m4s".into()),
        next_range: Some(0..2),
        lowest_bitrate: Some(Bitrate::from_kbps(440)),
        state: Some("p"),
        version_2: true,
        ..everything()
    };
    let mut headers = HeaderMap::new();
    said.write_headers(&mut headers);
    assert_eq!(
        headers["cmcd-object"],
        "br=(3200;v),d=4004,lb=(440;v),ot=v,tb=(6000;v)"
    );
    let request = "bl=(21300;v),dl=18500,mtp=(48100),nor=(\"6.m4s\";r=\"0-1\"),sta=p,su";
    assert_eq!(headers["cmcd-request"], request);
    let session = "cid=\"/films/a \\\"b\\\".mpd\",sf=d,sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\",st=v,v=2";
    assert_eq!(headers["cmcd-session"], session);
    assert_eq!(in_field(request).next_range, said.next_range);
}

#[test]
fn length_and_number_are_bounded() {
    let long = "s".repeat(MAX_IDENTIFIER + 1);
    assert_eq!(in_field(&format!("sid=\"{long}\"")).session, None);
    let long = "s".repeat(MAX_FIELD);
    assert_eq!(in_field(&format!("br=1,sid=\"{long}\"")).bitrate, None);
    let many = "br=1,".repeat(MAX_MEMBERS) + "bl=1";
    let cmcd = in_field(&many);
    assert_eq!((cmcd.buffer_length, cmcd.ignored), (None, 1));
}

proptest! {
    #[test]
    fn what_is_written_is_read(written in any_cmcd()) {
        let mut headers = HeaderMap::new();
        written.write_headers(&mut headers);
        let uri = Uri::from_static("/v/1.m4s");
        prop_assert_eq!(Cmcd::read(&headers, &uri).unwrap_or_default(), written.clone());
        let uri: Uri = written.append_to("/v/1.m4s?t=1").parse().unwrap();
        prop_assert_eq!(Cmcd::read(&HeaderMap::new(), &uri).unwrap_or_default(), written);
    }
}

/// Values on the grid of CTA-5004's rounding.
fn any_cmcd() -> impl Strategy<Value = Cmcd> {
    let rate = || prop::option::of((0..10_000_000_u64).prop_map(Bitrate::from_kbps));
    let coarse_rate = || prop::option::of((1..100_000_u64).prop_map(|rate| Bitrate::from_kbps(rate * 100)));
    let coarse_time =
        || prop::option::of((0..864_000_u64).prop_map(|time| Duration::from_millis(time * 100)));
    let text = || prop::option::of("[ -~]{1,64}");
    let token = |tokens| prop::option::of(prop::sample::select(tokens));
    let numbers = (
        rate(),
        coarse_time(),
        coarse_time(),
        coarse_rate(),
        coarse_rate(),
        rate(),
    );
    let texts = (
        text(),
        text(),
        text(),
        prop::option::of((0..1_000_u64, 1..1_000_u64)),
    );
    let kinds = (
        prop::option::of(prop::sample::select(&ObjectType::TOKENS[..])),
        token(vec!["d", "h", "s", "o"]),
        token(vec!["v", "l", "ll"]),
        prop::option::of(0..100_000_u32),
    );
    let rest = (prop::option::of(0..86_400_000_u64), any::<bool>(), any::<bool>());
    let new = (
        token(EVENTS.to_vec()),
        token(STATES.to_vec()),
        rate(),
        prop::option::of(0..4_000_000_000_000_u64),
    );
    let old =
        (numbers, texts, kinds, rest).prop_map(|(numbers, texts, kinds, (duration, underflow, startup))| {
            Cmcd {
                bitrate: numbers.0,
                buffer_length: numbers.1,
                underflow,
                content: texts.0,
                object_duration: duration.map(Duration::from_millis),
                deadline: numbers.2,
                measured_throughput: numbers.3,
                next_object: texts.1,
                next_range: texts.3.map(|(start, length)| start..start + length),
                object_type: kinds.0.map(|(object, _)| object),
                playback_rate: kinds.3.map(|speed| f64::from(speed) / 1_000.0),
                requested_throughput: numbers.4,
                streaming_format: kinds.1,
                session: texts.2,
                stream_type: kinds.2,
                startup,
                top_bitrate: numbers.5,
                ..Cmcd::default()
            }
        });
    (old, new, any::<bool>()).prop_map(|(old, (event, state, lowest_bitrate, time), version_2)| {
        if version_2 {
            Cmcd {
                event,
                state,
                lowest_bitrate,
                time: time.map(Duration::from_millis),
                next_range: None,
                version_2,
                ..old
            }
        } else {
            old
        }
    })
}

fn everything() -> Cmcd {
    Cmcd {
        bitrate: Some(Bitrate::from_bits_per_second(3_200_499)),
        buffer_length: Some(Duration::from_millis(21_349)),
        underflow: true,
        content: Some("/films/a \"b\".mpd".into()),
        object_duration: Some(Duration::from_micros(4_004_400)),
        deadline: Some(Duration::from_millis(18_450)),
        measured_throughput: Some(Bitrate::from_kbps(48_149)),
        object_type: Some(ObjectType::Video),
        requested_throughput: Some(Bitrate::from_kbps(15_050)),
        streaming_format: Some("d"),
        session: Some("6e2fb550-c457-11e9-bb97-0800200c9a66".into()),
        stream_type: Some("v"),
        startup: true,
        top_bitrate: Some(Bitrate::from_kbps(6_000)),
        ..Cmcd::default()
    }
}

#[test]
fn each_key_is_written_to_its_field_rounded_as_the_specification_asks() {
    let mut headers = HeaderMap::new();
    everything().write_headers(&mut headers);
    assert_eq!(headers["cmcd-object"], "br=3200,d=4004,ot=v,tb=6000");
    assert_eq!(headers["cmcd-request"], "bl=21300,dl=18500,mtp=48100,su");
    assert_eq!(headers["cmcd-status"], "bs,rtp=15100");
    let session = "cid=\"/films/a \\\"b\\\".mpd\",sf=d,sid=\"6e2fb550-c457-11e9-bb97-0800200c9a66\",st=v";
    assert_eq!(headers["cmcd-session"], session);
    let mut headers = HeaderMap::new();
    Cmcd::default().write_headers(&mut headers);
    assert!(headers.is_empty(), "{headers:?}");
}

#[test]
fn the_query_has_all_keys_in_alphabetical_order() {
    let said = Cmcd {
        content: None,
        ..everything()
    };
    let expected = "/v/1.m4s?CMCD=bl%3D21300%2Cbr%3D3200%2Cbs%2Cd%3D4004%2Cdl%3D18500%2Cmtp%3D48100%2Cot%3Dv%2C\
        rtp%3D15100%2Csf%3Dd%2Csid%3D%226e2fb550-c457-11e9-bb97-0800200c9a66%22%2Cst%3Dv%2Csu%2Ctb%3D6000";
    assert_eq!(said.append_to("/v/1.m4s"), expected);
    let path = said.append_to("/v/1.m4s?t=1");
    assert!(path.starts_with("/v/1.m4s?t=1&CMCD="), "{path}");
}

#[test]
fn identifiers_are_cut_to_64_characters_and_a_slow_rate_is_not_zero() {
    let said = Cmcd {
        content: Some(format!("{}é/end.mpd", "x".repeat(100))),
        measured_throughput: Some(Bitrate::from_kbps(3)),
        buffer_length: Some(Duration::from_millis(49)),
        ..Cmcd::default()
    };
    let mut headers = HeaderMap::new();
    said.write_headers(&mut headers);
    assert_eq!(headers["cmcd-request"], "bl=0,mtp=100");
    let cut = format!("cid=\"{}/end.mpd\"", "x".repeat(56));
    assert_eq!(headers["cmcd-session"], cut);
}

#[test]
fn a_text_without_a_character_that_can_be_written_is_left_out() {
    let uri = "/film.mp4?CMCD=cid%3D%C3%A9%2Csid%3D%C3%A9a%2Cnor%3D%01"
        .parse()
        .unwrap();
    let read = Cmcd::read(&HeaderMap::new(), &uri).unwrap();
    assert_eq!(read.content.as_deref(), Some("é"));
    assert_eq!(read.session.as_deref(), Some("éa"));
    let mut headers = HeaderMap::new();
    read.write_headers(&mut headers);
    assert_eq!(headers, fields(&[("cmcd-session", "sid=\"a\"")]));
}
