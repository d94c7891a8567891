//! The workspace's programs in separate processes.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use playrate_transport::{ConnectError, Connection, Pin, Target};
use tempfile::NamedTempFile;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::{PATIENCE, client, root, text, until};

/// One of the workspace's programs, built if necessary.
pub fn program(name: &str) -> PathBuf {
    let test = env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).expect("target/<profile>/deps/<test>");
    let program = profile.join(name);
    if !program.exists() {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--bin", name])
            .current_dir(root())
            .status()
            .unwrap();
        assert!(built.success(), "{} is not there", program.display());
        assert!(program.exists(), "{} is not there", program.display());
    }
    program
}

/// A process that ends with its owner.
#[derive(Debug)]
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may already have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Waits at most `limit` for its end.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        loop {
            let status = self.0.try_wait().unwrap();
            if status.is_some() || begun.elapsed() > limit {
                return status;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Sends a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().unwrap();
        assert!(sent.success());
    }
}

/// A `video-server` that runs until it receives a signal; killed when dropped.
#[derive(Debug)]
pub struct ServerProcess {
    process: Running,
    out: BufReader<ChildStdout>,
    log: NamedTempFile,
    announcement: String,
}

impl ServerProcess {
    /// Makes `program` serve `media` on the address and port `listen`, and waits until it is ready.
    pub fn start(mut program: Command, listen: &str, media: &Path, arguments: &[&str]) -> Self {
        let log = NamedTempFile::new().unwrap();
        // The announcement is then on stdout.
        let no_access_log = ["--access-log", "none"];
        let is_default = !arguments.contains(&no_access_log[0]);
        let mut child = program
            .args(["serve", "--listen", listen, "--media"])
            .arg(media)
            .args(arguments)
            .args(no_access_log.iter().filter(|_| is_default))
            .stdout(Stdio::piped())
            .stderr(log.reopen().unwrap())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let process = Running(child);
        let mut announcement = String::new();
        // It is written in one piece, and `Watch` is its last line if present. With ACME it has no pin.
        let is_announced = |text: &str| text.contains("\nPin ") || text.contains("\nCertificate  for ");
        while !is_announced(&announcement) || !out.buffer().is_empty() {
            assert!(
                out.read_line(&mut announcement).unwrap() > 0,
                "it ended: {announcement}"
            );
        }
        Self {
            process,
            out,
            log,
            announcement,
        }
    }

    /// Output of the server when it was ready.
    pub fn announcement(&self) -> &str {
        &self.announcement
    }

    /// The value on a line `NAME value` of the announcement.
    pub fn announced(&self, name: &str) -> &str {
        let found = self.announcement.lines().find_map(|line| line.strip_prefix(name));
        let value = found.unwrap_or_else(|| panic!("no {name} in {}", self.announcement));
        value.trim()
    }

    /// Address at which it serves.
    pub fn address(&self) -> SocketAddr {
        let line = self.announced("Listening on");
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Pin of its certificate.
    pub fn pin(&self) -> Pin {
        self.announced("Pin").parse().unwrap()
    }

    /// Connects a client over HTTP/3.
    pub async fn connect(&self) -> Connection {
        self.try_connect().await.unwrap()
    }

    /// Connects a client over HTTP/3.
    ///
    /// # Errors
    /// The server refuses the connection.
    pub async fn try_connect(&self) -> Result<Connection, ConnectError> {
        let target = Target::at("localhost", self.address());
        client(self.pin(), |_| {}).connect(&target).await
    }

    /// Waits until the server refuses connections.
    pub async fn is_refusing(&self) {
        let refused = |error: &ConnectError| error.to_string().contains("refused");
        let is_refused = async || self.try_connect().await.is_err_and(|error| refused(&error));
        until("connections are refused", is_refused).await;
    }

    /// One request over HTTP/1.1 to the address for metrics, such as `GET /metrics`, with one header field. Returns
    /// the head of the response and its body.
    pub fn ask(&self, line: &str, field: &str) -> (String, String) {
        self.ask_as("localhost", line, field)
    }

    /// The same as [`ask`](Self::ask), with this `Host` field.
    pub fn ask_as(&self, host: &str, line: &str, field: &str) -> (String, String) {
        let url = self.announced("Metrics").trim_start_matches("http://");
        let address = url.trim_end_matches('/').parse().unwrap();
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\n{field}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    /// The value of the metric `name`, including labels if it has any.
    pub fn metric(&self, name: &str) -> u64 {
        let (_, metrics) = self.ask("GET /metrics", "Accept: */*");
        let find = |line: &str| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned);
        let value = metrics.lines().find_map(find);
        let value = value.unwrap_or_else(|| panic!("no {name} in {metrics}"));
        value.parse().unwrap()
    }

    /// Number of the process.
    pub fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// Sends a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// The log so far.
    fn log(&self) -> String {
        text(&fs::read(self.log.path()).unwrap())
    }

    /// Waits until the log contains `part` this many times.
    pub async fn logs(&self, part: &str, times: usize) {
        let is_there = async || self.log().matches(part).count() >= times;
        until(part, is_there).await;
    }

    /// Returns true once the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.process.0.try_wait().unwrap().is_some()
    }

    /// Stops it in order and returns its log.
    pub fn stop(self) -> String {
        self.signal("TERM");
        self.exits(0)
    }

    /// Waits as [`end`](Self::end) until it exits with `code`, and returns its log.
    pub fn exits(self, code: i32) -> String {
        let (ended, _, log) = self.end();
        assert_eq!(ended, Some(code), "{log}");
        log
    }

    /// Waits for its end. Returns its exit code, its output, and its log. This blocks the thread, so a runtime needs
    /// another one: the server waits until the clients of the test have acknowledged its last bytes.
    pub fn end(mut self) -> (Option<i32>, String, String) {
        if let Ok(runtime) = Handle::try_current() {
            assert_eq!(runtime.runtime_flavor(), RuntimeFlavor::MultiThread);
        }
        self.out.read_to_string(&mut self.announcement).unwrap();
        let code = self.process.0.wait().unwrap().code();
        let log = self.log();
        (code, self.announcement, log)
    }

    /// Stops it in order, or kills it after `limit`. Returns its exit status, if it ended in time, and its log.
    pub fn end_within(mut self, limit: Duration) -> (Option<ExitStatus>, String) {
        self.signal("TERM");
        let status = self.process.wait(limit);
        // It may still write until it is killed, which matters only if it did not end.
        (status, self.log())
    }
}

#[cfg(target_os = "linux")]
impl ServerProcess {
    /// Path of a file about the process below `/proc`.
    fn proc(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.id().to_string()).join(name)
    }

    /// Memory of the process in bytes.
    pub fn resident(&self) -> usize {
        crate::Process::read(self.id()).unwrap().resident.as_usize()
    }

    /// The soft and the hard limit of file descriptors.
    pub fn descriptor_limits(&self) -> (usize, usize) {
        let limits = fs::read_to_string(self.proc("limits")).unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max open files"));
        let numbers = line.unwrap().split_whitespace().skip(3);
        let mut numbers = numbers.map(|number| number.parse().unwrap());
        (numbers.next().unwrap(), numbers.next().unwrap())
    }

    /// Number of open file descriptors.
    pub fn descriptors(&self) -> usize {
        fs::read_dir(self.proc("fd")).unwrap().count()
    }

    /// Waits until at most `most` descriptors are open. A file stays open until the client has acknowledged its end.
    pub async fn settles_at(&self, most: usize) {
        until("few descriptors are open", async || self.descriptors() <= most).await;
    }
}
