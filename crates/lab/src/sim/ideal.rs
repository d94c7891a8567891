//! The ideal sender: a fluid link with the same rate that is always busy and loses nothing.

use std::time::Duration;

use playrate_netsim::{Link, LinkConfig, Packet, QueueLimit, Rate, Seed, Time};
use playrate_units::Bytes;
use video_client::playout::{PlaybackReport, Playout, PlayoutEventKind};

use super::delivery::{Delivery, DeliveryScore};
use super::{SimError, Viewer};

/// A full packet on the wire: 1,452 bytes of UDP payload, 28 of IP and UDP.
const PACKET: Bytes = Bytes::new(1_480);
/// Largest payload of such a packet, in bytes of the title: less 10 bytes of short header (first byte, connection ID,
/// packet number), 16 of authentication tag and 6 of STREAM frame (type, stream, offset).
const CARRIED: u64 = 1_420;
/// Bytes of IP and UDP headers in a packet.
const OVERHEAD: usize = 28;
/// Bytes on the wire per byte of the title in full packets.
pub(crate) const WIRE_PER_MEDIA: f64 = PACKET.as_u64() as f64 / CARRIED as f64;

/// Results of a viewer whose link is never idle after the response begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ideal {
    pub(crate) playback: PlaybackReport,
    /// Time of the last byte, since the request.
    pub(crate) ended: Duration,
    /// Bytes of the title received.
    pub(crate) received: Bytes,
    pub(crate) delivery: Option<DeliveryScore>,
}

