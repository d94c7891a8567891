//! Tests of the adaptive player, against dash.js's own code where it decides.

mod choice;
mod packaged;
mod player;

use std::sync::Arc;
use std::time::Duration;

use playrate_units::{Bitrate, Bytes};

use super::*;

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) const RATES: [(&str, u64); 3] = [("480p", 440), ("720p", 2_640), ("1080p", 4_820)];

/// A title of so many segments of 3 s in the paper's three representations.
pub(super) fn presentation(segments: usize) -> Arc<Presentation> {
    let representation = |(name, kbps): (&str, u64)| Representation {
        name: name.to_owned(),
        rate: Bitrate::from_kbps(kbps),
        initialization: None,
        segments: (0..segments)
            .map(|number| MediaSegment {
                path: format!("/{name}/{number}.m4s"),
                bytes: None,
                duration: ms(3_000),
                pictures: 75,
            })
            .collect(),
    };
    Arc::new(Presentation::new(RATES.map(representation).to_vec()).unwrap())
}

/// Bytes of a segment of a representation.
pub(super) fn size(representation: usize) -> Bytes {
    Bitrate::from_kbps(RATES[representation].1) * ms(3_000)
}
