//! Signed URLs: a token with a path, an expiry and possibly a client address, under HMAC-SHA-256.
//!
//! A token is `~MESSAGE.SIGNATURE`, both in base64url without padding. The message is the text
//! `ID,EXPIRES,ADDRESS,PATH`: ID of the key, Unix time in seconds, empty or an address or network, decoded path.

use core::fmt;
use std::borrow::Cow;
use std::net::IpAddr;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::HEXLOWER_PERMISSIVE;
use http::Uri;
use ipnet::IpNet;
use percent_encoding::percent_decode_str;
use ring::hmac;

use super::{AccessError, Denial, Scope, network};

/// Minimum length of a key in bytes: that of the hash (RFC 2104 §3).
const MIN_KEY: usize = 32;
/// Maximum number of keys: the one in use and the one before.
const MAX_KEYS: usize = 2;
/// Minimum numbers of characters of a token's message, with ten digits of time and `/`, and of a signature that must
/// stay out of logs. A whole signature has 43 characters.
const MIN_MESSAGE: usize = 20;
const MIN_SIGNATURE: usize = 32;
/// Name of the query parameter.
const PARAMETER: &str = "token=";

/// Rights that a token conveys.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a signer sets all of them")]
pub struct Grant {
    /// Paths that it opens.
    pub scope: Scope,
    /// Unix time in seconds at which it ends.
    pub expires: u64,
    /// Addresses of the clients that may use it, if it is bound to any.
    pub address: Option<IpNet>,
}

/// Keys of signed URLs. The first one signs; all of them are accepted.
#[derive(Debug)]
pub struct SigningKeys(Vec<(String, hmac::Key)>);

impl FromStr for SigningKeys {
    type Err = AccessError;

    /// Reads one or two lines `ID:KEY`, with the key in hexadecimal digits. Ignores empty lines and those that begin
    /// with the mark of comments, `#`.
    fn from_str(text: &str) -> Result<Self, AccessError> {
        let mut keys = Vec::new();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let is_id = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            let parsed = line.split_once(':').and_then(|(id, key)| {
                let is_valid = !id.is_empty() && id.chars().all(is_id);
                let key = HEXLOWER_PERMISSIVE.decode(key.as_bytes()).ok();
                let key = key.filter(|key| key.len() >= MIN_KEY && is_valid)?;
                Some((id.to_owned(), hmac::Key::new(hmac::HMAC_SHA256, &key)))
            });
            keys.push(parsed.ok_or_else(|| {
                AccessError::new(format!(
                    "line {number}: expected ID:KEY, an ID of letters, digits, - and _, and a key of at least {} \
                     hexadecimal digits, as `echo \"k1:$(openssl rand -hex {MIN_KEY})\"` makes",
                    2 * MIN_KEY
                ))
            })?);
        }
        if keys.is_empty() || keys.len() > MAX_KEYS || keys.len() == 2 && keys[0].0 == keys[1].0 {
            return Err(AccessError::new(
                "expected one key, or two with different IDs, one a line",
            ));
        }
        Ok(Self(keys))
    }
}

impl SigningKeys {
    /// IDs of the keys, which are not secret, separated by commas.
    pub fn ids(&self) -> String {
        let ids: Vec<_> = self.0.iter().map(|(id, _)| id.as_str()).collect();
        ids.join(",")
    }

    /// The token for `grant`, by the first key: `~` and the value of `?token=`, or the segment in front of a path.
    pub fn sign(&self, grant: &Grant) -> String {
        let (id, key) = &self.0[0];
        let message = format!("{id},{grant}");
        let encoded = [message.as_bytes(), hmac::sign(key, message.as_bytes()).as_ref()]
            .map(|part| URL_SAFE_NO_PAD.encode(part));
        format!("~{}", encoded.join("."))
    }

