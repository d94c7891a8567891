//! Announcement that `video-server serve` prints when it is ready.

use std::env;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use askama::Template;
use playrate_media::Layout;
use playrate_transport::{Identity, Pin};
use video_server::library::{FaultKind, Library};
use video_server::serve::VideoServer;

use super::options::ServeOptions;

/// Titles, addresses, and a command to watch the first title.
#[derive(Template)]
#[template(path = "announcement.txt", escape = "none")]
struct Announcement<'a> {
    options: &'a ServeOptions,
    library: &'a Library,
    /// URL of the server without a path.
    origin: String,
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    /// None with ACME: the certificate changes, and clients trust its authority.
    pin: Option<Pin>,
}

/// Titles, addresses, and a command to watch the first title. `metrics` is the address of metrics and dashboard.
pub(super) fn announcement(
    options: &ServeOptions,
    server: &VideoServer,
    metrics: Option<SocketAddr>,
) -> std::io::Result<String> {
    let (library, address) = (server.library(), server.local_addr()?);
    let host = match options.address.specific_ip() {
        Some(IpAddr::V6(ip)) => format!("[{ip}]"),
        Some(ip) => ip.to_string(),
        None => "localhost".to_owned(),
    };
    let domain = options.acme.acme_domain.first();
    let identities = server.transport().certificates().identities();
    let announcement = Announcement {
        options,
        library: &library,
        origin: format!("https://{}:{}", domain.unwrap_or(&host), address.port()),
        address,
        metrics,
        pin: identities.first().map(Identity::pin).filter(|_| domain.is_none()),
    };
    Ok(format!("{announcement}\n"))
}

/// The client command for a shell here: on the PATH, in this program's directory, or built by the cargo that runs this
/// program.
fn client_command() -> String {
    const CLIENT: &str = "video-client";
    let path = env::var_os("PATH").unwrap_or_default();
    if env::split_paths(&path).any(|directory| directory.join(CLIENT).is_file()) {
        return CLIENT.to_owned();
    }
    let this = env::current_exe().unwrap_or_default();
    let beside = this.with_file_name(CLIENT);
    if beside.is_file() {
        let here = env::current_dir().unwrap_or_default();
        let near = beside.strip_prefix(here);
        return quoted(&near.unwrap_or(&beside).display().to_string());
    }
    if env::var_os("CARGO").is_some() {
        let is_release = this.components().any(|part| part.as_os_str() == "release");
        let release = if is_release { "--release " } else { "" };
        return format!("cargo run {release}--bin {CLIENT} --");
    }
    CLIENT.to_owned()
}

/// Quotes `word` for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Playing time with one digit behind the point, or in milliseconds below a second.
pub(super) fn shown(time: &Duration) -> String {
    if *time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.1} s", time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_a_shell_where_that_is_needed() {
        assert_eq!(
            quoted("target/release/video-client"),
            "target/release/video-client"
        );
        assert_eq!(quoted("my films/it's"), "'my films/it'\\''s'");
    }
}
