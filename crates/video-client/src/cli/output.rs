//! Destination of `--output`: a file, stdout or nowhere. Tokio's threads write, so a slow disk or pipe delays only
//! reading.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::bail;
use bytes::Bytes;
use tokio::fs::File;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use video_client::Sink;

/// The sink of the command line.
pub(crate) struct Output {
    /// Destination; `-` for stdout, `None` for nowhere.
    path: Option<PathBuf>,
    /// Opened when the first byte arrives.
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
}

impl Output {
    /// Checks that the destination can be written to, without changing an existing file.
    pub(crate) fn new(path: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(path) = path.filter(|path| *path != Path::new("-")) {
            let shown = path.display();
            if path.is_dir() {
                bail!("--output {shown}: this is a directory; name a file in it");
            }
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            if let Some(parent) = parent
                && !parent.is_dir()
            {
                bail!(
                    "--output {shown}: the directory {} does not exist",
                    parent.display()
                );
            }
        }
        Ok(Self {
            path: path.map(Path::to_owned),
            writer: None,
        })
    }

    /// Returns true if the title goes to stdout, so that nothing else may go there.
    pub(crate) fn is_stdout(&self) -> bool {
        self.path.as_deref() == Some(Path::new("-"))
    }
}

impl Sink for Output {
    async fn write(&mut self, bytes: Bytes) -> io::Result<()> {
        let writer = match (&mut self.writer, &self.path) {
            (_, None) => return Ok(()),
            (Some(writer), _) => writer,
            (empty, Some(path)) if path == Path::new("-") => empty.insert(Box::new(tokio::io::stdout())),
            (empty, Some(path)) => {
                let file = File::create(path).await;
                let named =
                    |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
                empty.insert(Box::new(file.map_err(named)?))
            }
        };
        writer.write_all(&bytes).await
    }

    async fn finish(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Some(writer) => writer.flush().await,
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
        let error = Output::new(Some(directory.path())).err().unwrap();
        assert!(error.to_string().contains("is a directory"), "{error}");
        let error = Output::new(Some(&directory.path().join("no/title.mp4")))
            .err()
            .unwrap();
        assert!(error.to_string().contains("does not exist"), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_an_error_of_the_run() {
        let mut output = Output::new(Some(Path::new("/dev/full"))).unwrap();
        let result = block_on(async {
            for _ in 0..160 {
                output.write(Bytes::from_static(&[0; 1_000])).await?;
            }
            output.finish().await
        });
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
