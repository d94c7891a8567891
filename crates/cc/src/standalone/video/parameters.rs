//! The parameters of `video`, and its entry in the registry.

use core::time::Duration;

use crate::entry::Entry;
use crate::parameter::Parameter;

use super::Video;

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::number(
        "pace",
        2.0,
        1.0..=1_000.0,
        "times the video's rate after a pause of the player",
    ),
    Parameter::time(
        "patience",
        Duration::from_secs(3),
        Duration::ZERO..=Duration::from_secs(100),
        "time without a pause after which the player may have all that the path gives",
    ),
    Parameter::time(
        "queue",
        Duration::from_millis(4),
        Duration::ZERO..=Duration::from_secs(1),
        "queueing delay that is aimed at on a fast path; on a slow one it is that of two packets",
    ),
    Parameter::number(
        "loss",
        0.02,
        0.0..=0.5,
        "share of packets whose loss costs nothing",
    ),
    Parameter::switch(
        "rate",
        true,
        "use the rate of the video; off: no ceiling, as for any other data",
    ),
    Parameter::switch(
        "ladder",
        true,
        "use the highest rate that the player may choose; off: the rate it watches",
    ),
    Parameter::switch(
        "player",
        true,
        "believe a player that says it starts up or has run empty",
    ),
];

pub(in crate::standalone) fn entry() -> Entry {
    Entry::custom("video", |path, arguments, known| Box::new(Video::new(path, arguments, known)))
        .about(
            "fast while the player is short, no faster than it needs; random losses cost nothing, the queue stays \
             short and others get their share",
            "docs/controllers/video.md",
        )
        .with_parameters(PARAMETERS)
        .absolute()
}
