//! Loss responses: what a loss does to a law that does not answer it itself (`Law::on_congestion` returned `None`).
//!
//! A new one is a file here, an arm of [`Loss`] and a row in `registry/builtin.rs`. Laws name their default response
//! with `Entry::default_loss`; laws that answer losses themselves take no other.

use core::time::Duration;

use crate::compose::{Batch, Core};
use crate::estimator::{LossGuard, RttRange};
use crate::events::{AckBatch, Acked, Congestion, MtuChange};
use crate::registry::{Entry, Key};
use crate::spec::ControllerSpec;
use crate::{Bytes, Path};

/// All loss responses.
#[derive(Clone, Debug)]
pub(crate) enum Loss {
    /// The law's own answer.
    Standard,
    /// None at all, as in the papers.
    Ignore,
    /// A ceiling after losses that a full queue explains.
    Guard(LossGuard),
}

impl Loss {
    /// An ACK batch arrived, in any phase; `core.window()` is what the law made of it.
    #[inline]
    pub(crate) fn on_batch(&mut self, _core: &mut Core, batch: &Batch) {
        if let Self::Guard(guard) = self {
            guard.on_acked(&Acked {
                now: batch.now,
                sent: batch.newest_sent,
                bytes: Bytes::new(batch.acked),
                packets: batch.packets,
                app_limited: batch.limited,
            });
            guard.on_ack_batch(&AckBatch {
                now: batch.now,
                in_flight: Bytes::new(batch.in_flight),
                app_limited: batch.limited,
                smoothed_rtt: None,
            });
        }
    }

    /// A congestion event, of a new recovery or not, after the law. `core.in_flight` still contains the lost bytes.
    pub(crate) fn on_congestion(&mut self, core: &mut Core, event: &Congestion) {
        if let Self::Guard(guard) = self {
            let ns = |ns: Option<u64>| ns.map(Duration::from_nanos);
            let latest = ns(core.rtt.latest_ns()).unwrap_or_default();
            let rtt = RttRange {
                latest,
                min: ns(core.rtt.min_ns()).unwrap_or(latest),
                max: ns(core.rtt.max_ns()),
            };
            guard.on_congestion(event, &rtt);
        }
    }

    /// The path's MTU changed.
    pub(crate) fn on_mtu_change(&mut self, mtu: Bytes) {
        if let Self::Guard(guard) = self {
            guard.on_mtu_change(&MtuChange { mtu });
        }
    }

    /// Bounds the shaped window from above, bytes.
    #[inline]
    pub(crate) fn limit(&mut self, _core: &Core, window: u64) -> u64 {
        match self {
            Self::Standard | Self::Ignore => window,
            Self::Guard(guard) => guard.limit(Bytes::new(window)).as_u64(),
        }
    }
}

fn only_for_laws_that_hold(spec: &ControllerSpec) -> Result<(), &'static str> {
    if spec.law().answers_loss() {
        return Err("the law answers losses itself, and has to (RFC 9002 §7)");
    }
    Ok(())
}

fn only_for_laws_that_answer(spec: &ControllerSpec) -> Result<(), &'static str> {
    if spec.law().answers_loss() {
        return Ok(());
    }
    Err("the law has no answer to losses of its own; take guard, or ignore as in the papers")
}

pub(crate) fn standard() -> Entry {
    Entry::part(Key::Loss, "standard")
        .about(
            "the law's own answer to a loss, once per round trip",
            "RFC 9002 §7.3.2",
        )
        .fits(only_for_laws_that_answer)
        .loss(|_| Loss::Standard)
}

pub(crate) fn guard() -> Entry {
    Entry::part(Key::Loss, "guard")
        .about(
            "a ceiling of 0.7 of what was in flight after losses that a full queue explains; random loss costs nothing",
            "RFC 8085 §3.1, which RFC 9002 §7 asks for",
        )
        .fits(only_for_laws_that_hold)
        // The first `MtuChange`, or the path at build time, corrects the MTU.
        .loss(|_| Loss::Guard(LossGuard::new(Path::default().mtu)))
}

pub(crate) fn ignore() -> Entry {
    Entry::part(Key::Loss, "ignore")
        .about(
            "a loss costs nothing; only persistent congestion does. For experiments: it starves others and itself",
            "Cavendish et al. 2015",
        )
        .fits(only_for_laws_that_hold)
        .loss(|_| Loss::Ignore)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("reno+loss=guard", "answers losses itself")]
    #[case("cubic+loss=ignore", "answers losses itself")]
    #[case("ccp+loss=standard", "take guard")]
    fn a_response_that_does_not_fit_the_law_is_refused_with_the_reason(
        #[case] text: &str,
        #[case] says: &str,
    ) {
        let error = text
            .parse::<ControllerSpec>()
            .expect_err("does not fit")
            .to_string();
        assert!(error.contains(says), "{error}");
    }

    #[test]
    fn ccp_is_guarded_unless_told_otherwise() {
        let of = |text: &str| {
            let spec: ControllerSpec = text.parse().expect("parses");
            spec.part(Key::Loss).map(|part| part.0.name())
        };
        assert_eq!(of("ccp"), Some("guard"));
        assert_eq!(of("ccpd+loss=ignore"), Some("ignore"));
    }
}
