//! Config files of `video-server`.

/// Keys of the file and values that they may have.
pub(super) const WORDS: &str = "\
    media listen no-tcp strict cors config controller arm choose-by playout-buffer cert key state log-format \
    metrics qlog idle-limit stall-timeout max-connections max-sessions help version = \" [ ] { } true false \
    \"[::1]:4433\" \"10s\" \"656kB\" \"cubic\" \"--help\" \"-\" \"\" 0 -1 99999999999";

/// Names the file and an existing line, or accepts it.
pub(super) fn check(bytes: &[u8]) {
    let Ok(text) = core::str::from_utf8(bytes) else {
        return;
    };
    let Err(said) = video_server::testing::check_config("fuzzed.toml", text) else {
        return;
    };
    let rest = said
        .strip_prefix("fuzzed.toml:")
        .unwrap_or_else(|| panic!("the file is not named: {said}"));
    let digits = rest
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(rest.len());
    // Without a line if an option is missing.
    let line = rest[..digits].parse::<usize>().ok();
    let lines = text.lines().count().max(1);
    assert!(
        line.is_none_or(|line| (1..=lines + 1).contains(&line)),
        "{said} ({lines} lines)"
    );
}
