//! [`Library`]: the titles and files of a server.
//!
//! A directory is read at the start: every `.mp4` and `.m4v` in it is opened and its index read. This makes its average
//! rate known, and a bad title is logged at once. Only a [`TitleSummary`] of the index is kept, because the frames of a
//! thousand films would not fit. [`Library::rescan`] reads the directory again, and those titles that have changed.
//!
//! A file is looked up again for each request, so files added to the directory later are served at once; responses of
//! one version share a descriptor. DASH and HLS manifests are read as well: they assign the segment files to
//! representations, and so determine the rate of a response. If a manifest is unusable, this is logged and its files
//! are served like any others, without a rate. The same holds for a title that cannot be read: it may be a copy in
//! progress.
//!
//! Requests never trigger indexing. A title that is new, or has changed since the directory was read, is served as it
//! is with an unknown rate, and the log says so. A file that changes *while a response reads it* ends that response
//! early: replace titles by renaming complete files over them.

mod changes;
mod error;
mod file;
mod packaged;
mod scan;
mod settling;
#[cfg(feature = "object-store")]
mod stored;

use core::num::NonZeroU32;
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use playrate_media::manifest::Manifest;
use playrate_media::{Layout, MediaError, MediaSource, Title};
use playrate_units::{Bitrate, Bytes as ByteCount, seconds};
use serde::{Serialize, Serializer};

pub use changes::LibraryChanges;
pub use error::{Fault, FaultKind, LibraryError};
pub use file::CacheTotals;
use file::{OpenFile, OpenFiles};
use packaged::{PackagedFile, PackagedIndex};
pub use packaged::{PackagedTitle, RepresentationSummary};
use settling::Unsettled;
#[cfg(feature = "object-store")]
use stored::Stored;

use crate::http::answer::ContentInfo;
use crate::http::caching::CacheKind;
use crate::http::path::ResourceName;
use crate::http::validator::{EntityTag, Validators};

/// Maximum number of bytes per read; also the unit of the cache.
pub const CHUNK: ByteCount = ByteCount::new(64 << 10);

/// Summary of a title's index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TitleSummary {
    /// Codecs as RFC 6381 writes them; empty for generated payload.
    pub codecs: String,
    /// Width of the video in pixels, if known.
    pub width: Option<NonZeroU32>,
    /// Height of the video in pixels, if known.
    pub height: Option<NonZeroU32>,
    /// False for a title that is sound only.
    pub has_video: bool,
    /// Number of frames that are shown.
    pub frames: usize,
    /// Number of pieces that can be fetched separately.
    pub segments: usize,
    /// Duration of the title.
    #[serde(rename = "duration_s", with = "seconds")]
    pub duration: Duration,
    /// Video and audio bytes over playing time.
    #[serde(rename = "average_rate_bps")]
    pub average_rate: Bitrate,
    /// Rate that the controller receives: the average, but at least a quarter of the peak over 10 s.
    #[serde(rename = "sending_rate_bps")]
    pub sending_rate: Bitrate,
    /// The highest rate of any second of playing time.
    #[serde(rename = "peak_rate_bps")]
    pub peak_rate: Bitrate,
    /// Size of the file.
    #[serde(rename = "size_bytes")]
    pub size: ByteCount,
    /// Layout of the frames in the file.
    #[serde(serialize_with = "by_name")]
    pub layout: Layout,
    /// Notes of the index: contradictions in the file, each with the value used, encryption, and video
    /// that browsers do not play.
    pub notes: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn by_name<S: Serializer>(layout: &Layout, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(match layout {
        Layout::ProgressiveMoovFirst => "progressive_moov_first",
        Layout::ProgressiveMoovLast => "progressive_moov_last",
        Layout::Fragmented => "fragmented",
        _ => "trace",
    })
}

