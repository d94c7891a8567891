//! Fetches a manifest, its playlists and its segment indexes.

use playrate_media::cmcd::ObjectType;
use playrate_media::manifest::{Manifest, ManifestRepresentation as Declared, Piece, Variant};
use playrate_media::segment_index;
use playrate_units::{Bitrate, Bytes};

use super::packaged;
use super::presentation::{Presentation, Resource};
use super::source::{DashSource, MAX_INITIALIZATION};
use crate::error::{PlayError, TitleError, unplayable};
use crate::observer::Observer;
use crate::session::Driver;

/// Largest manifest or playlist accepted.
const MAX_MANIFEST: Bytes = Bytes::from_mib(16);
/// Maximum number of playlists read for one title.
const MAX_PLAYLISTS: usize = 64;

impl<O: Observer> Driver<'_, O, DashSource<'_>> {
    /// Fetches the title's manifest. Returns its presentation and notes on omissions.
    pub(super) async fn presentation(&mut self) -> Result<(Presentation, Vec<String>), PlayError> {
        let path = self.source.path;
        let wrong = |problem: TitleError| unplayable(path, problem);
        let all = match self.manifest(path).await? {
            Manifest::Dash(all) => all,
            Manifest::Media(one) => vec![one],
            Manifest::Main(variants) => self.playlists(variants).await?,
            _ => Vec::new(),
        };
        let (mut all, notes) = packaged::choose(all).map_err(wrong)?;
        for one in &mut all {
            if let Some(index) = packaged::needs_index(one).map_err(wrong)? {
                one.pieces = self.pieces(&index, one).await?;
            }
            // A media playlist alone declares no rate.
            if one.declared_rate.is_none() && one.pieces.iter().all(|piece| piece.bytes.is_none()) {
                one.declared_rate = self.rate(one).await?;
            }
        }
        let presentation = packaged::presentation(all).map_err(wrong)?;
        Ok((presentation, notes))
    }

    /// The manifest or playlist at `path`, which includes its query.
    async fn manifest(&mut self, path: &str) -> Result<Manifest, PlayError> {
        let resource = Resource {
            path: path.to_owned(),
            bytes: None,
        };
        let request = self.source.request(&resource, ObjectType::Manifest);
        let text = self.fetch_whole(request, MAX_MANIFEST).await?;
        let name = packaged::file_of(path);
        Manifest::read(&name, &text).map_err(|problem| PlayError::Manifest {
            path: path.to_owned(),
            problem,
        })
    }

    /// The representations named by a main playlist: readable video with its pieces, others without.
    async fn playlists(&mut self, variants: Vec<Variant>) -> Result<Vec<Declared>, PlayError> {
        let main = self.source.path;
        let mut all = Vec::new();
        let mut taken: Vec<String> = Vec::new();
        for Variant {
            file,
            query,
            representation: mut declared,
            ..
        } in variants
        {
            if packaged::is_readable(&declared) && declared.set == 0 {
                let path = packaged::url_path(file.as_deref(), query.as_deref());
                let path =
                    path.ok_or_else(|| unplayable(main, TitleError::Elsewhere(declared.id.clone())))?;
                // Streams that differ only in their audio share a playlist.
                if taken.contains(&path) {
                    continue;
                }
                if taken.len() == MAX_PLAYLISTS {
                    return Err(unplayable(main, TitleError::Playlists(taken.len() + 1)));
                }
                if let Manifest::Media(playlist) = self.manifest(&path).await? {
                    declared.pieces = playlist.pieces;
                    declared.initialization = playlist.initialization;
                    declared.live = playlist.live;
                }
                taken.push(path);
            }
            all.push(declared);
        }
        Ok(all)
    }

    /// The pieces of a representation in one file, from its segment index.
    async fn pieces(&mut self, index: &Resource, declared: &Declared) -> Result<Vec<Piece>, PlayError> {
        let request = self.source.request(index, ObjectType::Initialization);
        let bytes = self.fetch_whole(request, MAX_INITIALIZATION).await?;
        let begins = index.bytes.as_ref().map_or(0, |bytes| bytes.start);
        let segments = segment_index(&bytes, begins).map_err(|problem| unplayable(&index.path, problem))?;
        let Some(whole) = declared.pieces.first() else {
            return Ok(Vec::new());
        };
        let piece = |segment: playrate_media::IndexedSegment| {
            let mut piece = whole.clone();
            piece.bytes = Some(segment.bytes);
            piece.duration = Some(segment.duration);
            piece
        };
        Ok(segments.into_iter().map(piece).collect())
    }

    /// The rate of the first piece, from the length of its file.
    async fn rate(&mut self, declared: &Declared) -> Result<Option<Bitrate>, PlayError> {
        let Some(piece) = declared.pieces.first() else {
            return Ok(None);
        };
        let path = packaged::url_path(piece.file.as_deref(), piece.query.as_deref());
        let (Some(path), Some(duration)) = (path, piece.duration) else {
            return Ok(None);
        };
        let length = self.length(&path).await?;
        Ok(length.and_then(|length| length.per(duration)))
    }
}
