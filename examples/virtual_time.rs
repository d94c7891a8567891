//! A plain quinn program in virtual time: ten megabytes over 20 Mbit/s and 100 ms, within milliseconds of
//! real time.

use playrate_netsim::{Host, HostConfig, PathConfig, QueueLimit, Seed, Simulation};
use playrate_units::{Bitrate, Probability};
use quinn::rustls::{RootCertStore, pki_types::PrivatePkcs8KeyDer};
use quinn::{ClientConfig, Endpoint, ServerConfig};
use std::{error::Error, net::SocketAddr, sync::Arc, time::Duration};
type Outcome<T> = Result<T, Box<dyn Error>>;
/// quinn's usual set-up, except for the socket, the runtime and a seed in place of the system's randomness.
fn endpoint(sim: &Simulation, host: Host, server: Option<ServerConfig>) -> Outcome<Endpoint> {
    let config = sim.endpoint_config(&host.ip().to_string());
    let (socket, runtime) = (sim.bind(host, 0)?, sim.runtime());
    let endpoint = Endpoint::new_with_abstract_socket(config, server, socket, runtime)?;
    Ok(endpoint)
}

async fn serve(listening: Endpoint) -> Outcome<()> {
    let connection = listening.accept().await.ok_or("the endpoint was closed")?.await?;
    let mut stream = connection.open_uni().await?;
    for _ in 0..1_000 {
        stream.write_all(&[7; 10_000]).await?;
    }
    stream.finish()?;
    Err(connection.closed().await.into())
}

async fn download(calling: Endpoint, address: SocketAddr) -> Outcome<usize> {
    let connection = calling.connect(address, "server")?.await?;
    let mut stream = connection.accept_uni().await?;
    Ok(stream.read_to_end(20_000_000).await?.len())
}

fn main() -> Outcome<()> {
    let sim = Simulation::new(Seed::new(7));
    let (rate, rtt) = (Bitrate::from_mbps(20), Duration::from_millis(100));
    let config = PathConfig::bottleneck(rate, rtt, QueueLimit::ONE_BDP, "0.01%".parse::<Probability>()?);
    let path = sim.add_path(config.build(sim.seed().child("path"))?);
    let host = || sim.add_host(HostConfig::default());
    let (server, client) = (host(), host());
    sim.connect(server, client, &[path]);
    let own = rcgen::generate_simple_self_signed(["server".to_owned()])?;
    let (certificate, mut roots) = (own.cert.der().clone(), RootCertStore::empty());
    roots.add(certificate.clone())?;
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()).into();
    let config = ServerConfig::with_single_cert(vec![certificate], key)?;
    let listening = endpoint(&sim, server, Some(config))?;
    let mut calling = endpoint(&sim, client, None)?;
    calling.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);
    let download = download(calling, listening.local_addr()?);
    quinn::Runtime::spawn(&*sim.runtime(), Box::pin(async { drop(serve(listening).await) }));
    let received = sim.run(Simulation::DAY, download)??;
    let dropped = sim.link_stats(path.forward).dropped.total().packets;
    println!(
        "{received} bytes in {:.3} s, {dropped} packets dropped",
        sim.now().as_secs_f64()
    );
    Ok(())
}
