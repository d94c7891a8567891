//! The rest of an interrupted response: its request and what may answer it.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use playrate_units::Bytes;

use crate::error::{PlayError, ResumeError, status_error};

/// The rest of a response, to be requested if its file is still the same.
#[derive(Clone, Debug)]
pub(super) struct Rest {
    /// Position in the file.
    pub(super) first: u64,
    /// Position of the last byte; `None` for the file's end.
    pub(super) last: Option<u64>,
    /// Strong entity tag of the response (RFC 9110 §8.8.3).
    pub(super) tag: HeaderValue,
    /// Bytes of the response that were received before.
    pub(super) received: Bytes,
}

/// The entity tag of a response if it is strong: only then are equal tags equal bytes.
pub(super) fn strong_tag(headers: &HeaderMap) -> Option<HeaderValue> {
    let tag = headers.get(header::ETAG)?;
    tag.as_bytes().starts_with(b"\"").then(|| tag.clone())
}

impl Rest {
    /// Checks that `response` is this part of the same file.
    ///
    /// # Errors
    /// The file has changed, or the server sends something else.
    pub(super) fn check(&self, response: &Response<()>, path: &str) -> Result<(), PlayError> {
        let (path, received) = (path.to_owned(), self.received);
        let problem = match response.status() {
            StatusCode::PARTIAL_CONTENT if self.is_other_version(response) => None,
            StatusCode::PARTIAL_CONTENT if self.is_in(response.headers()) => return Ok(()),
            StatusCode::PARTIAL_CONTENT => Some(ResumeError::OtherPart),
            StatusCode::OK if strong_tag(response.headers()).as_ref() == Some(&self.tag) => {
                Some(ResumeError::Whole)
            }
            StatusCode::OK | StatusCode::RANGE_NOT_SATISFIABLE => None,
            _ => return Err(status_error(response, &path)),
        };
        Err(match problem {
            Some(problem) => PlayError::NotResumable {
                path,
                received,
                problem,
            },
            None => PlayError::Changed { path, received },
        })
    }

    /// Returns true if the response names another version. It may name none: the tag in the request did (§15.3.7).
    fn is_other_version(&self, response: &Response<()>) -> bool {
        let tag = response.headers().get(header::ETAG);
        tag.is_some_and(|tag| *tag != self.tag)
    }

    /// Returns true if the `Content-Range` of a response (RFC 9110 §14.4) is this part.
    fn is_in(&self, headers: &HeaderMap) -> bool {
        let range = headers.get(header::CONTENT_RANGE).and_then(|range| {
            let (part, complete) = range.to_str().ok()?.strip_prefix("bytes ")?.split_once('/')?;
            let (first, last) = part.split_once('-')?;
            Some((first.parse::<u64>().ok()?, last.parse::<u64>().ok()?, complete))
        });
        range.is_some_and(|(first, last, complete)| {
            let end = complete
                .parse::<u64>()
                .ok()
                .and_then(|length| length.checked_sub(1));
            first == self.first && (Some(last) == self.last || (self.last.is_none() && Some(last) == end))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn response(status: u16, fields: &[(&str, &str)]) -> Response<()> {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        response.body(()).unwrap()
    }

    fn rest(last: Option<u64>) -> Rest {
        Rest {
            first: 100,
            last,
            tag: HeaderValue::from_static("\"v1\""),
            received: Bytes::new(100),
        }
    }

    #[rstest]
    #[case::to_the_end(None, &[("content-range", "bytes 100-199/200"), ("etag", "\"v1\"")])]
    #[case::without_a_tag(None, &[("content-range", "bytes 100-199/200")])]
    #[case::part_of_a_range(Some(149), &[("content-range", "bytes 100-149/200")])]
    #[case::of_unknown_length(Some(149), &[("content-range", "bytes 100-149/*")])]
    fn the_rest_of_the_same_file_is_taken(#[case] last: Option<u64>, #[case] fields: &[(&str, &str)]) {
        rest(last).check(&response(206, fields), "/a").unwrap();
    }

    #[rstest]
    #[case::other_tag(206, &[("content-range", "bytes 100-199/200"), ("etag", "\"v2\"")], "changed on the server")]
    #[case::all_of_another(200, &[("etag", "\"v2\"")], "changed on the server")]
    #[case::shorter(416, &[("content-range", "bytes */50")], "changed on the server")]
    #[case::all_of_it(200, &[("etag", "\"v1\"")], "all of it")]
    #[case::other_begin(206, &[("content-range", "bytes 0-199/200")], "another part")]
    #[case::less(206, &[("content-range", "bytes 100-198/200")], "another part")]
    #[case::nowhere(206, &[], "another part")]
    #[case::gone(404, &[], "404")]
    fn anything_else_is_an_error_that_says_so(
        #[case] status: u16,
        #[case] fields: &[(&str, &str)],
        #[case] words: &str,
    ) {
        let error = rest(None).check(&response(status, fields), "/a").unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
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
