//! `keep`: a pause costs nothing. Pacing bounds the burst that follows it (RFC 9002 §7.7).

use crate::entry::{Entry, Key};

use super::IdlePolicy;

/// Keeps the window over a pause, as quinn does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keep;

impl IdlePolicy for Keep {}

pub(crate) fn entry() -> Entry {
    Entry::component(Key::Idle, "keep", |_, _| {})
        .about("the window is kept over a pause; pacing bounds the first burst")
        .defined_in("RFC 9002 §7.7, §7.8")
}
