//! Opens the store that a location names.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, ObjectStoreScheme, RetryConfig};
use url::Url;

use crate::answers::CheckedConnector;
use crate::error::OriginError;

/// Maximum number of retries after a temporary failure.
const RETRIES: usize = 3;

/// Returns true if `text` is the location of a store and not a path: it has a scheme, such as `s3://`.
pub fn is_location(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Opens the store at `location`, with settings from the environment. Returns the objects below the location, and their
/// URL without the name, which ends with a slash. Sends no request yet. `timeout` bounds all attempts of a request
/// together.
pub(crate) fn open(location: &str, timeout: Duration) -> Result<(Arc<dyn ObjectStore>, String), OriginError> {
    let fault = |problem: String| OriginError::Location {
        location: location.to_owned(),
        problem: problem.into(),
    };
    let url = Url::parse(location).map_err(|error| fault(error.to_string()))?;
    let (scheme, prefix) = ObjectStoreScheme::parse(&url).map_err(|error| fault(error.to_string()))?;
    // The only cryptography provider of this program. It is fine if it is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = ClientOptions::new()
        .with_connect_timeout(timeout / 3)
        // Each part of an answer has its own time limit; whole objects may take long.
        .with_timeout_disabled();
    let retries = RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries: RETRIES,
        retry_timeout: timeout,
    };
    macro_rules! build {
        ($builder:ty, $client:expr) => {
            <$builder>::from_env()
                .with_url(location)
                // Overrides client options from the environment.
                .with_client_options($client)
                .with_http_connector(CheckedConnector)
                .with_retry(retries)
                .build()
                .map(|store| Arc::new(PrefixStore::new(store, prefix.clone())) as Arc<dyn ObjectStore>)
        };
    }
    let opened = match scheme {
        ObjectStoreScheme::AmazonS3 => {
            build!(AmazonS3Builder, client.with_allow_http(is_set("AWS_ALLOW_HTTP")))
        }
        ObjectStoreScheme::GoogleCloudStorage => build!(GoogleCloudStorageBuilder, client),
        ObjectStoreScheme::MicrosoftAzure => {
            build!(
                MicrosoftAzureBuilder,
                client.with_allow_http(is_set("AZURE_ALLOW_HTTP"))
            )
        }
        _ => return Err(fault(format!("`{}` is not supported", url.scheme()))),
    };
    let store = opened.map_err(|error| fault(error.to_string()))?;
    let separator = if prefix.as_ref().is_empty() { "" } else { "/" };
    let host = url.host_str().unwrap_or_default();
    Ok((store, format!("{}://{host}/{prefix}{separator}", url.scheme())))
}

/// Returns true if the environment variable `name` is set to true.
fn is_set(name: &str) -> bool {
    std::env::var(name).is_ok_and(|value| value == "1" || value.eq_ignore_ascii_case("true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_have_a_scheme_and_paths_have_none() {
        for location in ["s3://films", "gs://films/a", "https://films.s3.amazonaws.com/a"] {
            assert!(is_location(location), "{location}");
        }
        for path in ["films", "/srv/films", "./s3:/films", "://films", "a b://films"] {
            assert!(!is_location(path), "{path}");
        }
    }

    #[test]
    fn a_location_that_names_no_store_is_refused_with_what_would_be_right() {
        for location in ["ftp://films", "file:///srv/films", "s3://"] {
            let Err(error) = open(location, Duration::from_secs(1)) else {
                panic!("{location} was opened");
            };
            let text = error.to_string();
            assert!(
                text.contains(location) && text.contains("expected s3://BUCKET/PREFIX"),
                "{text}"
            );
        }
    }
}
