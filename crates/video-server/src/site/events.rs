//! Event reports of players (CMCD, CTA-5004-B), which are counted and logged.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use parking_lot::Mutex;
use playrate_media::cmcd::Cmcd;

use crate::access::redacted;
use crate::http::answer::Answer;

/// Maximum size of a report in bytes.
const MAX_REPORT: usize = 32 << 10;
/// Supported methods, as in the `Allow` field.
const METHODS: &str = "GET, HEAD, POST, OPTIONS";

/// Receiver of event reports at one path.
#[derive(Debug)]
pub(crate) struct EventTarget {
    path: String,
    counts: Mutex<BTreeMap<(&'static str, &'static str), u64>>,
}

impl EventTarget {
    pub(crate) fn new(path: String) -> Self {
        // One sample from the start, so that the metric exists before the first event.
        let counts = Mutex::new(BTreeMap::from([(("other", ""), 0)]));
        Self { path, counts }
    }

    pub(crate) fn counts(&self) -> BTreeMap<(&'static str, &'static str), u64> {
        self.counts.lock().clone()
    }

    /// Number of bytes of a request's content to pass to [`answer`](Self::answer).
    pub(crate) fn content_limit<B>(&self, request: &Request<B>) -> usize {
        let is_report = request.method() == Method::POST && request.uri().path() == self.path;
        if is_report { MAX_REPORT + 1 } else { 0 }
    }

    /// Answers a request that is for this receiver: 413 to a report that is too long, 400 if nothing in it is
    /// understood, and otherwise 204. dash.js repeats a refused report, so an unknown event is not refused.
    pub(crate) fn answer(&self, request: &Request<Bytes>) -> Option<Answer> {
        if request.uri().path() != self.path {
            return None;
        }
        match *request.method() {
            Method::OPTIONS => Some(Answer::no_content(METHODS)),
            Method::POST => Some(self.receive(request.body())),
            Method::GET | Method::HEAD => None,
            ref other => Some(Answer::not_allowed(other, METHODS)),
        }
    }

    fn receive(&self, report: &[u8]) -> Answer {
        if report.len() > MAX_REPORT {
            let text = format!("a report must have at most {MAX_REPORT} bytes");
            return Answer::refusal(StatusCode::PAYLOAD_TOO_LARGE, text);
        }
        let events = str::from_utf8(report).map(Cmcd::read_events);
        let is_something = |event: &Cmcd| {
            let mut nothing = Cmcd::default();
            nothing.ignored = event.ignored;
            *event != nothing
        };
        let events: Vec<_> = events.into_iter().flatten().filter(is_something).collect();
        if events.is_empty() {
            let text =
                "a report needs a line of CMCD for each event, such as e=ps,sta=p,ts=1764200000000,v=2";
            return Answer::refusal(StatusCode::BAD_REQUEST, text.to_owned());
        }
        for event in events {
            let key = (event.event.unwrap_or("other"), event.state.unwrap_or_default());
            *self.counts.lock().entry(key).or_default() += 1;
            tracing::debug!(
                event = key.0, state = key.1, cmcd = %redacted(&format!("{event:?}")),
                "a player reported an event"
            );
        }
        Answer::no_content(METHODS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn answered(method: Method, path: &str, content: impl Into<Bytes>) -> (Option<StatusCode>, u64) {
        let target = EventTarget::new("/cmcd".to_owned());
        let request = Request::builder().method(method).uri(path);
        let request = request.body(content.into()).unwrap();
        let answer = target.answer(&request);
        let status = answer.map(|answer| answer.head.status());
        (status, target.counts().into_values().sum())
    }

    #[test]
    fn events_are_counted_by_kind_and_state() {
        let target = EventTarget::new("/cmcd".to_owned());
        let text = "e=ps,sta=r\ne=ps,sta=p\ne=t,sta=p\ne=ps,sta=p\ne=t,sta=zz\ne=new,sta=p\n";
        assert_eq!(
            target.receive(text.as_bytes()).head.status(),
            StatusCode::NO_CONTENT
        );
        let expected = [
            (("other", ""), 0),
            (("other", "p"), 1),
            (("ps", "p"), 2),
            (("ps", "r"), 1),
            (("t", ""), 1),
            (("t", "p"), 1),
        ];
        assert_eq!(target.counts(), BTreeMap::from(expected));
    }

    #[rstest]
    #[case::report(Method::POST, "/cmcd?from=a", "e=t", (Some(204), 1))]
    #[case::preflight(Method::OPTIONS, "/cmcd", "", (Some(204), 0))]
    #[case::empty(Method::POST, "/cmcd", "", (Some(400), 0))]
    #[case::another_format(Method::POST, "/cmcd", "{\"e\":\"ps\"}", (Some(400), 0))]
    #[case::one_of_two_lines(Method::POST, "/cmcd", "e=t\njunk", (Some(204), 1))]
    #[case::new_event(Method::POST, "/cmcd", "e=new,v=2", (Some(204), 1))]
    #[case::new_keys(Method::POST, "/cmcd", "e=new,xx=1\n=", (Some(400), 0))]
    #[case::read(Method::GET, "/cmcd", "", (None, 0))]
    #[case::elsewhere(Method::POST, "/cmcd/", "e=t", (None, 0))]
    fn only_reports_that_are_understood_are_counted(
        #[case] method: Method,
        #[case] path: &str,
        #[case] content: &'static str,
        #[case] expected: (Option<u16>, u64),
    ) {
        let (status, counted) = answered(method, path, content);
        assert_eq!((status.map(|status| status.as_u16()), counted), expected);
    }

    #[test]
    fn hostile_reports_are_bounded() {
        let post = |content: Vec<u8>| answered(Method::POST, "/cmcd", content);
        let too_long = post(b"e=t\n".repeat(MAX_REPORT / 4 + 1));
        assert_eq!(too_long, (Some(StatusCode::PAYLOAD_TOO_LARGE), 0));
        let binary = post(vec![0xff; 1_000]);
        assert_eq!(binary, (Some(StatusCode::BAD_REQUEST), 0));
        let long_line = [b"e=t,cid=\"".to_vec(), vec![b'x'; 10_000]].concat();
        assert_eq!(post(long_line), (Some(StatusCode::BAD_REQUEST), 0));
        let many = post(b"e=t\n".repeat(MAX_REPORT / 4));
        assert_eq!(many, (Some(StatusCode::NO_CONTENT), MAX_REPORT as u64 / 4));
    }
}
