//! Requests against one representation of 1000 bytes.

use core::time::Duration;
use std::time::UNIX_EPOCH;

use super::*;
use crate::http::headers;
use crate::http::validator::EntityTag;
use rstest::rstest;

/// A wall clock that shows 2001-09-09T01:46:40Z.
fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_000_000_000)
}

fn answered(method: &str, target: &str) -> Answer {
    let uri: http::Uri = target.parse().unwrap();
    let route = route(&method.parse().unwrap(), uri.path());
    route.break_value().expect("nothing is looked up")
}

fn film() -> ContentInfo {
    let modified = UNIX_EPOCH + Duration::from_secs(784_111_777);
    ContentInfo {
        length: 1_000,
        content_type: "video/mp4",
        cache_kind: CacheKind::Title,
        validators: Validators::new(EntityTag::of_file(1_000, modified, 1), Some(modified)),
    }
}

/// The answer to a GET of the film with these header fields.
fn get(fields: &[(&'static str, &str)]) -> Answer {
    represent(&Method::GET, &headers(fields), &film(), Some(now()))
}

fn nothing() -> AnswerBody {
    AnswerBody::Text(String::new())
}

fn field<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let value = answer.head.headers().get(name);
    value.map(|value| value.to_str().unwrap())
}

#[test]
fn a_get_is_answered_with_the_whole_and_its_metadata() {
    let answer = get(&[]).dated(Some(now()));
    assert_eq!(answer.head.status(), StatusCode::OK);
    assert_eq!(answer.body, AnswerBody::Bytes(0..1_000));
    for (name, value) in [
        ("content-type", "video/mp4"),
        ("content-length", "1000"),
        ("accept-ranges", "bytes"),
        ("etag", film().validators.etag.to_field().as_str()),
        ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("date", "Sun, 09 Sep 2001 01:46:40 GMT"),
    ] {
        assert_eq!(field(&answer, name), Some(value), "{name}");
    }
    assert_eq!(field(&answer, "content-range"), None);
}

#[test]
fn a_server_without_a_clock_sends_no_date() {
    let answer = represent(&Method::GET, &headers(&[]), &film(), None).dated(None);
    assert_eq!(field(&answer, "date"), None);
}

#[test]
fn a_head_has_the_fields_of_a_get_and_no_content() {
    let fields = headers(&[("range", "bytes=0-9")]);
    let head = represent(&Method::HEAD, &fields, &film(), Some(now())).for_method(&Method::HEAD);
    let status = head.head.status();
    assert_eq!(status, StatusCode::OK, "Range is defined for GET only");
    assert_eq!(head.head.headers(), get(&[]).head.headers());
    assert_eq!(head.body, nothing());
}

#[rstest]
#[case("bytes=0-99", 0..100, "bytes 0-99/1000")]
#[case("bytes=900-", 900..1_000, "bytes 900-999/1000")]
#[case("bytes=-1", 999..1_000, "bytes 999-999/1000")]
fn a_range_is_answered_with_206(#[case] range: &str, #[case] part: Range<u64>, #[case] unit: &str) {
    let length = (part.end - part.start).to_string();
    let answer = get(&[("range", range)]);
    assert_eq!(answer.head.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(field(&answer, "content-range"), Some(unit));
    assert_eq!(field(&answer, "content-length"), Some(length.as_str()));
    assert_eq!(answer.body, AnswerBody::Bytes(part));
}

#[test]
fn a_range_past_the_end_is_answered_with_416_and_the_length() {
    let answer = get(&[("range", "bytes=1000-")]);
    assert_eq!(answer.head.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(field(&answer, "content-range"), Some("bytes */1000"));
    assert!(matches!(answer.body, AnswerBody::Text(_)));
}

#[rstest]
#[case::several_ranges(&[("range", "bytes=0-1,5-6")])]
#[case::malformed(&[("range", "bytes=x")])]
#[case::field_twice(&[("range", "bytes=0-1"), ("range", "bytes=0-1")])]
#[case::other_version(&[("range", "bytes=0-1"), ("if-range", "\"old\"")])]
fn a_range_that_is_ignored_is_answered_with_the_whole(#[case] fields: &[(&'static str, &str)]) {
    let answer = get(fields);
    assert_eq!(answer.head.status(), StatusCode::OK);
    assert_eq!(answer.body, AnswerBody::Bytes(0..1_000));
}

#[test]
fn a_range_of_the_version_that_is_there_is_honoured() {
    let tag = film().validators.etag.to_field();
    for version in [tag.as_str(), "Sun, 06 Nov 1994 08:49:37 GMT"] {
        let answer = get(&[("range", "bytes=0-1"), ("if-range", version)]);
        assert_eq!(answer.head.status(), StatusCode::PARTIAL_CONTENT, "{version}");
    }
}

#[rstest]
#[case(Method::GET)]
#[case(Method::HEAD)]
fn what_the_client_has_is_answered_with_304_and_its_tag(#[case] method: Method) {
    let tag = film().validators.etag.to_field();
    let fields = headers(&[("if-none-match", &tag), ("range", "bytes=2000-")]);
    let answer = represent(&method, &fields, &film(), Some(now()));
    assert_eq!(answer.head.status(), StatusCode::NOT_MODIFIED);
    assert_eq!(field(&answer, "etag"), Some(tag.as_str()));
    assert_eq!(field(&answer, "content-length"), None);
    assert_eq!(answer.body, nothing());
}

#[test]
fn another_version_than_asked_for_is_answered_with_412() {
    let answer = get(&[("if-match", "\"old\"")]);
    assert_eq!(answer.head.status(), StatusCode::PRECONDITION_FAILED);
}

#[test]
fn an_empty_file_is_answered_with_nothing_in_200() {
    let empty = ContentInfo { length: 0, ..film() };
    let fields = headers(&[("range", "bytes=-5")]);
    let answer = represent(&Method::GET, &fields, &empty, Some(now()));
    assert_eq!(answer.head.status(), StatusCode::OK);
    assert_eq!(field(&answer, "content-length"), Some("0"));
    assert_eq!(answer.body, AnswerBody::Bytes(0..0));
}

#[rstest]
#[case("GET")]
#[case("HEAD")]
fn a_name_is_routed_whatever_its_query(#[case] method: &str) {
    let uri = http::Uri::from_static("https://host/a/film.mp4?x=../..");
    let name = route(&method.parse().unwrap(), uri.path()).continue_value();
    assert_eq!(name.unwrap().as_str(), "a/film.mp4");
}

#[rstest]
#[case::post("POST", "/film.mp4", 405)]
#[case::put("PUT", "/film.mp4", 405)]
#[case::delete("DELETE", "/none", 405)]
#[case::trace("TRACE", "/film.mp4", 405)]
#[case::unheard_of("BREW", "/film.mp4", 405)]
#[case::case_matters("get", "/film.mp4", 405)]
#[case::options("OPTIONS", "/film.mp4", 204)]
#[case::options_of_the_server("OPTIONS", "*", 204)]
#[case::get_of_the_server("GET", "*", 400)]
#[case::malformed("GET", "/%zz", 400)]
#[case::traversal("GET", "/../secret", 404)]
#[case::root("GET", "/", 404)]
fn what_needs_no_lookup_is_answered_at_once(#[case] method: &str, #[case] target: &str, #[case] status: u16) {
    let answer = answered(method, target);
    assert_eq!(answer.head.status(), status);
    let allow = (status == 405 || status == 204).then_some(METHODS);
    assert_eq!(field(&answer, "allow"), allow);
    let text = matches!(&answer.body, AnswerBody::Text(text) if text.ends_with('\n') && text.len() < 200);
    assert_eq!(text, status != 204);
}

#[test]
fn a_refused_head_has_no_content_either() {
    for refusal in [|| answered("HEAD", "/%zz"), Answer::not_found] {
        assert_eq!(refusal().for_method(&Method::HEAD).body, nothing());
        assert_ne!(refusal().for_method(&Method::GET).body, nothing());
    }
}
