//! Reads a media directory, for the first time or again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use playrate_media::manifest::Manifest;
use playrate_media::{MediaError, Title};

use super::packaged::{self, Cut, MediaFiles, index_of};
use super::{Fault, FaultKind, Library, LibraryError, MediaDirectory, TitleSummary, is_absence};
use crate::http::path::ResourceName;

/// Maximum depth of nested directories. Real libraries have three or four levels.
const DEPTH: usize = 16;
/// Maximum number of files and directories. A three-hour title in 2 s segments and ten representations has 54,000
/// files.
const ENTRIES: usize = 1_000_000;
/// Maximum number of indexed titles. A summary takes about 300 bytes; reading an index takes some milliseconds.
pub(super) const TITLES: usize = if cfg!(test) { 1_000 } else { 100_000 };

/// Reads `directory`. Files that have not changed since `previous` was read, or may be incomplete at `now`, keep their
/// data from `previous`. Without `now` everything is read. `visit` is called with each directory before it is listed.
pub(super) fn scan(
    directory: &Path,
    previous: &Library,
    now: Option<Instant>,
    visit: &mut dyn FnMut(&Path),
) -> Result<Library, LibraryError> {
    let directory = MediaDirectory {
        given: directory.to_owned(),
        root: resolve(directory)?,
    };
    let mut walk = Walk {
        root: &directory.root,
        visit,
        entries: 0,
        found: Vec::new(),
        faults: Vec::new(),
    };
    walk.below(&directory.root, DEPTH, false)?;
    let Walk { found, faults, .. } = walk;
    read(directory, found, faults, (previous, now))
}

/// Reads the files `found` in `directory`, where the search had these `faults`.
fn read(
    directory: MediaDirectory,
    found: Vec<Found>,
    faults: Vec<Fault>,
    (previous, now): (&Library, Option<Instant>),
) -> Result<Library, LibraryError> {
    let root = &directory.root;
    let mut library = Library {
        faults,
        ..previous.without_media()
    };
    let mut manifests = Vec::new();
    let mut indexing = Indexing::default();
    let has_manifests = found.iter().any(|found| Manifest::is_named(&found.path));
    for Found { path, packaged } in found {
        let Some(name) = path.strip_prefix(root).ok().and_then(ResourceName::from_relative) else {
            library.faults.push(Fault::unnamed(&path));
            continue;
        };
        if Manifest::is_named(&path) {
            // Read or kept below, together with all others.
            library.is_settled((previous, now), &name, &path);
            manifests.push((path, name));
            library.other_files += 1;
            continue;
        }
        if !is_title(&path) || library.sources.contains_key(&name) {
            library.other_files += 1;
            library.companions.extend(is_companion(&path).then_some(name));
            continue;
        }
        // Files that a manifest may name as segments do not count, if there is any manifest.
        let apart = if has_manifests { indexing.parts.len() } else { 0 };
        if (library.indexed.len() + library.faults.len()).saturating_sub(apart) >= TITLES {
            return Err(LibraryError::too_large(&directory.given, TITLES, "titles"));
        }
        // The version is taken before the index is read, so a change in between shows as a difference later.
        let is_settled = library.is_settled((previous, now), &name, &path);
        let is_same = library.versions.get(&name) == previous.versions.get(&name);
        // A file that a manifest may name is read again: segments are kept only for files of manifests.
        let is_kept = !is_settled || (is_same && !packaged);
        if let Some(known) = previous.indexed.get(&name).filter(|_| is_kept) {
            indexing.warnings.extend(known.warnings(&path));
            library.indexed.insert(name, known.clone());
            continue;
        }
        // An error of the system may go away without a change of the file.
        let is_broken = |error: &&MediaError| is_same && !matches!(error.cause(), MediaError::Io { .. });
        let known = previous.broken.get(&name);
        let index = match known.filter(|error| !is_settled || is_broken(error)) {
            Some(error) => Err(error.clone()),
            None if !is_settled => continue,
            None => Title::open(&path).map(|title| index_of(&title)),
        };
        if let Err(error) = &index {
            library.broken.insert(name.clone(), error.clone());
        }
        library.take(&mut indexing, (name, &path, packaged), &index);
    }
    library.faults.append(&mut indexing.warnings);
    let files = MediaFiles {
        manifest: &|path, name, variables| Manifest::open(path, name.as_str(), variables),
        size: &|name| Some(fs::metadata(root.join(name.as_str())).ok()?.len()),
        is_remote: false,
        parts: &indexing.parts,
        cuts: &indexing.cuts,
        unsettled: &library.unsettled,
        previous,
    };
    let packaged = packaged::read(files, manifests, &mut library.faults);
    library.set_packaged(packaged, |name| root.join(name.as_str()));
    if library.indexed.len() + library.faults(FaultKind::Title).len() > TITLES {
        return Err(LibraryError::too_large(&directory.given, TITLES, "titles"));
    }
    library.directory = Some(directory);
    Ok(library)
}

