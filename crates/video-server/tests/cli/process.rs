//! The program in a process of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http::HeaderMap;
use playrate_transport::{Client, ClientOptions, ConnectError, Connection, Pin, Target, Trust, time};
use quinn::TokioRuntime;
use rustls::pki_types::CertificateDer;
use tokio::runtime::{Handle, RuntimeFlavor};

pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_video-server"));
    command.env_remove("RUST_LOG");
    command
}

/// The program with a limit set by the shell's `ulimit`.
#[cfg(target_os = "linux")]
fn limited(limit: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\"")]);
    command.arg(env!("CARGO_BIN_EXE_video-server"));
    command.env_remove("RUST_LOG");
    command
}

/// Runs the program to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    program().args(arguments).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../assets/fixtures")
        .join(name)
}

/// A server that runs until it receives a signal; killed when dropped.
pub(crate) struct Serving {
    child: Child,
    out: BufReader<ChildStdout>,
    errors: Log,
    /// Output of the server when it was ready.
    pub(crate) announcement: String,
}

impl Serving {
    /// Starts `serve` on a free port of 127.0.0.1 with further `arguments`, and waits until it is ready.
    pub(crate) fn start(media: &Path, arguments: &[&str]) -> Self {
        Self::start_on("127.0.0.1:0", media, arguments)
    }

    /// The same on the address and port `listen`.
    pub(crate) fn start_on(listen: &str, media: &Path, arguments: &[&str]) -> Self {
        Self::spawn(program(), listen, media, arguments)
    }

    /// As [`start`](Self::start), with at most `limit` file descriptors.
    #[cfg(target_os = "linux")]
    pub(crate) fn start_with_descriptors(limit: usize, media: &Path, arguments: &[&str]) -> Self {
        Self::spawn(limited(&format!("-n {limit}")), "127.0.0.1:0", media, arguments)
    }

    /// As [`start`](Self::start), with `limit` file descriptors that the server itself may raise.
    #[cfg(target_os = "linux")]
    pub(crate) fn start_below_the_hard_limit(limit: usize, media: &Path, arguments: &[&str]) -> Self {
        Self::spawn(
            limited(&format!("-S -n {limit}")),
            "127.0.0.1:0",
            media,
            arguments,
        )
    }

    fn spawn(mut program: Command, listen: &str, media: &Path, arguments: &[&str]) -> Self {
        let mut child = program
            .args(["serve", "--listen", listen, "--media"])
            .arg(media)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let errors = Log::read(child.stderr.take().unwrap());
        let mut announcement = String::new();
        while !announcement.contains("\nPin ") || !announcement.ends_with('\n') {
            assert!(
                out.read_line(&mut announcement).unwrap() > 0,
                "it ended: {announcement}"
            );
        }
        Self {
            child,
            out,
            errors,
            announcement,
        }
    }

    /// The value of a line `NAME value` of the announcement.
    pub(crate) fn announced(&self, name: &str) -> &str {
        let line = self.announcement.lines().find(|line| line.starts_with(name));
        line.unwrap().trim_start_matches(name).trim()
    }