impl TitleSummary {
    pub(crate) fn of(title: &Title) -> Self {
        let info = title.info();
        let mut notes = title.notes().to_vec();
        if info.codecs.starts_with("mp4v") {
            let note = "browsers do not play MPEG-4 Part 2 and older video (mp4v); encode it again as H.264";
            notes.push(note.to_owned());
        }
        Self {
            codecs: info.codecs.clone(),
            width: NonZeroU32::new(info.width),
            height: NonZeroU32::new(info.height),
            has_video: info.has_video,
            frames: title.frames().len(),
            segments: title.segments().len(),
            duration: title.duration(),
            average_rate: title.average_rate(),
            sending_rate: title.sending_rate(),
            peak_rate: title.peak_rate(Duration::from_secs(1)),
            size: title.file_size(),
            layout: title.layout(),
            notes,
        }
    }

    /// Warnings about the title at `path`.
    fn warnings(&self, path: &Path) -> impl Iterator<Item = Fault> {
        let warning = move |note: &String| Fault::warning(path, note, format!("{}: {note}", path.display()));
        self.notes.iter().map(warning)
    }
}

/// The contents of a server: a directory or an object store, titles from other sources, or both. Other sources take
/// precedence over files of the same name.
#[derive(Debug, Default)]
pub struct Library {
    directory: Option<MediaDirectory>,
    /// Object store in place of a directory.
    #[cfg(feature = "object-store")]
    stored: Option<Stored>,
    /// Shared with the libraries that preceded it, so that a version of a file has one descriptor.
    open_files: Arc<OpenFiles>,
    indexed: BTreeMap<ResourceName, TitleSummary>,
    sources: BTreeMap<ResourceName, Arc<dyn MediaSource>>,
    /// Highest sending rate among the sources that may replace a source during playback.
    highest_rates: BTreeMap<ResourceName, Bitrate>,
    packaged: PackagedIndex,
    /// The versions of titles, playable or not, and of manifests that were read.
    versions: BTreeMap<ResourceName, EntityTag>,
    /// Errors of the titles and possible segments in the directory that cannot be played on their own.
    broken: BTreeMap<ResourceName, MediaError>,
    /// Files that were new or had changed when the directory was read, and were left for the next rescan.
    unsettled: BTreeMap<ResourceName, Unsettled>,
    /// Everything in the directory that cannot be used or is left out, sorted by kind.
    faults: Vec<Fault>,
    /// Number of files in the directory that are not titles.
    other_files: usize,
    /// Files that may be the picture or the captions of a title.
    companions: BTreeSet<ResourceName>,
}

/// A directory of titles and files.
#[derive(Debug)]
struct MediaDirectory {
    /// Path as it was given: links in it may lead elsewhere at the next reading.
    given: PathBuf,
    /// Path with all symbolic links resolved.
    root: PathBuf,
}

impl Library {
    /// Creates an empty library.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how much memory may cache bytes of files for further responses: 256 MB by default, none if zero. Clears the
    /// present cache.
    pub fn set_cache(&mut self, capacity: ByteCount) {
        self.open_files = Arc::new(OpenFiles::with_cache(capacity));
    }

    /// Counts of the chunks that responses found in memory and of those that they read.
    pub fn cache_totals(&self) -> CacheTotals {
        self.open_files.cache.totals()
    }

    /// Reads `directory` and the index of every title in it. Titles that cannot be played, manifests that cannot be
    /// used and subdirectories that cannot be read are logged and left out; see [`faults`](Self::faults).
    ///
    /// # Errors
    /// The directory cannot be read or exceeds the limits, or it has titles, manifests and directories but not a single
    /// usable one. The error names them and their faults.
    pub fn scan(directory: &Path) -> Result<Self, LibraryError> {
        scan::scan(directory, &Self::default(), None, &mut |_| ())?.accepted()
    }

    /// Logs the faults of a first reading. Returns an error if it found titles, manifests or directories, but not a
    /// single usable one.
    fn accepted(self) -> Result<Self, LibraryError> {
        if self.title_count() == 0 {
            return self.strictly();
        }
        self.changes_since(&Self::default()).warn();
        Ok(self)
    }

