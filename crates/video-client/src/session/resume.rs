//! The rest of an interrupted response: its request and the valid answers.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use playrate_units::Bytes;

use crate::error::{PlayError, Result, status_error};

/// The rest of a response, to be requested if its file is unchanged.
#[derive(Clone, Debug)]
pub(super) struct Rest {
    /// Path of the file.
    pub(super) path: String,
    /// Position in the file.
    pub(super) first: u64,
    /// Position of the last byte to request; `None` for the file's end.
    pub(super) last: Option<u64>,
    /// Position after the last byte of the response, if the server declared it.
    pub(super) end: Option<u64>,
    /// Length of the file, if the server declared it.
    pub(super) complete: Option<u64>,
    /// Strong entity tag of the response (RFC 9110 §8.8.3).
    pub(super) tag: HeaderValue,
    /// Bytes of the response received before.
    pub(super) received: Bytes,
    /// Error that interrupted the response.
    pub(super) cause: String,
}

/// The entity tag of a response if it is strong: only then do equal tags mean equal bytes.
pub(super) fn strong_tag(headers: &HeaderMap) -> Option<HeaderValue> {
    let tag = headers.get(header::ETAG)?;
    tag.as_bytes().starts_with(b"\"").then(|| tag.clone())
}

/// The problem of a response that is neither the requested part nor the whole file.
const OTHER_PART: &str = "the server does not send the requested range";

/// The part of a file that a response carries (`Content-Range`, RFC 9110 §14.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ContentRange {
    /// Position of the first byte.
    pub(super) first: u64,
    /// Position of the last byte.
    last: u64,
    /// Length of the file; `None` if the server does not know it.
    pub(super) complete: Option<u64>,
}

/// Both parts of `Content-Range: bytes PART/COMPLETE`.
fn content_range(headers: &HeaderMap) -> Option<(&str, &str)> {
    let range = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split_once('/')
}

impl ContentRange {
    /// The range of a response with these headers, if it is valid.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let (part, complete) = content_range(headers)?;
        let (first, last) = part.split_once('-')?;
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        let complete = match complete {
            "*" => None,
            length => Some(length.parse().ok()?),
        };
        let valid = first <= last && complete.is_none_or(|length| last < length);
        valid.then_some(Self {
            first,
            last,
            complete,
        })
    }

    /// Number of bytes; `None` if it exceeds 64 bits.
    pub(super) fn length(&self) -> Option<u64> {
        self.last.saturating_sub(self.first).checked_add(1)
    }
}

impl Rest {
    /// Checks that `response` is this part of the same file. Returns the position after its last byte, or `None` if the
    /// file has no more bytes.
    ///
    /// # Errors
    /// The file has changed, or the server sends something else.
    pub(super) fn check(&self, response: &Response<()>) -> Result<Option<u64>> {
        let problem = match response.status() {
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE
                if self.is_other_version(response) =>
            {
                None
            }
            StatusCode::PARTIAL_CONTENT => match ContentRange::of(response.headers()) {
                Some(range) if self.is_other_length(range.complete) => None,
                Some(range) if self.is_in(&range) => return Ok(range.last.checked_add(1)),
                _ => Some(OTHER_PART),
            },
            StatusCode::RANGE_NOT_SATISFIABLE => match complete_length(response.headers()) {
                Some(length) if self.is_other_length(Some(length)) || length < self.least_length() => None,
                Some(length) if length == self.first => return Ok(None),
                _ => Some(OTHER_PART),
            },
            StatusCode::OK if strong_tag(response.headers()).as_ref() == Some(&self.tag) => {
                Some("the server sends all of it in place of the requested range")
            }
            StatusCode::OK => None,
            _ => return Err(status_error(response, &self.path)),
        };
        let (path, received) = (self.path.clone(), self.received);
        Err(match problem {
            Some(problem) => PlayError::NotResumable {
                path,
                received,
                cause: self.cause.clone(),
                problem,
            },
            None => PlayError::Changed { path, received },
        })
    }

    /// Returns true if the response names another version. It need not name one, because the request's tag did
    /// (§15.3.7).
    fn is_other_version(&self, response: &Response<()>) -> bool {
        let tag = response.headers().get(header::ETAG);
        tag.is_some_and(|tag| *tag != self.tag)
    }

    /// Returns true if the file is known to have had a different length.
    fn is_other_length(&self, length: Option<u64>) -> bool {
        length.is_some() && self.complete.is_some() && length != self.complete
    }

    /// Minimum length of the file if it is unchanged.
    fn least_length(&self) -> u64 {
        self.end.unwrap_or(self.first)
    }

    /// Returns true if `range` is this part. It must end at the declared end, or else at the last requested byte or the
    /// end of a shorter file.
    fn is_in(&self, range: &ContentRange) -> bool {
        let end = range.last.checked_add(1);
        range.first == self.first
            && match (self.end, self.last) {
                (Some(_), _) => end == self.end,
                (None, Some(last)) => range.last == last || (range.last < last && end == range.complete),
                (None, None) => range.complete.is_none() || end == range.complete,
            }
    }
}

