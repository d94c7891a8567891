//! The directory that outlives a server.

use std::fs;

use http::HeaderMap;
use playrate_transport::{ConnectionLost, ExchangeError};

use crate::cli::process::{refused, run, start, start_on};
use playrate_test_support::{assert_contains, fetch};

#[tokio::test]
async fn a_server_that_was_killed_resets_its_connections_when_it_is_started_again() {
    let (media, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(media.path().join("file.bin"), [7; 1_000]).unwrap();
    let arguments = ["--no-tcp", "--state", state.path().to_str().unwrap()];
    let first = start(media.path(), &arguments);
    let address = first.address().to_string();
    let connection = first.connect().await;
    assert_eq!(fetch(&connection, "/file.bin", HeaderMap::new()).await, 1_000);
    let key = fs::read(state.path().join("endpoint-key")).unwrap();
    // Killed, so that it does not inform its clients.
    drop(first);
    let _second = start_on(&address, media.path(), &arguments);
    let error = connection.get("/file.bin", HeaderMap::new()).await.unwrap_err();
    assert!(
        matches!(error, ExchangeError::Connection(ConnectionLost::Reset)),
        "{error}"
    );
    assert_eq!(fs::read(state.path().join("endpoint-key")).unwrap(), key);
}

#[test]
fn each_state_has_a_key_of_its_own_that_only_its_user_reads() {
    let media = tempfile::tempdir().unwrap();
    let keys = [(); 2].map(|()| {
        let state = tempfile::tempdir().unwrap();
        start(media.path(), &["--state", state.path().to_str().unwrap()]).stop();
        let file = state.path().join("endpoint-key");
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1);
        fs::read(file).unwrap()
    });
    assert_eq!((keys[0].len(), keys[1].len()), (32, 32));
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn a_key_of_another_length_is_refused() {
    let (media, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let directory = state.path().to_str().unwrap();
    for length in [0, 31, 33] {
        fs::write(state.path().join("endpoint-key"), vec![1; length]).unwrap();
        let films = media.path().to_str().unwrap();
        let complaint = refused(&["serve", "--media", films, "--state", directory]);
        assert_contains(&complaint, &["--state", directory, "endpoint-key", "32 bytes"]);
    }
}

#[test]
fn checking_a_file_creates_no_key() {
    let (media, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = media.path().join("server.toml");
    let [films, kept] = [&media, &state].map(|directory| directory.path().display().to_string());
    fs::write(&file, format!("media = \"{films}\"\nstate = \"{kept}\"\n")).unwrap();
    let output = run(&["check", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(fs::read_dir(state.path()).unwrap().count(), 0);
}
