//! `--qlog DIR`: a qlog file for every HTTP/3 connection, or every n-th one, with the samples of its congestion
//! control.
//!
//! Connections only queue their samples; one thread writes all files, so that a slow disk delays no response. If it
//! falls far behind, it drops samples, and the server logs their number when it stops.

mod file;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use playrate_transport::telemetry::{Sample, Sink};
use video_server::serve::{ConnectionInfo, Observer, SessionSummary};

use file::QlogFile;

/// Maximum number of samples in the queue: some megabytes.
const MOST_WAITING: usize = 1 << 15;

/// Writes qlog files while the server runs.
#[derive(Debug)]
pub(super) struct Qlog {
    queue: Arc<WriteQueue>,
    every: NonZeroU64,
    writing: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct WriteQueue {
    sender: Sender<Message>,
    waiting: AtomicUsize,
    left_out: AtomicU64,
}

#[derive(Debug)]
enum Message {
    Sample(Arc<ConnectionInfo>, Box<Sample>),
    Finished(Arc<ConnectionInfo>, String),
    End(u64),
    Stop,
}

impl WriteQueue {
    /// Queues `message` without blocking.
    fn send(&self, message: Message) {
        // Fails only after `Message::Stop`, when nothing more is written.
        let _ = self.sender.send(message);
    }
}

impl Qlog {
    /// Starts writing files of every `every`-th connection into `directory`, creating it if it does not exist. File
    /// names begin with `now`.
    pub(super) fn start(directory: &Path, every: NonZeroU64, now: SystemTime) -> std::io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let (sender, receiver) = mpsc::channel();
        let queue = Arc::new(WriteQueue {
            sender,
            waiting: AtomicUsize::new(0),
            left_out: AtomicU64::new(0),
        });
        let began = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let writer = Writer {
            directory: directory.to_owned(),
            began,
            files: BTreeMap::new(),
        };
        let reading = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("qlog".to_owned());
        let thread = thread.spawn(move || writer.run(&receiver, &reading))?;
        Ok(Self {
            queue,
            every,
            writing: Mutex::new(Some(thread)),
        })
    }

    /// Writes all queued samples and stops.
    pub(super) fn finish(&self) {
        self.queue.send(Message::Stop);
        let thread = self.writing.lock().take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that writes qlog files had panicked");
        }
        let left_out = self.queue.left_out.load(Relaxed);
        if left_out > 0 {
            tracing::warn!(
                left_out,
                "qlog files lack samples, which came faster than they could be written"
            );
        }
    }

    fn is_recorded(&self, connection: u64) -> bool {
        connection.is_multiple_of(self.every.get())
    }
}

impl Observer for Qlog {
    fn connecting(&self, connection: &ConnectionInfo) -> Vec<Arc<dyn Sink>> {
        if !self.is_recorded(connection.id) {
            return Vec::new();
        }
        vec![Arc::new(Recording {
            connection: Arc::new(connection.clone()),
            queue: Arc::clone(&self.queue),
        })]
    }

    fn finished(&self, session: &SessionSummary) {
        if self.is_recorded(session.connection.id) {
            let state = &session.state;
            let arm = state.arm.as_ref().map(|arm| format!("arm {arm}, "));
            let text = format!(
                "{}controller {}, {} requests, {}, ended {}",
                arm.unwrap_or_default(),
                state.controller,
                state.requests,
                session.bytes,
                session.end
            );
            let connection = Arc::new(session.connection.clone());
            self.queue.send(Message::Finished(connection, text));
        }
    }
}

/// Queues one connection's samples.
#[derive(Debug)]
struct Recording {
    connection: Arc<ConnectionInfo>,
    queue: Arc<WriteQueue>,
}

impl Sink for Recording {
    fn take(&self, sample: &Sample) {
        if self.queue.waiting.fetch_add(1, Relaxed) < MOST_WAITING {
            let connection = Arc::clone(&self.connection);
            self.queue.send(Message::Sample(connection, Box::new(*sample)));
        } else {
            self.queue.waiting.fetch_sub(1, Relaxed);
            self.queue.left_out.fetch_add(1, Relaxed);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.queue.send(Message::End(self.connection.id));
    }
}

struct Writer {
    directory: PathBuf,
    /// Start of the server in ms since 1970.
    began: u128,
    /// Files of open connections, created with their first samples, because a failed handshake must leave no file;
    /// `None` if a file could not be created or written to.
    files: BTreeMap<u64, Option<QlogFile>>,
}

impl Writer {
    fn run(mut self, receiver: &Receiver<Message>, queue: &WriteQueue) {
        while let Ok(message) = receiver.recv() {
            match message {
                Message::Sample(connection, sample) => {
                    queue.waiting.fetch_sub(1, Relaxed);
                    self.write(&connection, |file| file.sample(&sample));
                }
                Message::Finished(connection, text) => self.write(&connection, |file| file.remark(&text)),
                Message::End(id) => self.close(id),
                Message::Stop => break,
            }
        }
        let open: Vec<_> = self.files.keys().copied().collect();
        for id in open {
            self.close(id);
        }
    }

    /// Calls `write` with the file of `connection`, creating it first if it does not exist. No message follows a
    /// connection's [`Message::End`]: the server keeps the sink that sends it until all observers have been called.
    fn write(
        &mut self,
        connection: &ConnectionInfo,
        write: impl FnOnce(&mut QlogFile) -> std::io::Result<()>,
    ) {
        let name = format!("{}-{:06}.sqlog", self.began, connection.id);
        let path = self.directory.join(name);
        let file = self.files.entry(connection.id).or_insert_with(|| {
            let created = QlogFile::create(&path, connection);
            let failed = |error: &std::io::Error| {
                tracing::error!(path = %path.display(), %error, "cannot create a qlog file");
            };
            created.inspect_err(failed).ok()
        });
        if let Some(open) = file
            && let Err(error) = write(open)
        {
            tracing::error!(
                path = %path.display(),
                %error,
                "cannot write to a qlog file; its connection is no longer recorded"
            );
            *file = None;
        }
    }

    fn close(&mut self, id: u64) {
        if let Some(Some(mut file)) = self.files.remove(&id)
            && let Err(error) = file.flush()
        {
            tracing::error!(connection = id, %error, "cannot write the end of a qlog file");
        }
    }
}
