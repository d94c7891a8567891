//! `video-server check`: reads a config file or titles as a server would, without serving them.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::Path;

use playrate_media::manifest::Manifest;
use playrate_media::{Layout, Title};
use playrate_units::{Bitrate, seconds};
use serde_json::{Value, json};
use video_server::library::{Fault, FaultKind, Library, LibraryError, PackagedTitle, TitleSummary};

use super::announce::{counted, shown};
use super::media::MediaLocation;
use super::{Command, Config, Failure, parse_config, print, serve};

/// Maximum width of a line of text.
const COLUMNS: usize = 80;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  video-server check server.toml             everything that the file names
  video-server check film.mp4 show/main.mpd  what a server believes of titles
  video-server check --json /srv/films | jq '.titles[] | select(.notes[0])'

Exit codes: 0 all of it can be served, 2 something cannot be served as a title,
1 an object store did not answer. Notes are contradictions in a title that is
served nevertheless, each with the value that is used (docs/media.md).")]
pub(super) struct CheckOptions {
    /// Config file of serve (.toml: its keys are the names of serve's options); or titles (.mp4, .m4v, .mpd, .m3u8),
    /// directories of titles, or their locations in an object store
    #[arg(required = true, value_name = "CONFIG|FILE|DIR|URL")]
    inputs: Vec<OsString>,

    /// Print JSON instead of text; for titles only
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &CheckOptions) -> Result<(), Failure> {
    if let [file] = &options.inputs[..]
        && let file = Path::new(file)
        && file.extension().is_some_and(|extension| extension == "toml")
    {
        return check_config(file);
    }
    let mut found = Findings::default();
    for input in &options.inputs {
        found.read(input)?;
    }
    let bad = |fault: &&Fault| fault.kind != FaultKind::Warning;
    let bad = found.faults.iter().filter(bad).count();
    if options.json {
        let faults = found.faults.iter().map(|fault| {
            let (path, kind) = (fault.path.display().to_string(), format!("{:?}", fault.kind));
            json!({ "path": path, "kind": kind.to_lowercase(), "message": fault.message })
        });
        let all = json!({ "titles": found.titles, "faults": faults.collect::<Vec<_>>() });
        print(&format!("{all:#}\n"))?;
    } else {
        for fault in &found.faults {
            let kind = if fault.kind == FaultKind::Warning {
                "note"
            } else {
                "error"
            };
            wrap(&mut found.text, "", &format!("{kind}: {fault}"));
        }
        print(&found.text)?;
    }
    match bad {
        0 => Ok(()),
        _ => Err(Failure::Input(anyhow::anyhow!(
            "{} that cannot be served as a title",
            counted(bad, "input")
        ))),
    }
}

/// Reads a config file and everything that it names; opens no socket.
fn check_config(file: &Path) -> Result<(), Failure> {
    let config = Config::read(file)?;
    let Command::Serve(arguments) = parse_config(file, &config)?.command else {
        return Ok(());
    };
    let found = serve::check(&arguments).map_err(|failure| config.place(failure))?;
    print(&format!("{} is good: {found}\n", file.display()))
}

/// Titles that were read, as text and as JSON, and everything that is wrong with them.
#[derive(Default)]
struct Findings {
    text: String,
    titles: Vec<Value>,
    faults: Vec<Fault>,
}

impl Findings {
    fn read(&mut self, input: &OsString) -> Result<(), Failure> {
        let (mut prefix, mut only) = (
            format!("{}/", input.to_string_lossy().trim_end_matches('/')),
            None,
        );
        let read = match MediaLocation::from(input.clone()) {
            MediaLocation::Directory(path) if path.is_dir() => Library::scan(&path),
            MediaLocation::Directory(path) if Manifest::is_named(&path) && path.is_file() => {
                // The files that it names lie in its directory.
                let path = path.canonicalize().map_err(Failure::input)?;
                let directory = path.parent().unwrap_or(&path);
                prefix = format!("{}/", directory.display());
                let read = Library::scan(directory);
                only = Some(path);
                read
            }
            MediaLocation::Directory(path) => {
                match Title::open(&path) {
                    Ok(title) => self.add_title(path.display().to_string(), &TitleSummary::of(&title)),
                    Err(error) => self.faults.push(Fault::of_media(FaultKind::Title, &path, &error)),
                }
                return Ok(());
            }
            #[cfg(feature = "object-store")]
            MediaLocation::Store(location) => {
                let options = playrate_origin::OriginOptions::new(location);
                let origin = playrate_origin::Origin::open(&options).map_err(LibraryError::from);
                origin.and_then(Library::scan_store)
            }
        };
        let is_wanted = |path: &Path| only.as_ref().is_none_or(|only| only == path);
        let mut faults = match read {
            Ok(library) => {
                let mut faults = library.all_faults().to_vec();
                for (name, title) in library.titles().filter(|_| only.is_none()) {
                    self.add_title(format!("{prefix}{name}"), title);
                    // Its notes are shown with the title.
                    faults.retain(|fault| !fault.path.ends_with(name.as_str()));
                }
                for title in library.packaged() {
                    let name = format!("{prefix}{}", title.manifest);
                    if is_wanted(Path::new(&name)) {
                        self.add_packaged(name, title);
                    }
                }
                faults
            }
            Err(LibraryError::BadTitles(faults)) => faults,
            #[cfg(feature = "object-store")]
            Err(error) if error.is_temporary() => return Err(Failure::run(error)),
            Err(error) => return Err(Failure::input(error)),
        };
        faults.retain(|fault| is_wanted(&fault.path));
        self.faults.append(&mut faults);
        Ok(())
    }

