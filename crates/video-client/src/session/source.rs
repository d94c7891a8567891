//! [`TitleSource`]: what the session loop requires from a kind of title.

use std::time::Duration;

use playrate_media::cmcd::Cmcd;
use playrate_units::Bytes;

use super::{Driver, Request};
use crate::error::PlayError;
use crate::observer::{Observer, Progress};
use crate::playout::Playout;
use crate::report::QualityReport;
use crate::sink::Sink;
use crate::transfer::Transfer;

/// The next step of a session.
pub(crate) enum NextStep {
    /// Send this request; pass its body to the source and the sink.
    Fetch(Box<Request>),
    /// Request nothing before this time.
    WaitUntil(Duration),
    /// Everything has been fetched.
    Done,
}

/// A kind of title: it decides what to request and feeds the modelled player.
pub(crate) trait TitleSource: Send + Sized {
    fn playout(&self) -> &Playout;

    /// The player, if it exists already: for a title with a manifest, after reading the manifest.
    fn playout_mut(&mut self) -> Option<&mut Playout>;

    /// Called on every iteration of the loop, before the observer.
    fn on_turn(&mut self, _now: Duration) {}

    /// Returns true while bytes must not be read because the player's buffers are full.
    fn reading_paused(&self) -> bool {
        false
    }

    /// Time of the viewer's next jump.
    fn next_seek(&self) -> Duration {
        Duration::MAX
    }

    /// Makes the viewer's next jump. Abandons the response in progress.
    fn seek(&mut self, _now: Duration) {}

    /// Decides on the next step of `driver`, which plays this source. May fetch descriptions of the title and write
    /// them to `sink`.
    fn next<O: Observer, S: Sink>(
        driver: &mut Driver<'_, O, Self>,
        sink: &mut S,
    ) -> impl Future<Output = Result<NextStep, PlayError>> + Send;

    /// Updates the keys of `cmcd` that depend on the player's state, for a repeated request.
    fn refresh(&mut self, _cmcd: &mut Cmcd) {}

    /// A response has begun, with this length if the server declared one.
    fn on_response(&mut self, _length: Option<Bytes>) {}

    /// More bytes of the body of the last [`NextStep::Fetch`] have arrived.
    fn on_bytes(&mut self, now: Duration, bytes: &[u8]) -> Result<(), PlayError>;

    /// That body is complete.
    fn on_end(&mut self, transfer: Transfer) -> Result<(), PlayError>;

    /// Adds to `progress` what only the source knows.
    fn describe_progress(&self, progress: &mut Progress);

    /// Adds to `report` what only the source knows.
    fn describe_report(&self, report: &mut QualityReport);
}
