//! Titles without boxes: the player takes the frames from an index.

use std::sync::Arc;

use crate::common::{self, Manner, client_of};
use playrate_media::{FrameTrace, MediaSource, TraceSource};
use playrate_test_support::fixture;
use video_client::{FrameSource, PlayOptions, Session};

async fn play(frames: FrameSource, source: &TraceSource) -> video_client::Played {
    let mut payload = Vec::new();
    while (payload.len() as u64) < source.len() {
        payload.extend_from_slice(&source.read_at(payload.len() as u64, usize::MAX).unwrap());
    }
    let (client, target) = client_of(&payload.into(), Manner::Good);
    let mut options = PlayOptions::default();
    options.frames = frames;
    let session = Session::new(client, target, "/title.trace", options);
    common::play(session, &mut ()).await.0
}

fn source() -> TraceSource {
    TraceSource::new(&FrameTrace::open(fixture("title-720p.trace.csv")).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_payload_is_played_with_the_frames_of_its_index() {
    let source = Arc::new(source());
    let played = play(FrameSource::Index(Arc::clone(&source) as Arc<_>), &source).await;
    played.result.unwrap();
    let title = source.title();
    let (seen, frames) = (&played.report.playback, title.frames().len() as u64);
    assert_eq!(seen.frames, frames);
    assert_eq!(seen.frames_remaining(), 0);
    assert_eq!(seen.frames_missing, 0);
    assert_eq!(seen.frames_shown + seen.frames_discarded, frames);
    assert_eq!(played.report.average_rate, Some(title.average_rate()));
    assert_eq!(played.report.network.received, title.file_size());
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_payload_without_its_index_is_no_title() {
    let played = play(FrameSource::Boxes, &source()).await;
    assert!(matches!(played.result, Err(video_client::PlayError::Media(_))));
}
