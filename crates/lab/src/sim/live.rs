//! The same run over real UDP and in real time: the path is the [`Relay`] instead of a simulation.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use playrate_netsim::{
    Aqm, LinkConfig, MAX_LATENESS, NetworkStats, Relay, RelayConfig, RelayFlaw, RelayHandle, RelayReport,
};
use playrate_transport::udp_socket;
use quinn::{AsyncUdpSocket, Runtime, TokioRuntime};
use tokio::task::JoinSet;

use super::collect::LinkTap;
use super::ends::{Ended, Place, RunFacts, Session};
use super::seat::Seat;
use super::{Access, Setup, SimError, Simulated, Watch};
use crate::words;

/// How often the relay is asked whether it is late.
const LOOK: Duration = Duration::from_millis(100);

/// How a live run is watched.
#[derive(Clone, Debug, Default)]
pub struct LiveOptions {
    /// Where viewers leave their newest moments, in their order; those without a seat leave none.
    pub seats: Vec<Seat>,
    /// Ends the run as soon as the relay was later than [`MAX_LATENESS`], since it is of no use from then on.
    pub stop_when_late: bool,
}

/// What a live run leaves behind.
#[derive(Clone, Debug)]
pub struct Live {
    /// The same as a run in virtual time leaves. It has no hash, since no two live runs are the same.
    pub run: Simulated,
    /// What the relay counted, lateness included.
    pub relay: RelayReport,
}

impl Live {
    /// Why the path was not what it was asked to be, in words; empty if it was.
    pub fn flaws(&self) -> Vec<String> {
        flaws(&self.relay)
    }
}

/// What of `setup` there is in virtual time only, and why.
pub fn virtual_only(setup: &Setup) -> Option<&'static str> {
    let marks = |link: &LinkConfig| matches!(link.aqm, Aqm::Codel(codel) if codel.ecn);
    if marks(&setup.path.forward) || marks(&setup.path.backward) {
        return Some(
            "its queue marks packets instead of dropping them, and the relay's sockets lose ECN marks",
        );
    }
    let here = Access::default();
    if !setup.bulk.is_empty() || setup.viewers.iter().any(|viewer| viewer.access != here) {
        return Some("downloads beside the viewers and access links are modelled in virtual time only");
    }
    None
}

/// Makes the run that `setup` describes on loopback sockets. When `watch` stops it, it ends early and its viewers'
/// outcome says so.
///
/// # Errors
/// If the path cannot be, the run is [`virtual_only`], or a part cannot be set up. A session that breaks off is part of
/// the results.
pub async fn run_live(setup: &Setup, options: LiveOptions, watch: &Arc<Watch>) -> Result<Live, SimError> {
    if let Some(reason) = virtual_only(setup) {
        return Err(SimError::setup("a run over real UDP", &reason));
    }
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let sockets = setup.viewers.iter().map(|_| socket(&runtime));
    let sockets = sockets.collect::<Result<Vec<_>, _>>()?;
    let start = Instant::now();
    let relay = relay(setup, &sockets)?;
    let mut sessions = JoinSet::new();
    let mut seats = options.seats.into_iter();
    for (index, ((viewer, server), &address)) in setup
        .viewers
        .iter()
        .zip(sockets)
        .zip(relay.addresses())
        .enumerate()
    {
        let place = Place {
            runtime: Arc::clone(&runtime),
            server,
            client: socket(&runtime)?,
            address,
            start,
        };
        let mut session = Session::stage(setup, index, viewer, place)?;
        if let Some(seat) = seats.next() {
            session = session.with_seat(seat);
        }
        let (watch, joins) = (Arc::clone(watch), viewer.joins);
        sessions.spawn(async move {
            tokio::select! {
                biased;
                () = watch.stopped() => {}
                () = tokio::time::sleep(joins) => {}
            }
            (index, session.play(&watch).await)
        });
    }
    let lookout = options.stop_when_late.then_some(&relay);
    let all = everyone(&mut sessions, lookout, watch).await?;
    let relay = tokio::task::spawn_blocking(|| relay.stop())
        .await
        .map_err(|error| SimError::setup("the relay", &error))?
        .map_err(|error| SimError::setup("the relay", &error))?;
    Ok(gather(all, setup, relay, start.elapsed()))
}

