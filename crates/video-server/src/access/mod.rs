//! [`Access`]: who may watch, by signed URLs and bearer tokens.
//!
//! Every resource of the library needs a token unless it is public. The check comes before admission and look-up, so
//! its answer says nothing about which titles exist.

mod jwt;
mod signed;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use http::header::{AUTHORIZATION, CACHE_CONTROL};
use http::{HeaderMap, HeaderValue, Request};
use ipnet::IpNet;
use parking_lot::{Mutex, RwLock};
use playrate_transport::LogLimit;
use quinn::{Runtime as _, TokioRuntime};
use thiserror::Error;

pub use jwt::{Claims, JwtKey};
pub use signed::{Grant, SigningKeys};

use crate::http::path::{ResourceName, is_public};
pub(crate) use signed::{redacted, without_token};

/// An unusable key, path or address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct AccessError(String);

impl AccessError {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Paths that a token opens: all below a path that ends with `/`, or one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope(String);

impl FromStr for Scope {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        let segments = text
            .strip_prefix('/')
            .map(|rest| rest.strip_suffix('/').unwrap_or(rest));
        if text == "/" || segments.is_some_and(|segments| segments.split('/').all(is_public)) {
            return Ok(Self(text.to_owned()));
        }
        Err(AccessError::new(format!(
            "`{text}` is not a path; expected one such as /films/one/ for all below it, or /film.mp4 for one file"
        )))
    }
}

impl Scope {
    /// Returns true if it opens `path`, which is decoded and begins with `/`.
    pub fn contains(&self, path: &str) -> bool {
        path == self.0 || self.0.ends_with('/') && path.starts_with(&self.0)
    }
}

/// Parses an IP address or a network such as `2001:db8::/64`.
pub fn network(text: &str) -> Result<IpNet, AccessError> {
    let single = |_| text.parse::<IpAddr>().map(IpNet::from);
    let parsed = text.parse::<IpNet>().or_else(single).ok();
    // Clients' addresses are compared as IPv4 if an IPv6 socket has mapped them.
    let parsed = parsed.and_then(|network| match (network, network.addr().to_canonical()) {
        (IpNet::V6(mapped), address @ IpAddr::V4(_)) => {
            IpNet::new(address, mapped.prefix_len().checked_sub(96)?).ok()
        }
        _ => Some(network),
    });
    parsed.ok_or_else(|| {
        AccessError::new(format!(
            "`{text}` is not an address; expected one such as 192.0.2.7, or a network such as 2001:db8::/64"
        ))
    })
}

/// Reason why a request was refused, for the operator only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
#[non_exhaustive]
pub enum Denial {
    /// The request has no token.
    #[error("missing")]
    Missing,
    /// The token cannot be read.
    #[error("malformed")]
    Malformed,
    /// No key has the token's ID, or its algorithm is not the key's.
    #[error("unknown_key")]
    Key,
    /// The signature is wrong.
    #[error("signature")]
    Signature,
    /// The token has expired.
    #[error("expired")]
    Expired,
    /// The token is not valid yet.
    #[error("not_yet_valid")]
    Early,
    /// The token is for other paths.
    #[error("path")]
    Path,
    /// The token is for another client address.
    #[error("address")]
    Address,
    /// A required claim is missing, or is not the expected one.
    #[error("claims")]
    Claims,
}

/// Keys by which a server recognizes tokens.
#[derive(Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "a server sets all of them")]
pub struct AccessKeys {
    /// Keys of signed URLs.
    pub signing: Option<SigningKeys>,
    /// Key of bearer tokens.
    pub jwt: Option<JwtKey>,
}

/// Decides which requests are answered, and counts those refused.
#[derive(Debug)]
pub struct Access {
    keys: RwLock<Arc<AccessKeys>>,
    public: Vec<Scope>,
    refused: Mutex<(BTreeMap<Denial, u64>, LogLimit)>,
}

