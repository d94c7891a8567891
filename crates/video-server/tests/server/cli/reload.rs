//! A certificate is replaced while the server runs.

use http::HeaderMap;
use playrate_transport::{Connection, Pin, Target};

use crate::cli::process::start;
use playrate_test_support::{Media, ServerProcess, assert_contains, certify, client, eventually, fetch};

/// Puts a new certificate and its key into `directory`, and returns its pin.
fn renew(directory: &Media) -> Pin {
    Pin::of(&certify(directory.root())).unwrap()
}

/// A server of `file.bin` with these further arguments, its pin, and the directory of its certificate.
fn serve(more: &[&str]) -> (Media, Pin, ServerProcess) {
    let directory = Media::new();
    directory.put("media/file.bin", [7; 10_000]);
    let pin = renew(&directory);
    let (cert, key) = (directory.text("cert.pem"), directory.text("key.pem"));
    let arguments = [&["--cert", &cert, "--key", &key], more].concat();
    let serving = start(&directory.path("media"), &arguments);
    (directory, pin, serving)
}

async fn connect(serving: &ServerProcess, pin: Pin) -> Option<Connection> {
    let target = Target::at("localhost", serving.address());
    client(pin, |_| {}).connect(&target).await.ok()
}

/// Waits until a client that trusts only `pin` connects.
async fn becomes(serving: &ServerProcess, pin: Pin) {
    eventually("the new certificate is used", async || {
        connect(serving, pin).await
    })
    .await;
}

async fn length(connection: &Connection) -> u64 {
    fetch(connection, "/file.bin", HeaderMap::new()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_hang_up_new_connections_get_the_new_certificate_and_a_bad_one_changes_nothing() {
    let (directory, first, serving) = serve(&[]);
    let old = connect(&serving, first).await.unwrap();
    serving.signal("HUP");
    serving.logs("the certificate is the one in use", 1).await;

    let second = renew(&directory);
    assert!(
        connect(&serving, second).await.is_none(),
        "it has not received SIGHUP yet"
    );
    serving.signal("HUP");
    becomes(&serving, second).await;
    assert!(connect(&serving, first).await.is_none(), "the old one is gone");
    assert_eq!(length(&old).await, 10_000, "who is connected stays so");

    directory.put("cert.pem", "no certificate");
    serving.signal("HUP");
    serving.logs("the previous certificate stays in use", 1).await;
    let still = connect(&serving, second).await.unwrap();
    assert_eq!(length(&still).await, 10_000);

    let third = renew(&directory);
    serving.signal("HUP");
    becomes(&serving, third).await;
    old.close();
    still.close();
    assert_contains(&serving.stop(), &["cert.pem", &third.to_string()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_waits_to_drain_takes_a_new_certificate_as_before() {
    let (directory, _, serving) = serve(&["--drain-delay", "10min"]);
    serving.signal("TERM");
    serving.logs("a second signal ends it at once", 1).await;
    let second = renew(&directory);
    serving.signal("HUP");
    becomes(&serving, second).await;
    serving.signal("TERM");
    serving.exits(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hang_up_does_not_end_a_server_without_a_certificate_of_its_own() {
    let media = Media::new();
    media.put("file.bin", [7; 10_000]);
    let serving = start(media.root(), &[]);
    serving.signal("HUP");
    serving.logs("no --cert to read again", 1).await;
    let connection = serving.connect().await;
    assert_eq!(length(&connection).await, 10_000);
    connection.close();
    serving.stop();
}
