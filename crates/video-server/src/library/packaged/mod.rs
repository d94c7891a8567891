//! Packaged titles: the contents of DASH and HLS manifests of a media directory.

mod index;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use playrate_media::MediaError;
use playrate_media::manifest::{
    Component, Manifest, ManifestRepresentation, Piece, SEGMENT_LIMIT, Variables, Variant,
};
use playrate_units::{Bitrate, Bytes};

pub(super) use index::{Cut, PackagedFile, PackagedIndex, index_of};
pub use index::{PackagedTitle, RepresentationSummary};

use super::settling::Unsettled;
use super::{Fault, FaultKind, Library};
use crate::http::path::ResourceName;

/// Files of a directory or a store before its manifests are read.
#[derive(Clone, Copy)]
pub(super) struct MediaFiles<'a> {
    /// Reads the manifest with this name, which lies at this path, with these variables of a main playlist.
    pub(super) manifest: &'a dyn Fn(&Path, &ResourceName, &Variables) -> Result<Manifest, MediaError>,
    /// Number of bytes of a file; `None` if it does not exist.
    pub(super) size: &'a dyn Fn(&ResourceName) -> Option<u64>,
    /// True if the files are in an object store, where their order is worth knowing.
    pub(super) is_remote: bool,
    /// Files that count as (possibly bad) titles unless a manifest names them.
    pub(super) parts: &'a BTreeSet<ResourceName>,
    /// Segments of files that were read as titles.
    pub(super) cuts: &'a BTreeMap<ResourceName, Vec<Cut>>,
    /// Titles and manifests that may be incomplete.
    pub(super) unsettled: &'a BTreeMap<ResourceName, Unsettled>,
    /// The library before this reading.
    pub(super) previous: &'a Library,
}

/// Reads `manifests`. Missing files that they name are added to `faults`. A title keeps its previous contents while its
/// manifest, or a title or manifest that it names, may be incomplete.
pub(super) fn read(
    files: MediaFiles<'_>,
    mut manifests: Vec<(PathBuf, ResourceName)>,
    faults: &mut Vec<Fault>,
) -> PackagedIndex {
    // If both formats share segments, DASH says which ones replace each other; in HLS, another file may say that.
    let is_hls = |path: &Path| path.extension().is_none_or(|extension| extension != "mpd");
    manifests.sort_by_key(|(path, name)| (is_hls(path), name.clone()));
    let mut reader = ManifestReader {
        files,
        faults,
        packaged: PackagedIndex::default(),
        imports: BTreeMap::new(),
    };
    // In HLS, playlists become part of the title of the main playlist that names them.
    let mut playlists: BTreeMap<ResourceName, Arc<MediaPlaylist>> = BTreeMap::new();
    let mut mains = Vec::new();
    let mut unsettled_playlists = Vec::new();
    for (path, name) in manifests {
        if files.unsettled.contains_key(&name) {
            reader.keep(&path, &name);
            if path.extension().is_some_and(|extension| extension == "m3u8") {
                unsettled_playlists.push(path);
            }
            continue;
        }
        match reader.open(&path, &name, &Variables::new()) {
            Ok(Manifest::Dash(representations))
                if representations.iter().any(|one| reader.is_unsettled(one)) =>
            {
                reader.keep(&path, &name);
            }
            Ok(Manifest::Dash(representations)) => {
                let count = representations.iter().map(|one| reader.count(one)).sum();
                if reader.allows(&path, count) {
                    reader.add(&path, name, representations);
                }
            }
            Ok(Manifest::Main(variants)) => mains.push(MainPlaylist { path, name, variants }),
            Ok(Manifest::Media(representation)) => {
                let segments = reader.count(&representation);
                let playlist = MediaPlaylist {
                    path,
                    representation: *representation,
                    segments,
                };
                playlists.insert(name, Arc::new(playlist));
            }
            Ok(_) => {}
            Err(error) => {
                let fault = Fault::of_media(FaultKind::Manifest, &path, &error);
                reader.faults.push(fault);
                reader.keep_parts();
            }
        }
    }
    let mut named_by_mains = BTreeSet::new();
    for main in mains {
        named_by_mains.extend(reader.add_main(main, &playlists));
    }
    playlists.retain(|name, _| !named_by_mains.contains(name));
    for (name, playlist) in playlists {
        // A new playlist waits for new ones in its directory or above: one may be the main playlist that names it.
        let mut above = unsettled_playlists.iter().filter_map(|main| main.parent());
        let may_be_named = above.any(|above| playlist.path.starts_with(above));
        if reader.is_unsettled(&playlist.representation) || (may_be_named && !reader.was_there(&name)) {
            reader.keep(&playlist.path, &name);
            continue;
        }
        if reader.allows(&playlist.path, playlist.segments) {
            reader.add(&playlist.path, name, vec![playlist.representation.clone()]);
        }
    }
    reader.packaged
}