    /// Checks a token without `~` for a request at the Unix time `now`, in seconds.
    pub(super) fn check(
        &self,
        token: &str,
        path: &str,
        (now, client): (u64, Option<IpAddr>),
    ) -> Result<(), Denial> {
        let (message, signature) = token.split_once('.').ok_or(Denial::Malformed)?;
        let [message, signature] = [message, signature].map(|part| URL_SAFE_NO_PAD.decode(part).ok());
        let message = message.and_then(|message| String::from_utf8(message).ok());
        let (message, signature) = message.zip(signature).ok_or(Denial::Malformed)?;
        let (id, grant) = message.split_once(',').ok_or(Denial::Malformed)?;
        let key = self.0.iter().find(|(known, _)| known == id);
        let (_, key) = key.ok_or(Denial::Key)?;
        // In constant time.
        hmac::verify(key, message.as_bytes(), &signature).map_err(|_| Denial::Signature)?;
        let grant: Grant = grant.parse().map_err(|_| Denial::Malformed)?;
        let is_client = |network: &IpNet| client.is_some_and(|ip| network.contains(&ip.to_canonical()));
        if now >= grant.expires {
            Err(Denial::Expired)
        } else if !grant.scope.contains(path) {
            Err(Denial::Path)
        } else if !grant.address.as_ref().is_none_or(is_client) {
            Err(Denial::Address)
        } else {
            Ok(())
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address.map_or(String::new(), |address| address.to_string());
        write!(f, "{},{address},{}", self.expires, self.scope.0)
    }
}

impl FromStr for Grant {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        let mut fields = text.splitn(3, ',');
        let mut next = || fields.next().unwrap_or_default();
        let (expires, address, scope) = (next(), next(), next());
        let number = |_| AccessError::new("the expiry is not a Unix time in seconds");
        Ok(Self {
            expires: expires.parse().map_err(number)?,
            address: (!address.is_empty()).then(|| network(address)).transpose()?,
            scope: scope.parse()?,
        })
    }
}

/// Splits a path into the token in its first segment, if there is one, and the path of the resource.
pub(super) fn split(path: &str) -> (Option<&str>, &str) {
    let marked = path.strip_prefix('/').and_then(unmarked);
    match marked.map(|rest| rest.split_at(rest.find('/').unwrap_or(rest.len()))) {
        Some((token, rest)) if is_token(token) && !token.contains(is_separator) => {
            (Some(token), if rest.is_empty() { "/" } else { rest })
        }
        _ => (None, path),
    }
}

/// Returns true for a character that cannot be part of a token.
fn is_separator(c: char) -> bool {
    !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.')
}

/// Returns true if `text`, without separators, may be a token, of a signed URL or a JWT, or contain one. A hexadecimal
/// part is the hash in the name of a file.
fn is_token(text: &str) -> bool {
    let mut parts = text.split('.');
    let mut before = parts.next().unwrap_or_default().len();
    parts.any(|part| {
        let is_signature = before >= MIN_MESSAGE && part.len() >= MIN_SIGNATURE;
        before += 1 + part.len();
        is_signature && !part.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// The path of the resource, without a token in front.
pub(crate) fn without_token(path: &str) -> &str {
    split(path).1
}

/// The token of a request, without `~`: the first segment of its path, or a parameter of its query.
pub(super) fn locate(uri: &Uri) -> Option<&str> {
    let parameter = || {
        uri.query()?
            .split('&')
            .find_map(|pair| pair.strip_prefix(PARAMETER))
    };
    let token = split(uri.path()).0.or_else(parameter)?;
    Some(unmarked(token).unwrap_or(token))
}

/// The text after the mark of a token, which some programs encode.
fn unmarked(text: &str) -> Option<&str> {
    let mut marks = ["~", "%7E", "%7e"].iter();
    marks.find_map(|mark| text.strip_prefix(mark))
}

/// Text from a client for logs: tokens anywhere in it are replaced by `*`. If percent-encoding hides a part of one,
/// also more than once, the whole text is decoded.
pub(crate) fn redacted(text: &str) -> Cow<'_, str> {
    let plain = without_plain_tokens(text);
    let decoded = decoded(text);
    let whole = without_plain_tokens(&decoded);
    if self::decoded(&plain) == whole {
        plain
    } else {
        whole.into_owned().into()
    }
}

/// Maximum number of times that a text is decoded.
const DECODINGS: usize = 8;

fn decoded(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..DECODINGS {
        let next = percent_decode_str(&text).decode_utf8_lossy().into_owned();
        if next == text {
            break;
        }
        text = next;
    }
    text
}

fn without_plain_tokens(text: &str) -> Cow<'_, str> {
    if !text.split(is_separator).any(is_token) {
        return text.into();
    }
    let mut redacted = String::with_capacity(text.len());
    for part in text.split_inclusive(is_separator) {
        let run = part.trim_end_matches(is_separator);
        redacted += if is_token(run) { "*" } else { run };
        redacted += &part[run.len()..];
    }
    redacted.into()
}
