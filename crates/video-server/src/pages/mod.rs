//! [`Pages`]: the web page at `/`, where viewers choose and play titles and see the state of their own connection.
//!
//! Its other files are below `/.playrate/`, a hidden name that no file of a library can have. The page loads nothing
//! from elsewhere, and its policy (CSP) allows nothing else. Pages of other origins can never read these files,
//! whatever CORS allows for the library.

mod home;
mod scripts;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Request, Response};
use playrate_transport::Pin;
use serde_json::Value;

pub use scripts::{PlayerScripts, PlayerScriptsError};

use home::HomePage;

use crate::http::answer::{AnswerBody, ContentInfo, represent};
use crate::http::caching::CacheKind;
use crate::http::validator::{EntityTag, Validators};
use crate::library::Library;

/// Path of the page.
pub(crate) const HOME: &str = "/";
/// Path of the file that replaces the page.
pub(crate) const INDEX: &str = "/index.html";
/// Prefix of all other paths; no resource of a library can have it.
pub(crate) const PREFIX: &str = "/.playrate/";

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = concat!(include_str!("curves.js"), include_str!("page.js"));

/// Fields of every response. The page runs only scripts of this server, and no inline ones; `blob:` is the address of a
/// video that dash.js or hls.js fills, and `data:` that of hls.js's empty track of captions. Other sites may neither
/// frame the page nor load its parts.
const FIELDS: [(HeaderName, HeaderValue); 4] = [
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
             media-src 'self' blob: data:; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
        ),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// Pages for browsers, in addition to the library.
#[derive(Clone, Debug)]
pub struct Pages {
    pin: Pin,
    scripts: PlayerScripts,
}

impl Pages {
    /// Creates the pages of a server whose key has this pin.
    pub fn new(pin: Pin) -> Self {
        Self {
            pin,
            scripts: PlayerScripts::default(),
        }
    }

    /// Adds players for manifests.
    #[must_use]
    pub fn with_scripts(mut self, scripts: PlayerScripts) -> Self {
        self.scripts = scripts;
        self
    }

    /// Replaces the pin after a renewal of the certificate.
    pub(crate) fn set_pin(&mut self, pin: Pin) {
        self.pin = pin;
    }

    /// The page at `path` of a site with `library` for a connection in this `state`, if there is one.
    pub(crate) fn find(&self, path: &str, library: &Library, state: impl FnOnce() -> Value) -> Option<Page> {
        if path == HOME {
            let page = HomePage::new(self.pin.to_string(), self.scripts.names().join(" "), library);
            return Some(Page::new("text/html; charset=utf-8", page.to_string()));
        }
        match path.strip_prefix(PREFIX)? {
            "page.css" => Some(Page::new("text/css; charset=utf-8", STYLE)),
            "page.js" => Some(Page::new(scripts::JAVASCRIPT, SCRIPT)),
            "connection.json" => Some(Page::data(&state())),
            name => self.scripts.find(name).cloned(),
        }
    }
}

/// Content of a page or of a part of it.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    content_type: &'static str,
    body: Bytes,
    tag: EntityTag,
    caching: HeaderValue,
}

impl Page {
    fn new(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        Self {
            content_type,
            tag: EntityTag::of_identity(&format!("{:x}-{:x}", body.len(), hasher.finish())),
            body,
            // A browser may keep it, but must revalidate it before each use: the library and the program change.
            caching: HeaderValue::from_static("private, no-cache"),
        }
    }

    /// Creates JSON that must not be cached.
    fn data(value: &Value) -> Self {
        Self {
            caching: HeaderValue::from_static("no-store"),
            ..Self::new("application/json", value.to_string())
        }
    }

    /// Answers a `GET` or `HEAD` for it.
    pub(crate) fn reply<B>(self, request: &Request<B>, now: Option<SystemTime>) -> Response<Bytes> {
        let info = ContentInfo {
            length: self.body.len() as u64,
            content_type: self.content_type,
            cache_kind: CacheKind::Page,
            validators: Validators::new(self.tag, None),
        };
        let answer = represent(request.method(), request.headers(), &info, now);
        let answer = answer.for_method(request.method()).dated(now);
        let mut head = answer.head;
        head.headers_mut().extend(FIELDS);
        head.headers_mut().insert(CACHE_CONTROL, self.caching);
        let content = match answer.body {
            AnswerBody::Text(text) => text.into(),
            AnswerBody::Bytes(range) => {
                let place = |at| usize::try_from(at).unwrap_or(usize::MAX).min(self.body.len());
                self.body.slice(place(range.start)..place(range.end))
            }
        };
        head.map(|()| content)
    }
}
