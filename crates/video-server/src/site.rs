//! [`Site`]: what a server says to a request, whatever version of HTTP it came in.

use core::ops::Range;
use std::io;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use playrate_units::Bytes as ByteCount;

use crate::http::answer::{Answer, Body, Route, represent, route};
use crate::http::cors::Cors;
use crate::http::path::ResourceName;
use crate::library::{Library, Resource};

/// Bytes read and handed to the transport at once.
pub const CHUNK: ByteCount = ByteCount::new(64 << 10);

/// A library, and how HTTP speaks of it. HTTP/3, HTTP/2 and HTTP/1.1 share one, so that they say the same.
#[derive(Debug)]
pub struct Site {
    library: Library,
    cors: Option<Cors>,
    wall_clock: Option<fn() -> SystemTime>,
    prefixes: Vec<String>,
}

/// A response, before any of it is sent.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reply {
    /// Status and fields.
    pub head: Response<()>,
    /// What follows.
    pub content: Content,
}

/// What follows the head of a response.
#[derive(Debug)]
pub enum Content {
    /// These bytes, often none.
    Text(Bytes),
    /// A part of something in the library.
    Part(Part),
}

impl Content {
    /// Bytes of content in all, or left of it.
    pub fn len(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Part(part) => part.len(),
        }
    }

    /// Whether there is none (left).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Bytes of a resource that are still to be sent.
#[derive(Debug)]
pub struct Part {
    /// What it is called.
    pub name: ResourceName,
    /// What it is.
    pub resource: Resource,
    bytes: Range<u64>,
}

impl Part {
    /// Bytes left.
    pub fn len(&self) -> u64 {
        self.bytes.end.saturating_sub(self.bytes.start)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Which bytes of the resource are left.
    pub fn bytes(&self) -> &Range<u64> {
        &self.bytes
    }

    /// Whether it is (a part of) something to watch or listen to, as far as the library knows.
    pub fn is_media(&self) -> bool {
        self.resource.average_rate.is_some() || self.resource.representation().is_some()
    }

    /// The next bytes, at most a [`CHUNK`]; `None` at the end. A file's are read on the calling thread.
    ///
    /// # Errors
    /// If they cannot be read, or the file is no longer what it was when it was opened.
    pub fn next_chunk(&mut self) -> io::Result<Option<Bytes>> {
        if self.is_empty() {
            return Ok(None);
        }
        let most = usize::try_from(self.len())
            .unwrap_or(usize::MAX)
            .min(CHUNK.as_usize());
        let chunk = self.resource.read_at(self.bytes.start, most)?;
        if chunk.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.bytes.start += chunk.len() as u64;
        Ok(Some(chunk))
    }
}

impl Site {
    /// `library`, with pages of other origins kept out, and no dates.
    pub fn new(library: Library) -> Self {
        Self {
            library,
            cors: None,
            wall_clock: None,
            prefixes: Vec::new(),
        }
    }

    /// Lets pages of these origins read what is served.
    #[must_use]
    pub fn with_cors(mut self, cors: Option<Cors>) -> Self {
        self.cors = cors;
        self
    }

    /// Has `Date` fields sent, by this clock.
    #[must_use]
    pub fn with_wall_clock(mut self, clock: Option<fn() -> SystemTime>) -> Self {
        self.wall_clock = clock;
        self
    }

    /// Takes these off the front of paths: `/b/film.mp4` is `/film.mp4` if `b` is one.
    #[must_use]
    pub fn with_prefixes(mut self, prefixes: Vec<String>) -> Self {
        self.prefixes = prefixes;
        self
    }

    /// What there is.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Answers a request. Of its content nothing is looked at.
    pub fn reply<B>(&self, request: &Request<B>) -> Reply {
        let now = self.wall_clock.map(|clock| clock());
        let (answer, found) = self.look_up(request, now);
        let Answer { head, body } = self.completed(request, answer, now);
        let content = match (body, found) {
            (Body::Bytes(bytes), Some((name, resource))) => Content::Part(Part {
                name,
                resource,
                bytes,
            }),
            (Body::Text(text), _) => Content::Text(text.into()),
            (Body::Empty | Body::Bytes(_), _) => Content::Text(Bytes::new()),
        };
        Reply { head, content }
    }

    /// Says that there is no room, and when to come again (RFC 9110 §15.6.4, §10.2.3).
    pub fn unavailable<B>(&self, request: &Request<B>, again: Duration) -> Reply {
        let answer = Answer::unavailable(again).for_method(request.method());
        let now = self.wall_clock.map(|clock| clock());
        let Answer { head, body } = self.completed(request, answer, now);
        let content = match body {
            Body::Text(text) => Content::Text(text.into()),
            Body::Empty | Body::Bytes(_) => Content::Text(Bytes::new()),
        };
        Reply { head, content }
    }

    /// The same answer with the fields that every one has.
    fn completed<B>(&self, request: &Request<B>, answer: Answer, now: Option<SystemTime>) -> Answer {
        let mut answer = answer.dated(now);
        if let Some(cors) = &self.cors {
            cors.apply(request.method(), request.headers(), answer.head.headers_mut());
        }
        answer
    }

    /// What to answer, and what of the library that is about.
    fn look_up<B>(
        &self,
        request: &Request<B>,
        now: Option<SystemTime>,
    ) -> (Answer, Option<(ResourceName, Resource)>) {
        let method = request.method();
        let name = match route(method, request.uri()) {
            Route::Answer(answer) => return (answer, None),
            Route::LookUp(name) => name,
        };
        let stripped = self.prefixes.iter().find_map(|prefix| name.below(prefix));
        let name = stripped.unwrap_or(name);
        match self.library.open(&name) {
            Ok(Some(resource)) => {
                let answer = represent(method, request.headers(), &resource.representation, now);
                (answer, Some((name, resource)))
            }
            Ok(None) => (Answer::not_found(method), None),
            Err(error) => {
                tracing::error!(%name, %error, "cannot open what was asked for");
                let why = "the server cannot read this resource".to_owned();
                let answer = Answer::refusal(StatusCode::INTERNAL_SERVER_ERROR, why);
                (answer.for_method(method), None)
            }
        }
    }
}
