use std::time::{Duration, SystemTime};

use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ObjectMeta, ObjectStoreExt as _};

use super::*;

mod hostile;

/// An origin that knows `film.mp4` and has no permits left for further requests.
fn overloaded() -> (Origin, Arc<ObjectVersion>) {
    let mut options = OriginOptions::new("s3://films");
    options.timeout = Duration::from_millis(20);
    let origin = Origin::open(&options).unwrap();
    let shared = &origin.0.shared;
    let meta = ObjectMeta {
        location: Path::from("film.mp4"),
        last_modified: SystemTime::now().into(),
        size: 1_000,
        e_tag: Some("\"a\"".to_owned()),
        version: None,
    };
    let version = Arc::new(ObjectVersion::new("s3://films/", meta).unwrap());
    shared.set_known("film.mp4".to_owned(), Some(Arc::clone(&version)));
    shared.confirm(&version, false);
    for permits in [&shared.heads, &shared.known_heads, &shared.gets] {
        permits.forget_permits(usize::MAX >> 4);
    }
    (origin, version)
}

#[test]
fn who_waits_too_long_behind_other_requests_is_told_so() {
    let (origin, _) = overloaded();
    let handle = origin.0.shared.handle.clone();
    for name in ["film.mp4", "unknown.mp4"] {
        let error = handle.block_on(origin.look_up(name)).unwrap_err();
        let text = error.to_string();
        assert!(error.is_temporary(), "{text}");
        assert!(text.contains("too many requests wait"), "{text}");
    }
    let object = origin.known("film.mp4").unwrap();
    let error = handle.block_on(object.reader().read(0..10, 10)).unwrap_err();
    assert!(error.to_string().contains("too many requests wait"), "{error}");
}

#[test]
fn a_known_version_is_not_asked_for_again_just_after_a_failure() {
    let (origin, version) = overloaded();
    assert!(!origin.is_fresh("film.mp4"));
    let handle = origin.0.shared.handle.clone();
    handle.block_on(origin.look_up("film.mp4")).unwrap_err();
    assert!(origin.is_fresh("film.mp4"));
    origin.0.shared.confirm(&version, false);
    assert!(!origin.is_fresh("film.mp4"));
}

#[test]
fn objects_have_names_below_the_location_and_one_that_was_replaced_is_noticed() {
    let bucket = Arc::new(InMemory::new());
    let mut options = OriginOptions::new("s3://films/published");
    options.freshness = Duration::ZERO;
    let below = Arc::new(PrefixStore::new(Arc::clone(&bucket), "published"));
    let started = OriginRuntime::start(below, "s3://films/published/".to_owned(), &options).unwrap();
    let origin = Origin(Arc::new(started));
    let handle = origin.0.shared.handle.clone();
    let put = |name| handle.block_on(bucket.put(&Path::from(name), "film".into()));
    for name in ["published/a/film.mp4", "published-too/b.mp4", "c.mp4"] {
        put(name).unwrap();
    }
    let (name, url) = ("a/film.mp4", "s3://films/published/a/film.mp4");
    let [(listed, object)] = &origin.list().unwrap()[..] else {
        panic!("more or less than one object")
    };
    assert_eq!((&**listed, &*object.version.url), (name, url));
    assert_eq!(origin.url(name), url);
    let look_up = |name| handle.block_on(origin.look_up(name)).unwrap();
    assert_eq!(look_up(name).unwrap().version, object.version);
    assert!(look_up("c.mp4").is_none());
    let verify = |opened: &Object| handle.block_on(origin.verify(name, Some(opened)));
    verify(object).unwrap();
    put("published/a/film.mp4").unwrap();
    // A response from the older version stays refused after the newer one is known.
    for _ in 0..2 {
        assert!(matches!(verify(object), Err(OriginError::Changed { url: changed }) if changed == url));
    }
    verify(&look_up(name).unwrap()).unwrap();
}
