//! Startup parts: slow start and its variants. They govern at the beginning of a connection, after persistent congestion
//! and after idle (`core.phase()` tells which).
//!
//! A new one is a file here that implements [`Part`] and gives an `entry()`, an arm of [`Startup`], and a row in
//! `registry/builtin.rs`. One that needs knowledge it does not have grows as [`standard`] until the knowledge comes.

pub(crate) mod hystartpp;
pub(crate) mod short;
pub(crate) mod standard;
pub(crate) mod video_rate;

use crate::compose::{Batch, Core, Needs, Step};
use hystartpp::HyStartPp;
use short::Short;
use standard::Standard;
use video_rate::{VideoRate, VideoSsthresh};

/// What a startup part is asked.
pub(crate) trait Part {
    /// What it asks of its surroundings.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Slow start begins, for the first time or again. `core.phase()`, window and ssthresh are set already.
    fn begin(&mut self, _core: &mut Core) {}

    /// An ACK batch arrived in slow start. Sets the window, by `batch.credit` bytes (already zero where the sender was
    /// limited), and says whether slow start goes on. A loss needs no answer: the law reduces and recovery begins.
    fn on_batch(&mut self, core: &mut Core, batch: &Batch) -> Step;
}

/// All startup parts.
#[derive(Clone, Debug)]
pub(crate) enum Startup {
    Standard(Standard),
    HyStartPp(HyStartPp),
    Short(Short),
    VideoRate(VideoRate),
    VideoSsthresh(VideoSsthresh),
}

macro_rules! each {
    ($self:ident, $part:ident => $call:expr) => {
        match $self {
            Startup::Standard($part) => $call,
            Startup::HyStartPp($part) => $call,
            Startup::Short($part) => $call,
            Startup::VideoRate($part) => $call,
            Startup::VideoSsthresh($part) => $call,
        }
    };
}

impl Startup {
    pub(crate) fn needs(&self) -> Needs {
        each!(self, part => part.needs())
    }

    pub(crate) fn begin(&mut self, core: &mut Core) {
        each!(self, part => part.begin(core));
    }

    pub(crate) fn on_batch(&mut self, core: &mut Core, batch: &Batch) -> Step {
        each!(self, part => part.on_batch(core, batch))
    }
}
