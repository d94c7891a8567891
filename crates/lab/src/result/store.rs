//! [`Store`]: a directory of results.
//!
//! During a run, finished jobs are appended to `runs.part.jsonl`, so that no result is lost. At the end, all rows are
//! written atomically to `runs.jsonl` in the order of the plan, and the other file is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use indexmap::map::Entry;
use serde::Deserialize;

use super::row::{FORMAT, ResultKey, Row, VERSION};
use super::series::{SERIES, series_file};
use crate::error::CommandError;
use crate::scenario::{Scenario, full_name};

const ROWS: &str = "runs.jsonl";
const PART: &str = "runs.part.jsonl";
/// Directory of the texts of scenarios.
pub(crate) const SCENARIOS: &str = "scenarios";

/// Results of runs, on disk and in memory.
#[derive(Debug)]
pub(crate) struct Store {
    directory: PathBuf,
    part: File,
    kept: BTreeMap<ResultKey, Vec<Row>>,
}

impl Store {
    /// Opens `directory` for results, creating it if necessary.
    ///
    /// # Errors
    /// If it cannot be written, or contains results and `resume` is false ([`io::ErrorKind::AlreadyExists`]).
    pub(crate) fn open(directory: &Path, resume: bool) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        if !resume && files(directory).next().is_some() {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        let mut kept: BTreeMap<ResultKey, Vec<Row>> = BTreeMap::new();
        for row in rows_of(directory)? {
            kept.entry(row.key.clone()).or_default().push(row);
        }
        let part = directory.join(PART);
        let part = OpenOptions::new().create(true).append(true).open(part)?;
        let mut store = Self {
            directory: directory.to_owned(),
            part,
            kept,
        };
        // A half-written line after a crash must not swallow the next one.
        store.part.write_all(b"\n")?;
        Ok(store)
    }

    /// Creates `directory` if it is missing, and checks that it contains no results of scenarios other than `name`.
    ///
    /// # Errors
    /// If it cannot be created or read, or contains such results ([`io::ErrorKind::AlreadyExists`]).
    pub(crate) fn check_replaceable(directory: &Path, name: &str) -> io::Result<()> {
        fs::create_dir_all(directory)?;
        let is_other = |row: &Row| row.key.scenario != name;
        if rows_of(directory)?.iter().any(is_other) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        Ok(())
    }

    /// Opens `directory` for the results of the scenario called `name`, and removes that scenario's older results.
    ///
    /// # Errors
    /// If it cannot be written, or contains results of other scenarios ([`io::ErrorKind::AlreadyExists`]).
    pub(crate) fn replace(directory: &Path, name: &str) -> io::Result<Self> {
        Self::check_replaceable(directory, name)?;
        for file in files(directory) {
            fs::remove_file(file)?;
        }
        match fs::remove_dir_all(directory.join(SERIES).join(super::slug(name))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        Self::open(directory, false)
    }

    /// The rows of a run, if all `number` exist and come from this version of the program.
    pub(crate) fn rows(&self, key: &ResultKey, number: u32) -> Option<&[Row]> {
        let rows = self.kept.get(key)?;
        let whole = rows.len() == number as usize;
        let ours = rows.iter().all(|row| row.program == env!("CARGO_PKG_VERSION"));
        (whole && ours).then_some(rows)
    }

    /// Returns true if there are rows of the same run with other settings of its scenario.
    pub(crate) fn has_other_settings(&self, key: &ResultKey) -> bool {
        let run = |key: &ResultKey| (key.full_name(), key.controller.clone(), key.seed);
        let other = |known: &&ResultKey| known.scenario_hash != key.scenario_hash && run(known) == run(key);
        self.kept.keys().any(|known| other(&known))
    }

    /// Adds the rows of a run.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(crate) fn add(&mut self, rows: Vec<Row>) -> io::Result<()> {
        let Some(first) = rows.first() else { return Ok(()) };
        let key = first.key.clone();
        for row in &rows {
            self.part.write_all(line(row)?.as_bytes())?;
        }
        self.part.flush()?;
        self.kept.insert(key, rows);
        Ok(())
    }

