//! [`Site`]: answers requests from a library, for all versions of HTTP.

mod encoding;
mod events;
#[cfg(feature = "object-store")]
mod stored;

use core::ops::{ControlFlow, Range};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::header::{LOCATION, WWW_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use parking_lot::{Mutex, RwLock};
use playrate_transport::{LogLimit, Pin};
use playrate_units::Bytes as ByteCount;
use quinn::{Runtime as _, TokioRuntime};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::access::{Access, Denial, without_token};
use crate::admission::AdmissionSlot;
use crate::http::answer::{Answer, AnswerBody, represent, route};
use crate::http::path::ResourceName;
use crate::library::{Library, Resource};
use crate::pages::{self, Pages};
use crate::serve::Settings;

pub(crate) use encoding::Encodings;
pub(crate) use events::EventTarget;

/// Time after which a client may retry if it was refused for lack of file descriptors.
const EXHAUSTED: Duration = Duration::from_secs(10);

/// A library and its HTTP settings. HTTP/3, HTTP/2 and HTTP/1.1 share one site, so their answers are the same.
#[derive(Debug)]
pub struct Site {
    /// Replaced after each rescan of the media directory.
    pub(crate) library: RwLock<Arc<Library>>,
    /// Settings of the server.
    pub(crate) settings: Arc<Settings>,
    /// Compressed manifests and pages.
    pub(crate) encodings: Encodings,
    /// First segments of paths that are not part of names: with the prefix `b`, `/b/film.mp4` means `/film.mp4`.
    pub(crate) prefixes: Vec<String>,
    /// Pages for browsers, if there are any.
    pub(crate) pages: Option<RwLock<Pages>>,
    /// Numbers of replies since the server was started, by version of HTTP and status.
    pub(crate) replied: Mutex<BTreeMap<(&'static str, u16), u64>>,
    /// Receiver of players' event reports, if there is one.
    pub(crate) events: Option<EventTarget>,
    /// Requests that failed for a temporary reason.
    pub(crate) failures: Mutex<LogLimit>,
}

/// Content of a response.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "every sender must handle all kinds of content"
)]
pub enum Content {
    /// A text in memory, often empty.
    Text(Bytes),
    /// Bytes of a resource of the library.
    Resource(ResourceBody),
}

impl Content {
    /// Number of remaining bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Resource(body) => body.len(),
        }
    }

    /// Returns true if no bytes remain.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The remaining bytes of a resource.
#[derive(Debug)]
pub struct ResourceBody {
    /// Name in the library.
    pub name: ResourceName,
    /// The opened resource of the library.
    pub resource: Resource,
    bytes: Range<u64>,
    /// Encoded content in place of the resource's bytes.
    encoded: Option<Bytes>,
}

impl ResourceBody {
    /// Number of remaining bytes.
    pub fn len(&self) -> u64 {
        self.bytes.end.saturating_sub(self.bytes.start)
    }

    /// Returns true if no bytes remain.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Range of the resource's remaining bytes.
    pub fn bytes(&self) -> &Range<u64> {
        &self.bytes
    }

    /// Sends `encoded` in place of the resource's bytes.
    fn replace(&mut self, encoded: Bytes) {
        self.bytes = 0..encoded.len() as u64;
        self.encoded = Some(encoded);
    }

    /// Returns true if the library knows the resource as media or a part of it.
    pub fn is_media(&self) -> bool {
        self.resource.average_rate.is_some() || self.resource.representation().is_some()
    }

    /// Reads the next bytes, at most `most` of them; `None` at the end. Files are read on the calling thread; for
    /// objects of a store, it waits asynchronously.
    ///
    /// # Errors
    /// The bytes cannot be read, or the file has changed since it was opened.
    pub async fn next_chunk(&mut self, most: ByteCount) -> io::Result<Option<Bytes>> {
        poll_fn(|context| self.poll_chunk(context, most)).await
    }

