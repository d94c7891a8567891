//! `video-server check`: reads a config file or titles as a server would, without serving them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use askama::Template;
use playrate_media::manifest::Manifest;
use playrate_media::{Layout, Title};
#[cfg(feature = "object-store")]
use playrate_origin::{Origin, OriginOptions};
use serde::Serialize;
use video_server::library::{Fault, FaultKind, Library, LibraryError, PackagedTitle, TitleSummary};

use super::announce::shown;
use super::media::MediaLocation;
use super::options::ServeOptions;
use super::serve::{self, Prepared};
use super::{Command, Config, Failure, access_log, certificate, logging, parse_config, print};

/// Maximum width of a line of text.
const COLUMNS: usize = 80;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  video-server check server.toml             everything that the file names
  video-server check film.mp4 show/main.mpd  how the server reads titles
  video-server check --json /srv/films | jq '.titles[] | select(.notes[0])'

Exit codes: 0 all of it can be served, 2 something cannot be served as a title,
1 an object store did not answer. Notes are about a title that is served: its
contradictions, each with the value that is used (docs/media.md), and what keeps
players from playing it.")]
pub(super) struct CheckOptions {
    /// Config file of serve (.toml: its keys are the names of serve's options); or titles: files (.mp4, .m4v, .mpd,
    /// .m3u8), directories or object-store URLs
    #[arg(required = true, value_name = "CONFIG|FILE|DIR|URL")]
    inputs: Vec<OsString>,

    /// Print JSON instead of text; for titles only
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &CheckOptions) -> Result<(), Failure> {
    let mut files = options.inputs.iter().map(Path::new);
    if let Some(file) = files.find(|file| is_config(file)) {
        if options.json || options.inputs.len() > 1 {
            return Err(Failure::Input(anyhow::anyhow!(
                "{}: a config file is checked alone, without --json",
                file.display()
            )));
        }
        return check_config(file);
    }
    let mut found = Findings::default();
    for input in &options.inputs {
        found.read(input)?;
    }
    let text = if options.json {
        serde_json::to_string_pretty(&found).map_err(Failure::run)? + "\n"
    } else {
        let text = found.render().map_err(Failure::run)?;
        text.lines().map(wrapped).collect()
    };
    print(&text)?;
    if found.faults.iter().any(|fault| fault.kind != FaultKind::Warning) {
        return Err(Failure::Input(anyhow::anyhow!(
            "not all of it can be served as titles"
        )));
    }
    Ok(())
}

fn is_config(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// Reads a config file and everything that it names; opens no socket.
fn check_config(file: &Path) -> Result<(), Failure> {
    let config = Config::read(file)?;
    let Command::Serve(options) = parse_config(file, &config)?.command else {
        return Ok(());
    };
    let prepared = serve::prepare(&options, true).and_then(|prepared| {
        access_log::check(&options.records.access_log)?;
        let identities = prepared.options.certificates.identities();
        let warnings = certificate::check(&options, &identities).map_err(Failure::Input)?;
        Ok((prepared, warnings))
    });
    let (prepared, warnings) = prepared.map_err(|failure| config.place(failure))?;
    let found = GoodConfig {
        file,
        options: &options,
        prepared,
    };
    logging::print(&warnings);
    print(&format!("{found}\n"))
}

/// The description of a config file without mistakes.
#[derive(Template)]
#[template(path = "config.txt", escape = "none")]
struct GoodConfig<'a> {
    file: &'a Path,
    options: &'a ServeOptions,
    prepared: Prepared,
}

/// Titles that were read, and everything that is wrong with them.
#[derive(Default, Template, Serialize)]
#[template(path = "check.txt", escape = "none")]
struct Findings {
    titles: Vec<Named<TitleSummary>>,
    packaged: Vec<Named<PackagedTitle>>,
    faults: Vec<Fault>,
}

#[derive(Serialize)]
struct Named<T> {
    title: String,
    #[serde(flatten)]
    content: T,
}

fn named<T>(path: &Path, content: T) -> Named<T> {
    let title = path.to_string_lossy().replace(char::is_control, "\u{FFFD}");
    Named { title, content }
}

impl Findings {
    fn read(&mut self, input: &OsString) -> Result<(), Failure> {
        let mut is_manifest = false;
        let (root, read) = match MediaLocation::from(input.clone()) {
            MediaLocation::Directory(path) if path.is_dir() => (path.clone(), Library::scan(&path)),
            MediaLocation::Directory(path) if Manifest::is_named(&path) && path.is_file() => {
                is_manifest = true;
                let root = path.parent().unwrap_or(&path).to_owned();
                (root, Library::scan_manifest(&path))
            }
            MediaLocation::Directory(path) => {
                match Title::open(&path) {
                    Ok(title) => self.titles.push(named(&path, TitleSummary::of(&title))),
                    Err(error) => self.faults.push(Fault::of_media(FaultKind::Title, &path, &error)),
                }
                return Ok(());
            }
            #[cfg(feature = "object-store")]
            MediaLocation::Store(location) => {
                let origin = Origin::open(&OriginOptions::new(&location)).map_err(LibraryError::from);
                let root = origin.as_ref().map_or(location.clone(), |origin| origin.url(""));
                (root.into(), origin.and_then(Library::scan_store))
            }
        };
        let count = self.titles.len() + self.packaged.len();
        let mut faults = match read {
            Ok(library) => {
                let mut faults = library.all_faults().to_vec();
                if !is_manifest {
                    // As in faults: with all links resolved, or a URL.
                    let full = root.canonicalize().unwrap_or_else(|_| root.clone());
                    let mut shown = BTreeSet::new();
                    for (name, title) in library.titles() {
                        self.titles.push(named(&root.join(name.as_str()), title.clone()));
                        shown.insert(full.join(name.as_str()));
                    }
                    // Notes are shown with their titles.
                    faults.retain(|fault| fault.kind != FaultKind::Warning || !shown.contains(&fault.path));
                }
                let packaged = library.packaged().iter();
                let packaged =
                    packaged.map(|title| named(&root.join(title.manifest.as_str()), title.clone()));
                self.packaged.extend(packaged);
                faults
            }
            Err(LibraryError::BadTitles(faults)) => faults,
            #[cfg(feature = "object-store")]
            Err(error) if error.is_temporary() => return Err(Failure::run(error)),
            Err(error) => return Err(Failure::input(error)),
        };
        let is_empty = count == self.titles.len() + self.packaged.len();
        if is_empty && faults.iter().all(|fault| fault.kind == FaultKind::Warning) {
            let path = Path::new(input);
            let message = format!(
                "{}: no title found; expected .mp4, .m4v, .mpd or .m3u8",
                path.display()
            );
            faults.push(Fault::new(FaultKind::Title, path, message));
        }
        self.faults.append(&mut faults);
        Ok(())
    }
}

/// `line` broken before [`COLUMNS`]; further lines are indented by four.
fn wrapped(line: &str) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        let width = word.chars().count();
        if column > 0 && column + width > COLUMNS {
            text.truncate(text.trim_end().len());
            text.push_str("\n    ");
            column = 4;
        }
        text.push_str(word);
        column += width;
    }
    text + "\n"
}
