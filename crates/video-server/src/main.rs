//! The `video-server` binary; [`video_server::main`] does the work.

fn main() -> std::process::ExitCode {
    video_server::main()
}
