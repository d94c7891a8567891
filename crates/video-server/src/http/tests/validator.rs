//! Tables of RFC 9110 §13 for one representation, last modified at `MODIFIED`.

use super::*;
use crate::http::headers;
use rstest::rstest;

const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const A_SECOND_BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const A_SECOND_AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

fn time(text: &str) -> SystemTime {
    httpdate::parse_http_date(text).unwrap()
}

fn current() -> Validators {
    let modified = time(MODIFIED) + Duration::from_millis(250);
    Validators::new(EntityTag("v1,x".into()), Some(modified))
}

#[rstest]
#[case::same(&[("if-none-match", "\"v1,x\"")], Precondition::NotModified)]
#[case::weak_same(&[("if-none-match", "W/\"v1,x\"")], Precondition::NotModified)]
#[case::one_of_a_list(&[("if-none-match", "\"a\", W/\"b\" , \"v1,x\"")], Precondition::NotModified)]
#[case::empty_elements(&[("if-none-match", ", ,\"v1,x\"")], Precondition::NotModified)]
#[case::second_line(&[("if-none-match", "\"a\""), ("if-none-match", "\"v1,x\"")], Precondition::NotModified)]
#[case::any(&[("if-none-match", "*")], Precondition::NotModified)]
#[case::other(&[("if-none-match", "\"v2\"")], Precondition::Proceed)]
#[case::part_of_a_tag(&[("if-none-match", "\"v1\"")], Precondition::Proceed)]
#[case::no_quotes(&[("if-none-match", "v1,x")], Precondition::Proceed)]
#[case::open_quote(&[("if-none-match", "\"v1,x")], Precondition::Proceed)]
#[case::empty(&[("if-none-match", "")], Precondition::Proceed)]
#[case::space_in_tag(&[("if-none-match", "\"v1, x\"")], Precondition::Proceed)]
#[case::tag_before_date(&[("if-none-match", "\"v2\""), ("if-modified-since", A_SECOND_AFTER)], Precondition::Proceed)]
#[case::same_date(&[("if-modified-since", MODIFIED)], Precondition::NotModified)]
#[case::later_date(&[("if-modified-since", A_SECOND_AFTER)], Precondition::NotModified)]
#[case::earlier_date(&[("if-modified-since", A_SECOND_BEFORE)], Precondition::Proceed)]
#[case::old_date_form(&[("if-modified-since", "Sunday, 06-Nov-94 08:49:37 GMT")], Precondition::NotModified)]
#[case::not_a_date(&[("if-modified-since", "yesterday")], Precondition::Proceed)]
#[case::two_dates(&[("if-modified-since", MODIFIED), ("if-modified-since", MODIFIED)], Precondition::Proceed)]
#[case::match_same(&[("if-match", "\"v1,x\"")], Precondition::Proceed)]
#[case::match_any(&[("if-match", "*")], Precondition::Proceed)]
#[case::match_is_strong(&[("if-match", "W/\"v1,x\"")], Precondition::Failed)]
#[case::match_other(&[("if-match", "\"v2\"")], Precondition::Failed)]
#[case::match_before_date(&[("if-match", "\"v1,x\""), ("if-unmodified-since", A_SECOND_BEFORE)], Precondition::Proceed)]
#[case::unmodified(&[("if-unmodified-since", MODIFIED)], Precondition::Proceed)]
#[case::modified_since(&[("if-unmodified-since", A_SECOND_BEFORE)], Precondition::Failed)]
#[case::unmodified_not_a_date(&[("if-unmodified-since", "soon")], Precondition::Proceed)]
#[case::match_then_none_match(&[("if-match", "\"v1,x\""), ("if-none-match", "\"v1,x\"")], Precondition::NotModified)]
#[case::failed_match_wins(&[("if-match", "\"v2\""), ("if-none-match", "\"v1,x\"")], Precondition::Failed)]
#[case::none(&[], Precondition::Proceed)]
fn conditions(#[case] fields: &[(&'static str, &str)], #[case] verdict: Precondition) {
    assert_eq!(evaluate(&headers(fields), &current()), verdict);
}

#[rstest]
#[case("if-modified-since")]
#[case("if-unmodified-since")]
fn dates_mean_nothing_to_what_has_none(#[case] name: &'static str) {
    let undated = Validators::new(EntityTag("v1".into()), None);
    let far = headers(&[(name, "Sat, 01 Jan 2000 00:00:00 GMT")]);
    assert_eq!(evaluate(&far, &undated), Precondition::Proceed);
}

#[rstest]
#[case::none(&[], true)]
#[case::same_tag(&[("if-range", "\"v1,x\"")], true)]
#[case::weak_tag(&[("if-range", "W/\"v1,x\"")], false)]
#[case::other_tag(&[("if-range", "\"v2\"")], false)]
#[case::list(&[("if-range", "\"v1,x\", \"v2\"")], false)]
#[case::twice(&[("if-range", "\"v1,x\""), ("if-range", "\"v1,x\"")], false)]
#[case::same_date(&[("if-range", MODIFIED)], true)]
#[case::earlier_date(&[("if-range", A_SECOND_BEFORE)], false)]
#[case::later_date(&[("if-range", A_SECOND_AFTER)], false)]
#[case::nonsense(&[("if-range", "v1,x")], false)]
fn if_range(#[case] fields: &[(&'static str, &str)], #[case] holds: bool) {
    let now = Some(time("Mon, 07 Nov 1994 00:00:00 GMT"));
    assert_eq!(if_range_holds(&headers(fields), &current(), now), holds);
}

#[rstest]
#[case::no_clock(None)]
#[case::within_the_same_second(Some(time(MODIFIED)))]
fn a_date_that_may_name_two_versions_is_no_strong_validator(#[case] now: Option<SystemTime>) {
    let fields = headers(&[("if-range", MODIFIED)]);
    assert!(!if_range_holds(&fields, &current(), now));
}

#[test]
fn last_modified_is_written_in_whole_seconds_and_never_lies_ahead() {
    let current = current();
    assert_eq!(current.last_modified(None).as_deref(), Some(MODIFIED));
    assert_eq!(
        current.last_modified(Some(time(MODIFIED))).as_deref(),
        Some(MODIFIED)
    );
    assert_eq!(current.last_modified(Some(time(A_SECOND_BEFORE))), None);
}

#[rstest]
#[case::before_1970(UNIX_EPOCH - Duration::from_secs(1))]
#[case::after_9999(UNIX_EPOCH + LAST_DATE + Duration::from_secs(1))]
fn a_date_that_http_cannot_write_is_none(#[case] modified: SystemTime) {
    let odd = Validators::new(EntityTag::of_file(1, modified, 0), Some(modified));
    assert_eq!(odd.last_modified(None), None);
}

#[test]
fn the_tag_changes_with_length_time_and_file() {
    let nanos = |nanos| UNIX_EPOCH + Duration::from_nanos(nanos);
    let tags = [
        EntityTag::of_file(1, nanos(1_000), 7),
        EntityTag::of_file(2, nanos(1_000), 7),
        EntityTag::of_file(1, nanos(1_001), 7),
        EntityTag::of_file(1, UNIX_EPOCH - Duration::from_micros(1), 7),
        EntityTag::of_file(1, nanos(1_000), 8),
    ];
    for (index, tag) in tags.iter().enumerate() {
        assert!(!tags[index + 1..].contains(tag), "{tag:?}");
    }
    assert_eq!(tags[0].to_field(), "\"1-3e8-7\"");
    assert_eq!(EntityTag::of_identity("ab-\"0\n1").to_field(), "\"ab-01\"");
}
