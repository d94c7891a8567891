//! Config files of `video-server`.

/// Keys of the file and possible values.
pub(super) const WORDS: &str = "\
    media listen no-tcp strict cors config controller arm choose-by playout-buffer cert key state log-format \
    metrics qlog idle-limit stall-timeout max-connections max-sessions help version = \" [ ] { } true false \
    \"[::1]:4433\" \"10s\" \"656kB\" \"cubic\" \"--help\" \"-\" \"\" 0 -1 99999999999";

/// Accepts the file, or names the file and an existing line in the error.
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
    let lines = text.lines().count().max(1);
    let has_line = rest[..digits]
        .parse()
        .is_ok_and(|line: usize| (1..=lines + 1).contains(&line));
    // A missing option is on no line.
    let is_missing = rest.starts_with(" the following required arguments were not provided: --");
    assert!(has_line || is_missing, "{said} ({lines} lines)");
}
