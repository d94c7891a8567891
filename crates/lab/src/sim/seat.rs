//! [`Seat`]: what a viewer sees while it sees it, for whoever looks from another thread.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use playrate_units::Bytes;

/// What a viewer sees now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sight {
    /// Nothing yet.
    #[default]
    Waiting,
    /// The title.
    Playing,
    /// A picture that stands still.
    Frozen,
    /// The end.
    Ended,
}

impl Sight {
    /// It in a word, the bad one in capitals.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Playing => "playing",
            Self::Frozen => "FROZEN",
            Self::Ended => "done",
        }
    }
}

/// One session at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Since the request.
    pub at: Duration,
    /// What the viewer sees.
    pub sight: Sight,
    /// Playing time that is in and not shown.
    pub ahead: Duration,
    /// Bytes of the title delivered.
    pub delivered: Bytes,
    /// Congestion window, once known.
    pub window: Option<Bytes>,
    /// Freezes so far.
    pub freezes: u64,
    /// Pictures discarded so far.
    pub discarded: u64,
}

/// Where a session leaves its newest moment for whoever looks.
#[derive(Clone, Debug, Default)]
pub struct Seat(Arc<Mutex<Moment>>);

impl Seat {
    /// Leaves `moment` there.
    pub fn set(&self, moment: Moment) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = moment;
    }

    /// The newest moment.
    pub fn get(&self) -> Moment {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_moment_wins() {
        let watch = Seat::default();
        let other = watch.clone();
        other.set(Moment {
            discarded: 3,
            ..Moment::default()
        });
        assert_eq!(watch.get().discarded, 3);
    }
}
