//! Responses while the store is slow, fails or refuses.

use std::time::Duration;

use super::store::Fault;
use super::{Site, get, noise};
use crate::support::until;

/// A server of two objects, after a request for the first one, and the contents of both.
fn warm_and_cold(arguments: &[&str]) -> (Site, Vec<u8>, Vec<u8>) {
    let (warm, cold) = (noise(300_000, 1), noise(300_000, 2));
    let site = Site::start(
        |store| {
            store.put("published/warm.bin", warm.clone());
            store.put("published/cold.bin", cold.clone());
        },
        arguments,
    );
    assert!(site.get("/warm.bin").content == warm);
    (site, warm, cold)
}

pub(super) fn a_failing_store_holds_up_only_what_is_not_kept() {
    let (site, warm, cold) = warm_and_cold(&[]);
    site.proxy.set(Fault::Unavailable);
    let refused = site.get("/cold.bin");
    assert_eq!(refused.status, 503);
    assert!(refused.fields.contains_key("retry-after"));
    assert_eq!(site.get("/new.bin").status, 503, "it may exist");
    // The kept object is served even if its version was verified long ago.
    std::thread::sleep(Duration::from_millis(600));
    assert!(site.get("/warm.bin").content == warm);
    assert!(site.metric("playrate_origin_failed_requests_total") >= 2);
    site.proxy.set(Fault::None);
    assert!(site.get("/cold.bin").content == cold);
    assert_eq!(site.get("/new.bin").status, 404);
}

pub(super) fn a_store_that_refuses_the_credentials_is_a_bad_gateway() {
    let (site, warm, cold) = warm_and_cold(&[]);
    site.proxy.set(Fault::WrongSignature);
    assert_eq!(site.get("/cold.bin").status, 502);
    until("the version of the kept object is not fresh", || {
        site.get("/warm.bin").status == 502
    });
    site.proxy.set(Fault::None);
    assert!(site.get("/warm.bin").content == warm);
    assert!(site.get("/cold.bin").content == cold);
}

pub(super) fn a_slow_store_holds_up_only_what_waits_for_it() {
    let (site, warm, cold) = warm_and_cold(&["--store-freshness", "60s"]);
    site.proxy.set(Fault::Silence);
    let connection = site.connect();
    let same = connection.clone();
    let waiting = site
        .runtime
        .spawn(async move { get(&connection, "/cold.bin", &[]).await });
    // On the same connection, while the other response waits.
    for _ in 0..20 {
        let beside = site.runtime.block_on(get(&same, "/warm.bin", &[]));
        assert!(beside.content == warm);
    }
    let late = site.runtime.block_on(waiting).expect("the reader ends");
    assert_eq!(late.status, 503, "the store is given up after its time");
    site.proxy.set(Fault::Delay(Duration::from_millis(300)));
    assert!(site.get("/cold.bin").content == cold);
}

pub(super) fn a_connection_that_breaks_is_resumed() {
    let film = noise(3_000_000, 1);
    let site = Site::start(|store| store.put("published/film.bin", film.clone()), &[]);
    site.proxy.set(Fault::CutOnce(1_000_000));
    let answer = site.get("/film.bin");
    assert!(answer.is_whole && answer.content == film);
    assert_eq!(site.store.gets("published/film.bin"), 2);
}
