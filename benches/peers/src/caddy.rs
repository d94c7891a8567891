//! Servers in separate processes, mainly [`Caddy`]: with HTTP/3 only, and one processor each.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use playrate_transport::{Identity, Pin};

/// Processor of every server; its client has the next.
pub(crate) const PROCESSOR: &str = "0";

/// A server that ends when this is dropped.
pub(crate) struct ServerProcess {
    child: Child,
    pub(crate) port: u16,
}

impl ServerProcess {
    /// Starts `command` on [`PROCESSOR`] with a free port, and waits until it listens.
    pub(crate) fn start(command: impl FnOnce(u16) -> Command) -> Self {
        let any = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = any.local_addr().unwrap().port();
        drop(any);
        let command = command(port);
        let mut pinned = Command::new("taskset");
        pinned
            .args(["-c", PROCESSOR])
            .arg(command.get_program())
            .args(command.get_args());
        let child = pinned
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, port };
        let began = Instant::now();
        while UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "{command:?} does not listen"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// Process ID of the server: `taskset` replaces itself with it.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A certificate of `localhost` in files, for servers that read it from there.
pub(crate) struct Certificate {
    directory: tempfile::TempDir,
    pub(crate) pin: Pin,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| directory.path().join(name));
        std::fs::write(&certificate, certified.cert.pem()).unwrap();
        std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
        let pin = Identity::from_pem_files(&certificate, &key).unwrap().pin();
        Self { directory, pin }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// The Caddy of `caddy/go.mod`, built once by Go.
pub(crate) struct Caddy(PathBuf);

impl Caddy {
    /// Builds Caddy. The error is the reason for omitting it.
    pub(crate) fn build() -> Result<Self, String> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = here.join("target/caddy");
        let built = Command::new("go")
            .args(["build", "-C", "caddy", "-trimpath", "-o"])
            .arg(&program)
            .arg("github.com/caddyserver/caddy/v2/cmd/caddy")
            .current_dir(here)
            .status();
        match built {
            Ok(status) if status.success() => Ok(Self(program)),
            Ok(status) => Err(format!("`go build` of Caddy ended with {status}")),
            Err(error) => Err(format!("`go` cannot be run: {error}; install Go 1.26")),
        }
    }

    /// Serves the files in `media`.
    pub(crate) fn serve(&self, media: &Path, certificate: &Certificate) -> ServerProcess {
        ServerProcess::start(|port| {
            let config = certificate.file("Caddyfile");
            let [chain, key] = ["certificate.pem", "key.pem"].map(|name| certificate.file(name));
            let text = format!(
                "{{\n admin off\n auto_https off\n persist_config off\n storage file_system {storage}\n \
                 servers {{\n  protocols h3\n }}\n}}\n\
                 https://localhost:{port} {{\n bind 127.0.0.1\n tls {chain} {key}\n root {media}\n file_server\n}}\n",
                storage = certificate.file("storage").display(),
                chain = chain.display(),
                key = key.display(),
                media = media.display(),
            );
            std::fs::write(&config, text).unwrap();
            let mut command = Command::new(&self.0);
            command
                .args(["run", "--adapter", "caddyfile", "--config"])
                .arg(config);
            command
        })
    }
}
