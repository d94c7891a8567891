//! The `lab` binary; [`lab::main`] does the work.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    lab::main().await
}
