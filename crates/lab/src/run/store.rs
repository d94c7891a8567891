//! The directory in which results are kept.
//!
//! While runs go on, finished ones are appended to `runs.part.jsonl`, so that nothing finished is ever lost; at the end all
//! rows are written to `runs.jsonl` in the order of the plan, in one step, and the other is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::plan::Job;
use super::row::{FORMAT, Key, Row, VERSION};
use crate::scenario::Scenario;

const ROWS: &str = "runs.jsonl";
/// Directory of the texts of scenarios.
pub const SCENARIOS: &str = "scenarios";
/// Directory of time series.
pub const SERIES: &str = "series";
const PART: &str = "runs.part.jsonl";

/// Results of runs, on disk and in memory.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    part: File,
    kept: BTreeMap<Key, Vec<Row>>,
}

impl Store {
    /// Opens `directory` for results, and makes it if there is none.
    ///
    /// # Errors
    /// If it cannot be written, or holds results and is not to be resumed ([`io::ErrorKind::AlreadyExists`]).
    pub fn open(directory: &Path, resume: bool) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        if !resume && files(directory).next().is_some() {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        let kept = read_runs(directory)?;
        let part = directory.join(PART);
        let part = OpenOptions::new().create(true).append(true).open(part)?;
        let mut store = Self {
            directory: directory.to_owned(),
            part,
            kept,
        };
        // A line that a crash left half written must not swallow the next one.
        store.part.write_all(b"\n")?;
        Ok(store)
    }

    /// Where the rows are in the end.
    pub fn rows_file(&self) -> PathBuf {
        self.directory.join(ROWS)
    }

    /// Whether the results of `job` are there.
    pub fn has(&self, job: &Job) -> bool {
        self.rows(job).is_some()
    }

    /// The rows of `job`, if all of them are there and made by this very program.
    pub fn rows(&self, job: &Job) -> Option<&[Row]> {
        let rows = self.kept.get(&job.key)?;
        let whole = rows.len() == job.rows() as usize;
        let ours = rows.iter().all(|row| row.program == env!("CARGO_PKG_VERSION"));
        (whole && ours).then_some(rows)
    }

    /// Keeps the rows of a run.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn add(&mut self, rows: Vec<Row>) -> io::Result<()> {
        let Some(first) = rows.first() else { return Ok(()) };
        let key = first.key.clone();
        for row in &rows {
            self.part.write_all(line(row)?.as_bytes())?;
        }
        self.part.flush()?;
        self.kept.insert(key, rows);
        Ok(())
    }

    /// Writes a time series.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add_series(&self, name: &str, text: &str) -> io::Result<()> {
        let path = self.directory.join(SERIES).join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)
    }

    /// Keeps the text of a scenario, so that what was run can be explained wherever the results are.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add_scenario(&self, scenario: &Scenario) -> io::Result<()> {
        let directory = self.directory.join(SCENARIOS);
        fs::create_dir_all(&directory)?;
        fs::write(
            directory.join(format!("{}.toml", scenario.name)),
            scenario.text.as_bytes(),
        )
    }

    /// Writes the rows of the runs of `plan`, in its order, and after them those of other scenarios that the directory held
    /// before.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn finish<'a>(self, plan: impl Iterator<Item = &'a Key>) -> io::Result<PathBuf> {
        let target = self.rows_file();
        let new = self.directory.join("runs.new.jsonl");
        let mut out = io::BufWriter::new(File::create(&new)?);
        let plan: Vec<&Key> = plan.collect();
        let planned: BTreeSet<&Key> = plan.iter().copied().collect();
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
        fs::rename(&new, &target)?;
        fs::remove_file(self.directory.join(PART))?;
        Ok(target)
    }
}

fn line(row: &Row) -> io::Result<String> {
    let mut text = serde_json::to_string(row)?;
    text.push('\n');
    Ok(text)
}

/// The rows of a directory of `lab run`, whether its runs are all done or not.
///
/// # Errors
/// If there are none, or they cannot be read.
pub fn read_directory(directory: &Path) -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut found = false;
    for file in files(directory) {
        rows.extend(read(&file)?);
        found = true;
    }
    if found {
        Ok(rows)
    } else {
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("there is no {ROWS}"),
        ))
    }
}

/// The rows of a directory by run, each flow once; none if there is nothing.
///
/// # Errors
/// If they cannot be read.
pub fn read_runs(directory: &Path) -> io::Result<BTreeMap<Key, Vec<Row>>> {
    let mut runs: BTreeMap<Key, Vec<Row>> = BTreeMap::new();
    for file in files(directory) {
        for row in read(&file)? {
            let rows = runs.entry(row.key.clone()).or_default();
            if rows.iter().all(|known| known.viewer != row.viewer) {
                rows.push(row);
            }
        }
    }
    Ok(runs)
}

/// The files of rows that a directory has.
fn files(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let files = [ROWS, PART].map(|name| directory.join(name));
    files.into_iter().filter(|file| file.exists())
}

/// The rows of a file. Lines that are not whole are passed over: a crash may leave one.
///
/// # Errors
/// If the file cannot be read.
pub fn read(file: &Path) -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for line in BufReader::new(File::open(file)?).lines() {
        let line = line?;
        match serde_json::from_str::<Row>(&line) {
            Ok(row) if row.format == FORMAT && row.version == VERSION => rows.push(row),
            _ if line.trim().is_empty() => {}
            _ => tracing::warn!(file = %file.display(), "a line is no result of this version, passed over"),
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row as the first program of this version wrote it: without case, role and congestion control.
    const OLD: &str = r#"{"format":"lab-run","version":1,"program":"0.1.0","scenario":"p13-9","scenario_hash":"00","controller":"reno","trial":1,"seed":1,"viewer":0,"outcome":"complete","error":null,"startup_delay_s":1.5,"ended_s":60.0,"frames":1800,"frames_shown":1800,"frames_discarded":0,"frames_missing":0,"underflow_events":0,"frozen_s":0.0,"rebases":0,"rebuffer_ratio":0.0,"mean_bitrate_bps":4000000,"received_bytes":30000000,"download_s":50.0,"throughput_bps":4800000,"title_rate_bps":4000000,"link_rate_bps":5000000,"sent_packets":21000,"sent_bytes":31000000,"lost_packets":14,"lost_bytes":20000,"congestion_events":9,"min_rtt_s":0.1,"last_srtt_s":0.12,"link_packets":21000,"link_bytes":31600000,"queue_drops":4,"random_losses":10,"max_queue_bytes":31000,"mean_queue_delay_s":0.01,"max_queue_delay_s":0.05,"wire_hash":"0123456789abcdef"}"#;

    #[test]
    fn rows_of_older_programs_are_read_and_new_fields_survive_being_written() {
        let row: Row = serde_json::from_str(OLD).unwrap();
        assert_eq!((row.key.case.as_str(), row.role.as_str()), ("", "viewer"));
        assert_eq!(row.control, None);
        assert_eq!(row.sender.as_ref().unwrap().lost_packets, 14);
        let control = crate::run::Control::from(&crate::sim::Measured::default());
        let new = Row {
            control: Some(control),
            ..row
        };
        let read: Row = serde_json::from_str(&line(&new).unwrap()).unwrap();
        assert_eq!(read, new);
    }
}
