//! [`Counts`]: numbers of rows and parts that hold.

use super::verdicts::{PartVerdicts, RowVerdicts};
use crate::claims::Verdict;

/// Share of the random worlds from which on a part is called solid.
pub(super) const SOLID: f64 = 0.8;

/// Rows and parts that hold in the nominal and in the fitted world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) rows: HoldCounts,
    pub(super) parts: HoldCounts,
    /// Parts that a search looked at.
    pub(super) searched: HoldCounts,
    /// Parts that no search looked at.
    pub(super) judged: HoldCounts,
    /// Parts that hold in most random worlds ([`SOLID`]).
    pub(super) solid: usize,
    /// Parts that hold in no world of any kind.
    pub(super) nowhere: usize,
}

/// A number of rows or parts, and how many of them hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HoldCounts {
    pub(super) of: usize,
    pub(super) nominal: usize,
    pub(super) fitted: usize,
}

impl HoldCounts {
    /// Adds the verdicts of the nominal and of the fitted world.
    fn add(&mut self, nominal: Verdict, fitted: Verdict) {
        self.of += 1;
        self.nominal += usize::from(nominal == Verdict::Holds);
        self.fitted += usize::from(fitted == Verdict::Holds);
    }
}

impl Counts {
    /// The counts of these rows.
    pub(super) fn of<'a>(rows: impl IntoIterator<Item = &'a RowVerdicts>) -> Self {
        let mut counts = Self::default();
        for row in rows {
            counts.rows.add(row.nominal, row.fitted);
            row.parts.iter().for_each(|part| counts.add(part));
        }
        counts
    }

    fn add(&mut self, part: &PartVerdicts) {
        let kind = if part.judged {
            &mut self.judged
        } else {
            &mut self.searched
        };
        for hold_counts in [kind, &mut self.parts] {
            hold_counts.add(part.nominal, part.fitted);
        }
        self.solid += usize::from(part.robustness.is_some_and(|share| share >= SOLID));
        self.nowhere += usize::from(part.holds_nowhere());
    }

    /// Every count by its name in summaries.
    pub(super) const fn named(&self) -> [(&'static str, usize); 14] {
        [
            ("rows", self.rows.of),
            ("nominal_rows", self.rows.nominal),
            ("fitted_rows", self.rows.fitted),
            ("parts", self.parts.of),
            ("nominal_parts", self.parts.nominal),
            ("fitted_parts", self.parts.fitted),
            ("searched_parts", self.searched.of),
            ("nominal_searched_parts", self.searched.nominal),
            ("fitted_searched_parts", self.searched.fitted),
            ("judged_parts", self.judged.of),
            ("nominal_judged_parts", self.judged.nominal),
            ("fitted_judged_parts", self.judged.fitted),
            ("solid_parts", self.solid),
            ("nowhere_parts", self.nowhere),
        ]
    }
}
