//! The ideal sender: a fluid link of the same rate, always busy, that loses nothing.

use std::time::Duration;

use playrate_media::Title;
use playrate_netsim::{Link, LinkConfig, Packet, QueueLimit, Rate, Seed, Time};
use playrate_units::Bytes;
use video_client::playout::{PlaybackReport, Playout, PlayoutConfig};

use super::SimError;
use super::delivery::{Delivery, DeliveryScore};

/// A full packet on the wire: 1,452 bytes of UDP payload, 28 of IP and UDP.
const PACKET: Bytes = Bytes::new(1_480);
/// Largest payload of such a packet, in bytes of the title: less 10 bytes of short header (first byte, connection ID,
/// packet number), 16 of authentication tag and 6 of STREAM frame (type, stream, offset).
const CARRIED: u64 = 1_420;
/// Bytes of IP and UDP headers in a packet.
const OVERHEAD: usize = 28;
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
    pub(crate) delivery: Option<DeliveryScore>,
}

/// Plays `title` over a link of this rate that is never idle, never loses and never queues. The first packet arrives
/// two round trips after the request: one for the connection, one for the request itself. Claims are about a
/// controller's excess over this.
///
/// A rate that changes on a schedule or by a trace is followed, outages included. One that varies at random, as that of
/// a Wi-Fi hop, is its mean.
///
/// # Errors
/// If the rate is zero or unlimited, or the player cannot be set up.
pub(crate) fn ideal(
    title: &Title,
    rate: &Rate,
    rtt: Duration,
    playout: PlayoutConfig,
    leaves_after: Option<Duration>,
) -> Result<Ideal, SimError> {
    let mut delivery = Delivery::new(title, &playout);
    let player = Playout::new(playout).map_err(|error| SimError::setup("the player", &error));
    let mut player = player?;
    let mut wire = Wire::new(rate)?;
    let size = title.file_size().as_u64();
    let leaves = leaves_after.unwrap_or(Duration::MAX);
    let mut now = rtt.saturating_mul(2);
    let mut received = 0;
    player.add_frames(now, title.frames());
    delivery.see(now, Bytes::ZERO);
    while received < size && now < leaves {
        while player.reading_paused()
            && let Some(at) = player.next_deadline()
        {
            now = now.max(at);
            player.advance(now);
        }
        now = wire.arrival(now);
        let piece = CARRIED.min(size - received);
        received += piece;
        player.deliver(now, Bytes::new(piece));
        delivery.see(now, Bytes::new(received));
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
        delivery: delivery.finish(ended),
    })
}

/// Times at which full packets arrive over a link that is never idle.
enum Wire {
    /// A packet after each of these times.
    Even(Duration),
    /// The link itself, without delay or a limit of its queue.
    Link(Box<Link>),
}

impl Wire {
    fn new(rate: &Rate) -> Result<Self, SimError> {
        let wrong = |error: &dyn ToString| SimError::setup("the ideal link", &error.to_string());
        if rate.is_steady() {
            let spacing = rate.mean().and_then(|rate| rate.time_for(PACKET));
            return spacing
                .map(Self::Even)
                .ok_or_else(|| wrong(&"its rate must be above zero"));
        }
        let link = LinkConfig::new(rate.clone(), Duration::ZERO).with_queue(QueueLimit::Bytes(PACKET * 2));
        let link = link.build(Duration::ZERO, Seed::new(0));
        link.map(|link| Self::Link(Box::new(link)))
            .map_err(|error| wrong(&error))
    }

    /// Arrival of the packet that follows one that arrived at `before`.
    fn arrival(&mut self, before: Duration) -> Duration {
        match self {
            Self::Even(spacing) => before.saturating_add(*spacing),
            Self::Link(link) => {
                // The path's delay is in the time of the first packet.
                let payload = usize::try_from(PACKET.as_u64()).unwrap_or(usize::MAX);
                let verdict = link.offer(Time::from(before), Packet::new(payload - OVERHEAD));
                verdict.arrival().map_or(Duration::MAX, Time::elapsed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_media::{FrameTrace, MediaSource as _, TraceSource};
    use playrate_units::Bitrate;

    /// 25 equal frames a second at 1 Mbit/s.
    fn title(seconds: u64) -> TraceSource {
        let lines: Vec<_> = (0..25)
            .map(|n| format!("{:.2},5000,K", f64::from(n) * 0.04))
            .collect();
        let trace: FrameTrace = lines.join("\n").parse().unwrap();
        TraceSource::new(&trace.repeat_to(Duration::from_secs(seconds)).unwrap())
    }

    fn play(rate: impl Into<Rate>) -> Ideal {
        let rtt = Duration::from_millis(100);
        let player = PlayoutConfig {
            receive_buffer: Bytes::from_mib(256),
            ..PlayoutConfig::default()
        };
        ideal(title(60).title(), &rate.into(), rtt, player, None).unwrap()
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
    fn a_link_in_steps_is_followed_and_not_averaged() {
        // 2 Mbit/s on average until 30 s, but first 3.8 and then 0.2; the rest of the 7.5 MB comes after that.
        let rate: Rate = "3.8Mbit/s,0.2Mbit/s@15s,1Mbit/s@30s".parse().unwrap();
        let seen = play(rate);
        let carried = |seconds: f64| 1e6 * 1_420.0 / 1_480.0 / 8.0 * seconds;
        let first = carried(3.8 * 14.8 + 0.2 * 15.0);
        let expected = 30.0 + (7.5e6 - first) / carried(1.0);
        assert!(expected > 33.0, "the steps matter: {expected}");
        assert!(
            (seen.ended.as_secs_f64() - expected).abs() < 0.1,
            "{:?} for {expected}",
            seen.ended
        );
        // At first it is four times as fast as the title.
        assert_eq!(seen.playback.underflow_events, 0);
        let late: Rate = "0.2Mbit/s,3.8Mbit/s@15s,1Mbit/s@30s".parse().unwrap();
        assert!(play(late).playback.startup_delay > seen.playback.startup_delay);
    }

    #[test]
    fn an_outage_is_waited_out() {
        let outage: Rate = "2Mbit/s,0bit/s@4s,2Mbit/s@14s".parse().unwrap();
        let (seen, without) = (play(outage), play(Bitrate::from_mbps(2)));
        let later = seen.ended.saturating_sub(without.ended);
        assert!(
            later.abs_diff(Duration::from_secs(10)) < Duration::from_millis(20),
            "{later:?}"
        );
        assert!(seen.playback.stalled_time > Duration::from_secs(3));
    }

    #[test]
    fn a_link_slower_than_the_title_cannot_be_ideal() {
        let seen = play(Bitrate::from_kbps(900));
        assert!(seen.playback.underflow_events > 0 && seen.playback.stalled_time > Duration::ZERO);
    }
}
