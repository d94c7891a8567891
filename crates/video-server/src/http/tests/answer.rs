//! Requests against one representation of 1000 bytes.

use core::time::Duration;
use std::time::UNIX_EPOCH;

use super::*;
use crate::http::validator::EntityTag;
use rstest::rstest;

/// A wall clock that shows 2001-09-09T01:46:40Z.
fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_000_000_000)
}

fn answered(method: &str, target: &str) -> Answer {
    match route(&method.parse().unwrap(), &target.parse().unwrap()) {
        Route::Answer(answer) => answer,
        Route::LookUp(name) => panic!("{name} would be looked up"),
    }
}

fn film() -> Representation {
    let modified = UNIX_EPOCH + Duration::from_secs(784_111_777);
    Representation {
        length: 1_000,
        content_type: "video/mp4",
        validators: Validators::new(EntityTag::of_file(1_000, modified, 1), Some(modified)),
    }
}

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    fields
        .iter()
        .map(|&(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        })
        .collect()
}

fn get<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer
        .head
        .headers()
        .get(name)
        .map(|value| value.to_str().unwrap())
}

#[test]
fn a_get_is_answered_with_the_whole_and_its_metadata() {
    let answer = represent(&Method::GET, &headers(&[]), &film(), Some(now())).dated(Some(now()));
    assert_eq!(answer.head.status(), StatusCode::OK);
    assert_eq!(answer.body, Body::Bytes(0..1_000));
    assert_eq!(answer.content_length(), 1_000);
    for (name, value) in [
        ("content-type", "video/mp4"),
        ("content-length", "1000"),
        ("accept-ranges", "bytes"),
        ("etag", film().validators.etag.to_field().as_str()),
        ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("date", "Sun, 09 Sep 2001 01:46:40 GMT"),
    ] {
        assert_eq!(get(&answer, name), Some(value), "{name}");
    }
    assert_eq!(get(&answer, "content-range"), None);
}

#[test]
fn a_server_without_a_clock_sends_no_date() {
    let answer = represent(&Method::GET, &headers(&[]), &film(), None).dated(None);
    assert_eq!(get(&answer, "date"), None);
}

#[test]
fn a_head_has_the_fields_of_a_get_and_no_content() {
    let get = represent(&Method::GET, &headers(&[]), &film(), Some(now()));
    let head = represent(
        &Method::HEAD,
        &headers(&[("range", "bytes=0-9")]),
        &film(),
        Some(now()),
    );
    assert_eq!(
        head.head.status(),
        StatusCode::OK,
        "Range is defined for GET only"
    );
    assert_eq!(head.head.headers(), get.head.headers());
    assert_eq!(head.body, Body::Empty);
}

#[rstest]
#[case("bytes=0-99", 0..100, "bytes 0-99/1000")]
#[case("bytes=900-", 900..1_000, "bytes 900-999/1000")]
#[case("bytes=-1", 999..1_000, "bytes 999-999/1000")]
fn a_range_is_answered_with_206(#[case] field: &str, #[case] part: Range<u64>, #[case] unit: &str) {
    let length = (part.end - part.start).to_string();
    let answer = represent(&Method::GET, &headers(&[("range", field)]), &film(), Some(now()));
    assert_eq!(answer.head.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(get(&answer, "content-range"), Some(unit));
    assert_eq!(get(&answer, "content-length"), Some(length.as_str()));
    assert_eq!(answer.body, Body::Bytes(part));
}

#[test]
fn a_range_past_the_end_is_answered_with_416_and_the_length() {
    let answer = represent(
        &Method::GET,
        &headers(&[("range", "bytes=1000-")]),
        &film(),
        Some(now()),
    );
    assert_eq!(answer.head.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(get(&answer, "content-range"), Some("bytes */1000"));
    assert!(matches!(answer.body, Body::Text(_)));
}

#[rstest]
#[case::several_ranges(&[("range", "bytes=0-1,5-6")])]
#[case::malformed(&[("range", "bytes=x")])]
#[case::field_twice(&[("range", "bytes=0-1"), ("range", "bytes=0-1")])]
#[case::other_version(&[("range", "bytes=0-1"), ("if-range", "\"old\"")])]
fn a_range_that_is_ignored_is_answered_with_the_whole(#[case] fields: &[(&'static str, &str)]) {
    let answer = represent(&Method::GET, &headers(fields), &film(), Some(now()));
    assert_eq!(answer.head.status(), StatusCode::OK);
    assert_eq!(answer.body, Body::Bytes(0..1_000));
}

#[test]
fn a_range_of_the_version_that_is_there_is_honoured() {
    let tag = film().validators.etag.to_field();
    for version in [tag.as_str(), "Sun, 06 Nov 1994 08:49:37 GMT"] {
        let fields = headers(&[("range", "bytes=0-1"), ("if-range", version)]);
        let answer = represent(&Method::GET, &fields, &film(), Some(now()));
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
    assert_eq!(get(&answer, "etag"), Some(tag.as_str()));
    assert_eq!(get(&answer, "content-length"), None);
    assert_eq!(answer.body, Body::Empty);
}

#[test]
fn another_version_than_asked_for_is_answered_with_412() {
    let answer = represent(
        &Method::GET,
        &headers(&[("if-match", "\"old\"")]),
        &film(),
        Some(now()),
    );
    assert_eq!(answer.head.status(), StatusCode::PRECONDITION_FAILED);
}

#[test]
fn an_empty_file_is_answered_with_nothing_in_200() {
    let empty = Representation { length: 0, ..film() };
    let answer = represent(
        &Method::GET,
        &headers(&[("range", "bytes=-5")]),
        &empty,
        Some(now()),
    );
    assert_eq!(answer.head.status(), StatusCode::OK);
    assert_eq!(get(&answer, "content-length"), Some("0"));
    assert_eq!(answer.body, Body::Bytes(0..0));
}

#[rstest]
#[case("GET")]
#[case("HEAD")]
fn a_name_is_routed_whatever_its_query(#[case] method: &str) {
    let uri = Uri::from_static("https://host/a/film.mp4?x=../..");
    let Route::LookUp(name) = route(&method.parse().unwrap(), &uri) else {
        panic!("not routed")
    };
    assert_eq!(name.as_str(), "a/film.mp4");
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
    assert_eq!(get(&answer, "allow"), allow);
    let text = matches!(&answer.body, Body::Text(text) if text.ends_with('\n') && text.len() < 200);
    assert_eq!(text, status != 204);
}

#[test]
fn a_refused_head_has_no_content_either() {
    assert_eq!(answered("HEAD", "/%zz").body, Body::Empty);
    assert_eq!(Answer::not_found(&Method::HEAD).body, Body::Empty);
    assert_ne!(Answer::not_found(&Method::GET).body, Body::Empty);
}
