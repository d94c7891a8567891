//! Servers in separate processes with one processor each: `video-server`, [`Caddy`] and [`Nginx`], with HTTP/3 over UDP
//! and HTTP/2 and HTTP/1.1 over TCP.

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
        // The server refuses a key that every user can read.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&key, mode).unwrap();
        let pin = Identity::from_pem_files(&certificate, &key).unwrap().pin();
        Self { directory, pin }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// `video-server` of a release build in the workspace, with this controller.
pub(crate) fn video_server(media: &Path, certificate: &Certificate, controller: &str) -> ServerProcess {
    ServerProcess::start(|port| {
        let mut command = Command::new(workspace().join("target/release/video-server"));
        command.args([
            "serve",
            "--no-watch",
            "--access-log",
            "none",
            "--controller",
            controller,
        ]);
        command.args(["--max-connections", "4096"]);
        command.args(["--max-connections-per-address", "4096"]);
        command
            .args(["--listen", &format!("127.0.0.1:{port}"), "--media"])
            .arg(media);
        command.arg("--cert").arg(certificate.file("certificate.pem"));
        command.arg("--key").arg(certificate.file("key.pem"));
        command
    })
}

/// Root of the workspace, where the product is built.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The program `nginx`, or the one that the environment variable `NGINX` names.
pub(crate) struct Nginx(PathBuf);

impl Nginx {
    /// Finds nginx. The error is the reason for omitting it.
    pub(crate) fn find() -> Result<Self, String> {
        let program = std::env::var_os("NGINX").map_or_else(|| "nginx".into(), PathBuf::from);
        let output = Command::new(&program).arg("-V").output();
        let build = output.map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
        if String::from_utf8_lossy(&build.stderr).contains("http_v3_module") {
            Ok(Self(program))
        } else {
            Err(format!(
                "{} is older than 1.25, without HTTP/3",
                program.display()
            ))
        }
    }

    /// Serves the files in `media` with one worker, as the packages of distributions configure it.
    pub(crate) fn serve(&self, media: &Path, certificate: &Certificate) -> ServerProcess {
        ServerProcess::start(|port| {
            let config = certificate.file("nginx.conf");
            let [chain, key, log, pid] = ["certificate.pem", "key.pem", "error.log", "pid"]
                .map(|name| certificate.file(name).display().to_string());
            let scratch = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                .map(|kind| format!(" {kind}_temp_path {};\n", certificate.file(kind).display()))
                .concat();
            let text = format!(
                "daemon off;\nmaster_process off;\npid {pid};\nerror_log {log};\n\
                 events {{\n worker_connections 4096;\n}}\n\
                 http {{\n access_log off;\n sendfile on;\n tcp_nopush on;\n{scratch} \
                 server {{\n  listen 127.0.0.1:{port} ssl;\n  listen 127.0.0.1:{port} quic reuseport;\n  \
                 http2 on;\n  ssl_certificate {chain};\n  ssl_certificate_key {key};\n  \
                 ssl_protocols TLSv1.2 TLSv1.3;\n  root {media};\n }}\n}}\n",
                media = media.display(),
            );
            std::fs::write(&config, text).unwrap();
            let mut command = Command::new(&self.0);
            command.arg("-e").arg(log).arg("-c").arg(config);
            command
        })
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
                 servers {{\n  protocols h1 h2 h3\n }}\n}}\n\
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