    /// Adds the time series `name`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn add_series(&self, name: &str, text: &str) -> io::Result<()> {
        self.add_text(&format!("{SERIES}/{name}"), text)
    }

    /// Returns true if the directory has time series of the run's first viewer.
    pub(crate) fn has_series(&self, key: &ResultKey) -> bool {
        series_file(&self.directory, key, "viewer0", "events").exists()
    }

    /// Adds the text of a scenario, so that the runs can be explained wherever the results are copied.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn add_scenario(&self, scenario: &Scenario) -> io::Result<()> {
        self.add_text(&format!("{SCENARIOS}/{}.toml", scenario.name), &scenario.text)
    }

    /// Adds a file to the directory of the rows.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn add_text(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.directory.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)
    }

    /// Writes the rows of the runs of `plan`, in its order, followed by those of other scenarios already in the
    /// directory.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(crate) fn finish<'a>(self, plan: impl Iterator<Item = &'a ResultKey>) -> io::Result<()> {
        let new = self.directory.join("runs.new.jsonl");
        let mut out = io::BufWriter::new(File::create(&new)?);
        let plan: Vec<&ResultKey> = plan.collect();
        let planned: BTreeSet<&ResultKey> = plan.iter().copied().collect();
        let mine = plan.iter().filter_map(|key| self.kept.get(key));
        let others = self.kept.iter().filter(|(key, _)| !planned.contains(key));
        for rows in mine.chain(others.map(|(_, rows)| rows)) {
            for row in rows {
                out.write_all(line(row)?.as_bytes())?;
            }
        }
        out.into_inner()
            .map_err(io::IntoInnerError::into_error)?
            .sync_all()?;
        fs::rename(&new, self.directory.join(ROWS))?;
        fs::remove_file(self.directory.join(PART))
    }
}

fn line(row: &Row) -> io::Result<String> {
    let mut text = serde_json::to_string(row)?;
    text.push('\n');
    Ok(text)
}

/// Reads the rows of a directory ([`rows_of`]).
///
/// # Errors
/// If there are none ([`io::ErrorKind::NotFound`]), or they cannot be read ([`read`]).
pub(crate) fn read_directory(directory: &Path) -> io::Result<Vec<Row>> {
    if files(directory).next().is_none() {
        let problem = format!("there is no {ROWS} in {}", directory.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, problem));
    }
    rows_of(directory)
}

/// The rows of a directory, from finished and interrupted runs; none if it has no results. If a flow was run again,
/// only its last row is kept.
///
/// # Errors
/// If they cannot be read ([`read`]).
fn rows_of(directory: &Path) -> io::Result<Vec<Row>> {
    let mut rows = IndexMap::new();
    for file in files(directory) {
        for row in read(&file)? {
            rows.insert((row.key.clone(), row.viewer), row);
        }
    }
    Ok(rows.into_values().collect())
}

/// The files with rows in a directory.
fn files(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let files = [ROWS, PART].map(|name| directory.join(name));
    files.into_iter().filter(|file| file.exists())
}

/// Reads the rows of a file. Skips lines of another format or version, or torn by a crash, with a warning.
///
/// # Errors
/// If the file cannot be read, or a row lacks a required field ([`io::ErrorKind::InvalidData`], naming line, run and
/// field).
fn read(file: &Path) -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(File::open(file)?).lines()) {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        match parse(&line) {
            Ok(Some(row)) => rows.push(row),
            Ok(None) => tracing::warn!(
                file = %file.display(),
                number,
                "skipped a line that is torn or not a result of format {FORMAT} version {VERSION}"
            ),
            Err(problem) => {
                let problem = format!("{}, line {number}: {problem}", file.display());
                return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
            }
        }
    }
    Ok(rows)
}

/// The fields at the beginning of a row, common to all versions.
#[derive(Deserialize)]
struct Stamp {
    format: String,
    version: u32,
    scenario: String,
    case: String,
    controller: String,
    seed: u64,
}

/// Reads a row; `None` if the line is torn or of another version.
///
/// # Errors
/// Names the run and the field if the row has this version but cannot be read.
fn parse(line: &str) -> Result<Option<Row>, String> {
    let error = match serde_json::from_str::<Row>(line) {
        Ok(row) if row.format == FORMAT && row.version == VERSION => return Ok(Some(row)),
        Ok(_) => return Ok(None),
        Err(error) => error,
    };
    match serde_json::from_str::<Stamp>(line) {
        Ok(stamp) if stamp.format == FORMAT && stamp.version == VERSION => Err(format!(
            "the row of {} under {} with seed {} cannot be read: {error}",
            full_name(&stamp.scenario, &stamp.case),
            stamp.controller,
            stamp.seed
        )),
        _ => Ok(None),
    }
}