    /// As [`next_chunk`](Self::next_chunk). The task in `context` is woken when trying again may succeed.
    pub fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
        most: ByteCount,
    ) -> Poll<io::Result<Option<Bytes>>> {
        if self.is_empty() {
            return Poll::Ready(Ok(None));
        }
        let most = usize::try_from(self.len())
            .unwrap_or(usize::MAX)
            .min(most.as_usize());
        let chunk = match &mut self.encoded {
            Some(encoded) => encoded.split_to(most.min(encoded.len())),
            None => ready!(self.resource.poll_read(context, self.bytes.clone(), most))?,
        };
        if chunk.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        self.bytes.start += chunk.len() as u64;
        Poll::Ready(Ok(Some(chunk)))
    }
}

impl Site {
    /// The library that currently answers requests.
    pub fn library(&self) -> Arc<Library> {
        Arc::clone(&self.library.read())
    }

    /// Answers further requests from `library`. Does not affect responses in progress.
    pub(crate) fn set_library(&self, library: Library) {
        *self.library.write() = Arc::new(library);
    }

    /// Numbers of replies by version of HTTP and status, for every combination that occurred.
    pub fn replied(&self) -> BTreeMap<(&'static str, u16), u64> {
        self.replied.lock().clone()
    }

    /// Numbers of events that players reported, by event (`e`) and state of the player (`sta`). Unknown events are
    /// `other`; an absent state is empty.
    pub fn player_events(&self) -> BTreeMap<(&'static str, &'static str), u64> {
        self.events.as_ref().map(EventTarget::counts).unwrap_or_default()
    }

    /// Number of bytes of a request's content that are needed to answer it.
    pub fn content_limit<B>(&self, request: &Request<B>) -> usize {
        self.events
            .as_ref()
            .map_or(0, |events| events.content_limit(request))
    }

    /// Counts a reply whose head is about to be sent.
    pub(crate) fn count_reply(&self, version: Version, status: StatusCode) {
        let version = match version {
            Version::HTTP_3 => "HTTP/3",
            Version::HTTP_2 => "HTTP/2",
            Version::HTTP_11 => "HTTP/1.1",
            _ => "HTTP/1.0",
        };
        *self.replied.lock().entry((version, status.as_u16())).or_default() += 1;
    }

    /// Answers a request from no address without asking for admission, ignoring the request's content. Answers about
    /// objects of a store use only what is known.
    pub fn reply<B>(&self, request: &Request<B>) -> Response<Content> {
        match self.target(request, None, || protocol(request)) {
            ControlFlow::Break(reply) => reply,
            ControlFlow::Continue(name) => self.open(request, &name),
        }
    }

    /// Answers a request of the client at an address with this slot at `now`. Its content, up to
    /// [`content_limit`](Self::content_limit) bytes of it, may be a report of events. The client may request the
    /// `state` of its own connection. If a request for media would begin a session and there is no room, it is refused
    /// with 503 before anything is opened. Waits for objects of a store.
    pub(crate) async fn reply_to(
        &self,
        request: &Request<Bytes>,
        requester: (IpAddr, &AdmissionSlot, Instant),
        state: impl FnOnce() -> Value,
    ) -> Response<Content> {
        let reply = self.find(request, requester, state).await;
        self.compress(request, reply).await
    }

