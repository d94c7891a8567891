//! The directory that outlives a server.

use std::fs;

use http::HeaderMap;
use playrate_transport::{ConnectionLost, ExchangeError};

use crate::cli::process::{checked, refused, start, start_on};
use playrate_test_support::{Media, assert_contains, fetch};

#[tokio::test]
async fn a_server_that_was_killed_resets_its_connections_when_it_is_started_again() {
    let (media, state) = (Media::new(), Media::new());
    media.put("file.bin", [7; 1_000]);
    let arguments = ["--no-tcp", "--state", &state.text("")];
    let first = start(media.root(), &arguments);
    let address = first.address().to_string();
    let connection = first.connect().await;
    assert_eq!(fetch(&connection, "/file.bin", HeaderMap::new()).await, 1_000);
    let key = fs::read(state.path("endpoint-key")).unwrap();
    // Killed, so that it does not inform its clients.
    drop(first);
    let _second = start_on(&address, media.root(), &arguments);
    let error = connection.get("/file.bin", HeaderMap::new()).await.unwrap_err();
    assert!(
        matches!(error, ExchangeError::Connection(ConnectionLost::Reset)),
        "{error}"
    );
    assert_eq!(fs::read(state.path("endpoint-key")).unwrap(), key);
}

#[test]
fn each_state_has_a_key_of_its_own_that_only_its_user_reads() {
    let media = Media::new();
    let keys = [(); 2].map(|()| {
        let state = Media::new();
        start(media.root(), &["--state", &state.text("")]).stop();
        let file = state.path("endpoint-key");
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(state.root()).unwrap().count(), 1);
        fs::read(file).unwrap()
    });
    assert_eq!((keys[0].len(), keys[1].len()), (32, 32));
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn a_key_of_another_length_is_refused() {
    let (media, state) = (Media::new(), Media::new());
    let (films, directory) = (media.text(""), state.text(""));
    for length in [0, 31, 33] {
        state.put("endpoint-key", vec![1; length]);
        let complaint = refused(&["serve", "--media", &films, "--state", &directory]);
        assert_contains(&complaint, &["--state", &directory, "endpoint-key", "32 bytes"]);
    }
}

#[test]
fn checking_a_file_creates_no_key() {
    let (media, state) = (Media::new(), Media::new());
    let [films, kept] = [&media, &state].map(|directory| directory.text(""));
    media.put(
        "server.toml",
        format!("media = \"{films}\"\nstate = \"{kept}\"\n"),
    );
    checked(&media.text("server.toml"));
    assert_eq!(fs::read_dir(state.root()).unwrap().count(), 0);
}
