//! [`OriginError`]: errors of a store and its objects.

use std::error::Error;
use std::sync::Arc;

use object_store::Error as StoreError;

use crate::answers::AnswerError;

/// Error of a store or of one of its objects. All readers that waited for the same bytes get clones of one error.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OriginError {
    /// The location cannot be a store's, or its settings are insufficient.
    #[error(
        "`{location}` cannot be used: {problem}; expected s3://BUCKET/PREFIX, gs://… or az://…, and its settings \
        in the environment"
    )]
    Location {
        /// Location as it was given.
        location: String,
        /// Reason why it cannot be used.
        problem: Arc<str>,
    },
    /// The bucket or object does not exist.
    #[error("{url} does not exist: {problem}")]
    Missing {
        /// URL of the object, or of the bucket.
        url: String,
        /// Message of the store.
        problem: Arc<str>,
    },
    /// The store refuses the credentials, or this user may not read the object.
    #[error("{url} may not be read: {problem}; set environment credentials that may read and list it")]
    Refused {
        /// URL of the object, or of the bucket.
        url: String,
        /// Message of the store.
        problem: Arc<str>,
    },
    /// The object no longer has the version that is being read.
    #[error("{url} was replaced while it was read")]
    Changed {
        /// URL of the object.
        url: String,
    },
    /// The store did not answer in time or could not be reached, even after retries.
    #[error("{url} cannot be read now: {problem}")]
    Unavailable {
        /// URL of the object, or of the bucket.
        url: String,
        /// Error of the last attempt.
        problem: Arc<str>,
    },
    /// The object is stored with a content encoding, so its bytes are not the media.
    #[error("{url} has `Content-Encoding: {encoding}` in the store: store it without")]
    Encoded {
        /// URL of the object.
        url: String,
        /// Value of the field as the store sends it.
        encoding: Arc<str>,
    },
    /// The directory of the cache cannot be used.
    #[error("{directory} cannot hold a cache: {problem}")]
    CacheDirectory {
        /// Path of the directory.
        directory: String,
        /// Error of the operating system.
        problem: Arc<str>,
    },
    /// No reader needed the bytes any more.
    #[error("the read was cancelled")]
    Cancelled,
}

impl OriginError {
    /// Error of the store about `url`.
    pub(crate) fn of_store(url: String, error: &StoreError) -> Self {
        let problem = Arc::from(sentence(error));
        // A retried request wraps its error in another error.
        let chain = std::iter::successors(Some(error as &(dyn Error + 'static)), |&error| error.source());
        let mut status = None;
        let mut checked = chain.clone().filter_map(<dyn Error>::downcast_ref::<AnswerError>);
        if let Some(AnswerError::Encoded(encoding)) = checked.next() {
            let encoding = Arc::from(encoding.as_str());
            return Self::Encoded { url, encoding };
        }
        for error in chain.filter_map(<dyn Error>::downcast_ref::<StoreError>) {
            match error {
                StoreError::NotFound { .. } => return Self::Missing { url, problem },
                StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
                    return Self::Refused { url, problem };
                }
                StoreError::Precondition { .. } => return Self::Changed { url },
                _ => status = status_in(&error.to_string()),
            }
        }
        match status {
            Some(401 | 403) => Self::Refused { url, problem },
            Some(404) => Self::Missing { url, problem },
            _ => Self::Unavailable { url, problem },
        }
    }

    /// Returns true if the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Cancelled)
    }
}

/// Status of the answer to a request without an object, such as a listing. `object_store` does not expose it, so it is
/// taken from the message.
fn status_in(message: &str) -> Option<u16> {
    let (_, rest) = message.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}

/// The innermost causes of `error` on one line; stores answer with XML on several.
fn sentence(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let said = inner.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = inner.source();
    }
    let words: Vec<_> = text.split_whitespace().collect();
    let text = words.join(" ");
    let code = text
        .split_once("<Code>")
        .and_then(|(_, rest)| rest.split_once("</Code>"));
    let message = text
        .split_once("<Message>")
        .and_then(|(_, rest)| rest.split_once("</Message>"));
    match (code, message) {
        (Some((code, _)), Some((message, _))) => format!("{code} ({})", message.trim_end_matches('.')),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_that_is_refused_or_finds_no_bucket_is_told_from_a_failure_that_may_pass() {
        let of = |message: &str| {
            let source = message.to_owned().into();
            let error = StoreError::Generic { store: "S3", source };
            OriginError::of_store("s3://films/a".to_owned(), &error)
        };
        let with = |status: &str| {
            of(&format!(
                "Server returned non-2xx status code: {status}: <Code>Text</Code>"
            ))
        };
        assert!(matches!(with("403 Forbidden"), OriginError::Refused { .. }));
        assert!(matches!(with("404 Not Found"), OriginError::Missing { .. }));
        assert!(with("503 Slow Down").is_temporary());
        assert!(of("error sending request").is_temporary());
    }
}
