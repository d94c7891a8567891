//! Numbers of pages with their sources.

pub(crate) const README: &str = "README.md";

/// `PAGE | WORDS | SOURCE | DETAIL` in each line. The words are without Markdown and with one space between them. The
/// source is one of:
///
/// - a file that contains the detail, or without a detail all numbers of the words;
/// - a command in backquotes that prints these numbers. If the page has the command, `commands.rs` runs and compares
///   it; otherwise it is repeated by hand.
const CLAIMS: &str = r#"
README.md | on 11 of 87 held-out paths under video, on 14 under BBRv3 | docs/claim.svg | of 87: video 11, bbr 14,
README.md | 23 under CUBIC and 24 under Copa | docs/claim.svg | copa 24, cubic 23
README.md | 11 of 87 under video, 14 under bbr, 24 under copa, 23 under | docs/claim.svg | 11, bbr 14, copa 24, cubic 23
README.md | with a third of the queueing delay | tests/pages/numbers.rs | is_a_third_of_cubics
README.md | 4.4 % beyond what the path loses anyway | README.md | `video` | 0.50 % | 1.00 | 1.6 | 4.4 % |
README.md | against CUBIC's 2.6 % | README.md | `cubic` | 9.8 % | 1.00 | 4.6 | 2.6 % |
README.md | video alone adds 8 ms, cubic 343 ms | docs/matrix.md | by at most 8 ms, `cubic` by as much as
README.md | means over the 87 held-out paths | docs/claim.svg | of 87: video 11
README.md | 6 Mbit/s down, 50 kbit/s up, 60 ms, and one packet in 100 | crates/lab/src/demo/args.rs |
README.md | Three viewers of the same title over the same path | docs/demo.svg | video: never stalls
README.md | builds for two and a half minutes on two idle cores | `cargo build --release -p playrate-lab` |
README.md | It adds ten seeds | crates/lab/src/demo/mod.rs | const SEEDS: u32 = 10;
README.md | stalls of 19 to 28 s under CUBIC, 18 to 25 s under BBRv3 | `lab demo` |
README.md | From Caddy it is 31 to 36 s | docs/benchmarks.md | 33.5 [31.3–36.4]
README.md | gets about half of the link | docs/shared.svg | video 10.1.
README.md | Rust 1.88 or later | Cargo.toml | rust-version = "1.88"
README.md | noq program ten minutes | docs/tutorials/embedder.md | In ten minutes,
README.md | titles five minutes | docs/tutorials/operator.md | It takes five minutes
README.md | experiments ten minutes | docs/tutorials/researcher.md | It takes ten minutes
README.md | five papers repeated | docs/papers/results.md | [five papers](
README.md | the best of eight controllers | tests/pages/numbers.rs | matrix.len() - 1, 8
README.md | adds six small crates to quinn | tests/rooms.rs | controllers_alone_bring_a_quinn_program_one_crate
README.md | hundreds of times faster than real time | `cargo bench --bench sessions -- --check` |
README.md | means, 95 % intervals | docs/statistics.md |
README.md | quinn 0.11 has no hook | Cargo.toml | quinn = { version = "0.11.
docs/tutorials/researcher.md | 18 % under cubic, 2.8 % under video | `lab run first-look` |
docs/tutorials/researcher.md | 19 to 28 s under CUBIC and for 18 to 25 s under BBRv3 | README.md |
docs/tutorials/researcher.md | 6 Mbit/s down, 50 kbit/s up, 60 ms, one packet in 100 | crates/lab/src/demo/args.rs |
"#;

/// The claims as their page, words, source and detail.
pub(crate) fn claims() -> impl Iterator<Item = [&'static str; 4]> {
    let split = |line: &'static str| -> Vec<_> { line.splitn(4, '|').map(str::trim).collect() };
    CLAIMS
        .trim()
        .lines()
        .map(move |line| split(line).try_into().expect(line))
}