/// Results of reading titles, apart from the summaries.
#[derive(Default)]
pub(super) struct Indexing {
    /// Segments of files that a manifest may name.
    pub(super) cuts: BTreeMap<ResourceName, Vec<Cut>>,
    /// Files that stop counting as titles if a manifest names them.
    pub(super) parts: BTreeSet<ResourceName>,
    /// Warnings about titles; they do not count towards the limit of titles.
    pub(super) warnings: Vec<Fault>,
}

impl Library {
    /// Takes the title at `path` with this index. A manifest may name it if it is `packaged`.
    pub(super) fn take(
        &mut self,
        indexing: &mut Indexing,
        (name, path, packaged): (ResourceName, &Path, bool),
        index: &Result<(TitleSummary, Vec<Cut>), MediaError>,
    ) {
        match index {
            Ok((title, segments)) => {
                if packaged {
                    indexing.cuts.insert(name.clone(), segments.clone());
                }
                if packaged && !title.has_video {
                    self.other_files += 1;
                    return;
                }
                indexing.warnings.extend(title.warnings(path));
                if !title.has_video {
                    indexing.parts.insert(name.clone());
                }
                self.indexed.insert(name, title.clone());
            }
            Err(error) if packaged && is_part(error) => self.other_files += 1,
            Err(error) => {
                self.faults.push(Fault::of_media(FaultKind::Title, path, error));
                if is_part(error) {
                    indexing.parts.insert(name);
                }
            }
        }
    }
}

/// The path of `directory` with all links resolved.
fn resolve(directory: &Path) -> Result<PathBuf, LibraryError> {
    let root = directory.canonicalize();
    let root = root.map_err(LibraryError::unreadable(directory))?;
    if root.is_dir() {
        Ok(root)
    } else {
        Err(LibraryError::NotADirectory(directory.to_owned()))
    }
}

impl Library {
    /// Reads the manifest at `path` and the files that it names, as if there were no others in its directory. It may
    /// have no usable title; see [`all_faults`](Self::all_faults).
    ///
    /// # Errors
    /// The directory cannot be read, or the manifest names too many titles.
    #[cfg(feature = "cli")]
    pub(crate) fn scan_manifest(path: &Path) -> Result<Self, LibraryError> {
        let given = Path::new(".").join(path.parent().unwrap_or(path));
        let root = resolve(&given)?;
        let name = PathBuf::from(path.file_name().unwrap_or_default());
        let mut names = vec![(name, Arc::default())];
        let mut paths = BTreeSet::new();
        while let Some((name, variables)) = names.pop() {
            let path = root.join(&name);
            let is_manifest = Manifest::is_named(&path);
            if !(is_manifest || is_title(&path)) || !path.is_file() || !paths.insert(path.clone()) {
                continue;
            }
            // Whatever is wrong with it is found when it is read with all the others.
            if is_manifest && let Ok(manifest) = Manifest::open(&path, &name.to_string_lossy(), &variables) {
                let variables = match &manifest {
                    Manifest::Main(variants) => variants.first().map(|one| Arc::clone(&one.variables)),
                    _ => None,
                };
                let variables = variables.unwrap_or_default();
                names.extend(manifest.files().map(|file| (file.into(), Arc::clone(&variables))));
            }
        }
        let found = paths.into_iter().map(|path| Found { path, packaged: true });
        let directory = MediaDirectory { given, root };
        read(directory, found.collect(), Vec::new(), (&Self::default(), None))
    }

    /// The library without its directory or store: only titles from other sources, and the files that are open.
    pub(super) fn without_media(&self) -> Self {
        let title = |name: &ResourceName| Some((name.clone(), self.indexed.get(name)?.clone()));
        let version = |name: &ResourceName| Some((name.clone(), self.versions.get(name)?.clone()));
        Self {
            open_files: Arc::clone(&self.open_files),
            indexed: self.sources.keys().filter_map(title).collect(),
            versions: self.sources.keys().filter_map(version).collect(),
            sources: self.sources.clone(),
            highest_rates: self.highest_rates.clone(),
            ..Self::default()
        }
    }
}