    /// Reads the directory or the store again, as it is at the time `now`. Returns `None` if the library has neither,
    /// or if nothing in the store has changed. Unchanged titles keep their summaries without being read, and titles
    /// from other sources stay. Faults are not logged; see [`changes_since`](Self::changes_since).
    ///
    /// A new or changed file of a directory may be a copy in progress, so a title or manifest is read only after two
    /// looks at least 3 s apart found it the same. Until then the new library keeps this one's data about it, and
    /// [`next_look`](Self::next_look) says when to call this again. `visit` is called with the path of each directory
    /// before it is listed. Objects of a store are complete; the calling thread waits for the store.
    ///
    /// # Errors
    /// The directory cannot be read, the store does not answer or refuses, or one of them exceeds the limits.
    pub fn rescan(&self, now: Instant, visit: &mut dyn FnMut(&Path)) -> Result<Option<Self>, LibraryError> {
        #[cfg(feature = "object-store")]
        if let Some(stored) = &self.stored {
            return stored.rescan(self);
        }
        match &self.directory {
            Some(directory) => scan::scan(&directory.given, self, Some(now), visit).map(Some),
            None => Ok(None),
        }
    }

    /// Returns this library if all its titles can be played, all manifests used and all directories read.
    ///
    /// # Errors
    /// Names those that cannot, with their faults.
    pub fn strictly(self) -> Result<Self, LibraryError> {
        let mut bad = self.faults.clone();
        bad.retain(|fault| fault.kind != FaultKind::Warning);
        if bad.is_empty() {
            Ok(self)
        } else {
            Err(LibraryError::BadTitles(bad))
        }
    }

    /// Adds a title from another source, under `name` (`/` between segments, none in front).
    ///
    /// # Errors
    /// A request could not have that name.
    pub fn with_source(mut self, name: &str, source: Arc<dyn MediaSource>) -> Result<Self, LibraryError> {
        let resource = ResourceName::from_relative(Path::new(name));
        let name = resource.ok_or_else(|| LibraryError::Name(name.to_owned()))?;
        let (title, version) = (
            TitleSummary::of(source.title()),
            EntityTag::of_identity(source.identity()),
        );
        self.indexed.insert(name.clone(), title);
        self.versions.insert(name.clone(), version);
        self.sources.insert(name, source);
        Ok(self)
    }

    /// Adds the representations of one title, each at its path relative to the root of the server. A player may switch
    /// between them.
    ///
    /// # Errors
    /// A request could not have one of the names.
    pub fn with_representations(
        self,
        representations: impl IntoIterator<Item = (String, Arc<dyn MediaSource>)>,
    ) -> Result<Self, LibraryError> {
        let (mut library, mut names, mut highest) = (self, Vec::new(), Bitrate::ZERO);
        for (name, source) in representations {
            highest = highest.max(source.title().sending_rate());
            library = library.with_source(&name, source)?;
            names.extend(ResourceName::from_relative(Path::new(&name)));
        }
        let rates = names.into_iter().map(|name| (name, highest));
        library.highest_rates.extend(rates);
        Ok(library)
    }

    /// The titles that were indexed, by name.
    pub fn titles(&self) -> impl Iterator<Item = (&ResourceName, &TitleSummary)> {
        self.indexed.iter()
    }

    /// The titles that DASH and HLS manifests of the directory name.
    pub fn packaged(&self) -> &[PackagedTitle] {
        &self.packaged.titles
    }

    /// Rates of the representations that may replace `representation` during playback, itself included, as
    /// players know them: the declared rate, or the average if that is higher.
    pub fn alternatives(&self, representation: &RepresentationSummary) -> Vec<Bitrate> {
        let kind = |of: &RepresentationSummary| (of.set, of.component);
        let titles = self.packaged.titles.iter();
        let title = titles.filter(|title| title.manifest == representation.title);
        let all = title.flat_map(|title| &title.representations);
        let same_set = all.filter(|other| kind(other) == kind(representation));
        let rates = same_set.filter_map(|other| other.declared_rate.max(other.average_rate));
        rates.collect()
    }

    /// All faults, sorted by kind.
    #[cfg(feature = "cli")]
    pub(crate) fn all_faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Faults of this kind.
    pub fn faults(&self, kind: FaultKind) -> Vec<&Fault> {
        self.faults.iter().filter(|fault| fault.kind == kind).collect()
    }