impl Access {
    /// Creates the check for a server. Resources in one of the `public` scopes need no token.
    pub fn new(keys: AccessKeys, public: Vec<Scope>) -> Self {
        Self {
            keys: RwLock::new(Arc::new(keys)),
            public,
            // One sample from the start, so that the metric exists before the first refusal.
            refused: Mutex::new((BTreeMap::from([(Denial::Missing, 0)]), LogLimit::default())),
        }
    }

    /// Uses these keys for further requests.
    pub fn set_keys(&self, keys: AccessKeys) {
        *self.keys.write() = Arc::new(keys);
    }

    /// Numbers of refused requests, by reason.
    pub fn refused(&self) -> BTreeMap<Denial, u64> {
        self.refused.lock().0.clone()
    }

    /// Returns true if the resource needs no token. The page at `/` has no name.
    fn is_public(&self, name: Option<&ResourceName>) -> bool {
        let path = path_of(name);
        self.public.iter().any(|scope| scope.contains(&path))
    }

    /// Keeps an answer about the resource `name`, or about none, out of shared caches, whose users need no token: adds
    /// `private` to its `Cache-Control` unless the resource is public.
    pub(crate) fn restrict_caching(&self, name: Option<&ResourceName>, fields: &mut HeaderMap) {
        if name.is_some() && self.is_public(name) {
            return;
        }
        let present = fields.get_all(CACHE_CONTROL).iter();
        let present = present.filter_map(|value| value.to_str().ok());
        let directives = present.flat_map(|value| value.split(',')).map(str::trim);
        let kept = directives.filter(|directive| {
            let directive = directive.to_ascii_lowercase();
            !directive.starts_with("public") && !directive.starts_with("private") && !directive.is_empty()
        });
        let value = kept.fold("private".to_owned(), |value, directive| value + ", " + directive);
        // Parts of a valid value are valid.
        if let Ok(value) = HeaderValue::try_from(value) {
            fields.insert(CACHE_CONTROL, value);
        }
    }

    /// Returns true if clients may send a bearer token.
    pub(crate) fn takes_bearer(&self) -> bool {
        self.keys.read().jwt.is_some()
    }

    /// Checks the tokens of a request for `name`, or for the page at `/`, at the wall-clock time `now`. Without a
    /// clock, every token has expired.
    pub(crate) fn check<B>(
        &self,
        request: &Request<B>,
        name: Option<&ResourceName>,
        (now, client): (Option<SystemTime>, Option<IpAddr>),
    ) -> Result<(), Denial> {
        if self.is_public(name) {
            return Ok(());
        }
        let now = now.and_then(|now| now.duration_since(UNIX_EPOCH).ok());
        let now = now.map_or(u64::MAX, |now| now.as_secs());
        let (keys, path) = (Arc::clone(&self.keys.read()), path_of(name));
        let signed = keys.signing.as_ref().zip(signed::locate(request.uri()));
        let signed = signed.map(|(keys, token)| keys.check(token, &path, (now, client)));
        let jwt = keys.jwt.as_ref().zip(bearer(request.headers()));
        let jwt = jwt.map(|(key, token)| key.check(token, &path, now));
        let denial = match (signed, jwt) {
            (Some(Ok(())), _) | (_, Some(Ok(()))) => return Ok(()),
            (Some(Err(denial)), _) | (None, Some(Err(denial))) => denial,
            (None, None) => Denial::Missing,
        };
        let refused = {
            let (refused, limit) = &mut *self.refused.lock();
            *refused.entry(denial).or_default() += 1;
            limit.count(TokioRuntime.now())
        };
        let path = redacted(request.uri().path());
        let client = client.map(tracing::field::display);
        tracing::debug!(%denial, %path, client, "refused a request");
        if let Some(refused) = refused {
            tracing::warn!(refused, last = %denial, %path, client, "refused requests without a valid token");
        }
        Err(denial)
    }
}

fn path_of(name: Option<&ResourceName>) -> String {
    format!("/{}", name.map_or("", ResourceName::as_str))
}

/// The token of an `Authorization` field (RFC 6750 §2.1).
fn bearer(fields: &HeaderMap) -> Option<&str> {
    let (scheme, token) = fields.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests;
