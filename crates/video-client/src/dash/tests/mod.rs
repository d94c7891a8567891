//! Tests of the adaptive player, compared with dash.js's own code for its decisions.

mod choice;
mod packaged;
mod player;

use std::sync::Arc;
use std::time::Duration;

use playrate_units::{Bitrate, Bytes};

use super::*;
use crate::transfer::Transfer;

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) const RATES: [(&str, u64); 3] = [("480p", 440), ("720p", 2_640), ("1080p", 4_820)];

/// A representation of this rate in kbit/s, with segments of 75 frames and these durations.
pub(crate) fn representation((name, kbps): (&str, u64), durations: &[Duration]) -> Representation {
    let segment = |(number, &duration)| MediaSegment {
        path: format!("/{name}/{number}.m4s"),
        bytes: None,
        duration,
        frames: 75,
        hidden: Duration::ZERO,
        is_gap: false,
    };
    Representation {
        name: name.to_owned(),
        rate: Bitrate::from_kbps(kbps),
        initializations: Vec::new(),
        segments: durations.iter().enumerate().map(segment).collect(),
    }
}

/// A title with this many segments of 3 s in the paper's three representations.
pub(super) fn presentation(segments: usize) -> Arc<Presentation> {
    let durations = vec![ms(3_000); segments];
    let representations = RATES.map(|named| representation(named, &durations));
    Arc::new(Presentation::new(representations.to_vec()).unwrap())
}

/// A transfer with request, first byte and end at these times in ms.
pub(super) fn transfer(times: [u64; 3], bytes: Bytes) -> Transfer {
    let [requested, first_byte, finished] = times.map(ms);
    Transfer {
        requested,
        first_byte,
        finished,
        bytes,
    }
}

/// Bytes of a segment of a representation.
pub(super) fn size(representation: usize) -> Bytes {
    Bitrate::from_kbps(RATES[representation].1) * ms(3_000)
}

/// Fetches the next segment within half a second, starting at `at`. Returns its representation and its index; `None`
/// if there is no room for it.
pub(super) fn fetch(player: &mut DashPlayer, at: u64) -> Option<(usize, usize)> {
    let Decision::Fetch {
        representation,
        segment,
    } = player.decide(ms(at))
    else {
        return None;
    };
    player.fetched(transfer([at, at + 40, at + 500], size(representation)), None);
    Some((representation, segment))
}

/// The default options with this `change`.
pub(super) fn changed(change: impl FnOnce(&mut DashOptions)) -> DashOptions {
    let mut options = DashOptions::default();
    change(&mut options);
    options
}
