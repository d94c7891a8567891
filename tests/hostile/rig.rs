//! [`Rig`]: a server to attack, with a title, and with a secret file outside its media directory.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use playrate_test_support::{PATIENCE, Process, ServerProcess, TITLE, certify, title};
use tokio::task::JoinHandle;

use crate::attacks::{Attack, SECRET, SECRET_FILE, Scale, Tally};
use crate::victim::Victim;

/// Time for the connections of a finished attack to close.
const CLOSING: Duration = Duration::from_millis(500);

/// A server to attack, until this is dropped.
pub(crate) struct Rig {
    pub(crate) server: ServerProcess,
    pub(crate) victim: Victim,
    _directory: tempfile::TempDir,
}

/// The end of a server's process.
#[derive(Debug)]
pub(crate) struct End {
    /// `None` if it did not end in time.
    pub(crate) status: Option<ExitStatus>,
    /// Lines of the log that are not log records, such as those of a panic.
    pub(crate) panics: Vec<String>,
}

impl End {
    pub(crate) fn in_order(&self) -> bool {
        self.panics.is_empty() && self.status.is_some_and(|status| status.success())
    }
}

impl Rig {
    /// Starts `program` with these options.
    pub(crate) fn start(program: &Path, options: &[&str]) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let certificate = certify(directory.path());
        let file = |name: &str| directory.path().join(name).display().to_string();
        let (certificate_file, key) = (file("cert.pem"), file("key.pem"));
        let media = directory.path().join("media");
        fs::create_dir(&media)?;
        fs::copy(title(), media.join(TITLE))?;
        fs::write(directory.path().join(SECRET_FILE), SECRET)?;
        let always = ["--log-format", "json", "--cert", &certificate_file, "--key", &key];
        let options = [&always, options].concat();
        let mut command = Command::new(program);
        command.env("RUST_LOG", "info");
        let server = ServerProcess::start(command, "127.0.0.1:0", &media, &options);
        Ok(Self {
            victim: Victim::new(server.address(), certificate, TITLE)?,
            server,
            _directory: directory,
        })
    }

    /// Memory and processor time of the server.
    pub(crate) fn process(&self) -> anyhow::Result<Process> {
        Process::read(self.server.id()).context("the server's process is gone, or this is not Linux")
    }

    /// Stops the server as an operator would.
    pub(crate) fn end(self) -> End {
        let (status, log) = self.server.end_within(PATIENCE);
        let is_record = |line: &&str| serde_json::from_str::<serde_json::Value>(line).is_err();
        End {
            status,
            panics: log.lines().filter(is_record).map(str::to_owned).collect(),
        }
    }
}

/// An attack in progress.
pub(crate) struct Attacking {
    task: JoinHandle<std::io::Result<()>>,
    pub(crate) tally: Arc<Tally>,
}

impl Attacking {
    /// Begins an attack on this runtime.
    pub(crate) fn begin(victim: &Victim, attack: Attack, scale: Scale) -> Self {
        let tally = Arc::new(Tally::default());
        let task = tokio::spawn(attack.run(victim.clone(), scale, Arc::clone(&tally)));
        Self { task, tally }
    }

    /// Ends the attack and closes its connections.
    ///
    /// # Errors
    /// The attack could not be made.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        if self.task.is_finished() {
            return Ok(self.task.await??);
        }
        self.task.abort();
        // Ends as soon as everything that it owns is dropped.
        let _ = self.task.await;
        tokio::time::sleep(CLOSING).await;
        Ok(())
    }
}