fn socket(runtime: &Arc<dyn Runtime>) -> Result<Arc<dyn AsyncUdpSocket>, SimError> {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let socket = udp_socket(loopback).map_err(|error| SimError::setup("a socket", &error))?;
    runtime
        .wrap_udp_socket(socket)
        .map_err(|error| SimError::setup("a socket", &error))
}

/// The relay in front of these servers, with the draws that the simulated path makes.
fn relay(setup: &Setup, servers: &[Arc<dyn AsyncUdpSocket>]) -> Result<RelayHandle, SimError> {
    let addresses = servers.iter().map(|server| server.local_addr());
    let addresses = addresses
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| SimError::setup("the servers", &error))?;
    let Some((first, more)) = addresses.split_first() else {
        return Err(SimError::setup("the relay", &"nobody watches"));
    };
    let config = RelayConfig::new(*first, setup.path.clone()).with_seed(setup.seed.child("path"));
    let config = more
        .iter()
        .fold(config, |config, &server| config.with_server(server));
    let clients = addresses.len().max(config.max_clients);
    Relay::start(&config.with_max_clients(clients)).map_err(|error| SimError::setup("the relay", &error))
}

/// Waits for all sessions and gives what they leave in the order of the viewers.
async fn everyone(
    sessions: &mut JoinSet<(usize, Result<Ended, SimError>)>,
    lookout: Option<&RelayHandle>,
    watch: &Watch,
) -> Result<Vec<Ended>, SimError> {
    let mut all = Vec::new();
    let mut tick = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            biased;
            ended = sessions.join_next() => match ended {
                Some(Ok((index, ended))) => all.push((index, ended?)),
                Some(Err(error)) => return Err(SimError::setup("a session", &error)),
                None => break,
            },
            _ = tick.tick(), if lookout.is_some() => {
                if lookout.is_some_and(|relay| relay.snapshot().lateness.max > MAX_LATENESS) {
                    watch.stop();
                }
            }
        }
    }
    all.sort_by_key(|(index, _)| *index);
    Ok(all.into_iter().map(|(_, ended)| ended).collect())
}

fn gather(all: Vec<Ended>, setup: &Setup, relay: RelayReport, length: Duration) -> Live {
    let flaws = flaws(&relay);
    let totals = &relay.totals;
    let link = LinkTap {
        stats: totals.forward.link,
        series: Some(&relay.forward_series),
        lateness: totals.lateness.max,
        flaws: &flaws,
    };
    let facts = RunFacts {
        windows: &setup.windows,
        length,
    };
    let viewers = all
        .into_iter()
        .zip(&setup.viewers)
        .map(|(ended, viewer)| ended.collect(viewer, &link, &facts))
        .collect();
    let run = Simulated {
        viewers,
        bulk: Vec::new(),
        forward: totals.forward.link,
        backward: totals.backward.link,
        network: NetworkStats::default(),
        wire_hash: None,
        length,
    };
    Live { run, relay }
}

fn flaws(relay: &RelayReport) -> Vec<String> {
    relay.flaws().iter().map(|flaw| say(flaw, relay)).collect()
}

/// A flaw as people read it.
fn say(flaw: &RelayFlaw, relay: &RelayReport) -> String {
    let totals = &relay.totals;
    match flaw {
        RelayFlaw::Late(by) => format!(
            "{} late at worst, {} of {} packets more than {}",
            words::time(*by),
            words::grouped(totals.lateness.beyond_limit),
            words::grouped(totals.forward.forwarded + totals.backward.forwarded),
            words::time(MAX_LATENESS),
        ),
        other => other.to_string(),
    }
}
