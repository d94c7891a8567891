//! [`CmsdReport`]: the state of the path as the server described it in the course of a session.

use std::time::Duration;

use http::HeaderMap;
use playrate_media::cmsd::CmsdDynamic;

/// Responses kept at most.
const MAX_RESPONSES: usize = 100_000;

/// `CMSD-Dynamic` of one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CmsdSample {
    /// Time since the session began at which the response began.
    pub at: Duration,
    /// The entry of the nearest server.
    pub path: CmsdDynamic,
}

/// `CMSD-Dynamic` of the responses of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CmsdReport {
    /// The first 100,000 successful responses that had the field, in order.
    pub samples: Vec<CmsdSample>,
}

impl CmsdReport {
    /// Reads the headers of a successful response that came at `at`.
    pub(crate) fn read(&mut self, headers: &HeaderMap, at: Duration) {
        if self.samples.len() < MAX_RESPONSES {
            let path = CmsdDynamic::read(headers);
            self.samples.extend(path.map(|path| CmsdSample { at, path }));
        }
    }

    /// Round-trip times, in order of the responses.
    pub fn rtts(&self) -> impl Iterator<Item = Duration> {
        self.samples.iter().filter_map(|sample| sample.path.rtt)
    }
}
