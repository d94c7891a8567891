//! [`State`]: the states of BBR (draft §5.3) and their gains.

/// State of BBR: `BBR.state` of the draft.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Startup,
    Drain,
    /// `ProbeBW_DOWN`: slower than the path, until the queue is empty.
    Down,
    /// `ProbeBW_CRUISE`: as fast as the path.
    Cruise,
    /// `ProbeBW_REFILL`: one round trip without the short-term bounds.
    Refill,
    /// `ProbeBW_UP`: faster than the path.
    Up,
    ProbeRtt,
}

impl State {
    /// Sending rate in percent of bw: `BBR.pacing_gain`.
    pub(super) const fn pacing_gain(self) -> u64 {
        match self {
            Self::Startup => 277,
            Self::Drain => 50,
            Self::Down => 90,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 100,
            Self::Up => 125,
        }
    }

    /// cwnd in percent of the BDP: `BBR.cwnd_gain`.
    pub(super) const fn cwnd_gain(self) -> u64 {
        match self {
            Self::Up => 225,
            Self::ProbeRtt => 50,
            _ => 200,
        }
    }

    /// Returns true in the four states of `ProbeBW`.
    pub(super) const fn probes_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// `IsProbingBW()`: losses are part of the experiment.
    pub(super) const fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// `BBR.ack_phase`: the part of a probe that arriving ACK frames belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}
