//! Manifests of packaged titles: MPDs of DASH, both playlists of HLS.

use std::path::{Component, Path};
use std::time::Duration;

use playrate_media::manifest::{Manifest, ManifestRepresentation, Piece, SEGMENT_LIMIT, Variables};

/// Elements and attributes of MPDs.
pub(super) const MPD_WORDS: &str = "\
    MPD Period AdaptationSet Representation SegmentTemplate SegmentTimeline SegmentList SegmentURL SegmentBase \
    BaseURL Initialization ContentComponent $Number$ $Number%05d$ $Time$ $RepresentationID$ $Bandwidth$ $$ ../ \
    /../ https://other/ %2e%2e %2f type=\"dynamic\" duration= timescale= startNumber= media= initialization= \
    indexRange= range= mediaRange= sourceURL= start= PT9S P1D r=\"-1\" r=\"5\" t= d= <![CDATA[ ]]> <!-- --> &amp; \
    &#65; <!DOCTYPE xmlns= xlink:href= n= endNumber= presentationTimeOffset= eptDelta=\"-5\" EssentialProperty";
/// Tags and attributes of playlists.
pub(super) const M3U8_WORDS: &str = "\
    #EXTM3U #EXT-X-STREAM-INF: #EXT-X-MEDIA: #EXT-X-MAP: #EXT-X-BYTERANGE: #EXTINF: #EXT-X-TARGETDURATION: \
    #EXT-X-ENDLIST #EXT-X-PLAYLIST-TYPE:VOD #EXT-X-MEDIA-SEQUENCE: #EXT-X-DISCONTINUITY BANDWIDTH= \
    AVERAGE-BANDWIDTH= RESOLUTION= CODECS= AUDIO= GROUP-ID= NAME= URI= TYPE=AUDIO TYPE=VIDEO DEFAULT=YES \
    BYTERANGE= @ ../ https://other/ %2e%2e ?token=1 #fragment \
    #EXT-X-GAP #EXT-X-DEFINE: VALUE= QUERYPARAM= {$ }";

/// Reads the input as the MPD `films/film.mpd`.
pub(super) fn mpd(bytes: &[u8]) {
    check("films/film.mpd", bytes);
}

/// Reads the input as the playlist `films/film.m3u8`.
pub(super) fn m3u8(bytes: &[u8]) {
    check("films/film.m3u8", bytes);
}

fn check(name: &str, bytes: &[u8]) {
    let lines = bytes.split(|&byte| byte == b'\n').count();
    match Manifest::read(name, bytes, &Variables::default()) {
        Ok(Manifest::Dash(found)) => {
            assert!(!found.is_empty(), "an MPD without representations");
            let pieces: usize = found
                .iter()
                .map(|representation| representation.pieces.len())
                .sum();
            assert!(pieces <= SEGMENT_LIMIT, "{pieces} segments");
            found.iter().for_each(is_plausible);
        }
        Ok(Manifest::Media(found)) => {
            assert!(
                (found.live || !found.pieces.is_empty()) && found.pieces.len() <= lines,
                "{} segments",
                found.pieces.len()
            );
            is_plausible(&found);
        }
        Ok(Manifest::Main(variants)) => {
            assert!(!variants.is_empty(), "{} playlists", variants.len());
            assert!(variants.len() <= lines, "{} playlists", variants.len());
            for variant in &variants {
                is_below_the_directory(variant.playlist.file.as_deref());
            }
        }
        Ok(other) => panic!("another kind of manifest: {other:?}"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.len() < 1_000, "an error of {} bytes", text.len());
            let line = text
                .strip_prefix("line ")
                .and_then(|rest| rest.split(':').next()?.parse().ok());
            assert!(
                line.is_none_or(|line: usize| (1..=lines).contains(&line)),
                "{text} ({lines} lines)"
            );
        }
    }
}

fn is_plausible(found: &ManifestRepresentation) {
    let pieces = found
        .pieces
        .iter()
        .chain(found.initializations.iter().map(|(_, piece)| piece));
    pieces.for_each(is_piece_of_a_file);
    assert!(
        found.index.as_ref().is_none_or(|range| range.start < range.end),
        "{:?}",
        found.index
    );
    // Sums must not overflow.
    let _: Duration = found.pieces.iter().filter_map(|piece| piece.duration).sum();
}

fn is_piece_of_a_file(piece: &Piece) {
    is_below_the_directory(piece.file.as_deref());
    assert!(
        piece.bytes.as_ref().is_none_or(|range| range.start <= range.end),
        "{piece:?}"
    );
}

/// Checks that a path points to a file of the media directory, whatever the manifest's author intended.
fn is_below_the_directory(file: Option<&str>) {
    let Some(file) = file else { return };
    let parts = Path::new(file).components();
    let is_below = parts.into_iter().all(|part| matches!(part, Component::Normal(_)));
    assert!(is_below, "`{file}` is not below the directory");
    assert!(!file.contains('\0'), "`{file}` is not below the directory");
}