    fn add_title(&mut self, name: String, title: &TitleSummary) {
        let layout = match title.layout {
            Layout::ProgressiveMoovLast => "progressive, moov box last",
            Layout::Fragmented => "fragmented",
            _ => "progressive",
        };
        let size = pixels(Some((title.width, title.height)));
        let lines = [
            format!(
                "{size}{}, {}, {} in {}, {layout}",
                title.codecs,
                shown(&title.duration),
                counted(title.frames, "frame"),
                counted(title.segments, "segment"),
            ),
            format!(
                "{} on average, {} at peak (1 s){}",
                mbps(Some(title.average_rate)),
                mbps(Some(title.peak_rate)),
                if title.sending_rate == title.average_rate {
                    String::new()
                } else {
                    format!("; controllers assume {}", mbps(Some(title.sending_rate)))
                },
            ),
        ];
        self.describe(
            &name,
            lines
                .into_iter()
                .chain(title.notes.iter().map(|note| format!("note: {note}"))),
        );
        self.titles.push(json!({
            "title": name,
            "codecs": title.codecs,
            "width": NonZeroU32::new(title.width),
            "height": NonZeroU32::new(title.height),
            "duration_s": seconds::from_duration(title.duration),
            "frames": title.frames,
            "segments": title.segments,
            "average_rate_bps": title.average_rate.as_bits_per_second(),
            "peak_rate_bps": title.peak_rate.as_bits_per_second(),
            "sending_rate_bps": title.sending_rate.as_bits_per_second(),
            "size_bytes": title.size.as_u64(),
            "layout": layout,
            "notes": title.notes,
        }));
    }

    fn add_packaged(&mut self, name: String, title: &PackagedTitle) {
        let all = title.representations.iter();
        let lines = all.clone().map(|one| {
            let codecs = one.codecs.as_deref().unwrap_or("codecs unknown");
            let missing = match one.missing {
                0 => String::new(),
                missing => format!(", {missing} missing"),
            };
            format!(
                "{:?}: {}{codecs}, {}, {} of at most {}{missing}, {} on average, {} declared",
                one.id,
                pixels(one.resolution),
                shown(&one.duration),
                counted(one.segments, "segment"),
                shown(&one.longest_segment),
                mbps(one.average_rate),
                mbps(one.declared_rate),
            )
        });
        self.describe(&name, lines);
        let representations = all.map(|one| {
            json!({
                "id": one.id,
                "codecs": one.codecs,
                "width": one.resolution.map(|size| size.0),
                "height": one.resolution.map(|size| size.1),
                "duration_s": seconds::from_duration(one.duration),
                "segments": one.segments,
                "missing_segments": one.missing,
                "longest_segment_s": seconds::from_duration(one.longest_segment),
                "average_rate_bps": one.average_rate.map(Bitrate::as_bits_per_second),
                "declared_rate_bps": one.declared_rate.map(Bitrate::as_bits_per_second),
            })
        });
        let representations: Vec<_> = representations.collect();
        self.titles
            .push(json!({ "title": name, "representations": representations }));
    }

    fn describe(&mut self, name: &str, lines: impl Iterator<Item = String>) {
        wrap(&mut self.text, "", &name.replace(char::is_control, "\u{FFFD}"));
        lines.for_each(|line| wrap(&mut self.text, "  ", &line));
    }
}

/// Adds a line of text, broken before [`COLUMNS`]; further lines are indented more.
fn wrap(text: &mut String, indent: &str, line: &str) {
    text.push_str(indent);
    let mut column = indent.len();
    for word in line.split_inclusive(' ') {
        let width = word.trim_end().chars().count();
        if column > indent.len() && column + width > COLUMNS {
            text.truncate(text.trim_end().len());
            text.push_str("\n    ");
            column = 4;
        }
        text.push_str(word);
        column += word.chars().count();
    }
    text.push('\n');
}

fn mbps(rate: Option<Bitrate>) -> String {
    match rate.map(Bitrate::as_bits_per_second) {
        Some(bits @ ..100_000) => format!("{:.2} kbit/s", bits as f64 / 1e3),
        Some(bits) => format!("{:.2} Mbit/s", bits as f64 / 1e6),
        None => "unknown".to_owned(),
    }
}

/// Width and height with a comma, unless unknown.
fn pixels(size: Option<(u32, u32)>) -> String {
    match size {
        Some((width @ 1.., height)) => format!("{width}x{height}, "),
        _ => String::new(),
    }
}