    /// Number of titles, files and packaged ones.
    pub fn title_count(&self) -> usize {
        self.indexed.len() + self.packaged.titles.len()
    }

    /// Number of files that were not titles when the directory was read.
    pub fn other_files(&self) -> usize {
        self.other_files
    }

    /// Pictures and captions of the title whose name without its extension is `stem`, in the order of their names. For
    /// `film` these are files such as `film.jpg`, `film.vtt` and `film.en.vtt`.
    pub(crate) fn companions(&self, stem: &str) -> impl Iterator<Item = &ResourceName> {
        let start = format!("{stem}.");
        let first = ResourceName::from_relative(Path::new(&start));
        let from = first.into_iter().flat_map(|first| self.companions.range(first..));
        from.take_while(move |name| name.as_str().starts_with(&start))
    }

    /// Returns true if a file of the library replaces its root page.
    pub(crate) fn has_index(&self) -> bool {
        let name = ResourceName::from_relative(Path::new("index.html"));
        name.is_some_and(|name| !matches!(self.open(&name), Ok(None)))
    }

    /// Representation that the resource `name` belongs to, if a manifest names it.
    fn representation(&self, name: &ResourceName) -> Option<&Arc<RepresentationSummary>> {
        Some(&self.packaged.files.get(name)?.representation)
    }

    /// The set of representations that the resource `name` belongs to, and its average rate if known; `None` if it is
    /// not known to be media. Opens nothing, so a file that changed since it was indexed has its previous rate.
    pub(crate) fn media(&self, name: &ResourceName) -> Option<(usize, Option<Bitrate>)> {
        let indexed = self.indexed.get(name).map(|title| title.sending_rate);
        match self.representation(name) {
            Some(one) => Some((one.set, one.average_rate.or(indexed))),
            None => indexed.map(|rate| (0, Some(rate))),
        }
    }

    /// Opens the resource `name`; `None` if it does not exist, is not a file, or is a symbolic link that leaves the
    /// directory.
    ///
    /// # Errors
    /// The resource exists and cannot be opened.
    pub fn open(&self, name: &ResourceName) -> io::Result<Option<Resource>> {
        let content = match self.sources.get(name) {
            Some(source) => ResourceContent::Source(Arc::clone(source)),
            None => match self.open_stored(name)? {
                Some(content) => content,
                None => return Ok(None),
            },
        };
        let (length, etag, modified) = match &content {
            ResourceContent::Source(source) => {
                (source.len(), EntityTag::of_identity(source.identity()), None)
            }
            ResourceContent::File(file) => (file.len(), file.etag(), file.modified()),
            #[cfg(feature = "object-store")]
            ResourceContent::Object(reader) => (
                reader.object().len(),
                EntityTag::of_identity(reader.object().etag()),
                Some(reader.object().modified()),
            ),
        };
        let packaged = self.packaged.files.get(name).cloned();
        let representation = packaged.as_ref().map(|file| &file.representation);
        let alternatives = representation.and_then(|one| self.alternatives(one).into_iter().max());
        let packaged_rate = representation.and_then(|one| one.average_rate);
        let is_read = self.versions.get(name) == Some(&etag);
        let indexed = self.indexed.get(name);
        if indexed.is_some() && !is_read {
            tracing::warn!(
                title = %name,
                "changed since it was indexed: its rate is unknown until the directory is read again"
            );
        }
        let rate = indexed.filter(|_| is_read).map(|title| title.sending_rate);
        let is_manifest = Manifest::is_named(Path::new(name.as_str()));
        let cache_kind = match representation {
            _ if is_manifest && is_read && self.packaged.finished.contains(name) => CacheKind::Manifest,
            _ if is_manifest => CacheKind::GrowingManifest,
            Some(one) if one.live => CacheKind::File,
            Some(_) => CacheKind::Segment,
            None if rate.is_some() => CacheKind::Title,
            None if name.content_type().starts_with("text/html") => CacheKind::Page,
            None => CacheKind::File,
        };
        Ok(Some(Resource {
            info: ContentInfo {
                cache_kind,
                length,
                content_type: name.content_type(),
                validators: Validators::new(etag, modified),
            },
            average_rate: packaged_rate.or(rate),
            highest_rate: alternatives.or_else(|| self.highest_rates.get(name).copied()),
            packaged,
            content,
        }))
    }