    /// Answers as [`reply_to`](Self::reply_to), without compression.
    #[cfg_attr(
        not(feature = "object-store"),
        expect(clippy::unused_async, reason = "only a store is waited for")
    )]
    async fn find(
        &self,
        request: &Request<Bytes>,
        (client, slot, now): (IpAddr, &AdmissionSlot, Instant),
        state: impl FnOnce() -> Value,
    ) -> Response<Content> {
        if let Some(answer) = self.events.as_ref().and_then(|events| events.answer(request)) {
            return self.complete(request, answer, None);
        }
        let name = match self.target(request, Some(client), state) {
            ControlFlow::Break(reply) => return reply,
            ControlFlow::Continue(name) => name,
        };
        let library = self.library();
        if request.method() == Method::GET
            && let Some((set, rate)) = library.media(&name)
            && let Err(again) = slot.admit(set, rate, now)
        {
            return self.unavailable(request, again);
        }
        #[cfg(feature = "object-store")]
        if let Some(origin) = library.origin() {
            return self.fetch(request, &name, origin).await;
        }
        self.open(request, &name)
    }

    /// Finds the subject of a request: continues with a name that the library may have, or breaks with the reply for
    /// any other target, or for one that the request's token does not open. A file `index.html` replaces the page at
    /// `/`.
    fn target<B>(
        &self,
        request: &Request<B>,
        client: Option<IpAddr>,
        state: impl FnOnce() -> Value,
    ) -> ControlFlow<Response<Content>, ResourceName> {
        let (method, mut path) = (request.method(), self.path(request.uri()));
        let check = |name: Option<&ResourceName>| {
            let Some(access) = &self.settings.access else {
                return ControlFlow::Continue(());
            };
            let checked = access.check(request, name, (self.now(), client)).err();
            let denied = checked.map(|denial| self.denied(request, access, denial));
            denied.map_or(ControlFlow::Continue(()), ControlFlow::Break)
        };
        let is_page = is_get(method) && (path == pages::HOME || path.starts_with(pages::PREFIX));
        if let Some(pages) = self.pages.as_ref().filter(|_| is_page) {
            // The page's relative links need the slash behind a token.
            if path == pages::HOME && !request.uri().path().ends_with('/') {
                return ControlFlow::Break(self.with_slash(request));
            }
            let library = self.library();
            if path == pages::HOME && library.has_index() {
                path = pages::INDEX;
            } else {
                if path == pages::HOME {
                    check(None)?;
                }
                if let Some(page) = pages.read().find(path, &library, state) {
                    let mut reply = page.reply(request, self.now()).map(Content::Text);
                    self.add_fields(path, &mut reply);
                    return ControlFlow::Break(reply);
                }
            }
        }
        let routed = route(method, path).map_break(|answer| self.complete(request, answer, None));
        let name = self.without_prefix(routed?);
        check(Some(&name))?;
        ControlFlow::Continue(name)
    }

    /// Redirects to the same URL with a slash at the end of its path.
    fn with_slash<B>(&self, request: &Request<B>) -> Response<Content> {
        let query = request.uri().query().filter(|query| query.is_ascii());
        let query = query.map(|query| format!("?{query}"));
        let location = format!("{}/{}", request.uri().path(), query.unwrap_or_default());
        let why = "the page has a slash at the end of its path".to_owned();
        let answer = Answer::refusal(StatusCode::PERMANENT_REDIRECT, why).field(LOCATION, &location);
        self.complete(request, answer, None)
    }

    /// Answers a request without a valid token. If bearer tokens are accepted, players that get 401 request a new one
    /// (RFC 6750 §3.1).
    fn denied<B>(&self, request: &Request<B>, access: &Access, denial: Denial) -> Response<Content> {
        let (status, challenge) = match denial {
            Denial::Missing => (StatusCode::UNAUTHORIZED, "Bearer"),
            Denial::Path | Denial::Address => (StatusCode::FORBIDDEN, "Bearer error=\"insufficient_scope\""),
            _ => (StatusCode::UNAUTHORIZED, "Bearer error=\"invalid_token\""),
        };
        let why = "this resource needs a valid token".to_owned();
        let answer = if access.takes_bearer() {
            Answer::refusal(status, why).field(WWW_AUTHENTICATE, challenge)
        } else {
            Answer::refusal(StatusCode::FORBIDDEN, why)
        };
        self.complete(request, answer, None)
    }

    /// The path of a resource in a request, without the token in front if tokens are checked.
    pub(crate) fn path<'a>(&self, uri: &'a Uri) -> &'a str {
        let path = uri.path();
        let access = self.settings.access.as_ref();
        access.map_or(path, |_| without_token(path))
    }

    /// Uses this pin for the certificate's key on pages from now on.
    pub(crate) fn set_pin(&self, pin: Pin) {
        if let Some(pages) = &self.pages {
            pages.write().set_pin(pin);
        }
    }

    /// Answers with 503 and the time after which to retry (RFC 9110 §15.6.4, §10.2.3).
    pub fn unavailable<B>(&self, request: &Request<B>, again: Duration) -> Response<Content> {
        self.complete(request, Answer::unavailable(again), None)
    }

    /// Answers with an error's `status` and the reason.
    pub fn refuse<B>(&self, request: &Request<B>, status: StatusCode, why: &str) -> Response<Content> {
        let answer = Answer::refusal(status, why.to_owned());
        self.complete(request, answer, None)
    }

    /// The wall-clock time, if there is a clock.
    pub(crate) fn now(&self) -> Option<SystemTime> {
        self.settings.wall_clock.map(|clock| clock())
    }

    /// Adapts an answer about the resource `found` to the request's method, and adds the date and the CORS fields.
    fn complete<B>(
        &self,
        request: &Request<B>,
        answer: Answer,
        found: Option<(ResourceName, Resource)>,
    ) -> Response<Content> {
        let Answer { mut head, body } = answer.for_method(request.method()).dated(self.now());
        if let Some(cors) = &self.settings.cors {
            cors.apply(request.method(), request.headers(), head.headers_mut());
        }
        let name = found.as_ref().map(|(name, _)| name);
        if let Some(name) = name {
            self.add_fields(&format!("/{name}"), &mut head);
        }
        if let Some(access) = &self.settings.access {
            access.restrict_caching(name, head.headers_mut());
        }
        let content = match (body, found) {
            (AnswerBody::Bytes(bytes), Some((name, resource))) => Content::Resource(ResourceBody {
                name,
                resource,
                bytes,
                encoded: None,
            }),
            (AnswerBody::Text(text), _) => Content::Text(text.into()),
            (AnswerBody::Bytes(_), None) => Content::Text(Bytes::new()),
        };
        head.map(|()| content)
    }

    /// Logs at a limited rate that a request for `path` cannot be answered now.
    fn log_failure(&self, path: &str, error: &dyn std::fmt::Display) {
        let failed = self.failures.lock().count(TokioRuntime.now());
        if let Some(failed) = failed {
            tracing::warn!(path, %error, failed, "cannot read what was requested now");
        }
    }

    /// Adds the operator's fields to a successful response for this path.
    fn add_fields<T>(&self, path: &str, reply: &mut Response<T>) {
        use StatusCode as Code;
        if [Code::OK, Code::PARTIAL_CONTENT, Code::NOT_MODIFIED].contains(&reply.status()) {
            for rule in &self.settings.headers {
                rule.apply(path, reply.headers_mut());
            }
        }
    }

    /// The library's name for `name` in a request.
    fn without_prefix(&self, name: ResourceName) -> ResourceName {
        let stripped = self.prefixes.iter().find_map(|prefix| name.below(prefix));
        stripped.unwrap_or(name)
    }

    /// Answers from the resource `name` of the library.
    fn open<B>(&self, request: &Request<B>, name: &ResourceName) -> Response<Content> {
        let answer = match self.library().open(name) {
            Ok(Some(resource)) => {
                let answer = represent(request.method(), request.headers(), &resource.info, self.now());
                return self.complete(request, answer, Some((name.clone(), resource)));
            }
            Ok(None) => Answer::not_found(),
            Err(error) if is_exhaustion(&error) => {
                self.log_failure(name.as_str(), &error);
                Answer::unavailable(EXHAUSTED)
            }
            Err(error) => {
                tracing::error!(%name, %error, "cannot open a requested resource");
                let why = "the server cannot read this resource".to_owned();
                Answer::refusal(StatusCode::INTERNAL_SERVER_ERROR, why)
            }
        };
        self.complete(request, answer, None)
    }
}

/// State of a connection if only its version of HTTP is known.
pub(crate) fn protocol<B>(request: &Request<B>) -> Value {
    json!({ "protocol": format!("{:?}", request.version()) })
}

fn is_get(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Returns true if the process or the system has no file descriptor left.
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}
