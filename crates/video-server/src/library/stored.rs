//! [`Stored`]: a library in an object store.
//!
//! The store is listed, and the index of each title is read by ranges, skipping the media. An object is replaced
//! atomically, so nothing needs to settle. At the next listing, objects with unchanged entity tags are not read again.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use playrate_media::manifest::{LARGEST, Manifest, Variables};
use playrate_media::{MediaError, Title};
use playrate_origin::{IndexReader, Object, Origin, OriginTotals};

use super::packaged::{self, Cut, MediaFiles, index_of};
use super::scan::{Indexing, TITLES, is_companion, is_title};
use super::{Fault, Library, LibraryError, TitleSummary};
use crate::http::path::ResourceName;
use crate::http::validator::EntityTag;

/// Number of objects read at the same time: each read mostly waits for the store.
const CONCURRENT: usize = 16;

/// Contents of an object store.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    origin: Origin,
    /// All objects of the last listing that a request can name.
    objects: Objects,
    /// Titles, playable or not, as they were read.
    titles: BTreeMap<ResourceName, Arc<ReadTitle>>,
    /// True if the store did not deliver a title or a manifest.
    is_incomplete: bool,
}

/// Objects of one listing, by the name that requests use.
type Objects = BTreeMap<ResourceName, Object>;

/// Index of one version of a title.
#[derive(Debug)]
struct ReadTitle {
    etag: EntityTag,
    index: Result<(TitleSummary, Vec<Cut>), MediaError>,
}

impl Stored {
    /// The object `name` in the known version.
    pub(super) fn open(&self, name: &ResourceName) -> Option<Object> {
        self.origin.known(name.as_str())
    }
}

impl Library {
    /// Lists `origin`, and reads the index of every title in it, as [`scan`](Self::scan) does with a directory. The
    /// calling thread waits for the store.
    ///
    /// # Errors
    /// As [`scan`](Self::scan); the store does not answer or refuses, or the bucket does not exist.
    pub fn scan_store(origin: Origin) -> Result<Self, LibraryError> {
        let stored = Stored {
            origin,
            objects: Objects::new(),
            titles: BTreeMap::new(),
            is_incomplete: true,
        };
        let (files, faults) = stored.list()?;
        stored.read(files, faults, &Self::default())?.accepted()
    }

    /// Totals of the store and of the cache of its objects, if the library comes from a store.
    pub fn origin_totals(&self) -> Option<OriginTotals> {
        self.origin().map(Origin::totals)
    }

    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.stored.as_ref().map(|stored| &stored.origin)
    }

    /// The object, and its bytes, that a player requests after `bytes` of `name` in the order of the manifest.
    pub(crate) fn next_segment(
        &self,
        name: &ResourceName,
        bytes: &Range<u64>,
    ) -> Option<(Object, Range<u64>)> {
        let stored = self.stored.as_ref()?;
        if let Some(next) = self.packaged.files.get(name)?.segment_from(bytes.end) {
            return Some((stored.open(name)?, next));
        }
        let object = stored.open(self.packaged.next.get(name)?)?;
        let all = 0..object.len();
        Some((object, all))
    }
}

impl Stored {
    /// Lists the store again and reads titles that `previous` does not have; `None` if nothing has changed.
    pub(super) fn rescan(&self, previous: &Library) -> Result<Option<Library>, LibraryError> {
        let (files, faults) = self.list()?;
        let tags = |(name, object): (&ResourceName, &Object)| (name.clone(), object.etag().to_owned());
        let is_same = files.iter().map(tags).eq(self.objects.iter().map(tags));
        if is_same && !self.is_incomplete {
            return Ok(None);
        }
        let library = self.read(files, faults, previous)?;
        let is_complete = library.stored.as_ref().is_some_and(|read| !read.is_incomplete);
        let has_same_faults = library.faults == previous.faults;
        Ok((!is_same || is_complete || !has_same_faults).then_some(library))
    }

    /// The present objects, and warnings about those that a request cannot name.
    fn list(&self) -> Result<(Objects, Vec<Fault>), LibraryError> {
        let listed = self.origin.list()?;
        let mut faults = Vec::new();
        let mut files = Objects::new();
        for (name, object) in listed {
            match ResourceName::from_relative(Path::new(&name)).filter(|found| found.as_str() == name) {
                Some(name) => {
                    files.insert(name, object);
                }
                None if name
                    .split('/')
                    .any(|segment| segment.starts_with('.') || segment.is_empty()) => {}
                None => faults.push(Fault::unnamed(&self.path(&name))),
            }
        }
        Ok((files, faults))
    }