    /// Opens the file or object `name`.
    fn open_stored(&self, name: &ResourceName) -> io::Result<Option<ResourceContent>> {
        #[cfg(feature = "object-store")]
        if let Some(stored) = &self.stored {
            let object = stored.open(name);
            return Ok(object.map(|object| ResourceContent::Object(Box::new(object.reader()))));
        }
        Ok(self.open_file(name)?.map(ResourceContent::File))
    }

    fn open_file(&self, name: &ResourceName) -> io::Result<Option<Arc<OpenFile>>> {
        let Some(directory) = &self.directory else {
            return Ok(None);
        };
        let found = directory.root.join(name.as_str()).canonicalize();
        match found {
            // A link may point elsewhere in the directory, but not out of it.
            Ok(path) if path.starts_with(&directory.root) => self.open_files.open(&path),
            Ok(path) => {
                let leads_to = path.display();
                tracing::warn!(%name, %leads_to, "not served: the link leads out of the media directory");
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
            Err(error) => {
                if !is_absence(&error) {
                    tracing::warn!(%name, %error, "not served: its path cannot be resolved");
                }
                Ok(None)
            }
        }
    }
}

/// Returns true if a lookup failed because the path does not exist.
fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound};
    matches!(
        error.kind(),
        NotFound | NotADirectory | InvalidFilename | InvalidInput
    )
}

/// A resource opened for one request.
#[derive(Debug)]
pub struct Resource {
    /// Length, media type and version.
    pub(crate) info: ContentInfo,
    /// Sending rate of its title, or average rate of its representation, if known. `None` for a title that has changed
    /// since it was indexed.
    pub average_rate: Option<Bitrate>,
    /// Average rate of the best representation that may replace it during playback, if there are several.
    pub(crate) highest_rate: Option<Bitrate>,
    /// Its segments, if a manifest names it.
    packaged: Option<Arc<PackagedFile>>,
    content: ResourceContent,
}

#[derive(Debug)]
enum ResourceContent {
    Source(Arc<dyn MediaSource>),
    File(Arc<OpenFile>),
    #[cfg(feature = "object-store")]
    Object(Box<playrate_origin::ObjectReader>),
}

impl Resource {
    /// Representation that it belongs to, if a manifest names it.
    pub fn representation(&self) -> Option<&Arc<RepresentationSummary>> {
        Some(&self.packaged.as_ref()?.representation)
    }

    /// Duration of the segments that lie within `bytes`, if known.
    pub fn duration_of(&self, bytes: &Range<u64>) -> Option<Duration> {
        self.packaged.as_ref()?.duration_of(bytes)
    }

    /// Reads the first of `bytes`: at least one, and at most `max`. Returns none only at the end or if `max` is zero.
    /// Files are read on the calling thread, from the page cache or the disk. If the read has to wait for a store, the
    /// task in `context` is woken when trying again may succeed.
    ///
    /// # Errors
    /// The bytes cannot be read, or the file has changed since it was opened.
    #[cfg_attr(
        not(feature = "object-store"),
        expect(unused_variables, reason = "only a store is waited for")
    )]
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        bytes: Range<u64>,
        max: usize,
    ) -> Poll<io::Result<Bytes>> {
        match &mut self.content {
            ResourceContent::Source(source) => Poll::Ready(source.read_at(bytes.start, max)),
            ResourceContent::File(file) => Poll::Ready(file.read_at(bytes.start, max)),
            #[cfg(feature = "object-store")]
            ResourceContent::Object(reader) => {
                reader.poll_read(context, bytes, max).map_err(io::Error::other)
            }
        }
    }

    /// Waits for the first of `bytes`, if it is an object of a store.
    #[cfg(feature = "object-store")]
    pub(crate) async fn prepare(&mut self, bytes: Range<u64>) -> Result<(), playrate_origin::OriginError> {
        match &mut self.content {
            ResourceContent::Object(reader) => reader.read(bytes, 0).await.map(drop),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
