//! A publisher on an endpoint of its own, whose congestion controller is chosen by name.

use std::iter;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use moq_noq::crypto::rustls::QuicClientConfig;
use playrate_moq_noq::{ConnectionController, ControllerChoice};
use playrate_units::Bitrate;

use crate::{FRAME_RATE, GROUP, TRACK};

/// Size of the first packets of a connection in bytes, noq's default.
const INITIAL_MTU: u16 = 1_200;
/// Size of a group's first frame, as a multiple of the others.
const KEY_FRAME: u64 = 5;
/// Limits of the encoder in bit/s.
const ENCODER: (u64, u64) = (300_000, 20_000_000);

/// Makes connections of `transport` use `controller`.
fn install(controller: &ControllerChoice, transport: &mut moq_noq::TransportConfig) {
    match controller {
        // As moq-tokio installs them: unmodified.
        ControllerChoice::Baseline(baseline) => {
            transport.congestion_controller_factory(baseline.factory(INITIAL_MTU));
        }
        spec => {
            let controller = ConnectionController::new(spec.clone());
            controller.install(transport);
            controller.request_acks(transport);
        }
    }
}

/// The rate of the encoder.
#[derive(Clone, Copy, Debug)]
pub enum Encoder {
    /// The same rate all the time.
    Constant(Bitrate),
    /// This percentage of moq's estimate of the path.
    Following(u64),
    /// This percentage of the controller's pacing rate, or of moq's estimate if the controller has none.
    FollowingPacing(u64),
}

impl FromStr for Encoder {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (share, paced) = match text.strip_suffix("-of-pacing") {
            Some(share) => (share, true),
            None => (text, false),
        };
        let Some(share) = share.strip_suffix('%') else {
            return Ok(Self::Constant(text.parse()?));
        };
        match share.parse() {
            Ok(share @ 1..=100) if paced => Ok(Self::FollowingPacing(share)),
            Ok(share @ 1..=100) => Ok(Self::Following(share)),
            _ => bail!("the encoder's share must be 1% to 100% (got `{text}`)"),
        }
    }
}

/// Counters of a publisher, and the statistics of its stack ten times a second.
#[derive(Debug, Default)]
pub struct Published {
    pub frames: u64,
    pub bytes: u64,
    pub lost: u64,
    pub estimates: Vec<u64>,
    pub round_trips: Vec<Duration>,
}

/// Publishes `video` of a live source as the broadcast `name`, through `server`.
pub async fn publish(
    controller: &ControllerChoice,
    encoder: &Encoder,
    server: SocketAddr,
    name: &str,
    video: Duration,
    epoch: Instant,
) -> anyhow::Result<Published> {
    let origin = moq_tokio::origin::spawn();
    let broadcast = origin.create_broadcast(name)?;
    let track = broadcast.create_track(TRACK, None)?;
    broadcast.announce(moq_net::origin::Route::default())?;
    let (connection, session) = connect(controller, server, &origin).await?;
    track.used().await?;

    let mut published = Published::default();
    let mut rate = 1_000_000;
    let mut clock = tokio::time::interval(Duration::from_secs(1) / FRAME_RATE);
    let frames = video.as_secs() * u64::from(FRAME_RATE);
    let mut group = track.append_group()?;
    for index in 0..frames {
        clock.tick().await;
        let first = index % GROUP == 0;
        if first && index > 0 {
            group.finish()?;
            group = track.append_group()?;
        }
        let stats = session.stats();
        let estimate = stats.estimated_send_rate.map(moq_net::bandwidth::Rate::as_bps);
        if index % 3 == 0 {
            published.estimates.extend(estimate);
            published.round_trips.extend(stats.rtt);
        }
        let (followed, share) = match *encoder {
            Encoder::Constant(rate) => (Some(rate.as_bits_per_second()), 100),
            Encoder::Following(share) => (estimate, share),
            Encoder::FollowingPacing(share) => (pacing_rate(&connection).or(estimate), share),
        };
        rate = followed.map_or(rate, |followed| {
            (followed * share / 100).clamp(ENCODER.0, ENCODER.1)
        });
        let frame = frame(epoch, first, rate);
        published.bytes += frame.len() as u64;
        published.frames += 1;
        group.write_frame(moq_net::Timestamp::now(), frame)?;
    }
    group.finish()?;
    // The last frames need time to arrive, or to be late.
    tokio::time::sleep(Duration::from_secs(2)).await;
    published.lost = session.stats().packets_lost.unwrap_or_default();
    Ok(published)
}

