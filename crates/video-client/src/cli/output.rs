//! Destination of `--output`: a file, stdout or nowhere. A thread of its own writes, so that a slow disk or pipe
//! holds back reading and nothing else.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use video_client::Sink;

/// Most pieces queued for the writer; the session makes them at most 16 KiB.
const QUEUE: usize = 16;

/// The sink of the command line.
#[derive(Debug)]
pub(crate) struct Output {
    place: Destination,
    writer: Option<WriterThread>,
}

#[derive(Clone, Debug)]
enum Destination {
    Nowhere,
    Stdout,
    File(PathBuf),
}

#[derive(Debug)]
struct WriterThread {
    queue: mpsc::Sender<Bytes>,
    result: oneshot::Receiver<io::Result<()>>,
}

impl Output {
    /// Checks that the place can be written to, without touching what is there.
    pub(crate) fn new(path: Option<&Path>) -> anyhow::Result<Self> {
        let place = match path {
            None => Destination::Nowhere,
            Some(path) if path == Path::new("-") => Destination::Stdout,
            Some(path) => {
                if path.is_dir() {
                    bail!(
                        "--output {}: this is a directory; name a file in it",
                        path.display()
                    );
                }
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                if let Some(parent) = parent
                    && !parent.is_dir()
                {
                    bail!(
                        "--output {}: there is no directory {}",
                        path.display(),
                        parent.display()
                    );
                }
                Destination::File(path.to_owned())
            }
        };
        Ok(Self { place, writer: None })
    }

    /// Returns true if the title goes to stdout, so that nothing else may.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.place, Destination::Stdout)
    }

    /// Opens the place and starts the writer.
    #[expect(
        clippy::disallowed_methods,
        reason = "writing to a file or a pipe blocks, and the binary runs in real time only"
    )]
    fn open(&self) -> io::Result<Option<WriterThread>> {
        let mut target: Box<dyn Write + Send> = match &self.place {
            Destination::Nowhere => return Ok(None),
            Destination::Stdout => Box::new(io::stdout()),
            Destination::File(path) => Box::new(
                File::create(path)
                    .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?,
            ),
        };
        let (queue, mut chunks) = mpsc::channel::<Bytes>(QUEUE);
        let (done, result) = oneshot::channel();
        std::thread::spawn(move || {
            let mut write = || -> io::Result<()> {
                while let Some(chunk) = chunks.blocking_recv() {
                    target.write_all(&chunk)?;
                }
                target.flush()
            };
            let result = write();
            // With the queue dropped first, the next write fails and then reads the result.
            drop(chunks);
            // After ctrl-C the receiver may be gone.
            let _ = done.send(result);
        });
        Ok(Some(WriterThread { queue, result }))
    }
}

/// The writer's error, or an error that it ended without one.
async fn result_of(writer: WriterThread) -> io::Result<()> {
    drop(writer.queue);
    match writer.result.await {
        Ok(result) => result,
        Err(_) => Err(io::Error::other("the writer died")),
    }
}

impl Sink for Output {
    async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        if self.writer.is_none() {
            self.writer = self.open()?;
        }
        if let Some(writer) = &self.writer
            && writer.queue.send(bytes).await.is_err()
            && let Some(writer) = self.writer.take()
        {
            result_of(writer).await?;
        }
        Ok(())
    }

    async fn finish(&mut self) -> io::Result<()> {
        match self.writer.take() {
            Some(writer) => result_of(writer).await,
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(future)
    }

    #[test]
    fn an_existing_file_is_left_alone_until_the_first_byte() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("title.mp4");
        std::fs::write(&path, "precious").unwrap();
        let mut output = Output::new(Some(&path)).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
        block_on(async {
            output.write(Bytes::from_static(b"new ")).await.unwrap();
            output.write(Bytes::from_static(b"title")).await.unwrap();
            output.finish().await.unwrap();
        });
        assert_eq!(std::fs::read(&path).unwrap(), b"new title");
    }

    #[test]
    fn impossible_places_are_refused_before_anything_is_fetched() {
        let directory = tempfile::tempdir().unwrap();
        let error = Output::new(Some(directory.path())).unwrap_err();
        assert!(error.to_string().contains("is a directory"), "{error}");
        let error = Output::new(Some(&directory.path().join("no/title.mp4"))).unwrap_err();
        assert!(error.to_string().contains("there is no directory"), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_an_error_of_the_run() {
        let mut output = Output::new(Some(Path::new("/dev/full"))).unwrap();
        let result = block_on(async {
            for _ in 0..10 * QUEUE {
                output.write(Bytes::from_static(&[0; 1_000])).await?;
            }
            output.finish().await
        });
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
