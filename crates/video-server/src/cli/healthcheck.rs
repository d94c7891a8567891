//! `video-server healthcheck`: asks a running server whether it takes clients, for containers without other programs.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use playrate_transport::address;

use super::Failure;

/// Maximum time to connect, and for each read and write.
const LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 ready, 1 draining or no answer.")]
pub(super) struct HealthcheckOptions {
    /// Address of the server's --metrics
    #[arg(value_name = "ADDR", default_value = "127.0.0.1:9433", value_parser = address::parse)]
    metrics: SocketAddr,
}

pub(super) fn run(options: &HealthcheckOptions) -> Result<(), Failure> {
    let address = options.metrics;
    let status = status(address)
        .with_context(|| address.to_string())
        .map_err(Failure::Run)?;
    if status == "HTTP/1.1 200" {
        return Ok(());
    }
    Err(Failure::Run(anyhow!("{address}: not ready: {status}")))
}

/// The version and status of the answer to `/readyz`.
fn status(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut status = String::new();
    stream.take(12).read_to_string(&mut status)?;
    Ok(status)
}
