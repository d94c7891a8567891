//! The server's certificates and keys: read at the start and again on SIGHUP, or generated.

use anyhow::{Context as _, anyhow};
use playrate_transport::Identity;
use video_server::serve::VideoServer;

use super::Failure;
use super::options::ServeOptions;

/// Reads the certificates and keys, or generates one for development.
pub(super) fn identities(arguments: &ServeOptions) -> Result<Vec<Identity>, Failure> {
    let (certificates, keys) = (&arguments.address.cert, &arguments.address.key);
    if certificates.len() != keys.len() {
        return Err(Failure::Input(anyhow!(
            "--cert: expected one --key for each certificate, in the same order (got {} and {})",
            certificates.len(),
            keys.len()
        )));
    }
    if certificates.is_empty() {
        let name = arguments.address.specific_ip().map(|ip| ip.to_string());
        let identity = Identity::development(name.as_slice()).map_err(Failure::run)?;
        return Ok(vec![identity]);
    }
    let pairs = certificates.iter().zip(keys);
    let read = pairs.map(|(certificate, key)| {
        Identity::from_pem_files(certificate, key)
            .with_context(|| format!("--cert {} --key {}", certificate.display(), key.display()))
    });
    read.collect::<Result<_, _>>().map_err(Failure::Input)
}

/// Reloads certificates and keys for new connections. If one is unusable, nothing changes.
pub(super) fn reload(arguments: &ServeOptions, server: &VideoServer) {
    if arguments.address.cert.is_empty() {
        tracing::info!("SIGHUP: no --cert to read again; the certificate was generated for this run");
        return;
    }
    match identities(arguments) {
        Ok(identities) => {
            let pin = identities.first().map(|first| first.pin().to_string());
            server.set_identities(identities);
            tracing::info!(pin, "SIGHUP: new connections get the new certificate");
        }
        Err(error) => tracing::error!(%error, "SIGHUP: the previous certificate stays in use"),
    }
}
