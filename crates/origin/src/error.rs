//! [`OriginError`]: errors of a store and its objects.

use std::sync::Arc;

use object_store::Error as StoreError;
use thiserror::Error;

/// Error of a store or of one of its objects. All readers that waited for the same bytes get clones of one error.
#[derive(Clone, Debug, Error)]
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
    #[error("{url} may not be read: {problem}; set credentials in the environment that may read and list it")]
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
        match kind(error) {
            Kind::Missing => Self::Missing { url, problem },
            Kind::Refused => Self::Refused { url, problem },
            Kind::Changed => Self::Changed { url },
            Kind::Other => Self::Unavailable { url, problem },
        }
    }

    /// Returns true if the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Cancelled)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Missing,
    Refused,
    Changed,
    Other,
}

/// Kind of an error; a retried request wraps it in another error.
fn kind(error: &StoreError) -> Kind {
    match error {
        StoreError::NotFound { .. } => return Kind::Missing,
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => return Kind::Refused,
        StoreError::Precondition { .. } => return Kind::Changed,
        _ => {}
    }
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(inner) = inner.downcast_ref::<StoreError>() {
            return kind(inner);
        }
        source = inner.source();
    }
    of_status(&error.to_string())
}

/// Kind of an error of a request without an object, such as a listing. `object_store` does not expose its status, so it
/// is taken from the message.
fn of_status(message: &str) -> Kind {
    let status = message.split_once("status code: ").map(|(_, rest)| rest);
    match status.and_then(|rest| rest.get(..3)) {
        Some("401" | "403") => Kind::Refused,
        Some("404") => Kind::Missing,
        _ => Kind::Other,
    }
}

/// The innermost causes of `error` on one line; stores answer with XML on several.
fn sentence(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
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