/// Reads the rows of several directories as one set of results: a run found in two of them counts once. Runs are
/// ordered by the first appearance of their scenario, case and controller, which may differ from the order of the plan,
/// then by trial. So the shards of `lab run --shard` together give the rows of one `lab run`.
///
/// # Errors
/// If a directory has no rows, or two have different rows for the same run.
pub(crate) fn read_directories(directories: &[PathBuf]) -> Result<Vec<Row>, CommandError> {
    let mut found: IndexMap<(ResultKey, u32), (Row, &Path)> = IndexMap::new();
    for directory in directories {
        let read = read_directory(directory).map_err(|error| CommandError::Read {
            directory: directory.clone(),
            error,
        })?;
        for row in read {
            match found.entry((row.key.clone(), row.viewer)) {
                Entry::Vacant(place) => {
                    place.insert((row, directory));
                }
                Entry::Occupied(place) => {
                    let (known, first) = place.get();
                    if *known != row {
                        return Err(CommandError::BadInput(format!(
                            "the results of {} differ between {} and {}; leave out one of the directories",
                            row.key.run_name(),
                            first.display(),
                            directory.display()
                        )));
                    }
                }
            }
        }
    }
    let mut scenarios: IndexMap<String, IndexMap<String, IndexMap<String, Vec<Row>>>> = IndexMap::new();
    for (row, _) in found.into_values() {
        let key = row.key.clone();
        let cases = scenarios.entry(key.scenario).or_default();
        let controllers = cases.entry(key.case).or_default();
        controllers.entry(key.controller).or_default().push(row);
    }
    let cases = scenarios.into_values().flat_map(IndexMap::into_values);
    let runs = cases.flat_map(IndexMap::into_values).flat_map(|mut rows| {
        rows.sort_by_key(|row| (row.key.trial, row.viewer));
        rows
    });
    Ok(runs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// Rows with all combinations of groups, from `tests/rows/`.
    fn golden() -> Vec<Row> {
        read(Path::new(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/rows/groups.jsonl"
        )))
        .unwrap()
    }

    fn groups(row: &Row) -> [bool; 5] {
        [
            row.sender.is_some(),
            row.control.is_some(),
            row.restarted.is_some(),
            row.adaptive.is_some(),
            row.link.is_some(),
        ]
    }

    #[test]
    fn rows_are_read_as_they_were_written_with_all_their_groups() {
        let control = [true, true, false, false, true];
        let rows = golden();
        let expected = [[false; 5], control, control, control, [true; 5]];
        assert_eq!(rows.iter().map(groups).collect::<Vec<_>>(), expected);
        for row in rows {
            assert_eq!(parse(&line(&row).unwrap()), Ok(Some(row)));
        }
    }

    #[test]
    fn a_flow_that_was_run_again_has_its_last_row_only() {
        let directory = tempfile::tempdir().unwrap();
        let rows = golden().split_off(2);
        let again = Row {
            received_bytes: rows[0].received_bytes + 1,
            ..rows[0].clone()
        };
        let text = |rows: &[Row]| rows.iter().map(|row| line(row).unwrap()).collect::<String>();
        fs::write(directory.path().join(ROWS), text(&rows)).unwrap();
        fs::write(directory.path().join(PART), text(std::slice::from_ref(&again))).unwrap();
        assert_eq!(
            read_directory(directory.path()).unwrap(),
            [again, rows[1].clone(), rows[2].clone()]
        );
    }

    /// A row with all groups, as JSON.
    fn whole() -> serde_json::Map<String, serde_json::Value> {
        let row = serde_json::to_value(golden().pop().unwrap()).unwrap();
        row.as_object().unwrap().clone()
    }

    #[rstest]
    #[case("lost_bytes")]
    #[case("rtt_mean_s")]
    #[case("restarts")]
    #[case("switch_share")]
    #[case("queue_drops")]
    #[case("frames")]
    fn a_row_that_lacks_a_required_field_is_an_error_that_names_row_and_field(#[case] field: &str) {
        let mut row = whole();
        row.remove(field).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = serde_json::to_string(&row).unwrap();
        fs::write(file.path(), format!("\n{text}\n")).unwrap();
        let error = read(file.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let said = error.to_string();
        for part in ["line 2", "ladder under reno", "seed 1", &format!("`{field}`")] {
            assert!(said.contains(part), "{part} is missing in: {said}");
        }
    }

    #[test]
    fn a_field_of_a_newer_program_and_a_missing_optional_one_lose_nothing() {
        let mut row = whole();
        row.insert("rtt_p99_s".into(), 0.2.into());
        row.remove("capacity_mean_bps").unwrap();
        let row: Row = serde_json::from_value(row.into()).unwrap();
        assert_eq!(groups(&row), [true; 5]);
        assert_eq!(row.control.unwrap().capacity_mean_bps, None);
    }

    #[test]
    fn only_results_of_the_same_scenario_are_replaced() {
        let home = tempfile::tempdir().unwrap();
        let mut store = Store::replace(home.path(), "few").unwrap();
        let rows = golden();
        let key = rows[0].key.clone();
        store.add(vec![rows[0].clone()]).unwrap();
        store.finish(std::iter::once(&key)).unwrap();
        assert_eq!(read_directory(home.path()).unwrap(), rows[..1]);
        let refused = Store::replace(home.path(), "demo").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        let replaced = Store::replace(home.path(), "few").unwrap();
        assert!(replaced.kept.is_empty() && !home.path().join(ROWS).exists());
    }

    #[test]
    fn torn_lines_and_those_of_other_formats_are_passed_over() {
        let text = line(&golden().remove(0)).unwrap();
        let newer = text.replace("\"version\":1", "\"version\":2");
        for other in [&text[..text.len() / 2], &newer, "{\"format\":\"lab-live\"}"] {
            assert_eq!(parse(other), Ok(None), "{other}");
        }
    }
}
