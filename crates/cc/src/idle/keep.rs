//! `keep`: a pause costs nothing. Pacing bounds the burst that follows it (RFC 9002 §7.7).

use super::IdlePolicy;

/// Keeps the window over a pause, as quinn does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keep;

impl IdlePolicy for Keep {}
