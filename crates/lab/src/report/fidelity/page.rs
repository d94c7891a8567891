//! `fidelity.md`: the verdicts as a page for readers who know none of the project's other pages.

use std::fmt::Write as _;

use super::counts::{Counts, HoldCounts, SOLID};
use super::kept::Kept;
use super::markdown::{Markdown, anchor, cell};
use super::verdicts::{BedSearch, BedVerdicts, Fidelity, PartVerdicts, RowVerdicts, ShortCounts};
use crate::claims::Verdict;
use crate::report::Drawn;
use crate::report::papers::papers;
use crate::words::{count, percent};

/// Everything that the page shows.
pub(super) struct Shown<'a> {
    pub(super) fidelity: &'a Fidelity,
    pub(super) kept: &'a Kept,
    /// The summary's sentences with their numbers.
    pub(super) summary: &'a [String],
    /// Figures of each row, in the order of the rows.
    pub(super) figures: &'a [Vec<Drawn>],
    /// Names of test beds whose landscape was drawn.
    pub(super) landscapes: &'a [String],
}

/// Directory of figures, as the page refers to it.
pub(super) const FIGURES: &str = "fidelity";

/// The page as Markdown.
pub(super) fn markdown(shown: &Shown<'_>) -> String {
    let mut page = Markdown::default();
    shown.beginning(&mut page);
    shown.conclusion(&mut page);
    shown.before_and_after(&mut page);
    shown.heat_map(&mut page);
    shown.landscapes(&mut page);
    shown.nowhere(&mut page);
    shown.rows(&mut page);
    shown.repetition(&mut page);
    page.finish()
}

fn verdict(verdict: Verdict) -> String {
    match verdict {
        Verdict::Holds => "**holds**".to_owned(),
        other => other.name().to_owned(),
    }
}

fn robustness(share: Option<f64>, worlds: usize) -> String {
    share.map_or_else(
        || "–".to_owned(),
        |share| format!("{} of {worlds}", percent(share)),
    )
}

