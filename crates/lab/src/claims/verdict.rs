//! [`Verdict`]: what results say about a statement.

use super::check::Claim;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The results confirm it.
    Holds,
    /// The results contradict it.
    Fails,
    /// The results do neither.
    Undecided,
    /// Results that it needs are missing.
    NotRun,
}

impl Verdict {
    /// All verdicts, in the order in which they are counted.
    pub(super) const ALL: [Self; 4] = [Self::Holds, Self::Fails, Self::Undecided, Self::NotRun];

    /// Name in tables and JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Undecided => "undecided",
            Self::NotRun => "not run",
        }
    }

    /// The verdict on a statement that needs all `verdicts` to hold: it fails if one fails.
    ///
    /// A statement without any verdict is not run.
    pub(crate) fn of_all(verdicts: impl IntoIterator<Item = Self>) -> Self {
        Self::first_of(
            [Self::Fails, Self::NotRun, Self::Undecided, Self::Holds],
            verdicts,
        )
    }

    /// The verdict on a statement that needs one of `verdicts` to hold: it fails if all fail.
    pub(super) fn of_any(verdicts: impl IntoIterator<Item = Self>) -> Self {
        Self::first_of(
            [Self::Holds, Self::NotRun, Self::Undecided, Self::Fails],
            verdicts,
        )
    }

    /// The first of `order` that is among `verdicts`.
    fn first_of(order: [Self; 4], verdicts: impl IntoIterator<Item = Self>) -> Self {
        let place = |verdict: Self| order.iter().position(|one| *one == verdict);
        let first = verdicts.into_iter().min_by_key(|verdict| place(*verdict));
        first.unwrap_or(Self::NotRun)
    }
}

impl Claim {
    /// The verdict that follows from those on the checks.
    pub(super) fn verdict(&self, checks: impl IntoIterator<Item = Verdict>) -> Verdict {
        if self.any {
            Verdict::of_any(checks)
        } else {
            Verdict::of_all(checks)
        }
    }
}
