//! The server's certificate and key: read at the start and again on SIGHUP, or generated.

use anyhow::Context as _;
use playrate_transport::Identity;
use video_server::serve::VideoServer;

use super::Failure;
use super::options::ServeOptions;
use super::tcp::TcpServer;

/// Reads certificate and key, or generates those for development.
pub(super) fn identity(arguments: &ServeOptions) -> Result<Identity, Failure> {
    if let (Some(certificate), Some(key)) = (&arguments.address.cert, &arguments.address.key) {
        return Identity::from_pem_files(certificate, key)
            .with_context(|| format!("--cert {} --key {}", certificate.display(), key.display()))
            .map_err(Failure::Input);
    }
    let name = arguments.address.specific_ip().map(|ip| ip.to_string());
    Identity::development(name.as_slice()).map_err(Failure::run)
}

/// Reloads certificate and key for new connections. If the certificate is unusable, nothing changes.
pub(super) fn reload(arguments: &ServeOptions, server: &VideoServer, tcp: Option<&TcpServer>) {
    if arguments.address.cert.is_none() {
        tracing::info!("SIGHUP: no --cert to read again; the certificate was generated for this run");
        return;
    }
    let renewed = identity(arguments).and_then(|identity| {
        server.set_identity(&identity).map_err(Failure::input)?;
        tcp.map_or(Ok(()), |tcp| tcp.set_identity(&identity))
            .map_err(Failure::input)?;
        Ok(identity.pin())
    });
    match renewed {
        Ok(pin) => tracing::info!(%pin, "SIGHUP: new connections get the new certificate"),
        Err(error) => tracing::error!(%error, "SIGHUP: the previous certificate stays in use"),
    }
}
