//! gzip of manifests and pages, for clients that accept it.

use std::io::{self, Write as _};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, ETAG, RANGE, VARY};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use quick_cache::sync::Cache;
use tokio::sync::Semaphore;

use super::{Content, ResourceBody, Site};
use crate::library::CHUNK;

/// Number of results that are kept. Each has less than 1 MiB; manifests compress to some kilobytes.
const KEPT: usize = 256;

/// Results of compressions, and the turn to compress.
#[derive(Debug)]
pub(crate) struct Encodings {
    /// By name and entity tag.
    results: Cache<(String, HeaderValue), Bytes>,
    /// Held during a compression: clients cannot make the server use more than one processor for it.
    turn: Semaphore,
}

impl Default for Encodings {
    fn default() -> Self {
        Self {
            results: Cache::new(KEPT),
            turn: Semaphore::new(1),
        }
    }
}

impl Site {
    /// Compresses the whole content of `reply` if it varies by `Accept-Encoding` and the client accepts gzip. The
    /// entity tag becomes a weak one: it validates either form and allows no range of either. While another content is
    /// being compressed, or if it cannot be read, the reply stays as it is. The reply to a `HEAD` lacks the length,
    /// which would need the compression (RFC 9110 §9.3.2).
    pub(super) async fn compress<B>(
        &self,
        request: &Request<B>,
        mut reply: Response<Content>,
    ) -> Response<Content> {
        let (status, fields) = (reply.status(), request.headers());
        let varies = reply
            .headers()
            .get_all(VARY)
            .iter()
            .any(|name| name == ACCEPT_ENCODING.as_str());
        let is_asked = !fields.contains_key(RANGE) && accepts_gzip(fields);
        let tag = reply.headers().get(ETAG).cloned();
        let Some(tag) = tag.filter(|_| varies && is_asked) else {
            return reply;
        };
        if status == StatusCode::OK {
            if request.method() == Method::GET {
                let name = match reply.body() {
                    Content::Text(_) => String::new(),
                    Content::Resource(body) => body.name.to_string(),
                };
                let Some(encoded) = self.encodings.of((name, tag.clone()), reply.body_mut()).await else {
                    return reply;
                };
                reply.headers_mut().insert(CONTENT_LENGTH, encoded.len().into());
                match reply.body_mut() {
                    Content::Text(text) => *text = encoded,
                    Content::Resource(body) => body.replace(encoded),
                }
            } else {
                reply.headers_mut().remove(CONTENT_LENGTH);
            }
            let fields = reply.headers_mut();
            fields.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            fields.remove(ACCEPT_RANGES);
        }
        if let Ok(weak) = HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()) {
            reply.headers_mut().insert(ETAG, weak);
        }
        reply
    }
}

impl Encodings {
    /// The compressed `content`; `None` if it cannot be read, or while another one is being read and compressed.
    async fn of(&self, key: (String, HeaderValue), content: &mut Content) -> Option<Bytes> {
        if let Some(known) = self.results.get(&key) {
            return Some(known);
        }
        let _turn = self.turn.try_acquire().ok()?;
        let content = match content {
            Content::Text(text) => text.clone(),
            Content::Resource(body) => whole(body).await.ok()?,
        };
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&content).ok()?;
        let encoded = Bytes::from(gzip.finish().ok()?);
        self.results.insert(key, encoded.clone());
        Some(encoded)
    }
}

/// Reads the content of `body`, which stays as it is: if it cannot be read, its response fails like any other.
async fn whole(body: &mut ResourceBody) -> io::Result<Bytes> {
    let (bytes, mut content) = (body.bytes.clone(), Vec::new());
    let read = loop {
        match body.next_chunk(CHUNK).await {
            Ok(Some(chunk)) => content.extend_from_slice(&chunk),
            end => break end,
        }
    };
    body.bytes = bytes;
    read.map(|_| content.into())
}

/// Returns true if `Accept-Encoding` (RFC 9110 §12.5.3) allows gzip and does not prefer the content as it is.
fn accepts_gzip(fields: &HeaderMap) -> bool {
    let (mut gzip, mut any, mut identity) = (None, 0.0, 0.0);
    let values = fields.get_all(ACCEPT_ENCODING).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    for element in values.flat_map(|value| value.split(',')) {
        let element = element.to_ascii_lowercase();
        let (coding, weight) = element.split_once(';').unwrap_or((&element, "q=1"));
        let weight = weight.trim().strip_prefix("q=").unwrap_or_default();
        let weight = weight.parse::<f32>().unwrap_or(0.0);
        match coding.trim() {
            "gzip" | "x-gzip" => gzip = Some(weight),
            "*" => any = weight,
            "identity" => identity = weight,
            _ => {}
        }
    }
    let gzip = gzip.unwrap_or(any);
    gzip > 0.0 && gzip >= identity
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::headers;
    use rstest::rstest;

    #[rstest]
    #[case("gzip", true)]
    #[case("GZIP", true)]
    #[case("gzip, deflate, br, zstd", true)]
    #[case("br;q=1.0, gzip;q=0.8, *;q=0.1", true)]
    #[case("*", true)]
    #[case("gzip;q=0", false)]
    #[case("gzip;q=0.000", false)]
    #[case("gzip;q=0, *", false)]
    #[case("*;q=0", false)]
    #[case("br", false)]
    #[case("", false)]
    #[case("identity", false)]
    #[case("identity;q=1, gzip;q=0.5", false)]
    #[case("identity;q=0.5, gzip;q=1.0", true)]
    #[case("gzip ; Q=0.5", true)]
    #[case("gzip;q=x", false)]
    #[case("gzipped", false)]
    fn gzip_is_sent_if_the_client_accepts_it(#[case] accepted: &str, #[case] expected: bool) {
        assert_eq!(accepts_gzip(&headers(&[("accept-encoding", accepted)])), expected);
    }

    #[test]
    fn a_client_that_names_no_encoding_gets_none() {
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn a_content_is_compressed_once_and_one_at_a_time() {
        let encodings = Encodings::default();
        let key = |tag| (String::new(), HeaderValue::from_static(tag));
        let mut text = Content::Text(b"text".repeat(1_000).into());
        let first = encodings.of(key("1"), &mut text).await.unwrap();
        assert!(first.len() < 100);
        let _turn = encodings.turn.try_acquire().unwrap();
        let again = encodings.of(key("1"), &mut text).await.unwrap();
        assert_eq!(first.as_ptr(), again.as_ptr());
        assert_eq!(encodings.of(key("2"), &mut text).await, None);
    }
}
