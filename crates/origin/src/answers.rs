//! [`CheckedConnector`]: HTTP to a store, whose answers are bounded and checked before they are used.

use std::collections::HashSet;
use std::pin::Pin;

use futures_util::StreamExt as _;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService, ReqwestConnector,
};
use object_store::path::Path;
use parking_lot::Mutex;
use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::Event;

/// Maximum number of bytes of a page of a listing; a page has at most 1,000 keys of S3 or 5,000 of Azure.
const PAGE: usize = 16 << 20;
/// Maximum number of bytes of an error's description; further ones are dropped.
const ERROR: usize = 64 << 10;
/// Maximum number of pages of a listing.
const PAGES: usize = 10_000;
/// Maximum number of unusable keys that are logged.
const LOGGED: usize = 100;

/// Reason to refuse an answer whose status is a success.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("it has `Content-Encoding: {0}`")]
    Encoded(String),
    #[error("expected a listing of objects, got {0}; check the endpoint and the bucket")]
    NoListing(String),
    #[error("a page of the listing has more than {PAGE} bytes")]
    LongPage,
    #[error("the listing has more than {PAGES} pages; name a prefix with fewer objects")]
    ManyPages,
    #[error("a page of the listing names itself as the next one")]
    SamePage,
}

impl From<AnswerError> for HttpError {
    fn from(error: AnswerError) -> Self {
        // Errors of this kind are not retried.
        Self::new(HttpErrorKind::Decode, error)
    }
}

/// Connects to a store and checks its answers.
#[derive(Debug)]
pub(crate) struct CheckedConnector;

impl HttpConnector for CheckedConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(CheckedService {
            client: ReqwestConnector::default().connect(options)?,
            pages: Mutex::default(),
            logged: Mutex::default(),
        }))
    }
}

#[derive(Debug)]
struct CheckedService {
    client: HttpClient,
    /// Number of requests for pages of the present listing, and the query of the last page that has come.
    pages: Mutex<(usize, String)>,
    /// Unusable keys that have been logged.
    logged: Mutex<HashSet<String>>,
}

impl HttpService for CheckedService {
    fn call<'a, 'f>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(self.answer(request))
    }
}

/// The first bytes of `body`: all of it, or a little more than `most`.
async fn beginning(body: HttpResponseBody, most: usize) -> Result<Vec<u8>, HttpError> {
    let (mut pieces, mut read) = (body.bytes_stream(), Vec::new());
    while read.len() <= most
        && let Some(piece) = pieces.next().await.transpose()?
    {
        read.extend_from_slice(&piece);
    }
    Ok(read)
}

