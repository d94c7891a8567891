//! The ideal sender: a fluid link of the same rate, always busy, that loses nothing.

use std::time::Duration;

use playrate_media::Title;
use playrate_units::{Bitrate, Bytes};
use video_client::playout::{ConfigError, PlaybackReport, Playout, PlayoutConfig};

/// A full packet on the wire: 1,452 bytes of UDP payload, 28 of IP and UDP.
const PACKET: Bytes = Bytes::new(1_480);
/// Largest payload of such a packet, in bytes of the title: less 10 bytes of short header (first byte, connection ID,
/// packet number), 16 of authentication tag and 6 of STREAM frame (type, stream, offset).
const CARRIED: u64 = 1_420;
/// Bytes on the wire per byte of the title in full packets.
pub(crate) const WIRE_PER_MEDIA: f64 = PACKET.as_u64() as f64 / CARRIED as f64;

/// Results of a viewer whose link is never idle from the answer to its request on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ideal {
    pub(crate) playback: PlaybackReport,
    /// Time of the last byte, since the request.
    pub(crate) ended: Duration,
    /// Bytes of the title received.
    pub(crate) received: Bytes,
}

/// Plays `title` over a link of this rate that is never idle, never loses and never queues. The first packet arrives
/// two round trips after the request: one for the connection, one for the request itself. Claims are about a
/// controller's excess over this.
///
/// # Errors
/// If the player cannot be set up.
pub(crate) fn ideal(
    title: &Title,
    rate: Bitrate,
    rtt: Duration,
    playout: PlayoutConfig,
    leaves_after: Option<Duration>,
) -> Result<Ideal, ConfigError> {
    let mut player = Playout::new(playout)?;
    let size = title.file_size().as_u64();
    let spacing = rate.time_for(PACKET).unwrap_or(Duration::MAX);
    let leaves = leaves_after.unwrap_or(Duration::MAX);
    let mut now = rtt.saturating_mul(2);
    let mut received = 0;
    player.add_frames(now, title.frames());
    while received < size && now < leaves {
        while player.reading_paused()
            && let Some(at) = player.next_deadline()
        {
            now = now.max(at);
            player.advance(now);
        }
        now = now.saturating_add(spacing);
        let piece = CARRIED.min(size - received);
        received += piece;
        player.deliver(now, Bytes::new(piece));
        while player.poll_event().is_some() {}
    }
    let ended = now.min(leaves);
    if received == size {
        player.finish(ended);
        player.run_out();
    } else {
        player.advance(ended);
    }
    Ok(Ideal {
        playback: player.report(),
        ended,
        received: Bytes::new(received),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_media::{FrameTrace, MediaSource as _, TraceSource};

    /// 25 equal frames a second at 1 Mbit/s.
    fn title(seconds: u64) -> TraceSource {
        let lines: Vec<_> = (0..25)
            .map(|n| format!("{:.2},5000,K", f64::from(n) * 0.04))
            .collect();
        let trace: FrameTrace = lines.join("\n").parse().unwrap();
        TraceSource::new(&trace.repeat_to(Duration::from_secs(seconds)).unwrap())
    }

    fn play(rate: Bitrate) -> Ideal {
        let rtt = Duration::from_millis(100);
        let player = PlayoutConfig {
            receive_buffer: Bytes::from_mib(256),
            ..PlayoutConfig::default()
        };
        ideal(title(60).title(), rate, rtt, player, None).unwrap()
    }

    #[test]
    fn a_link_faster_than_the_title_shows_every_frame_on_time() {
        let seen = play(Bitrate::from_mbps(2));
        assert_eq!(
            (seen.playback.frames_discarded, seen.playback.underflow_events),
            (0, 0)
        );
        assert_eq!(seen.playback.frames_shown, 1_500);
        // 7.5 MB of media at 2 Mbit/s × 1420/1480, after two round trips.
        let expected = 0.2 + 7.5e6 * 8.0 / (2e6 * 1_420.0 / 1_480.0);
        assert!(
            (seen.ended.as_secs_f64() - expected).abs() < 0.01,
            "{:?}",
            seen.ended
        );
    }

    #[test]
    fn a_link_slower_than_the_title_cannot_be_ideal() {
        let seen = play(Bitrate::from_kbps(900));
        assert!(seen.playback.underflow_events > 0 && seen.playback.stalled_time > Duration::ZERO);
    }
}