/// Length of the file in a response of status 416 (`Content-Range: bytes */LENGTH`, RFC 9110 §15.5.17).
fn complete_length(headers: &HeaderMap) -> Option<u64> {
    let (part, complete) = content_range(headers)?;
    complete.parse().ok().filter(|_| part == "*")
}

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_test_support::assert_contains;
    use rstest::rstest;

    fn response(status: u16, fields: &[(&str, &str)]) -> Response<()> {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        response.body(()).unwrap()
    }

    /// The rest of a response after 100 bytes of its file.
    fn rest(last: Option<u64>, end: Option<u64>, complete: Option<u64>) -> Rest {
        Rest {
            path: "/a".to_owned(),
            first: 100,
            last,
            end,
            complete,
            tag: HeaderValue::from_static("\"v1\""),
            received: Bytes::new(100),
            cause: "the server left".to_owned(),
        }
    }

    /// The rest of a file of 200 bytes.
    fn whole() -> Rest {
        rest(None, Some(200), Some(200))
    }

    #[rstest]
    #[case::to_the_end(whole(), &[("content-range", "bytes 100-199/200"), ("etag", "\"v1\"")])]
    #[case::without_a_tag(whole(), &[("content-range", "bytes 100-199/200")])]
    #[case::of_unstated_length(whole(), &[("content-range", "bytes 100-199/*")])]
    #[case::to_an_end_not_declared_before(rest(None, None, None), &[("content-range", "bytes 100-199/200")])]
    #[case::of_unknown_length(rest(None, None, None), &[("content-range", "bytes 100-199/*")])]
    #[case::part_of_a_range(rest(Some(199), Some(200), Some(300)), &[("content-range", "bytes 100-199/300")])]
    #[case::range_beyond_the_end(rest(Some(299), Some(200), Some(200)), &[("content-range", "bytes 100-199/200")])]
    #[case::range_beyond_an_end_not_declared(rest(Some(299), None, None), &[("content-range", "bytes 100-199/200")])]
    fn the_rest_of_the_same_file_is_taken(#[case] rest: Rest, #[case] fields: &[(&str, &str)]) {
        assert_eq!(rest.check(&response(206, fields)).unwrap(), Some(200));
    }

    #[rstest]
    #[case::not_declared(rest(None, None, None))]
    #[case::of_a_range(rest(Some(299), None, None))]
    #[case::declared(rest(None, Some(100), Some(100)))]
    fn nothing_is_left_if_the_file_ends_where_the_response_broke_off(#[case] rest: Rest) {
        let fields = [("content-range", "bytes */100")];
        assert_eq!(rest.check(&response(416, &fields)).unwrap(), None);
    }

    #[rstest]
    #[case::other_tag(206, &[("content-range", "bytes 100-199/200"), ("etag", "\"v2\"")], "changed on the server")]
    #[case::other_length(206, &[("content-range", "bytes 100-199/300")], "changed on the server")]
    #[case::all_of_another(200, &[("etag", "\"v2\"")], "changed on the server")]
    #[case::shorter(416, &[("content-range", "bytes */50")], "changed on the server")]
    #[case::shorter_by_all_that_is_left(416, &[("content-range", "bytes */100")], "changed on the server")]
    #[case::longer(416, &[("content-range", "bytes */300")], "changed on the server")]
    #[case::refused(416, &[("content-range", "bytes */200")], "not send the requested range")]
    #[case::refused_without_a_length(416, &[], "not send the requested range")]
    #[case::all_of_it(200, &[("etag", "\"v1\"")], "all of it")]
    #[case::other_begin(206, &[("content-range", "bytes 0-199/200")], "not send the requested range")]
    #[case::less(206, &[("content-range", "bytes 100-198/200")], "not send the requested range")]
    #[case::backwards(206, &[("content-range", "bytes 100-99/200")], "not send the requested range")]
    #[case::nowhere(206, &[], "not send the requested range")]
    #[case::gone(404, &[], "404")]
    fn anything_else_is_an_error_that_says_so(
        #[case] status: u16,
        #[case] fields: &[(&str, &str)],
        #[case] words: &str,
    ) {
        let error = whole().check(&response(status, fields)).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }

    #[test]
    fn the_error_names_what_interrupted_the_response_and_what_is_missing() {
        let error = whole().check(&response(206, &[])).unwrap_err().to_string();
        assert_contains(&error, &["the server left", "after 100B of /a"]);
    }

    #[rstest]
    #[case("\"v1\"", true)]
    #[case("W/\"v1\"", false)]
    #[case("v1", false)]
    fn only_a_strong_tag_identifies_bytes(#[case] tag: &str, #[case] strong: bool) {
        let response = response(200, &[("etag", tag)]);
        assert_eq!(strong_tag(response.headers()).is_some(), strong);
    }
}
