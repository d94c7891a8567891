//! Titles without boxes: the player is told the frames.
#![expect(
    clippy::disallowed_methods,
    reason = "these tests run on tokio and in real time"
)]
#![expect(clippy::unwrap_used, reason = "what a test needs and cannot have fails it")]

#[expect(dead_code, reason = "each test program uses its share of the helpers")]
mod common;

use std::sync::Arc;

use common::{Manner, asset, serve};
use playrate_media::{FrameTrace, MediaSource, TraceSource};
use playrate_transport::{Client, ClientOptions, Target, Trust};
use quinn::{Runtime, TokioRuntime};
use video_client::{Discard, FrameSource, PlayOptions, Session};

async fn play(frames: FrameSource, source: &TraceSource) -> video_client::Played {
    let mut payload = Vec::new();
    while (payload.len() as u64) < source.len() {
        payload.extend_from_slice(&source.read_at(payload.len() as u64, usize::MAX).unwrap());
    }
    let (address, pin) = serve(payload.into(), Manner::Good);
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let client = Client::bind(Arc::clone(&runtime), ClientOptions::new(Trust::Pin(pin))).unwrap();
    let options = PlayOptions {
        frames,
        ..PlayOptions::default()
    };
    let target = Target::at("localhost", address);
    let session = Session::new(runtime, client, target, "/title.trace", options);
    let never = std::future::pending();
    session.play(&mut Discard, &mut (), never).await.unwrap()
}

fn source() -> TraceSource {
    TraceSource::new(&FrameTrace::open(asset("fixtures/title-720p.trace.csv")).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_payload_is_played_with_the_frames_of_its_index() {
    let source = Arc::new(source());
    let played = play(FrameSource::Index(Arc::clone(&source) as Arc<_>), &source).await;
    played.result.unwrap();
    let title = source.title();
    let (seen, frames) = (&played.report.playout, title.frames().len() as u64);
    assert_eq!((seen.frames, seen.remaining(), seen.missing), (frames, 0, 0));
    assert_eq!(seen.shown + seen.discarded, frames);
    assert_eq!(played.report.average_rate, Some(title.average_rate()));
    assert_eq!(played.report.network.received, title.file_size());
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_payload_without_its_index_is_no_title() {
    let played = play(FrameSource::Boxes, &source()).await;
    assert!(matches!(played.result, Err(video_client::PlayError::Media(_))));
}
