//! `--qlog DIR`: a qlog file for every connection over HTTP/3, or for one of every so many, from the samples of its congestion control.
//!
//! Connections only hand their samples over; one thread writes all files, so that a slow disk slows nobody's video. When it falls far
//! behind, samples are left out and the log says how many.

mod file;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use playrate_transport::telemetry::{Sample, Sink};
use video_server::serve::{ConnectionInfo, Observer, SessionSummary};

use file::File;

/// Samples that may wait to be written: some megabytes.
const MOST_WAITING: usize = 1 << 15;

/// Writes qlog files as connections go on.
pub(super) struct Qlog {
    queue: Arc<Queue>,
    every: NonZeroU64,
    writing: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Queue {
    sender: Sender<Message>,
    waiting: AtomicUsize,
    left_out: AtomicU64,
}

#[derive(Debug)]
enum Message {
    Begin(ConnectionInfo),
    Sample(u64, Box<Sample>),
    Finished(u64, String),
    End(u64),
    Stop,
}

impl std::fmt::Debug for Qlog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Qlog")
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}

impl Queue {
    /// Never blocks.
    fn send(&self, message: Message) {
        // The thread is there until it is told to stop; what comes after that is nobody's.
        let _ = self.sender.send(message);
    }
}

impl Qlog {
    /// Writes into `directory`, which is made if need be, of one connection of every `every`. `now` names the files.
    pub(super) fn start(directory: &Path, every: NonZeroU64, now: SystemTime) -> std::io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let (sender, receiver) = mpsc::channel();
        let queue = Arc::new(Queue {
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

    /// Writes what is waiting and ends.
    pub(super) fn finish(&self) {
        self.queue.send(Message::Stop);
        let thread = self.writing.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that writes qlog files had ended before");
        }
        let left_out = self.queue.left_out.load(Relaxed);
        if left_out > 0 {
            tracing::warn!(
                left_out,
                "qlog files lack samples: they came faster than they could be written"
            );
        }
    }

    fn wants(&self, connection: u64) -> bool {
        connection.is_multiple_of(self.every.get())
    }
}

impl Observer for Qlog {
    fn connecting(&self, connection: &ConnectionInfo) -> Vec<Arc<dyn Sink>> {
        if !self.wants(connection.id) {
            return Vec::new();
        }
        self.queue.send(Message::Begin(connection.clone()));
        vec![Arc::new(Recording {
            id: connection.id,
            queue: Arc::clone(&self.queue),
        })]
    }

    fn finished(&self, session: &SessionSummary) {
        if self.wants(session.connection.id) {
            let arm = session
                .arm
                .as_ref()
                .map_or(String::new(), |arm| format!("arm {arm}, "));
            let text = format!(
                "{arm}controller {}, {} requests, {}, ended {}",
                session.controller, session.requests, session.bytes, session.end
            );
            self.queue.send(Message::Finished(session.connection.id, text));
        }
    }
}

/// Hands one connection's samples over.
#[derive(Debug)]
struct Recording {
    id: u64,
    queue: Arc<Queue>,
}

impl Sink for Recording {
    fn take(&self, sample: &Sample) {
        if self.queue.waiting.fetch_add(1, Relaxed) < MOST_WAITING {
            self.queue.send(Message::Sample(self.id, Box::new(*sample)));
        } else {
            self.queue.waiting.fetch_sub(1, Relaxed);
            self.queue.left_out.fetch_add(1, Relaxed);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.queue.send(Message::End(self.id));
    }
}

struct Writer {
    directory: PathBuf,
    /// When the server began, ms since 1970.
    began: u128,
    files: BTreeMap<u64, State>,
}

enum State {
    /// Nothing was acknowledged yet, so that handshakes that fail leave no file.
    Begun(ConnectionInfo),
    Open(Box<File>),
    /// It could not be written to.
    Failed,
}

impl Writer {
    fn run(mut self, receiver: &Receiver<Message>, queue: &Queue) {
        while let Ok(message) = receiver.recv() {
            match message {
                Message::Begin(info) => drop(self.files.insert(info.id, State::Begun(info))),
                Message::Sample(id, sample) => {
                    queue.waiting.fetch_sub(1, Relaxed);
                    self.write(id, |file| file.sample(&sample));
                }
                Message::Finished(id, text) => self.write(id, |file| file.remark(&text)),
                Message::End(id) => self.close(id),
                Message::Stop => break,
            }
        }
        let open: Vec<_> = self.files.keys().copied().collect();
        for id in open {
            self.close(id);
        }
    }

    /// Has `what` write to the file of connection `id`, which is made if there is none yet.
    fn write(&mut self, id: u64, what: impl FnOnce(&mut File) -> std::io::Result<()>) {
        let Some(state) = self.files.get_mut(&id) else {
            return;
        };
        let path = self.directory.join(format!("{}-{id:06}.sqlog", self.began));
        if let State::Begun(info) = &*state {
            *state = match File::create(&path, info) {
                Ok(file) => State::Open(Box::new(file)),
                Err(error) => {
                    tracing::error!(path = %path.display(), %error, "cannot make a qlog file");
                    State::Failed
                }
            };
        }
        if let State::Open(file) = state
            && let Err(error) = what(file)
        {
            tracing::error!(path = %path.display(), %error, "cannot write to a qlog file any more");
            *state = State::Failed;
        }
    }

    fn close(&mut self, id: u64) {
        if let Some(State::Open(mut file)) = self.files.remove(&id)
            && let Err(error) = file.flush()
        {
            tracing::error!(connection = id, %error, "cannot write the end of a qlog file");
        }
    }
}
