//! Fetches what a title's manifest says.

use playrate_media::manifest::{Manifest, ManifestError, Piece, Representation as Said, Variant};
use playrate_media::segment_index;
use playrate_transport::Connection;
use playrate_units::{Bitrate, Bytes};

use super::packaged::{self, TitleError};
use super::presentation::{Presentation, Resource};
use super::run::Run;
use crate::cmcd::ObjectType;
use crate::error::PlayError;
use crate::observer::Observer;

/// Most bytes taken of a manifest.
const MANIFEST: Bytes = Bytes::from_mib(16);
/// Most bytes taken of an initialisation segment or an index.
pub(super) const INITIALIZATION: Bytes = Bytes::from_mib(1);
/// Most playlists read of one title.
const PLAYLISTS: usize = 64;

/// What `path` (with its query) says of a title: the presentation, and in words what of it is left out.
pub(super) async fn fetch<O: Observer>(
    run: &mut Run,
    connection: &Connection,
    path: &str,
    observer: &mut O,
) -> Result<(Presentation, Vec<String>), PlayError> {
    let mut fetcher = Fetcher {
        run,
        connection,
        observer,
    };
    let wrong = |problem: TitleError| PlayError::Title {
        path: path.to_owned(),
        problem,
    };
    let all = match fetcher.manifest(path).await? {
        Manifest::Dash(all) => all,
        Manifest::Media(one) => vec![one],
        Manifest::Main(variants) => fetcher.playlists(variants, &wrong).await?,
        _ => Vec::new(),
    };
    let (mut all, notes) = packaged::choose(all).map_err(wrong)?;
    for one in &mut all {
        if let Some(index) = packaged::needs_index(one).map_err(wrong)? {
            one.pieces = fetcher.pieces(&index, one).await?;
        }
        // A playlist on its own says nothing of rates.
        if one.declared_rate.is_none() && one.pieces.iter().all(|piece| piece.bytes.is_none()) {
            one.declared_rate = fetcher.rate(one).await?;
        }
    }
    let presentation = packaged::presentation(all).map_err(wrong)?;
    Ok((presentation, notes))
}

struct Fetcher<'a, O> {
    run: &'a mut Run,
    connection: &'a Connection,
    observer: &'a mut O,
}

impl<O: Observer> Fetcher<'_, O> {
    async fn manifest(&mut self, path: &str) -> Result<Manifest, PlayError> {
        let resource = Resource {
            path: path.to_owned(),
            bytes: None,
        };
        let what = (ObjectType::Manifest, MANIFEST);
        let text = self
            .run
            .fetch_whole(self.connection, &resource, what, self.observer)
            .await?;
        let name = packaged::file_of(path);
        Manifest::read(&name, &text).map_err(|problem: ManifestError| PlayError::Manifest {
            path: path.to_owned(),
            problem,
        })
    }

    /// The representations that a main playlist names: those with pictures with their pieces, others without.
    async fn playlists(
        &mut self,
        variants: Vec<Variant>,
        wrong: &impl Fn(TitleError) -> PlayError,
    ) -> Result<Vec<Said>, PlayError> {
        let mut all = Vec::new();
        let mut taken: Vec<String> = Vec::new();
        for Variant {
            file,
            query,
            representation: mut said,
            ..
        } in variants
        {
            if packaged::is_readable(&said) && said.set == 0 {
                let path = packaged::url_path(file.as_deref(), query.as_deref());
                let path = path.ok_or_else(|| {
                    wrong(TitleError::Elsewhere {
                        representation: said.id.clone(),
                    })
                })?;
                // Streams that differ only in their sound share a playlist.
                if taken.contains(&path) {
                    continue;
                }
                if taken.len() == PLAYLISTS {
                    return Err(wrong(TitleError::Playlists(taken.len() + 1)));
                }
                if let Manifest::Media(playlist) = self.manifest(&path).await? {
                    said.pieces = playlist.pieces;
                    said.initialization = playlist.initialization;
                    said.live = playlist.live;
                }
                taken.push(path);
            }
            all.push(said);
        }
        Ok(all)
    }

    /// What the segment index of a representation in one file says.
    async fn pieces(&mut self, index: &Resource, said: &Said) -> Result<Vec<Piece>, PlayError> {
        let what = (ObjectType::Initialization, INITIALIZATION);
        let bytes = self
            .run
            .fetch_whole(self.connection, index, what, self.observer)
            .await?;
        let begins = index.bytes.as_ref().map_or(0, |bytes| bytes.start);
        let segments = segment_index(&bytes, begins).map_err(|problem| PlayError::Segment {
            path: index.path.clone(),
            problem,
        })?;
        let Some(whole) = said.pieces.first() else {
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

    /// The rate of the first piece, from how long it is.
    async fn rate(&mut self, said: &Said) -> Result<Option<Bitrate>, PlayError> {
        let Some(piece) = said.pieces.first() else {
            return Ok(None);
        };
        let path = packaged::url_path(piece.file.as_deref(), piece.query.as_deref());
        let (Some(path), Some(duration)) = (path, piece.duration) else {
            return Ok(None);
        };
        let length = self.run.length(self.connection, &path).await?;
        Ok(length.and_then(|length| length.per(duration)))
    }
}