impl Shown<'_> {
    fn search_of(&self, row: &RowVerdicts) -> Option<&BedSearch> {
        let mut beds = self.fidelity.test_beds.iter();
        beds.find(|bed| Some(&bed.name) == row.test_bed.as_ref())?
            .search
            .as_ref()
    }

    fn beginning(&self, page: &mut Markdown) {
        let counts = Counts::of(&self.fidelity.rows);
        page.heading(1, "What of the five papers can be reproduced");
        page.paragraph(&format!(
            "Five papers compare congestion control for video by experiments. This page answers for each of their {} \
             statements, in {} parts, whether it comes out when the experiment is repeated in simulation with a real \
             QUIC stack, and how much that depends on what the papers leave open: the emulator's queue, the kernel's \
             slow start, how late a player still shows a frame.",
            counts.rows.of, counts.parts.of
        ));
        page.paragraph(
            "A *world* is one value for each parameter that the papers on a test bed leave open, the same for all \
             their figures. The *nominal* world has the values that we chose first. The *fitted* world is the \
             one, found by a search, in which most of the parts hold that the search looks at; the others are \
             *judged* afterwards, so that overfitting would show. *Random* worlds have any plausible values. The \
             papers are called P12 to P21, by year ([papers.md](papers.md)); P13-4 is about figure 4 of P13.",
        );
        page.paragraph(
            "[worlds.md](worlds.md) has the protocol, [claims.md](claims.md) the rules of verdicts, \
             [simulation.md](simulation.md) the reasons to trust the simulation itself, and \
             [fidelity.json](fidelity.json) the verdicts as data. `lab report papers` draws all of it from stored \
             results.",
        );
        for bed in &self.fidelity.test_beds {
            let warning = match &bed.search {
                None => format!(
                    "The test bed {} has not been searched: its rows are *not run*.",
                    bed.name
                ),
                Some(search) if search.quick => format!(
                    "The test bed {} was searched with `--quick`: {}, short titles, and cases that are left out.",
                    bed.name,
                    count(search.fitted.trials.into(), "trial", "trials"),
                ),
                Some(_) => continue,
            };
            page.bullet(&warning);
        }
        page.blank();
    }

    fn conclusion(&self, page: &mut Markdown) {
        page.heading(2, "What to believe about the five papers");
        if self.summary.is_empty() {
            page.paragraph("No summary of these results has been written yet.");
        }
        for sentence in self.summary {
            page.bullet(sentence);
        }
        page.blank();
    }

    fn before_and_after(&self, page: &mut Markdown) {
        page.heading(2, "Before and after");
        let all = Counts::of(&self.fidelity.rows);
        let line = |name: &str, hold_counts: HoldCounts, short: &dyn Fn(&ShortCounts) -> usize| {
            let mut cells = vec![
                name.to_owned(),
                hold_counts.of.to_string(),
                hold_counts.nominal.to_string(),
                bold(hold_counts.fitted),
            ];
            cells.extend(self.short_trial(short));
            cells
        };
        page.table(
            &[
                "",
                "of",
                "nominal world",
                "fitted world",
                "one short trial: of",
                "nominal world",
                "fitted world",
                "median random world",
            ],
            &[
                line("rows that hold in full", all.rows, &|counts| counts.rows),
                line("parts that hold", all.parts, &|counts| counts.parts),
                line("parts that a search looked at", all.searched, &|counts| {
                    counts.searched_parts
                }),
                line("judged parts", all.judged, &|counts| counts.judged_parts),
            ],
        );
        page.paragraph(&how_decided(&all));
        let lines = papers().filter_map(|paper| {
            let mut mine = self
                .fidelity
                .rows
                .iter()
                .filter(|row| row.paper == paper.short)
                .peekable();
            mine.peek()?;
            let counts = Counts::of(mine);
            let hold_counts = |hold_counts: HoldCounts| {
                [
                    hold_counts.of.to_string(),
                    hold_counts.nominal.to_string(),
                    bold(hold_counts.fitted),
                ]
            };
            let cells = [counts.rows, counts.parts, counts.judged]
                .into_iter()
                .flat_map(hold_counts);
            Some(
                std::iter::once(format!("[{0}](#{1})", paper.short, anchor(paper.short)))
                    .chain(cells)
                    .collect(),
            )
        });
        page.table(
            &[
                "paper",
                "rows",
                "nominal",
                "fitted",
                "parts",
                "nominal",
                "fitted",
                "judged parts",
                "nominal",
                "fitted",
            ],
            &lines.collect::<Vec<_>>(),
        );
    }

    /// The number of rows or parts that were run in the searches' one short trial, and of those that hold in the
    /// nominal, the fitted and the median random world; dashes if a search drew no sample.
    fn short_trial(&self, of: &dyn Fn(&ShortCounts) -> usize) -> [String; 4] {
        let searches = self
            .fidelity
            .test_beds
            .iter()
            .filter_map(|bed| bed.search.as_ref());
        let of_search = |search: &BedSearch| {
            let (short, median) = (search.short_trial?, search.sample?.median());
            Some([short.run, short.nominal, short.fitted, median].map(|counts| of(&counts)))
        };
        let all: Option<Vec<[usize; 4]>> = searches.map(of_search).collect();
        let sum = |place: usize| {
            let all = all.as_ref().filter(|all| !all.is_empty());
            all.map_or_else(
                || "–".to_owned(),
                |all| all.iter().map(|counts| counts[place]).sum::<usize>().to_string(),
            )
        };
        [0, 1, 2, 3].map(sum)
    }

    fn heat_map(&self, page: &mut Markdown) {
        page.heading(2, "Rows in many worlds");
        page.image("Share of each row's parts that hold, by world", "heat-map.svg");
        page.paragraph(
            "The random worlds in which all rows were run are sorted into tenths by the number of fitted parts that \
             hold in them. Where a judged \
             row becomes brighter towards the best tenth, its claims depend on the same parameters as the fitted \
             ones; fitted rows do so by the way in which the tenths are made. Column *random worlds* of the table is \
             the share of these in which a row holds in full; there is none if short titles leave out a case that one \
             of its parts needs.",
        );
        let line = |row: &RowVerdicts| {
            let hold = |of: fn(&PartVerdicts) -> Verdict| {
                row.parts.iter().filter(|part| of(part) == Verdict::Holds).count()
            };
            let worlds = row.parts.iter().map(|part| part.worlds).max().unwrap_or(0);
            vec![
                format!("[{}](#{})", row.id, anchor(&row.id)),
                verdict(row.nominal),
                verdict(row.fitted),
                format!(
                    "{} and {} of {}",
                    hold(|part| part.nominal),
                    hold(|part| part.fitted),
                    row.parts.len()
                ),
                robustness(row.robustness, worlds),
                if row.judged { "judged" } else { "fit" }.to_owned(),
            ]
        };
        page.table(
            &[
                "row",
                "nominal world",
                "fitted world",
                "parts that hold",
                "random worlds",
                "search",
            ],
            &self.fidelity.rows.iter().map(line).collect::<Vec<_>>(),
        );
    }

    fn landscapes(&self, page: &mut Markdown) {
        page.heading(2, "The landscape of each fit");
        page.paragraph(
            "Above, the scores of random worlds; below, for every parameter that acts on fitted rows, the mean score \
             of the random worlds with each choice. A parameter whose dots lie on one vertical line does not matter.",
        );
        for bed in &self.fidelity.test_beds {
            page.heading(3, &format!("Test bed {}", bed.name));
            page.paragraph(&bed.about);
            match &bed.search {
                Some(search) => self.landscape(page, bed, search),
                None => page.paragraph("This test bed has not been searched."),
            }
        }
    }

    fn landscape(&self, page: &mut Markdown, bed: &BedVerdicts, search: &BedSearch) {
        if self.landscapes.contains(&bed.name) {
            page.image(
                &format!(
                    "Scores of random worlds of {0}, and mean score by choice",
                    bed.name
                ),
                &landscape_name(&bed.name),
            );
        } else {
            page.paragraph(
                "These worlds were found by an earlier search, so there are no random worlds here, and robustness is \
                 not known.",
            );
        }
        if let Some(good) = search.as_good {
            page.paragraph(&format!(
                "{} of {} random worlds do as well as the fitted world, within one part, in the one short trial in \
                 which both were chosen; chance flatters the best of a search.",
                good.sample.worlds, good.sample.of
            ));
        }
        if search.nominal.choices == search.fitted.choices {
            page.paragraph("The fitted world is the nominal one: no other was better.");
        }
        let lines = search.fitted.choices.iter().map(|(name, fitted)| {
            let nominal = search.nominal.choices.get(name).map_or("–", String::as_str);
            let fitted = if nominal == fitted {
                fitted.clone()
            } else {
                format!("**{fitted}**")
            };
            vec![format!("`{name}`"), nominal.to_owned(), fitted]
        });
        page.table(
            &["parameter", "nominal world", "fitted world"],
            &lines.collect::<Vec<_>>(),
        );
    }

    fn nowhere(&self, page: &mut Markdown) {
        page.heading(2, "Claims that hold nowhere");
        let mut any = false;
        for row in &self.fidelity.rows {
            for part in row.parts.iter().filter(|part| part.holds_nowhere()) {
                if !any {
                    page.paragraph(
                        "These parts hold neither in the nominal world nor in the fitted one, nor in any random world \
                         that was run.",
                    );
                }
                any = true;
                let reason = self
                    .kept
                    .reasons
                    .get(&part.id)
                    .map_or("no reason known yet.", String::as_str);
                page.bullet(&format!(
                    "[{}](#{}), {}: {reason}",
                    part.id,
                    anchor(&row.id),
                    part.says
                ));
            }
        }
        if !any {
            page.paragraph("There is none among the parts that were run in random worlds.");
        }
        page.blank();
    }

    fn rows(&self, page: &mut Markdown) {
        page.heading(2, "Row by row");
        page.paragraph(
            "*Robustness* is the share of random worlds in which a part holds. `metric[controller]` is the mean of a \
             metric ([runs.md](runs.md)) over the trials of a controller; `[controller@case]` names a case of the \
             scenario, such as `n40` (40 bulk flows) or `pob448` (a playout buffer of 448 packets).",
        );
        for paper in papers() {
            let rows = self.fidelity.rows.iter().zip(self.figures);
            let mut mine = rows.filter(|(row, _)| row.paper == paper.short).peekable();
            if mine.peek().is_some() {
                page.heading(3, paper.short);
                page.paragraph(&format!("{}.", paper.title.trim_end_matches('.')));
            }
            for (row, figures) in mine {
                self.row(page, row, figures);
            }
        }
    }

    fn row(&self, page: &mut Markdown, row: &RowVerdicts, figures: &[Drawn]) {
        page.heading(4, &row.id);
        page.quote(&row.says);
        let mut line = format!(
            "Nominal world: {}. Fitted world: {}.",
            verdict(row.nominal),
            verdict(row.fitted)
        );
        if let Some(share) = row.robustness {
            let _ = write!(
                line,
                " It holds in full in {} of the random worlds.",
                percent(share)
            );
        }
        if self.search_of(row).is_some() {
            let kind = if row.judged { "judged" } else { "fitted on" };
            let trials = count(row.trials.into(), "trial", "trials");
            let _ = write!(line, " The row was {kind}; verdicts are of {trials}.");
        }
        page.paragraph(&line);
        for figure in figures {
            if !figure.svg.is_empty() {
                page.image(&figure.caption, &format!("{}.svg", figure.name));
            }
            page.paragraph(&figure.caption);
        }
        let lines: Vec<Vec<String>> = row.parts.iter().map(part_line).collect();
        page.table(
            &["part", "", "nominal world", "fitted world", "robustness"],
            &lines,
        );
        if row.parts.iter().any(|part| part.fitted_check.is_some()) {
            page.begin_details("The paper's words, and the numbers that decide in the fitted world");
            row.parts.iter().for_each(|part| self.part(page, part));
            page.end_details();
        }
    }

    /// The paper's words on a part, the check that decides it, and the reason.
    fn part(&self, page: &mut Markdown, part: &PartVerdicts) {
        let mut words = format!("**{}** {}", part_name(part), part.fitted.name());
        if let Some(check) = &part.fitted_check {
            let checks = if check.of > 1 {
                format!(" ({} of {} checks hold)", check.holds, check.of)
            } else {
                String::new()
            };
            let _ = write!(
                words,
                "{checks}: `{}`: {}.",
                check.check,
                check.numbers.trim_end_matches('.')
            );
        }
        let texts = [
            ("Paper", &part.paper),
            ("Threshold", &part.why),
            ("Note", &part.note),
        ];
        for (label, text) in texts {
            if let Some(text) = text {
                let _ = write!(words, " {label}: {}.", text.trim().trim_end_matches('.'));
            }
        }
        if let Some(reason) = self.kept.reasons.get(&part.id) {
            let _ = write!(words, " Reason: {reason}");
        }
        page.bullet(&words);
    }

    fn repetition(&self, page: &mut Markdown) {
        page.heading(2, "How to repeat it");
        let searches = self.fidelity.test_beds.iter().filter_map(|bed| {
            let search = bed.search.as_ref()?;
            Some(search.command(&bed.name))
        });
        let report = [
            "lab report papers lab-worlds --out docs".to_owned(),
            "lab report papers lab-worlds --out docs --check".to_owned(),
        ];
        page.code(&searches.chain(report).collect::<Vec<_>>());
        page.paragraph(
            "The same search gives the same bytes. The sentences at the top and the reasons for claims that hold \
             nowhere are written by people, in `fidelity/summary.md` and `fidelity/reasons.toml`. The numbers in the \
             sentences are filled in, and a reason for a claim that does hold somewhere is an error.",
        );
    }
}

/// File name of a test bed's landscape.
pub(super) fn landscape_name(bed: &str) -> String {
    format!("landscape-{}.svg", crate::result::slug(bed))
}

fn bold(number: usize) -> String {
    format!("**{number}**")
}

fn part_name(part: &PartVerdicts) -> &str {
    part.id.split_once('/').map_or(part.id.as_str(), |(_, name)| name)
}

/// The rules by which the columns of the table of counts are decided.
fn how_decided(all: &Counts) -> String {
    format!(
        "The worlds at the left are decided by confidence intervals over all trials. At the right are all worlds as \
         the random ones are decided: by the means of one trial with a short title, in which some cases and parts are \
         not run and no spread can be told. The median is that of each test bed added up. {} of the {} parts hold in \
         at least {} of the random worlds, {} in none of the worlds that were run.",
        all.solid,
        all.parts.of,
        percent(SOLID),
        all.nowhere
    )
}

fn part_line(part: &PartVerdicts) -> Vec<String> {
    vec![
        format!("`{}`", part_name(part)),
        cell(&part.says),
        verdict(part.nominal),
        verdict(part.fitted),
        robustness(part.robustness, part.worlds),
    ]
}
