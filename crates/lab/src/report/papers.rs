//! The papers whose experiments the scenarios repeat.

/// A paper whose experiments are scenarios.
pub(super) struct Paper {
    /// Beginning of the names of its scenarios.
    prefix: &'static str,
    /// Short name, as in claims.
    pub(super) short: &'static str,
    /// Authors, year and title.
    pub(super) title: &'static str,
}

const PAPERS: [Paper; 5] = [
    Paper {
        prefix: "p12-",
        short: "P12",
        title: "Oda, Hisamatsu and Noborio (2012), Design, implementation and evaluation of congestion control \
                mechanism for video streaming",
    },
    Paper {
        prefix: "p13-",
        short: "P13",
        title: "Watanabe et al. (2013), Performance characterization of streaming video over TCP variants",
    },
    Paper {
        prefix: "p14-",
        short: "P14",
        title: "Watanabe et al. (2014), Slow start TCP improvements for video streaming applications",
    },
    Paper {
        prefix: "p15-",
        short: "P15",
        title: "Cavendish et al. (2015), Congestion avoidance TCP improvements for video streaming",
    },
    Paper {
        prefix: "p21-",
        short: "P21",
        title: "Yanev et al. (2021), the effect of New CWV on HTTP adaptive streaming",
    },
];

/// Scenarios of no paper.
const OTHERS: Paper = Paper {
    prefix: "",
    short: "Others",
    title: "Scenarios of no paper",
};

/// The papers in order, and last [`OTHERS`].
pub(super) fn papers() -> impl Iterator<Item = &'static Paper> {
    PAPERS.iter().chain([&OTHERS])
}

impl Paper {
    /// Returns true if the scenario of this name is one of the paper's experiments.
    pub(super) fn holds(&self, scenario: &str) -> bool {
        if self.prefix.is_empty() {
            PAPERS.iter().all(|paper| !paper.holds(scenario))
        } else {
            scenario.starts_with(self.prefix)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_belongs_to_one_paper_or_to_none() {
        for (name, short) in [
            ("p13-4", "P13"),
            ("p21-dash", "P21"),
            ("three-controllers", "Others"),
            ("p1", "Others"),
        ] {
            let found: Vec<_> = papers()
                .filter(|paper| paper.holds(name))
                .map(|paper| paper.short)
                .collect();
            assert_eq!(found, [short], "{name}");
        }
    }
}