/// Plays the title of `viewer` over a link of this rate that is never idle, never loses and never queues. The first
/// packet arrives two round trips after the request: one for the connection, one for the request itself. Controllers
/// are compared by their excess over this.
///
/// Flow control never stops this sender. While the player pauses because its receive buffer is full, packets keep
/// arriving and wait to be read, as in the receive window of a real client.
///
/// After a jump, the first packet arrives one round trip later because of the new request.
///
/// A rate that follows a schedule or a trace is applied exactly, including outages. A rate that varies at random, such
/// as a Wi-Fi hop's, is replaced by its mean.
///
/// # Errors
/// If the rate is zero or unlimited, or the player cannot be set up.
pub(crate) fn ideal(viewer: &Viewer, rate: &Rate, rtt: Duration) -> Result<Ideal, SimError> {
    let (title, mut seeks) = (viewer.title.source().title(), viewer.seeks.as_slice());
    let mut delivery = Delivery::new(title, &viewer.playout);
    let mut player =
        Playout::new(viewer.playout.clone()).map_err(|error| SimError::setup("the player", &error))?;
    let size = title.file_size().as_u64();
    let leaves = viewer.leaves_after.unwrap_or(Duration::MAX);
    let mut now = rtt.saturating_mul(2);
    let mut wire = Wire::new(rate, now)?;
    // Bytes received, and the position of the next byte in the title.
    let (mut received, mut position) = (0, 0);
    player.add_frames(now, title.frames());
    delivery.see(now, Bytes::ZERO);
    while (position < size || !seeks.is_empty()) && now < leaves {
        let arrival = if position < size { wire.next_arrival() } else { now };
        if let Some((seek, rest)) = seeks.split_first()
            && (arrival.max(now) >= seek.at || position >= size)
        {
            seeks = rest;
            now = now.max(seek.at);
            position = player.seek(now, title.frames(), seek.to);
            wire.restart(now.saturating_add(rtt));
            delivery.see(now, Bytes::new(received));
            while let Some(event) = player.poll_event() {
                if let PlayoutEventKind::Seek { pts } = event.kind {
                    delivery.seek(now, pts);
                }
            }
            continue;
        }
        now = now.max(arrival);
        while player.reading_paused()
            && let Some(at) = player.next_deadline()
        {
            now = now.max(at);
            player.advance(now);
        }
        let piece = CARRIED.min(size - position);
        (received, position) = (received + piece, position + piece);
        player.deliver(now, Bytes::new(piece));
        delivery.see(now, Bytes::new(received));
        while player.poll_event().is_some() {}
    }
    let ended = now.min(leaves);
    if position == size {
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
struct Wire {
    medium: Medium,
    /// Arrival of the last packet, and of the one before it.
    last: Duration,
    before_last: Duration,
}

enum Medium {
    /// One packet per interval of this length.
    Even(Duration),
    /// The link itself, without delay.
    Link(Box<Link>),
}

impl Wire {
    /// A link of this rate that sends its first packet at `begins`, which includes the path's delay.
    fn new(rate: &Rate, begins: Duration) -> Result<Self, SimError> {
        let wrong = |error: &dyn ToString| SimError::setup("the ideal link", &error.to_string());
        let medium = if rate.is_steady() {
            let spacing = rate.mean().and_then(|rate| rate.time_for(PACKET));
            spacing
                .map(Medium::Even)
                .ok_or_else(|| wrong(&"its rate must be above zero"))?
        } else {
            let link =
                LinkConfig::new(rate.clone(), Duration::ZERO).with_queue(QueueLimit::Bytes(PACKET * 4));
            let link = link
                .build(Duration::ZERO, Seed::new(0))
                .map_err(|error| wrong(&error))?;
            Medium::Link(Box::new(link))
        };
        Ok(Self {
            medium,
            last: begins,
            before_last: begins,
        })
    }

    /// Sends nothing until `at`.
    fn restart(&mut self, at: Duration) {
        (self.last, self.before_last) = (at, at);
    }

    fn next_arrival(&mut self) -> Duration {
        let arrival = match &mut self.medium {
            Medium::Even(spacing) => self.last.saturating_add(*spacing),
            Medium::Link(link) => {
                // Offered while the last packet is on its way: an empty queue would waste a trace's opportunities.
                let payload = usize::try_from(PACKET.as_u64()).unwrap_or(usize::MAX);
                let verdict = link.offer(Time::from(self.before_last), Packet::new(payload - OVERHEAD));
                verdict.arrival().map_or(Duration::MAX, Time::elapsed)
            }
        };
        self.before_last = std::mem::replace(&mut self.last, arrival);
        arrival
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_netsim::{Loss, PathConfig};
    use playrate_units::Bitrate;
    use proptest::prelude::*;
    use video_client::Seek;
    use video_client::playout::{Clock, Fill, PlayoutConfig};

    use crate::sim::{self, Setup};
    use crate::tests::title;

    fn viewer(seconds: u64, playout: PlayoutConfig) -> Viewer {
        Viewer {
            playout,
            ..Viewer::new("cubic".parse().unwrap(), title(seconds))
        }
    }

    fn play(rate: impl Into<Rate>) -> Ideal {
        let rtt = Duration::from_millis(100);
        let player = PlayoutConfig {
            receive_buffer: Bytes::from_mib(256),
            ..PlayoutConfig::default()
        };
        ideal(&viewer(60, player), &rate.into(), rtt).unwrap()
    }

    #[test]
    fn a_link_faster_than_the_title_shows_every_frame_on_time() {
        let seen = play(Bitrate::from_mbps(2));
        assert_eq!(seen.playback.frames_shown, 1_500);
        assert_eq!(seen.playback.underflow_events, 0);
        // 7.5 MB of media at 2 Mbit/s × 1420/1480, after two round trips.
        let expected = 0.2 + 7.5e6 * 8.0 / (2e6 * 1_420.0 / 1_480.0);
        let ended = seen.ended.as_secs_f64();
        assert!((ended - expected).abs() < 0.01, "{ended}");
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
        let ended = seen.ended.as_secs_f64();
        assert!((ended - expected).abs() < 0.1, "{ended} for {expected}");
        // At first the link is four times as fast as the title.
        assert_eq!(seen.playback.underflow_events, 0);
        let late: Rate = "0.2Mbit/s,3.8Mbit/s@15s,1Mbit/s@30s".parse().unwrap();
        assert!(play(late).playback.startup_delay > seen.playback.startup_delay);
    }

    #[test]
    fn an_outage_is_waited_out() {
        let outage: Rate = "2Mbit/s,0bit/s@4s,2Mbit/s@14s".parse().unwrap();
        let (seen, without) = (play(outage), play(Bitrate::from_mbps(2)));
        let later = seen.ended.as_secs_f64() - without.ended.as_secs_f64();
        assert!((later - 10.0).abs() < 0.02, "{later}");
        assert!(seen.playback.stalled_time > Duration::from_secs(3));
    }

    #[test]
    fn packets_go_on_arriving_while_the_player_pauses() {
        // 20 Mbit/s fill 1 MB at once; 40 s later the player of 1 Mbit/s has seen 5 MB and the link is gone for 20 s.
        let rate: Rate = "20Mbit/s,0bit/s@40s,20Mbit/s@60s".parse().unwrap();
        let player = PlayoutConfig {
            receive_buffer: Bytes::from_kb(1_000),
            ..PlayoutConfig::default()
        };
        let rtt = Duration::from_millis(100);
        let seen = ideal(&viewer(90, player), &rate, rtt).unwrap();
        assert!(seen.playback.underflow_events == 0 && seen.playback.stalled_time.is_zero());
    }

    #[test]
    fn after_a_jump_the_new_position_arrives_a_round_trip_later() {
        let seen = |seeks: &[Seek]| {
            let mut viewer = viewer(60, PlayoutConfig::default());
            viewer.seeks = seeks.to_vec();
            let rate = Bitrate::from_mbps(20).into();
            ideal(&viewer, &rate, Duration::from_millis(100)).unwrap()
        };
        let seconds = Duration::from_secs;
        let jumped = seen(&[Seek {
            at: seconds(20),
            to: seconds(50),
        }]);
        // 656 kB must arrive first, at 20 Mbit/s.
        let playback = &jumped.playback;
        assert!(
            (playback.stalled_time.as_secs_f64() - 0.374).abs() < 0.02,
            "{playback:?}"
        );
        assert!(playback.ended.unwrap() < seconds(31), "{playback:?}");
        assert!(jumped.delivery.unwrap().mean() < 1e-9);
        assert!(jumped.received > seen(&[]).received);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// Compares two results that earlier bytes can only improve: the score of the delivery, and the end of playback
        /// for a player that waits for every frame.
        #[test]
        fn no_controller_is_better_by_more_than_a_frame(
            rates in prop::collection::vec(prop_oneof![Just(0_u64), 300_u64..4_000], 3),
            full_kb in prop_oneof![Just(100_u64), Just(500), Just(100_000)],
            rtt in 5_u64..200,
            speed_percent in prop_oneof![Just(100_u32), Just(177)],
            controller in prop_oneof![Just("cubic"), Just("vegas"), Just("stream")],
            autotuned: bool,
        ) {
            let [first, second, third] = [rates[0], rates[1], rates[2]];
            let steps = format!("4Mbit/s,{first}kbit/s@3s,{second}kbit/s@7s,{third}kbit/s@11s,2Mbit/s@15s");
            let rate: Rate = steps.parse().unwrap();
            let rtt = Duration::from_millis(rtt);
            let mut viewer = Viewer::new(controller.parse().unwrap(), title(20));
            let little = Bytes::new(5_000);
            viewer.playout = PlayoutConfig::new(little, Clock::Rebuffer(Fill::Bytes(little)));
            viewer.playout.receive_buffer = Bytes::from_kb(full_kb);
            viewer.playout.speed_percent = speed_percent;
            viewer.receive_autotuning = autotuned;
            let ideal = ideal(&viewer, &rate, rtt).unwrap();
            let queue = QueueLimit::Bytes(Bytes::from_kb(60));
            let path = PathConfig::bottleneck(Bitrate::from_mbps(4), rtt, queue, Loss::None);
            let forward = LinkConfig::new(rate, path.forward.delay).with_queue(queue);
            let setup = Setup::new(PathConfig::new(forward, path.backward), Seed::new(1)).with_viewer(viewer);
            let seen = sim::run(&setup.without_taps()).unwrap().viewers.remove(0);
            let frame = Duration::from_millis(40);
            let score = |delivery: Option<DeliveryScore>| delivery.unwrap().mean();
            prop_assert!(score(ideal.delivery) <= score(seen.delivery) + 1.0 / 500.0, "{ideal:?} {seen:?}");
            let ended = |playback: &PlaybackReport| playback.ended.unwrap();
            prop_assert!(
                ended(&ideal.playback) <= ended(&seen.report.playback) + frame,
                "{ideal:?} {:?}",
                seen.report.playback
            );
        }
    }

    #[test]
    fn a_link_slower_than_the_title_cannot_be_ideal() {
        let seen = play(Bitrate::from_kbps(900));
        assert!(seen.playback.underflow_events > 0 && seen.playback.stalled_time > Duration::ZERO);
    }
}
