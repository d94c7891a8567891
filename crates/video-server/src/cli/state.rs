//! The directory of `--state`: what a server keeps beyond its process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use playrate_transport::EndpointKey;

/// Name of the file with the server's [`EndpointKey`].
const KEY_FILE: &str = "endpoint-key";

/// Reads the server's key; `None` if `directory` has none yet.
pub(super) fn endpoint_key(directory: &Path) -> anyhow::Result<Option<EndpointKey>> {
    let failed = || format!("--state {}", directory.display());
    if !fs::metadata(directory).with_context(failed)?.is_dir() {
        return Err(anyhow!("--state {}: not a directory", directory.display()));
    }
    let path = directory.join(KEY_FILE);
    let mut bytes = Vec::new();
    match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // One byte more shows that a file is too long.
        opened => opened.and_then(|file| file.take(EndpointKey::LENGTH as u64 + 1).read_to_end(&mut bytes)),
    }
    .with_context(|| format!("--state: cannot read {}", path.display()))?;
    let key = bytes.try_into().map_err(|_| {
        anyhow!(
            "--state: {} must have {} bytes; remove it, and the server makes a new one",
            path.display(),
            EndpointKey::LENGTH
        )
    })?;
    Ok(Some(EndpointKey::new(key)))
}

/// Makes a key for the server and stores it in `directory`, readable for its user alone.
pub(super) fn create_endpoint_key(directory: &Path) -> anyhow::Result<EndpointKey> {
    let path = directory.join(KEY_FILE);
    let created = EndpointKey::generate().and_then(|key| write(&path, key.as_bytes()).map(|()| key));
    created.with_context(|| format!("--state: cannot create {}", path.display()))
}

/// Writes a new file as a whole or not at all, so that no crash leaves a part of it.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(unfinished, path)
}
