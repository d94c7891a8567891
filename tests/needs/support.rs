//! Helpers of these tests: the workspace's programs, a server, and the handling of missing tools.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;

pub(crate) const TITLE: &str = "title-720p.mp4";

/// Root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn title() -> PathBuf {
    root().join("assets").join(TITLE)
}

/// A directory with just the title in it.
pub(crate) fn films() -> tempfile::TempDir {
    let films = tempfile::tempdir().expect("a temporary directory");
    fs::copy(title(), films.path().join(TITLE)).expect("the title is copied");
    films
}

/// Test `name` of what is not on every machine: with `missing` it is ignored, or fails if `PLAYRATE_REQUIRE_TOOLS` is
/// set.
pub(crate) fn test(name: &str, missing: &Result<(), String>, run: fn()) -> Trial {
    let Err(missing) = missing.clone() else {
        return Trial::test(name, move || {
            run();
            Ok(())
        });
    };
    let required = env::var_os("PLAYRATE_REQUIRE_TOOLS").is_some();
    Trial::test(name, {
        let missing = missing.clone();
        move || Err(missing.into())
    })
    .with_kind(missing)
    .with_ignored_flag(!required)
}

/// Says which of `tools` cannot be run; each is given with an option that prints its version.
pub(crate) fn on_the_path(tools: &[(&str, &str)]) -> Result<(), String> {
    let is_missing = |(tool, version): &&(&str, &str)| Command::new(tool).arg(version).output().is_err();
    let missing: Vec<_> = tools.iter().filter(is_missing).map(|(tool, _)| *tool).collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("{} not found on the PATH", missing.join(" and ")))
    }
}

/// Target directory of this build.
pub(crate) fn target() -> PathBuf {
    let test = env::current_exe().expect("a test has a path");
    let profile = test.ancestors().nth(2).expect("target/<profile>/deps/<test>");
    profile.to_owned()
}

/// One of the workspace's programs, built if it is not there yet.
pub(crate) fn program(name: &str) -> PathBuf {
    let program = target().join(name);
    if !program.exists() {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", name])
            .current_dir(root())
            .status()
            .expect("cargo runs");
        assert!(
            built.success() && program.exists(),
            "{} is not there",
            program.display()
        );
    }
    program
}

/// A TCP address of loopback for a program that cannot choose a free port itself.
///
/// Its port is below those that Linux gives to connections and to sockets on port 0: of these, others may take one
/// before the program has bound it.
pub(crate) fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const PORTS: RangeInclusive<u16> = 20_000..=31_999;
    let port = || {
        // Two runs of these tests begin at different ports.
        let next = process::id()
            .wrapping_mul(64)
            .wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        PORTS.start() + u16::try_from(next % u32::from(PORTS.end() - PORTS.start())).expect("it is small")
    };
    let addresses = PORTS.map(|_| SocketAddr::from((Ipv4Addr::LOCALHOST, port())));
    let mut free = addresses.filter(|address| TcpListener::bind(address).is_ok());
    free.next().expect("one of these ports is free")
}

/// A process that ends with its owner.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already; there is nothing to do about either.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Waits for its end, but not for ever.
    pub(crate) fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().expect("a child can be waited for") {
                return Some(status);
            }
            if begun.elapsed() > limit {
                return None;
            }
            sleep(Duration::from_millis(20));
        }
    }
}

/// A running `video-server`, stopped when dropped.
pub(crate) struct Server {
    process: Running,
    announcement: Vec<String>,
    log: File,
}

impl Server {
    /// Serves a directory on a free port of 127.0.0.1. Its log is JSON.
    pub(crate) fn start(media: &Path, arguments: &[&str]) -> Self {
        Self::start_on("127.0.0.1:0", media, arguments)
    }

    /// Serves a directory on the address and port `listen`.
    pub(crate) fn start_on(listen: &str, media: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program("video-server"));
        command.env("RUST_LOG", "info,video_server=debug");
        Self::start_program(command, listen, media, arguments)
    }

    /// Serves a directory on `listen` with a program that may not be this build's.
    pub(crate) fn start_program(
        mut command: Command,
        listen: &str,
        media: &Path,
        arguments: &[&str],
    ) -> Self {
        let log = tempfile::tempfile().expect("a temporary file");
        let mut child = command
            .args(["serve", "--listen", listen, "--log-format", "json", "--media"])
            .arg(media)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(log.try_clone().expect("a file can be cloned"))
            .spawn()
            .expect("video-server starts");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let process = Running(child);
        let mut announcement = Vec::new();
        // It is written at once, and `Watch` is its last line if there is one.
        while !announcement.iter().any(|line: &String| line.starts_with("Pin")) || !output.buffer().is_empty()
        {
            let mut line = String::new();
            let read = output.read_line(&mut line).expect("the server speaks");
            assert!(read > 0, "the server said only {announcement:?}");
            announcement.push(line.trim_end().to_owned());
        }
        Self {
            process,
            announcement,
            log,
        }
    }

    /// Rest of the line of the server's announcement that begins with `word`.
    pub(crate) fn said(&self, word: &str) -> &str {
        let found = self.announcement.iter().find_map(|line| line.strip_prefix(word));
        let said = found.unwrap_or_else(|| panic!("no `{word}` in {:?}", self.announcement));
        said.trim_start()
    }

    /// Address of the server.
    pub(crate) fn address(&self) -> &str {
        self.said("Listening on ")
            .split(' ')
            .next()
            .expect("a line has a word")
    }

    /// Process ID of the server.
    pub(crate) fn process(&self) -> u32 {
        self.process.0.id()
    }

    /// Stops it as an operator would, and returns its log.
    pub(crate) fn stop(self) -> Vec<serde_json::Value> {
        let (status, log) = self.end();
        assert!(
            status.is_some_and(|status| status.success()),
            "the server ended with {status:?}"
        );
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        log.lines().map(parse).collect()
    }

    /// Stops it as an operator would. Returns its exit status, if it ended in time, and its log.
    pub(crate) fn end(mut self) -> (Option<ExitStatus>, String) {
        let id = i32::try_from(self.process()).ok();
        let id = id
            .and_then(rustix::process::Pid::from_raw)
            .expect("a process has a number");
        // It may have ended already, as its status will tell.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let status = self.process.wait(Duration::from_secs(120));
        self.log.seek(SeekFrom::Start(0)).expect("a file can be read");
        let log = std::io::read_to_string(&self.log).expect("the log is text");
        (status, log)
    }
}

/// Runs `command` with `input`, at most for `limit`, and returns its output once it has succeeded.
pub(crate) fn output_within(limit: Duration, command: &mut Command, input: &str) -> String {
    let file = || tempfile::tempfile().expect("a temporary file");
    let (mut stdin, stdout, stderr) = (file(), file(), file());
    stdin.write_all(input.as_bytes()).expect("a file can be written");
    stdin.seek(SeekFrom::Start(0)).expect("a file can be read");
    let clone = |file: &File| file.try_clone().expect("a file can be cloned");
    let child = command
        .stdin(stdin)
        .stdout(clone(&stdout))
        .stderr(clone(&stderr))
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let status = Running(child).wait(limit);
    let text = |mut file: File| {
        file.seek(SeekFrom::Start(0)).expect("a file can be read");
        std::io::read_to_string(file).expect("it is text")
    };
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(
        status.is_some_and(|status| status.success()),
        "{command:?} ended with {status:?}:\n{stdout}\n{stderr}"
    );
    stdout
}
