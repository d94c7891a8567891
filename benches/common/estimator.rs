//! quinn's `RttEstimator`, which cannot be created outside quinn-proto: a connection in virtual time measures, and a
//! controller in it copies the estimator out.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Context as _;
use playrate_netsim::{Host, HostConfig, LinkConfig, PathConfig, Rate, Seed, Simulation};
use quinn::congestion::{Controller, ControllerFactory, NewReno, NewRenoConfig};
use quinn::{Endpoint, TransportConfig};
use quinn_proto::RttEstimator;

use super::clock::RTT;

type Copied = Arc<Mutex<Option<RttEstimator>>>;

/// quinn's NewReno, keeping the last estimator that it received.
#[derive(Clone)]
struct Copying {
    inner: NewReno,
    copied: Copied,
}

impl ControllerFactory for Copying {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Self::clone(&self))
    }
}

impl Controller for Copying {
    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        *self.copied.lock().unwrap_or_else(PoisonError::into_inner) = Some(*rtt);
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }
    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost: u64) {
        self.inner.on_congestion_event(now, sent, persistent, lost);
    }
    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }
    fn window(&self) -> u64 {
        self.inner.window()
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// An estimator that has measured [`RTT`] a few times.
pub fn measured() -> anyhow::Result<RttEstimator> {
    let seed = Seed::new(1);
    let simulation = Simulation::new(seed);
    let link = || LinkConfig::new(Rate::Unlimited, RTT / 2);
    let path = simulation.add_path(PathConfig::new(link(), link()).build(seed)?);
    let (near, far) = (
        simulation.add_host(HostConfig::default()),
        simulation.add_host(HostConfig::default()),
    );
    simulation.connect(far, near, &[path]);
    let endpoint = |host: Host, server| -> anyhow::Result<Endpoint> {
        let config = simulation.endpoint_config(&host.ip().to_string());
        let socket = simulation.bind(host, 0)?;
        let runtime = simulation.runtime();
        Ok(Endpoint::new_with_abstract_socket(
            config, server, socket, runtime,
        )?)
    };

    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = key.cert.der().clone();
    let private = rustls::pki_types::PrivatePkcs8KeyDer::from(key.signing_key.serialize_der());
    let server = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], private.into())?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = quinn::ClientConfig::with_root_certificates(Arc::new(roots))?;
    let copied = Copied::default();
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Copying {
        inner: NewReno::new(Arc::new(NewRenoConfig::default()), Instant::now(), 1_200),
        copied: Arc::clone(&copied),
    }));
    client.transport_config(Arc::new(transport));

    let (near, far) = (endpoint(near, None)?, endpoint(far, Some(server))?);
    let connecting = near.connect_with(client, far.local_addr()?, "localhost")?;
    let sending = async {
        let mut stream = connecting.await?.open_uni().await?;
        stream.write_all(&[7; 10_000]).await?;
        stream.finish()?;
        // All of it has been acknowledged.
        stream.stopped().await?;
        anyhow::Ok(())
    };
    let receiving = async {
        let connection = far.accept().await.context("the endpoint was closed")?.await?;
        connection.accept_uni().await?.read_to_end(10_000).await?;
        connection.closed().await;
        anyhow::Ok(())
    };
    simulation.run(Simulation::DAY, async {
        tokio::select! {
            biased;
            sent = sending => sent,
            received = receiving => received,
        }
    })??;
    let taken = *copied.lock().unwrap_or_else(PoisonError::into_inner);
    // Before the first sample it is quinn's guess of 333 ms.
    taken
        .filter(|seen| seen.get() < 2 * RTT)
        .context("the connection in virtual time measured no RTT")
}