    /// The library of the objects `files`.
    fn read(&self, files: Objects, faults: Vec<Fault>, previous: &Library) -> Result<Library, LibraryError> {
        let names = files.keys();
        let is_manifest = |name: &&ResourceName| Manifest::is_named(Path::new(name.as_str()));
        let manifests: Vec<_> = names.clone().filter(is_manifest).collect();
        let above: BTreeSet<&str> = manifests.iter().map(|name| directory_of(name.as_str())).collect();
        let titles: Vec<_> = files
            .iter()
            .filter(|(name, _)| is_title(Path::new(name.as_str())) && !previous.sources.contains_key(*name))
            .collect();
        if titles.len() > TITLES {
            return Err(LibraryError::too_large(&self.path(""), TITLES, "titles"));
        }
        let mut library = Library {
            faults,
            other_files: files.len() - titles.len(),
            companions: names
                .clone()
                .filter(|name| is_companion(Path::new(name.as_str())))
                .cloned()
                .collect(),
            ..previous.without_media()
        };
        let read = self.read_titles(titles);
        let contents = concurrently(manifests.clone(), |name| {
            (name.clone(), manifest(&files, name, &Variables::new()))
        });
        let mut indexing = Indexing::default();
        for (name, title) in &read {
            library.versions.insert(name.clone(), title.etag.clone());
            let (path, packaged) = (self.path(name.as_str()), is_below(name.as_str(), &above));
            library.take(&mut indexing, (name.clone(), &path, packaged), &title.index);
        }
        library.faults.append(&mut indexing.warnings);
        for &name in &manifests {
            let object = files.get(name);
            let tag = object.map(|object| EntityTag::of_identity(object.etag()));
            library.versions.extend(tag.map(|tag| (name.clone(), tag)));
        }
        let manifests = manifests
            .into_iter()
            .map(|name| (self.path(name.as_str()), name.clone()));
        let errors_of_titles = read.values().filter_map(|title| title.index.as_ref().err());
        let errors_of_manifests = contents.iter().filter_map(|(_, content)| content.as_ref().err());
        let is_incomplete = Cell::new(errors_of_titles.chain(errors_of_manifests).any(is_of_store));
        let contents = RefCell::new(contents.into_iter().collect::<BTreeMap<_, _>>());
        let media_files = MediaFiles {
            manifest: &|path, name, variables| {
                let content = contents.borrow_mut().remove(name);
                let content = content.unwrap_or_else(|| manifest(&files, name, variables));
                is_incomplete.set(is_incomplete.get() || content.as_ref().is_err_and(is_of_store));
                content.map_err(|error| in_object(error, path))
            },
            size: &|name| files.get(name).map(Object::len),
            is_remote: true,
            parts: &indexing.parts,
            cuts: &indexing.cuts,
            unsettled: &BTreeMap::new(),
            previous,
        };
        let packaged = packaged::read(media_files, manifests.collect(), &mut library.faults);
        library.set_packaged(packaged, |name| self.path(name.as_str()));
        library.stored = Some(Self {
            origin: self.origin.clone(),
            objects: files,
            is_incomplete: is_incomplete.get(),
            titles: read,
        });
        Ok(library)
    }

    /// Reads the indexes of `titles`, except those already read.
    fn read_titles(&self, titles: Vec<(&ResourceName, &Object)>) -> BTreeMap<ResourceName, Arc<ReadTitle>> {
        let read = concurrently(titles, |(name, object): (&ResourceName, &Object)| {
            let etag = EntityTag::of_identity(object.etag());
            let before = self.titles.get(name).filter(|title| title.etag == etag);
            // If the store did not deliver an object before, it may deliver it next time.
            let before = before.filter(|title| !matches!(&title.index, Err(error) if is_of_store(error)));
            let read = || {
                let title = Title::read(IndexReader::new(object.clone()));
                let index = title.map(|title| index_of(&title));
                let index = index.map_err(|error| in_object(error, &self.path(name.as_str())));
                Arc::new(ReadTitle { etag, index })
            };
            let title = before.map_or_else(read, Arc::clone);
            (name.clone(), title)
        });
        read.into_iter().collect()
    }

    /// URL of an object, used in messages instead of a path.
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(self.origin.url(name))
    }
}

/// Applies `read`, which waits for the store, to all `items` in any order.
fn concurrently<T: Send, R: Send>(items: Vec<T>, read: impl Fn(T) -> R + Sync) -> Vec<R> {
    let concurrent = CONCURRENT.min(items.len());
    let left = Mutex::new(items.into_iter());
    let results = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = left.lock().next();
            let Some(item) = next else { return };
            let result = read(item);
            results.lock().push(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..concurrent {
            scope.spawn(work);
        }
    });
    results.into_inner()
}

/// Returns true if the error comes from the store and not from the title's content.
fn is_of_store(error: &MediaError) -> bool {
    matches!(
        error.cause(),
        MediaError::Io {
            kind: io::ErrorKind::Other | io::ErrorKind::PermissionDenied,
            ..
        }
    )
}

/// Adds the object at `path` to this error; errors of the store already name it.
fn in_object(error: MediaError, path: &Path) -> MediaError {
    if is_of_store(&error) {
        error
    } else {
        error.in_file(path)
    }
}

/// The directory that the object `name` lies in; empty for none.
fn directory_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Returns true if `name` lies in one of `directories`, or below it.
fn is_below(name: &str, directories: &BTreeSet<&str>) -> bool {
    let mut above = Path::new(name).ancestors().skip(1).filter_map(Path::to_str);
    above.any(|directory| directories.contains(directory))
}

/// Reads the manifest `name` of `files`.
fn manifest(files: &Objects, name: &ResourceName, variables: &Variables) -> Result<Manifest, MediaError> {
    let gone = || io::Error::from(io::ErrorKind::NotFound);
    let object = files.get(name).ok_or_else(gone)?;
    let content = IndexReader::read_whole(object, LARGEST.as_u64())?;
    Manifest::read(name.as_str(), &content, variables)
}
