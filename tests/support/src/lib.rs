//! Helpers shared by the integration tests of several crates: server processes, clients, files, waiting.
//!
//! A test waits for a condition with [`until`] or [`eventually`], not for a time: the machine may be busy.
#![expect(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]

mod client;
mod files;
mod parallel;
mod process;
pub mod raw;
mod usage;
pub mod wire;

use std::time::Duration;

use playrate_transport::time;
use quinn::TokioRuntime;

pub use client::{certificate, certify, client, fetch, h3_config, put_private, tls_config};
pub use files::{Media, SCENARIO, TITLE, asset, films, fixture, root, title};
pub use parallel::in_parallel;
pub use process::{Running, ServerProcess, program};
pub use usage::Process;

/// Time after which a test that waits for something has failed, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for this time on tokio's clock.
pub async fn sleep(duration: Duration) {
    time::sleep(&TokioRuntime, duration).await;
}

/// Calls `look` repeatedly until it returns a value, for at most [`PATIENCE`].
pub async fn eventually<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    let seen = time::timeout(&TokioRuntime, PATIENCE, looking).await;
    seen.unwrap_or_else(|_| panic!("never: {what}"))
}

/// Waits until `look` returns true, at most for [`PATIENCE`].
pub async fn until(what: &str, look: impl AsyncFn() -> bool) {
    eventually(what, async || look().await.then_some(())).await;
}

/// Asserts how the chunks of responses 0 and 1 arrived, given as response and size in this `order`: less than 1 MB of
/// the earlier response 0 before the end of response 1 if that one `overtakes`, otherwise the reverse.
pub fn assert_order(order: &[(usize, usize)], overtakes: bool) {
    let first = usize::from(overtakes);
    let end = order.iter().rposition(|(number, _)| *number == first).unwrap();
    let before = order[..end].iter().filter(|(number, _)| *number != first);
    let before: usize = before.map(|(_, bytes)| bytes).sum();
    assert!(before < 1_000_000, "{before} B of the other response");
}

/// Bytes of a program's output as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Fails if one of `parts` is missing in `text`.
#[track_caller]
pub fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
}
