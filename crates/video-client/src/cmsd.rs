//! [`CmsdReport`]: the state of the path as described by the server during a session.

use std::time::Duration;

use http::HeaderMap;
use playrate_media::cmsd::CmsdDynamic;
use playrate_units::Bitrate;
use playrate_units::seconds::{self, from_duration};
use serde::{Serialize, Serializer};

use crate::columns::{self, Column};
use crate::estimates::{Estimates, nearest_rank};

/// Maximum number of responses kept.
const MAX_RESPONSES: usize = 100_000;

/// `CMSD-Dynamic` of one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CmsdSample {
    /// Start of the response, since the session began.
    pub at: Duration,
    /// The entry of the nearest server.
    pub path: CmsdDynamic,
}

impl CmsdSample {
    /// Adds the field of a successful response with `headers`, received at `at`, to `samples`, if it has one.
    pub(crate) fn read(samples: &mut Vec<Self>, headers: &HeaderMap, at: Duration) {
        if samples.len() < MAX_RESPONSES {
            let path = CmsdDynamic::read(headers);
            samples.extend(path.map(|path| Self { at, path }));
        }
    }
}

/// `CMSD-Dynamic` of the responses of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CmsdReport {
    /// Number of successful responses that had the field.
    pub answers: usize,
    /// Distribution of the server's throughput estimates.
    pub etp: Option<Estimates>,
    /// Shortest round-trip time that the server reported.
    #[serde(rename = "rtt_min_s", with = "seconds::optional")]
    pub rtt_min: Option<Duration>,
    /// Median of the round-trip times, the lower one of two.
    #[serde(rename = "rtt_median_s", with = "seconds::optional")]
    pub rtt_median: Option<Duration>,
    /// Longest round-trip time that the server reported.
    #[serde(rename = "rtt_max_s", with = "seconds::optional")]
    pub rtt_max: Option<Duration>,
    /// The first 100,000 successful responses that had the field, in order.
    #[serde(rename = "series", serialize_with = "series")]
    pub samples: Vec<CmsdSample>,
}

impl CmsdReport {
    pub(crate) fn of(samples: Vec<CmsdSample>) -> Self {
        let mut rtts: Vec<_> = samples.iter().filter_map(|sample| sample.path.rtt).collect();
        rtts.sort_unstable();
        Self {
            answers: samples.len(),
            etp: Estimates::of(samples.iter().filter_map(|sample| sample.path.throughput)),
            rtt_min: rtts.first().copied(),
            rtt_median: nearest_rank(&rtts, 50),
            rtt_max: rtts.last().copied(),
            samples,
        }
    }
}

fn series<S: Serializer>(samples: &[CmsdSample], to: S) -> Result<S::Ok, S::Error> {
    const COLUMNS: [Column<CmsdSample>; 4] = [
        ("at_s", |it| from_duration(it.at).into()),
        ("etp_bps", |it| {
            it.path.throughput.map(Bitrate::as_bits_per_second).into()
        }),
        ("rtt_s", |it| it.path.rtt.map(from_duration).into()),
        ("mb_bps", |it| {
            it.path.max_bitrate.map(Bitrate::as_bits_per_second).into()
        }),
    ];
    columns::write(samples, &COLUMNS, to)
}
