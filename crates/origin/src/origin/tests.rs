use std::time::SystemTime;

use object_store::ObjectMeta;

use super::*;

/// An origin that knows `film.mp4`, and whose requests all wait for others.
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
        assert!(
            error.is_temporary() && text.contains("too many requests wait"),
            "{text}"
        );
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
