//! Fetches a manifest, its playlists and its segment indexes.

use std::time::Duration;

use playrate_media::cmcd::ObjectType;
use playrate_media::manifest::{
    Component, LARGEST, Manifest, ManifestRepresentation as Declared, Piece, Variables, Variant,
};
use playrate_media::segment_index;
use playrate_units::Bitrate;

use super::packaged;
use super::presentation::{Presentation, Resource};
use super::source::{DashSource, MAX_INITIALIZATION};
use crate::error::{PlayError, Result, TitleError, unplayable};
use crate::observer::Observer;
use crate::session::Driver;

/// Maximum number of segments whose lengths are requested for one rate.
const MAX_TRIES: usize = 8;
/// Maximum number of playlists read for one title.
const MAX_PLAYLISTS: usize = 64;

impl<O: Observer> Driver<'_, O, DashSource<'_>> {
    /// Fetches the title's manifest. Returns its presentation and notes on omissions.
    pub(super) async fn presentation(&mut self) -> Result<(Presentation, Vec<String>)> {
        let path = self.source.path;
        let wrong = |problem: TitleError| unplayable(path, problem);
        let mut missing = Vec::new();
        let all = match self.manifest(path, &Variables::new()).await? {
            Manifest::Dash(all) => all,
            Manifest::Media(one) => vec![*one],
            Manifest::Main(variants) => self.playlists(variants, &mut missing).await?,
            _ => Vec::new(),
        };
        let (mut all, mut notes) = packaged::choose(all).map_err(wrong)?;
        notes.append(&mut missing);
        for one in &mut all {
            if let Some(index) = packaged::needs_index(one).map_err(wrong)? {
                one.pieces = self.pieces(&index, one).await?;
            }
            // A media playlist alone declares no rate.
            if one.declared_rate.is_none() && one.pieces.iter().all(|piece| piece.bytes.is_none()) {
                one.declared_rate = self.rate(one).await?;
            }
        }
        self.source.is_sound = all.iter().all(|it| it.component == Component::Audio);
        let presentation = packaged::presentation(all).map_err(wrong)?;
        Ok((presentation, notes))
    }

    /// The manifest or playlist at `path`, which includes its query, with these variables of a main playlist.
    async fn manifest(&mut self, path: &str, variables: &Variables) -> Result<Manifest> {
        let resource = Resource {
            path: path.to_owned(),
            bytes: None,
        };
        let request = self.source.request(&resource, ObjectType::Manifest);
        let text = self.fetch_whole(request, LARGEST).await?;
        let url = self.url(path).to_string();
        let url = url::Url::parse(&url).map_err(|_| unplayable(path, TitleError::Elsewhere(url)))?;
        Manifest::read_at(&url, &text, variables).map_err(|problem| PlayError::Manifest {
            path: path.to_owned(),
            problem,
        })
    }

    /// The representations named by a main playlist: the preferred ones with their pieces, others without. Playlists
    /// that cannot be fetched or read are left out and described in `missing`.
    ///
    /// # Errors
    /// That of the first missing playlist, if no other one can be played. Sound does not replace missing video.
    async fn playlists(
        &mut self,
        mut variants: Vec<Variant>,
        missing: &mut Vec<String>,
    ) -> Result<Vec<Declared>> {
        let main = self.source.path;
        let mut all = Vec::new();
        let mut taken: Vec<String> = Vec::new();
        let mut failure = None;
        // Preference of the streams to play: the best one whose playlist can be played.
        let mut best = None;
        variants.sort_by_key(|it| packaged::preference(&it.representation).unwrap_or(u8::MAX));
        for Variant {
            playlist,
            representation: mut declared,
            variables,
            ..
        } in variants
        {
            let rank = packaged::preference(&declared).filter(|_| declared.set == 0);
            if rank == Some(packaged::SOUND) && best.is_none() && failure.is_some() {
                break;
            }
            if rank.is_some() && best.is_none_or(|best| rank == Some(best)) {
                let Some(path) = playlist.own_path().map(str::to_owned) else {
                    declared.pieces.push(playlist);
                    all.push(declared);
                    continue;
                };
                // Streams that differ only in their audio share a playlist.
                if taken.contains(&path) {
                    continue;
                }
                if taken.len() == MAX_PLAYLISTS {
                    return Err(unplayable(main, TitleError::Playlists(taken.len() + 1)));
                }
                let playlist = match self.manifest(&path, &variables).await {
                    Err(error) if error.is_of_file() => {
                        missing.push(format!("not fetched: {error}"));
                        failure.get_or_insert(error);
                        taken.push(path);
                        continue;
                    }
                    playlist => playlist?,
                };
                if let Manifest::Media(playlist) = playlist {
                    // Frames for trick modes.
                    if playlist.component == Component::Other {
                        declared.component = Component::Other;
                    }
                    declared.pieces = playlist.pieces;
                    declared.initializations = playlist.initializations;
                    declared.encryption = playlist.encryption;
                    declared.live = playlist.live;
                    declared.warnings = playlist.warnings;
                }
                if packaged::preference(&declared).is_some() && packaged::obstacle(&declared).is_none() {
                    best = rank;
                }
                taken.push(path);
            }
            all.push(declared);
        }
        failure.filter(|_| best.is_none()).map_or(Ok(all), Err)
    }

    /// The pieces of a representation in one file, from its segment index.
    async fn pieces(&mut self, index: &Resource, declared: &Declared) -> Result<Vec<Piece>> {
        let request = self.source.request(index, ObjectType::Initialization);
        let bytes = self.fetch_whole(request, MAX_INITIALIZATION).await?;
        let begins = index.bytes.as_ref().map_or(0, |bytes| bytes.start);
        let segments = segment_index(&bytes, begins).map_err(|problem| unplayable(&index.path, problem))?;
        let Some(whole) = declared.pieces.first() else {
            return Ok(Vec::new());
        };
        // The file may also have media of other periods.
        let period = declared.offset
            ..whole
                .duration
                .map_or(Duration::MAX, |length| declared.offset + length);
        let piece = |segment: playrate_media::IndexedSegment| {
            let end = segment.start.saturating_add(segment.duration).min(period.end);
            let mut piece = whole.clone();
            piece.bytes = Some(segment.bytes);
            let shown = end.saturating_sub(segment.start.max(period.start));
            piece.duration = Some(shown);
            piece.hidden = segment.duration.saturating_sub(shown);
            Some(piece).filter(|piece| piece.duration != Some(Duration::ZERO))
        };
        Ok(segments.into_iter().filter_map(piece).collect())
    }

    /// The rate of the first of some pieces that exists, from the length of its file.
    async fn rate(&mut self, declared: &Declared) -> Result<Option<Bitrate>> {
        for piece in declared
            .pieces
            .iter()
            .filter(|piece| !piece.is_gap)
            .take(MAX_TRIES)
        {
            let (Some(path), Some(duration)) = (piece.own_path(), piece.duration) else {
                break;
            };
            match self.length(path).await {
                Err(PlayError::Status { .. }) => {}
                length => return Ok(length?.and_then(|length| length.per(duration))),
            }
        }
        Ok(None)
    }
}
