//! Answers about objects of a store, which may have to be fetched from it first.

use core::ops::Range;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use playrate_media::cmcd::Cmcd;
use playrate_origin::{Origin, OriginError, ReadAhead};
use quinn::{Runtime as _, TokioRuntime};
use url::Url;

use super::{Content, ResourceBody, Site};
use crate::access::redacted;
use crate::http::answer::Answer;
use crate::http::path::{ResourceName, resolve};
use crate::library::CHUNK;

// A chunk of the cache is handed to the transport unchanged.
const _: () = assert!(CHUNK.as_u64() == playrate_origin::CHUNK as u64);

/// Attempts to answer from a version that still exists when its first bytes are read.
const ATTEMPTS: usize = 3;
/// Time after which a client may retry while the store does not answer.
const AGAIN: Duration = Duration::from_secs(5);

impl Site {
    /// Answers from the object `name` of `origin` once its version is known and the first bytes of the content have
    /// come from the store. If this fails, the answer says so.
    pub(super) async fn fetch<B>(
        &self,
        request: &Request<B>,
        name: &ResourceName,
        origin: &Origin,
    ) -> Response<Content> {
        let began = TokioRuntime.now();
        let mut is_known = origin.known(name.as_str()).is_some() || origin.is_absent(name.as_str());
        for _ in 0..ATTEMPTS {
            if !is_known && let Err(error) = origin.look_up(name.as_str()).await {
                return self.failed(request, &error);
            }
            let opened = origin.known(name.as_str());
            let mut reply = self.open(request, name);
            let first = match reply.body_mut() {
                // The reader keeps them for the next read.
                Content::Resource(body) => body.resource.prepare(body.bytes.clone()).await,
                Content::Text(_) => Ok(()),
            };
            // Bytes that come from the store prove that the object is current; those from the cache do not.
            let verified = match first {
                Ok(()) => origin.verify(name.as_str(), opened.as_ref()).await,
                Err(error) => Err(error),
            };
            match verified {
                Ok(()) => {
                    let waited = TokioRuntime.now().saturating_duration_since(began);
                    let timing = format!("origin;dur={:.1}", waited.as_secs_f64() * 1e3);
                    if let (Content::Resource(body), Ok(timing)) = (reply.body(), timing.parse())
                        && body.is_media()
                    {
                        reply.headers_mut().insert("server-timing", timing);
                    }
                    return reply;
                }
                Err(OriginError::Changed { .. }) => is_known = false,
                Err(error) => return self.failed(request, &error),
            }
        }
        self.unavailable(request, AGAIN)
    }

    fn failed<B>(&self, request: &Request<B>, error: &OriginError) -> Response<Content> {
        let path = redacted(request.uri().path());
        if error.is_temporary() {
            self.log_failure(&path, error);
            return self.unavailable(request, AGAIN);
        }
        let answer = if let OriginError::Missing { .. } = error {
            Answer::not_found()
        } else {
            tracing::error!(%path, %error, "cannot read a requested object");
            let why = "the server's store does not let it read this resource".to_owned();
            Answer::refusal(StatusCode::BAD_GATEWAY, why)
        };
        self.complete(request, answer, None)
    }

    /// Asks the store for the bytes that the client of `body` will request next: those that its player announces (CMCD
    /// `nor`, `nrr`), or else the next segment in the manifest.
    pub(crate) fn read_ahead(&self, ahead: &ReadAhead, body: &ResourceBody, report: Option<&Cmcd>) {
        let library = self.library();
        let Some(origin) = library.origin() else { return };
        let reported = || {
            let report = report?;
            if report.next_object.is_none() && report.next_range.is_none() {
                return None;
            }
            let name = match &report.next_object {
                Some(path) => beside(&body.name, path)?,
                None => body.name.clone(),
            };
            let object = origin.known(name.as_str())?;
            let bytes: Range<u64> = report.next_range.clone().unwrap_or(0..object.len());
            Some((object, bytes))
        };
        let next = reported().or_else(|| library.next_segment(&body.name, body.bytes()));
        if let Some((object, bytes)) = next {
            let representation = body.resource.representation();
            let set = representation.map_or(0, |representation| representation.set);
            ahead.fetch(set, &object, bytes);
        }
    }
}

/// Name of the resource at `path`, as reported by a player in a request for `name`; `None` if it is on another server.
fn beside(name: &ResourceName, path: &str) -> Option<ResourceName> {
    let base = Url::parse("http://localhost").ok()?;
    let own = base.join(&name.to_url_path()).ok()?;
    let url = own.join(path).ok()?;
    resolve(url.path()).ok().filter(|_| url.origin() == base.origin())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_next_object_is_named_relative_to_the_request() {
        let name = |text: &str| ResourceName::from_relative(Path::new(text)).unwrap();
        for (request, path, expected) in [
            ("film/seg-1.m4s", "seg-2.m4s", Some("film/seg-2.m4s")),
            (
                "film/720p/seg-1.m4s",
                "../360p/seg-2.m4s",
                Some("film/360p/seg-2.m4s"),
            ),
            ("seg-1.m4s", "seg-2.m4s?a=b", Some("seg-2.m4s")),
            ("a film/1.m4s", "two%202.m4s", Some("a film/two 2.m4s")),
            ("film/1.m4s", "/other/2.m4s", Some("other/2.m4s")),
            ("film/1.m4s", "../../../etc/passwd", Some("etc/passwd")),
            ("film/1.m4s", ".hidden", None),
            ("film/1.m4s", "%zz", None),
        ] {
            assert_eq!(
                beside(&name(request), path),
                expected.map(name),
                "{path} beside {request}"
            );
        }
    }
}
