//! `keep`: a pause costs nothing. Pacing bounds the burst that follows it (RFC 9002 §7.7).

use crate::registry::{Entry, Key};

use super::{Idle, Part};

/// Keeps the window over a pause, as quinn does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keep;

impl Part for Keep {}

pub(crate) fn entry() -> Entry {
    Entry::part(Key::Idle, "keep")
        .about(
            "the window is kept over a pause; pacing bounds the first burst",
            "RFC 9002 §7.7, §7.8",
        )
        .idle(|_| Idle::Keep(Keep))
}