impl CheckedService {
    async fn answer(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let has = |begin: &str| query.split('&').any(|field| field.starts_with(begin));
        let is_listing = has("list-type=2") || has("comp=list");
        if is_listing {
            let mut pages = self.pages.lock();
            if !has("continuation-token=") && !has("marker=") {
                *pages = (0, String::new());
            }
            if pages.1 == query {
                return Err(AnswerError::SamePage.into());
            }
            pages.0 += 1;
            if pages.0 > PAGES {
                return Err(AnswerError::ManyPages.into());
            }
        }
        let response = self.client.execute(request).await?;
        if !response.status().is_success() {
            let (parts, body) = response.into_parts();
            let mut error = beginning(body, ERROR).await?;
            error.truncate(ERROR);
            return Ok(HttpResponse::from_parts(parts, error.into()));
        }
        // Some stores keep `aws-chunked`, which describes the upload and not the object.
        if let Some(encoding) = response.headers().get("content-encoding")
            && encoding != "identity"
            && encoding != "aws-chunked"
        {
            let encoding = String::from_utf8_lossy(encoding.as_bytes()).into_owned();
            return Err(AnswerError::Encoded(encoding).into());
        }
        if !is_listing {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let page = beginning(body, PAGE).await?;
        if page.len() > PAGE {
            return Err(AnswerError::LongPage.into());
        }
        let page = String::from_utf8(page).map_err(|error| AnswerError::NoListing(error.to_string()))?;
        let page = self.usable(&page)?;
        self.pages.lock().1 = query;
        Ok(HttpResponse::from_parts(parts, page.into()))
    }

    /// The listing in `page` without objects whose keys are no names: `object_store` refuses all of a listing for one.
    fn usable(&self, page: &str) -> Result<String, AnswerError> {
        let fault = |error: quick_xml::Error| AnswerError::NoListing(error.to_string());
        let slice = |from: u64, to: u64| {
            let position = |at| usize::try_from(at).unwrap_or(usize::MAX);
            page.get(position(from)..position(to)).unwrap_or_default()
        };
        let mut reader = Reader::from_str(page);
        let mut usable = String::with_capacity(page.len());
        let (mut copied, mut is_inside) = (0, false);
        loop {
            let from = reader.buffer_position();
            match reader.read_event().map_err(fault)? {
                Event::Start(element) => match element.local_name().as_ref() {
                    b"ListBucketResult" | b"EnumerationResults" => is_inside = true,
                    b"Contents" | b"Blob" if is_inside => {
                        let object = reader.read_to_end(element.name()).map_err(fault)?;
                        if !self.is_usable(slice(object.start, object.end)) {
                            usable.push_str(slice(copied, from));
                            copied = reader.buffer_position();
                        }
                    }
                    _ if is_inside => {}
                    other => {
                        let other = format!("<{}>", String::from_utf8_lossy(other));
                        return Err(AnswerError::NoListing(other));
                    }
                },
                Event::Empty(element)
                    if matches!(
                        element.local_name().as_ref(),
                        b"ListBucketResult" | b"EnumerationResults"
                    ) =>
                {
                    is_inside = true;
                }
                Event::Eof if !is_inside => return Err(AnswerError::NoListing("no XML".to_owned())),
                Event::Eof => break,
                _ => {}
            }
        }
        usable.push_str(slice(copied, page.len() as u64));
        Ok(usable)
    }

    /// Returns true if the key in `object`, an element of a listing, can be requested as it is.
    fn is_usable(&self, object: &str) -> bool {
        let text = |name: &str| {
            let (_, rest) = object.split_once(&format!("<{name}"))?.1.split_once('>')?;
            rest.split_once(&format!("</{name}>")).map(|(text, _)| text)
        };
        let Some(raw) = text("Key").or_else(|| text("Name")) else {
            return false;
        };
        let key = unescape(raw).ok().filter(|_| !raw.contains('<'));
        let key = key.as_deref();
        if key.is_some_and(|key| Path::parse(key).is_ok_and(|path| path.as_ref() == key)) {
            return true;
        }
        // Consoles of stores create objects such as `films/` for directories.
        let is_directory = key.is_some_and(|key| {
            Path::parse(key).is_ok_and(|path| key.strip_suffix('/') == Some(path.as_ref()))
        });
        let mut logged = self.logged.lock();
        if !is_directory && logged.len() < LOGGED && !logged.contains(raw) {
            let key: String = key.unwrap_or(raw).chars().take(200).collect();
            tracing::warn!(
                ?key,
                "not served: the key has an empty segment, `.`, `..` or a control character"
            );
            logged.insert(raw.to_owned());
            if logged.len() == LOGGED {
                tracing::warn!("further keys that cannot be served are not logged");
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use object_store::client::HttpRequestBody;

    use super::*;

    #[test]
    fn a_listing_without_end_is_refused_and_the_next_one_starts_over() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = ReqwestConnector::default()
            .connect(&ClientOptions::new())
            .unwrap();
        let service = CheckedService {
            client,
            pages: Mutex::new((PAGES, String::new())),
            logged: Mutex::default(),
        };
        let ask = |query: &str| {
            let mut request = HttpRequest::new(HttpRequestBody::empty());
            // Nothing listens there.
            *request.uri_mut() = format!("http://127.0.0.1:9/films?{query}").parse().unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(service.answer(request)).unwrap_err().to_string()
        };
        assert!(ask("continuation-token=1&list-type=2").contains("more than 10000 pages"));
        assert!(!ask("list-type=2").contains("pages"));
        assert_eq!(service.pages.lock().0, 1);
    }
}