/// The pacing rate of the controller in bit/s; moq-noq has it in bytes per second.
fn pacing_rate(connection: &moq_noq::Connection) -> Option<u64> {
    let controller = connection.congestion_state(moq_noq::PathId::ZERO)?;
    controller.metrics().pacing_rate.map(|rate| 8 * rate)
}

/// A frame of an encoder at `rate` bit/s. It begins with the microseconds since `epoch`.
fn frame(epoch: Instant, first: bool, rate: u64) -> Vec<u8> {
    let unit = rate / 8 / u64::from(FRAME_RATE) * GROUP / (GROUP - 1 + KEY_FRAME);
    let size = if first { KEY_FRAME * unit } else { unit };
    let made = u64::try_from(epoch.elapsed().as_micros()).unwrap_or(u64::MAX);
    let padding = usize::try_from(size).unwrap_or(usize::MAX).saturating_sub(8);
    made.to_le_bytes()
        .into_iter()
        .chain(iter::repeat_n(0, padding))
        .collect()
}

/// Connects an endpoint of our own, because moq-tokio's client offers no other controller than its two.
async fn connect(
    controller: &ControllerChoice,
    server: SocketAddr,
    origin: &moq_net::origin::Producer,
) -> anyhow::Result<(moq_noq::Connection, moq_net::Session)> {
    let mut transport = moq_noq::TransportConfig::default();
    install(controller, &mut transport);

    let mut tls = moq_tokio::tls::Connect::default();
    // The server's certificate is made for this run.
    tls.insecure = Some(true);
    let mut tls = tls.build()?;
    tls.alpn_protocols = moq_net::ALPNS
        .iter()
        .map(|alpn| alpn.as_bytes().to_vec())
        .collect();
    let mut config = moq_noq::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));

    let endpoint = moq_noq::Endpoint::client("127.0.0.1:0".parse()?)?;
    let connection = endpoint.connect_with(config, server, "localhost")?.await?;
    let transport = moq_tokio::transport::Session::new(web_transport_moq::Session::raw(connection.clone()));
    let client = moq_net::Client::new().with_publisher(origin);
    let (session, driver) = client.connect(Instant::now(), transport).await?;
    tokio::spawn(moq_net::time::run(driver));
    Ok((connection, session))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_the_rate_of_the_encoder() {
        for rate in [300_000, 5_000_000, 20_000_000] {
            let sizes = (0..GROUP).map(|index| frame(Instant::now(), index == 0, rate).len() as u64);
            let bits = 8 * sizes.sum::<u64>();
            let nominal = rate * GROUP / u64::from(FRAME_RATE);
            assert!(
                nominal * 99 / 100 <= bits && bits <= nominal,
                "{bits} of {nominal} bits"
            );
        }
    }

    #[test]
    fn a_frame_begins_with_the_time_since_the_epoch() {
        let epoch = Instant::now() - Duration::from_secs(3);
        let frame = frame(epoch, false, 1_000_000);
        let made = u64::from_le_bytes(*frame.first_chunk().expect("eight bytes"));
        assert!((3_000_000..4_000_000).contains(&made), "{made} µs");
    }

    #[test]
    fn an_encoder_is_a_rate_or_a_share() {
        assert!(matches!("10Mbit/s".parse(), Ok(Encoder::Constant(rate)) if rate == Bitrate::from_mbps(10)));
        assert!(matches!("90%".parse(), Ok(Encoder::Following(90))));
        assert!(matches!(
            "90%-of-pacing".parse(),
            Ok(Encoder::FollowingPacing(90))
        ));
        for wrong in [
            "0%",
            "0%-of-pacing",
            "10Mbit/s-of-pacing",
            "101%",
            "x%",
            "",
            "fast",
        ] {
            assert!(wrong.parse::<Encoder>().is_err(), "{wrong} is accepted");
        }
    }
}