/// Returns true if a file must be a title. A `.m4s` need not be: it is a segment, which cannot be read without its
/// initialisation segment.
pub(super) fn is_title(path: &Path) -> bool {
    has_extension(path, &["mp4", "m4v"])
}

/// Returns true if a file may be the picture or the captions of a title.
pub(super) fn is_companion(path: &Path) -> bool {
    has_extension(path, &["jpeg", "jpg", "png", "vtt", "webp"])
}

fn has_extension(path: &Path, known: &[&str]) -> bool {
    let extension = path.extension().unwrap_or_default();
    known.iter().any(|one| extension.eq_ignore_ascii_case(one))
}

/// Returns true if an `.mp4` of a packaged title may have this error: as an initialisation segment (no frames), as
/// subtitles (no video or audio), as a media segment (no `moov`, or a fragment before it).
fn is_part(error: &MediaError) -> bool {
    matches!(
        error.cause(),
        MediaError::NoFrames
            | MediaError::NoMedia { .. }
            | MediaError::NoMovie { .. }
            | MediaError::FragmentFirst { .. }
    )
}

struct Found {
    path: PathBuf,
    /// True if a DASH or HLS manifest is in the same directory or above it.
    packaged: bool,
}

struct Walk<'a> {
    root: &'a Path,
    visit: &'a mut dyn FnMut(&Path),
    entries: usize,
    found: Vec<Found>,
    faults: Vec<Fault>,
}

impl Walk<'_> {
    fn below(&mut self, directory: &Path, depth: usize, packaged: bool) -> Result<(), LibraryError> {
        let (files, directories) = match self.contents(directory) {
            // Like a title that cannot be played, it must not keep the others from being served.
            Err(LibraryError::Unreadable { error, .. })
                if directory != self.root && error.kind() == io::ErrorKind::PermissionDenied =>
            {
                let message = format!(
                    "cannot read {}: {error}; give this user the right to read it, or move it elsewhere",
                    directory.display()
                );
                self.faults
                    .push(Fault::new(FaultKind::Directory, directory, message));
                return Ok(());
            }
            contents => contents?,
        };
        let packaged = packaged || files.iter().any(|file| Manifest::is_named(file));
        self.found
            .extend(files.into_iter().map(|path| Found { path, packaged }));
        let Some(depth) = depth.checked_sub(1) else {
            return Err(LibraryError::too_large(self.root, DEPTH, "levels of directories"));
        };
        for directory in directories {
            self.below(&directory, depth, packaged)?;
        }
        Ok(())
    }

    /// The files and directories in one directory.
    fn contents(&mut self, directory: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), LibraryError> {
        let mut files = Vec::new();
        let mut directories = Vec::new();
        for path in self.list(directory)? {
            if is_hidden(&path) {
                continue;
            }
            let kind = match fs::symlink_metadata(&path) {
                // It was removed or renamed in the meantime.
                Err(error) if is_absence(&error) => continue,
                found => found.map_err(LibraryError::unreadable(&path))?.file_type(),
            };
            if kind.is_dir() {
                directories.push(path);
            } else if kind.is_file() || (kind.is_symlink() && self.leads_to_a_file(&path)) {
                files.push(path);
            }
        }
        Ok((files, directories))
    }

    /// The entries of one directory, sorted by name, so that two runs read them in the same order.
    fn list(&mut self, directory: &Path) -> Result<Vec<PathBuf>, LibraryError> {
        let mut paths = Vec::new();
        (self.visit)(directory);
        let entries = match fs::read_dir(directory) {
            Err(error) if is_absence(&error) && directory != self.root => return Ok(paths),
            entries => entries.map_err(LibraryError::unreadable(directory))?,
        };
        for entry in entries {
            self.entries += 1;
            if self.entries > ENTRIES {
                return Err(LibraryError::too_large(
                    self.root,
                    ENTRIES,
                    "files and directories",
                ));
            }
            let entry = entry.map_err(LibraryError::unreadable(directory))?;
            paths.push(entry.path());
        }
        paths.sort();
        Ok(paths)
    }

    /// Links to directories are skipped to avoid loops; links out of the root are not served.
    fn leads_to_a_file(&mut self, link: &Path) -> bool {
        let target = link.canonicalize();
        let inside = target.is_ok_and(|target| target.starts_with(self.root) && target.is_file());
        if !inside {
            let message = format!(
                "{} is not indexed: the link does not lead to a file of the media directory",
                link.display()
            );
            self.faults.push(Fault::warning(link, "link", message));
        }
        inside
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}