impl Library {
    /// Takes the packaged titles with their parts, which are at these paths.
    pub(super) fn set_packaged(&mut self, packaged: PackagedIndex, path: impl Fn(&ResourceName) -> PathBuf) {
        let parts = &packaged.parts;
        let paths: BTreeSet<_> = parts.iter().map(path).collect();
        self.faults
            .retain(|fault| fault.kind != FaultKind::Title || !paths.contains(&fault.path));
        self.faults.sort_by_key(|fault| fault.kind);
        self.indexed.retain(|name, _| !parts.contains(name));
        self.other_files += parts.len();
        // A playlist's segments may be captions.
        self.companions.retain(|name| !packaged.files.contains_key(name));
        self.packaged = packaged;
    }
}

/// A main playlist with the media playlists that it names.
struct MainPlaylist {
    path: PathBuf,
    name: ResourceName,
    variants: Vec<Variant>,
}

/// A media playlist that main playlists may name.
struct MediaPlaylist {
    path: PathBuf,
    representation: ManifestRepresentation,
    /// Number of its segments, including those of the files that it names.
    segments: usize,
}

fn named(file: &str) -> Option<ResourceName> {
    ResourceName::from_relative(Path::new(file))
}

struct ManifestReader<'a> {
    files: MediaFiles<'a>,
    faults: &'a mut Vec<Fault>,
    packaged: PackagedIndex,
    /// Playlists that import variables, as they are under each set of variables; `None` if unusable.
    imports: BTreeMap<ResourceName, Vec<Imported>>,
}

type Imported = (Arc<Variables>, Option<Arc<MediaPlaylist>>);

/// Largest number of sets of variables that one playlist is read with.
const IMPORTS: usize = 16;

