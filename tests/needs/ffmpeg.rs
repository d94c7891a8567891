//! What our client writes is the title, to the byte, and a player nobody here wrote decodes every frame of it.
//!
//! Needs `ffmpeg` and `ffprobe` on the PATH. Skips loudly without them; fails without them if `PLAYRATE_REQUIRE_TOOLS` is set.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use sha2::{Digest, Sha256};

const TITLE: &str = "title-720p.mp4";
/// Frames of the embedded title, as `ffprobe -count_frames` counts them.
const FRAMES: &str = "810";

/// Whether the tools are there; says so loudly if not.
fn tools_are_there() -> bool {
    let missing: Vec<_> = ["ffmpeg", "ffprobe"]
        .into_iter()
        .filter(|tool| Command::new(tool).arg("-version").output().is_err())
        .collect();
    if missing.is_empty() {
        return true;
    }
    let why = format!("{} not found on the PATH", missing.join(" and "));
    assert!(env::var_os("PLAYRATE_REQUIRE_TOOLS").is_none(), "{why}");
    println!("SKIPPED: {why}");
    false
}

/// One of the workspace's programs, built if it is not there yet.
fn program(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a test has a path");
    let profile = test.ancestors().nth(2).expect("target/<profile>/deps/<test>");
    let program = profile.join(name);
    if !program.exists() {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", name])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .expect("cargo runs");
        assert!(
            built.success() && program.exists(),
            "{} is not there",
            program.display()
        );
    }
    program
}

/// A server of the repository's title, stopped when dropped.
struct Server {
    child: Child,
    /// What the server says to paste, after the program's name.
    play: Vec<String>,
}

impl Server {
    fn start(directory: &Path) -> Self {
        let mut child = Command::new(program("video-server"))
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--controller",
                "cubic",
                "--media",
            ])
            .arg(directory)
            .stdout(Stdio::piped())
            .spawn()
            .expect("video-server starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let line = output
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("Watch").map(str::to_owned))
            .expect("the server says how to watch");
        let play = line.split_whitespace().skip(1).map(str::to_owned).collect();
        Self { child, play }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already; there is nothing to do about either.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn title() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets").join(TITLE)
}

/// A directory with just the title in it.
fn films() -> tempfile::TempDir {
    let films = tempfile::tempdir().expect("a temporary directory");
    std::fs::copy(title(), films.path().join(TITLE)).expect("the title is copied");
    films
}

/// Runs `video-client play … --output -` into `tool`.
fn piped_into(server: &Server, tool: &mut Command) -> Output {
    let mut client = Command::new(program("video-client"))
        .args(&server.play)
        .args(["--output", "-"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("video-client starts");
    let pipe = client.stdout.take().expect("piped");
    let output = tool.stdin(pipe).output().expect("the tool runs");
    assert!(
        client.wait().expect("the client ends").success(),
        "the client failed"
    );
    output
}

#[test]
fn ffmpeg_decodes_every_frame_of_the_piped_title_without_an_error() {
    if !tools_are_there() {
        return;
    }
    let films = films();
    let server = Server::start(films.path());
    let mut ffmpeg = Command::new("ffmpeg");
    let decoded = piped_into(
        &server,
        ffmpeg.args(["-v", "error", "-i", "pipe:0", "-f", "null", "-"]),
    );
    let errors = String::from_utf8_lossy(&decoded.stderr);
    assert!(decoded.status.success() && errors.is_empty(), "{errors}");

    let mut ffprobe = Command::new("ffprobe");
    ffprobe.args(["-v", "error", "-count_frames", "-select_streams", "v:0"]);
    ffprobe.args([
        "-show_entries",
        "stream=nb_read_frames",
        "-of",
        "csv=p=0",
        "-i",
        "pipe:0",
    ]);
    let counted = piped_into(&server, &mut ffprobe);
    assert_eq!(String::from_utf8_lossy(&counted.stdout).trim(), FRAMES);
}

#[test]
fn the_piped_bytes_are_the_titles() {
    if !tools_are_there() {
        return;
    }
    let films = films();
    let server = Server::start(films.path());
    let client = Command::new(program("video-client"))
        .args(&server.play)
        .args(["--output", "-"])
        .output()
        .expect("video-client runs");
    assert!(
        client.status.success(),
        "{}",
        String::from_utf8_lossy(&client.stderr)
    );
    let file = std::fs::read(title()).expect("the title is there");
    assert_eq!(Sha256::digest(&client.stdout), Sha256::digest(&file));
}
