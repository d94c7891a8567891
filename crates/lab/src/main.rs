//! The `lab` binary; [`lab::main`] does the work.

fn main() -> std::process::ExitCode {
    lab::main()
}