impl ManifestReader<'_> {
    /// Reads a manifest and records the parts that it names.
    fn open(
        &mut self,
        path: &Path,
        name: &ResourceName,
        variables: &Variables,
    ) -> Result<Manifest, MediaError> {
        let manifest = (self.files.manifest)(path, name, variables)?;
        let may_grow = match &manifest {
            Manifest::Dash(representations) => representations.iter().any(|one| one.live),
            Manifest::Media(representation) => representation.live,
            _ => false,
        };
        if !may_grow {
            self.packaged.finished.insert(name.clone());
        }
        let parts = self.files.parts;
        if !parts.is_empty() {
            let names = manifest.files().filter_map(named);
            let named_parts = names.filter(|name| parts.contains(name));
            self.packaged.parts.extend(named_parts);
        }
        Ok(manifest)
    }

    /// Keeps the earlier parts, because a manifest that names some of them cannot be read now.
    fn keep_parts(&mut self) {
        let before = &self.files.previous.packaged.parts;
        let parts = before.intersection(self.files.parts).cloned();
        self.packaged.parts.extend(parts);
    }

    /// The playlist with these variables of a main playlist, read once for each set of them. Reports
    /// why it is unusable.
    fn import(
        &mut self,
        name: &ResourceName,
        playlist: &Arc<MediaPlaylist>,
        variables: &Arc<Variables>,
    ) -> Option<Arc<MediaPlaylist>> {
        if !playlist.representation.has_imports {
            return Some(Arc::clone(playlist));
        }
        let known = self.imports.entry(name.clone()).or_default();
        if let Some((_, playlist)) = known.iter().find(|(with, _)| with == variables) {
            return playlist.clone();
        }
        let path = &playlist.path;
        if known.len() == IMPORTS {
            let message = format!(
                "{}: main playlists define its variables in more than {IMPORTS} ways; write a playlist for each",
                path.display()
            );
            self.faults.push(Fault::warning(path, "variables", message));
            return None;
        }
        let again = match self.open(path, name, variables) {
            Ok(Manifest::Media(again)) => Some(Arc::new(MediaPlaylist {
                path: path.clone(),
                segments: self.count(&again),
                representation: *again,
            })),
            Ok(_) => None,
            Err(error) => {
                let fault = Fault::of_media(FaultKind::Manifest, path, &error);
                self.faults.push(fault);
                None
            }
        };
        let known = self.imports.entry(name.clone()).or_default();
        known.push((Arc::clone(variables), again.clone()));
        again
    }

    /// Returns true if a file of a piece may be incomplete.
    fn is_unsettled(&self, representation: &ManifestRepresentation) -> bool {
        let unsettled = self.files.unsettled;
        let pieces = representation.pieces.iter();
        let mut files = pieces.filter_map(|piece| piece.file.as_deref());
        !unsettled.is_empty()
            && files.any(|file| named(file).is_some_and(|file| unsettled.contains_key(&file)))
    }

    /// Returns true if the manifest `name` was a title before.
    fn was_there(&self, name: &ResourceName) -> bool {
        let mut titles = self.files.previous.packaged.titles.iter();
        titles.any(|title| title.manifest == *name)
    }

    /// Keeps the earlier knowledge of the manifest `name` at `path`, if there is any.
    fn keep(&mut self, path: &Path, name: &ResourceName) {
        self.keep_parts();
        let previous = self.files.previous;
        let bad = previous.faults(FaultKind::Manifest).into_iter();
        self.faults.extend(bad.filter(|bad| bad.path == path).cloned());
        let previous = &previous.packaged;
        let Some(title) = previous.titles.iter().find(|title| title.manifest == *name) else {
            return;
        };
        self.packaged.titles.push(title.clone());
        if previous.finished.contains(name) {
            self.packaged.finished.insert(name.clone());
        }
        let of_title = |(_, known): &(&ResourceName, &Arc<PackagedFile>)| known.representation.title == *name;
        for (file, known) in previous.files.iter().filter(of_title) {
            let files = &mut self.packaged.files;
            files.entry(file.clone()).or_insert_with(|| Arc::clone(known));
        }
    }

    /// Number of segments, including those of the pieces' files: each file may have thousands.
    fn count(&self, representation: &ManifestRepresentation) -> usize {
        let pieces = representation.pieces.iter();
        pieces.map(|piece| self.cuts(piece).map_or(1, <[_]>::len)).sum()
    }

    /// Returns true if a manifest may have `count` segments; otherwise it is left out.
    fn allows(&mut self, path: &Path, count: usize) -> bool {
        if count > SEGMENT_LIMIT {
            let message = format!(
                "{}: it has {count} segments, including those of the files that it names; split the title so that \
                 there are at most {SEGMENT_LIMIT}",
                path.display()
            );
            self.refuse(path, message);
        }
        count <= SEGMENT_LIMIT
    }

    fn refuse(&mut self, path: &Path, message: String) {
        self.faults.push(Fault::new(FaultKind::Manifest, path, message));
    }

    /// Adds the title of a main playlist; returns the names of those of `playlists` that it names.
    fn add_main(
        &mut self,
        main: MainPlaylist,
        playlists: &BTreeMap<ResourceName, Arc<MediaPlaylist>>,
    ) -> BTreeSet<ResourceName> {
        let MainPlaylist { path, name, variants } = main;
        let mut named_here = Vec::new();
        let mut taken = BTreeSet::new();
        let mut found = BTreeSet::new();
        let mut waits = false;
        for variant in variants {
            let file = variant.playlist.file.as_deref().and_then(named);
            // Streams that differ only in their audio share a playlist.
            if file.as_ref().is_some_and(|file| !taken.insert(file.clone())) {
                continue;
            }
            let unsettled = self.files.unsettled;
            if file.as_ref().is_some_and(|file| unsettled.contains_key(file)) {
                waits = true;
                continue;
            }
            let Some((file, playlist)) = file.and_then(|file| playlists.get_key_value(&file)) else {
                let playlist = variant.playlist.file.unwrap_or_default();
                let message = format!(
                    "{}: the playlist `{playlist}` that it names is missing or unusable",
                    path.display()
                );
                self.faults.push(Fault::warning(&path, &playlist, message));
                continue;
            };
            found.insert(file.clone());
            let Some(playlist) = self.import(file, playlist, &variant.variables) else {
                continue;
            };
            waits |= self.is_unsettled(&playlist.representation);
            named_here.push((variant, playlist));
        }
        if waits {
            self.keep(&path, &name);
            return found;
        }
        // Many main playlists may name the same long one, so it is copied for one of them at a time.
        let count = named_here.iter().map(|(_, playlist)| playlist.segments).sum();
        if self.allows(&path, count) {
            let with_pieces = |(variant, playlist): (Variant, Arc<MediaPlaylist>)| {
                let (mut representation, media) = (variant.representation, &playlist.representation);
                representation.pieces.clone_from(&media.pieces);
                representation.live = media.live;
                representation.warnings.clone_from(&media.warnings);
                if media.component == Component::Other {
                    representation.component = Component::Other;
                }
                representation.encryption.clone_from(&media.encryption);
                representation
            };
            self.add(&path, name, named_here.into_iter().map(with_pieces).collect());
        }
        found
    }

    fn add(&mut self, path: &Path, title: ResourceName, representations: Vec<ManifestRepresentation>) {
        let mut summaries = Vec::new();
        let mut files: BTreeMap<ResourceName, PackagedFile> = BTreeMap::new();
        let (mut missing, mut segments) = (0, 0);
        for mut representation in representations {
            let encrypted = representation.encryption.take();
            let encrypted = encrypted.map(|method| format!("encrypted ({method}): players need a key"));
            let warnings = std::mem::take(&mut representation.warnings);
            for warning in warnings.into_iter().chain(encrypted) {
                let message = format!("{}: {}: {warning}", path.display(), representation.id);
                let fault = Fault::warning(path, &representation.id, message);
                self.faults.push(fault);
            }
            let (summary, pieces) = self.measure(&title, representation);
            let summary = Arc::new(summary);
            missing += summary.missing;
            segments += summary.segments;
            if self.files.is_remote {
                let pairs = pieces.iter().zip(pieces.iter().skip(1));
                let pairs = pairs.filter(|((one, _), (next, _))| one != next);
                let pairs = pairs.map(|((one, _), (next, _))| (one.clone(), next.clone()));
                self.packaged.next.extend(pairs);
            }
            for (file, cut) in pieces {
                let new = || PackagedFile {
                    representation: Arc::clone(&summary),
                    segments: Vec::new(),
                };
                files.entry(file).or_insert_with(new).segments.push(cut);
            }
            summaries.push(summary);
        }
        let lacks = match (summaries.is_empty(), segments > 0 && missing == segments) {
            (true, _) => Some("none of the playlists".to_owned()),
            (false, true) => Some(format!("none of the {segments} segments")),
            (false, false) => None,
        };
        if let Some(lacks) = lacks {
            let message = format!(
                "{}: {lacks} that it names is in the media directory; \
                 put them where it says, or serve another directory",
                path.display()
            );
            self.refuse(path, message);
            return;
        }
        if missing > 0 {
            let message = format!(
                "{}: {missing} of the {segments} segments that it names are not in the media directory",
                path.display()
            );
            self.faults.push(Fault::warning(path, "segments", message));
        }
        let (count, mut shared) = (files.len(), BTreeMap::new());
        for (file, mut known) in files {
            known.segments.shrink_to_fit();
            // The first manifest that names a file determines its meaning.
            let files = &mut self.packaged.files;
            let first = files.entry(file).or_insert_with(|| Arc::new(known));
            *shared.entry(first.representation.title.clone()).or_insert(0) += 1;
        }
        let most = shared.into_iter().find(|&(_, files)| 2 * files > count);
        let other_format = |first: &ResourceName| first.content_type() != title.content_type();
        self.packaged.titles.push(PackagedTitle {
            same_as: most.map(|(first, _)| first).filter(other_format),
            manifest: title,
            representations: summaries,
        });
    }

    /// Adds up a representation and reports which of its pieces exist.
    fn measure(
        &self,
        title: &ResourceName,
        representation: ManifestRepresentation,
    ) -> (RepresentationSummary, Vec<(ResourceName, Cut)>) {
        let ManifestRepresentation {
            id,
            set,
            component,
            live,
            codecs,
            resolution,
            declared_rate,
            pieces,
            ..
        } = representation;
        // No player requests a gap.
        let pieces = pieces.into_iter().filter(|piece| !piece.is_gap);
        let pieces: Vec<_> = pieces.flat_map(|piece| self.cut(piece)).collect();
        let durations = pieces.iter().filter_map(|(_, cut)| cut.duration);
        let mut summary = RepresentationSummary {
            title: title.clone(),
            id,
            set,
            component,
            live,
            codecs,
            resolution,
            average_rate: None,
            declared_rate,
            segments: pieces.len(),
            duration: durations.clone().sum(),
            longest_segment: durations.max().unwrap_or_default(),
            missing: 0,
        };
        let mut bytes = Bytes::ZERO;
        let mut played = Duration::ZERO;
        let mut there = Vec::with_capacity(pieces.len());
        for (file, cut) in pieces {
            let size = file.as_ref().and_then(self.files.size);
            let (Some(file), Some(size)) = (file, size) else {
                summary.missing += 1;
                continue;
            };
            if let Some(duration) = cut.duration {
                let range = cut.bytes.clone().unwrap_or(0..u64::MAX);
                bytes += Bytes::new(range.end.saturating_sub(range.start).min(size));
                played += duration;
            }
            there.push((file, cut));
        }
        let measured = bytes.per(played).filter(|&rate| rate > Bitrate::ZERO);
        summary.average_rate = measured.or(declared_rate);
        (summary, there)
    }

    /// The segments in a piece's file if that was read as a title; otherwise the piece itself.
    fn cut(&self, piece: Piece) -> Vec<(Option<ResourceName>, Cut)> {
        let file = piece.file.as_deref().and_then(named);
        if let Some(cuts) = self.cuts(&piece) {
            return cuts.iter().map(|cut| (file.clone(), cut.clone())).collect();
        }
        let (bytes, duration) = (piece.bytes, piece.duration);
        vec![(file, Cut { bytes, duration })]
    }

    /// The segments in the file of this piece, if the piece is a whole file that was read as a title.
    fn cuts(&self, piece: &Piece) -> Option<&[Cut]> {
        let whole = piece.file.as_deref().filter(|_| piece.bytes.is_none())?;
        let cuts = self.files.cuts.get(&named(whole)?)?;
        Some(cuts.as_slice()).filter(|cuts| !cuts.is_empty())
    }
}