    pub(crate) fn address(&self) -> std::net::SocketAddr {
        let line = self.announced("Listening on");
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    pub(crate) async fn connect(&self) -> Connection {
        self.try_connect().await.unwrap()
    }

    pub(crate) async fn try_connect(&self) -> Result<Connection, ConnectError> {
        let client = client(self.announced("Pin").parse().unwrap(), |_| {});
        let target = Target::at("localhost", self.address());
        client.connect(&target).await
    }

    /// Waits until the server refuses connections.
    #[cfg(target_os = "linux")]
    pub(crate) async fn is_refusing(&self) {
        let refused = |error: &ConnectError| error.to_string().contains("refused");
        let is_refused = async || self.try_connect().await.is_err_and(|error| refused(&error));
        until("connections are refused", is_refused).await;
    }

    /// Number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().unwrap();
        assert!(sent.success());
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn resident(&self) -> usize {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        let kilobytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kilobytes * 1024
    }

    /// The soft and the hard limit of file descriptors.
    #[cfg(target_os = "linux")]
    pub(crate) fn descriptor_limits(&self) -> (usize, usize) {
        let path = format!("/proc/{}/limits", self.child.id());
        let limits = fs::read_to_string(path).unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max open files"));
        let mut numbers = line
            .unwrap()
            .split_whitespace()
            .skip(3)
            .map(|number| number.parse().unwrap());
        (numbers.next().unwrap(), numbers.next().unwrap())
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn descriptors(&self) -> usize {
        let path = format!("/proc/{}/fd", self.child.id());
        fs::read_dir(path).unwrap().count()
    }

    /// Waits until at most `most` descriptors are open. A file is open until the client has acknowledged its end.
    #[cfg(target_os = "linux")]
    pub(crate) async fn settles_at(&self, most: usize) {
        until("few descriptors are open", async || self.descriptors() <= most).await;
    }

    /// Waits until the log has `part` so many times.
    #[cfg(unix)]
    pub(crate) async fn logs(&self, part: &str, times: usize) {
        let is_there = async || self.errors.text().matches(part).count() >= times;
        until(part, is_there).await;
    }

    /// Returns true once the process has ended.
    #[cfg(target_os = "linux")]
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Stops it in good order and returns its log.
    pub(crate) fn stop(self) -> String {
        self.signal("TERM");
        let (code, _, log) = self.end();
        assert_eq!(code, Some(0), "{log}");
        log
    }

    /// Its exit code, the rest of its output, and its log. This blocks the thread, so a runtime needs another
    /// one: the server waits until the clients of the test have acknowledged its last bytes.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        if let Ok(runtime) = Handle::try_current() {
            assert_eq!(runtime.runtime_flavor(), RuntimeFlavor::MultiThread);
        }
        let mut out = String::new();
        let errors = self.errors.end();
        self.out.read_to_string(&mut out).unwrap();
        (self.child.wait().unwrap().code(), out, errors)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Log of a process, which is read as it comes.
struct Log {
    text: Arc<Mutex<String>>,
    reading: Option<JoinHandle<()>>,
}

impl Log {
    fn read(from: ChildStderr) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let shared = Arc::clone(&text);
        let reading = thread::spawn(move || {
            for line in BufReader::new(from).lines() {
                let mut text = shared.lock().unwrap();
                text.push_str(&line.unwrap());
                text.push('\n');
            }
        });
        Self {
            text,
            reading: Some(reading),
        }
    }

    fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    /// Waits until the process has ended; returns all of its log.
    fn end(&mut self) -> String {
        if let Some(reading) = self.reading.take() {
            reading.join().unwrap();
        }
        self.text()
    }
}

/// Time after which a test has failed that waits for something, on however busy a machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A client that trusts the server of `pin`, with changed options.
pub(crate) fn client(pin: Pin, change: impl FnOnce(&mut ClientOptions)) -> Client {
    let mut options = ClientOptions::new(Trust::Pin(pin));
    options.connect_timeout = PATIENCE;
    change(&mut options);
    Client::bind(Arc::new(TokioRuntime), options).unwrap()
}

/// Looks again and again until there is a value, at most for [`PATIENCE`].
pub(crate) async fn eventually<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let seen = time::timeout(&TokioRuntime, PATIENCE, looking).await;
    seen.unwrap_or_else(|_| panic!("never: {what}"))
}

/// Waits until `look` returns true, at most [`PATIENCE`].
pub(crate) async fn until(what: &str, look: impl AsyncFn() -> bool) {
    eventually(what, async || look().await.then_some(())).await;
}

pub(crate) async fn sleep(duration: Duration) {
    time::sleep(&TokioRuntime, duration).await;
}

/// Fetches `path` and returns the length of its body.
pub(crate) async fn fetch(connection: &Connection, path: &str, fields: HeaderMap) -> u64 {
    let (_, mut body) = connection.get(path, fields).await.unwrap();
    while body.chunk().await.unwrap().is_some() {}
    body.received()
}

#[track_caller]
pub(crate) fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
}

/// Writes a new self-signed certificate for `localhost` and its key into `directory`, as `cert.pem` and `key.pem`.
pub(crate) fn certify(directory: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(directory.join("cert.pem"), made.cert.pem()).unwrap();
    fs::write(directory.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}
