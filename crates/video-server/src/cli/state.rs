//! The directory of `--state` and the file of `--endpoint-key`: data that outlives a server's process.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use playrate_transport::EndpointKey;
use rustix::fs::{FlockOperation, flock};
use tempfile::NamedTempFile;

use super::options::ServeOptions;

/// Name of the file with the server's [`EndpointKey`].
const KEY_FILE: &str = "endpoint-key";

/// Reads the server's key from `--endpoint-key`, or else from `--state`; `None` if the directory has none yet.
pub(super) fn endpoint_key(arguments: &ServeOptions) -> anyhow::Result<Option<EndpointKey>> {
    if let Some(directory) = &arguments.machines.state {
        let failed = || format!("--state {}", directory.display());
        if !fs::metadata(directory).with_context(failed)?.is_dir() {
            return Err(anyhow!("--state {}: not a directory", directory.display()));
        }
    }
    if let Some(path) = &arguments.machines.endpoint_key {
        let key = read(path).with_context(|| format!("--endpoint-key {}", path.display()))?;
        let key = key.ok_or_else(|| {
            anyhow!(
                "--endpoint-key: {} must have {} bytes, as `head -c {1} /dev/urandom` makes",
                path.display(),
                EndpointKey::LENGTH
            )
        })?;
        return Ok(Some(key));
    }
    let Some(directory) = &arguments.machines.state else {
        return Ok(None);
    };
    let path = directory.join(KEY_FILE);
    match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("--state: cannot read {}", path.display())),
        Ok(Some(key)) => Ok(Some(key)),
        Ok(None) => Err(anyhow!(
            "--state: {} must have {} bytes; remove it, and the server makes a new one",
            path.display(),
            EndpointKey::LENGTH
        )),
    }
}

/// Reads a file with a key; `None` if it has another length.
fn read(path: &Path) -> io::Result<Option<EndpointKey>> {
    let mut bytes = Vec::new();
    // One byte more reveals a file that is too long.
    let limit = EndpointKey::LENGTH as u64 + 1;
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes.try_into().ok().map(EndpointKey::new))
}

/// Generates a key for the server and stores it in `directory`, readable by its user only. Returns the key of another
/// process if that has just done so.
pub(super) fn create_endpoint_key(directory: &Path) -> anyhow::Result<EndpointKey> {
    let path = directory.join(KEY_FILE);
    // Some network file systems cannot lock a directory.
    let lock = File::open(directory);
    let _locked = lock.map(|lock| flock(&lock, FlockOperation::LockExclusive).map(|()| lock));
    if let Ok(Some(key)) = read(&path) {
        return Ok(key);
    }
    let created = EndpointKey::generate().and_then(|key| write(&path, key.as_bytes()).map(|()| key));
    created.with_context(|| format!("--state: cannot create {}", path.display()))
}

/// Writes a file that only its user can read, atomically, so that neither a crash nor another process of this server
/// leaves a part of it.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Processes in containers may have the same number, so the name is random. Dropping the file removes it.
    let mut file = NamedTempFile::new_in(path.parent().unwrap_or(path))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_start_together_share_one_key() {
        let directory = tempfile::tempdir().unwrap();
        let start = std::sync::Barrier::new(8);
        let create = || {
            start.wait();
            *create_endpoint_key(directory.path()).unwrap().as_bytes()
        };
        let keys = std::thread::scope(|scope| {
            let threads = [(); 8].map(|()| scope.spawn(create));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(keys, [keys[0]; 8]);
    }

    #[test]
    fn nothing_is_left_of_a_file_that_cannot_be_written() {
        let directory = tempfile::tempdir().unwrap();
        let taken = directory.path().join("acme");
        fs::create_dir(&taken).unwrap();
        assert!(write(&taken, b"key").is_err());
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }

    #[test]
    fn a_file_written_from_several_places_at_once_is_whole_and_readable_by_its_user_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("acme.pem");
        let start = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for byte in 0..8 {
                let (path, start) = (&path, &start);
                scope.spawn(move || {
                    start.wait();
                    for _ in 0..20 {
                        write(path, &vec![byte; 1_000 + usize::from(byte)]).unwrap();
                    }
                });
            }
        });
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes, vec![bytes[0]; 1_000 + usize::from(bytes[0])]);
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }
}
