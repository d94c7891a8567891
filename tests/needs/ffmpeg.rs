//! The file that our client writes equals the title, byte for byte, and ffmpeg decodes every frame of it.
//!
//! Needs `ffmpeg` and `ffprobe` on the PATH.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use libtest_mimic::Trial;
use sha2::{Digest, Sha256};

use crate::support;
use playrate_test_support::{Media, ServerProcess, assert_contains, films, program, root, text, title};

/// Frames of the embedded title, as `ffprobe -count_frames` counts them.
const FRAMES: &str = "810";

pub(crate) fn tests() -> Vec<Trial> {
    let missing = support::on_the_path(&[("ffmpeg", "-version"), ("ffprobe", "-version")]);
    tests![
        &missing,
        every_frame_of_the_piped_title_decodes_without_an_error,
        the_piped_bytes_are_the_titles,
        the_line_of_the_tutorial_makes_a_film_that_the_server_offers
    ]
}

/// A server of the repository's title, and the arguments that it announces for the client.
fn serve(directory: &Path) -> (ServerProcess, Vec<String>) {
    let server = support::serve(directory, &["--controller", "cubic"]);
    let line = server.announced("Watch");
    let words = line.split_whitespace().skip_while(|word| *word != "play");
    let play = words.map(str::to_owned).collect();
    (server, play)
}

/// Runs `video-client play … --output -` into `tool`.
fn piped_into(play: &[String], tool: &mut Command) -> Output {
    let mut client = Command::new(program("video-client"))
        .args(play)
        .args(["--output", "-"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("video-client starts");
    let pipe = client.stdout.take().expect("piped");
    let output = tool.stdin(pipe).output().expect("the tool runs");
    let status = client.wait().expect("the client ends");
    assert!(status.success(), "the client failed");
    output
}

fn every_frame_of_the_piped_title_decodes_without_an_error() {
    let films = films();
    let (_server, play) = serve(films.path());
    let mut ffmpeg = Command::new("ffmpeg");
    let decoded = piped_into(&play, ffmpeg.args("-v error -i pipe:0 -f null -".split(' ')));
    let errors = text(&decoded.stderr);
    assert!(decoded.status.success() && errors.is_empty(), "{errors}");

    let line = "-v error -count_frames -select_streams v:0 -show_entries stream=nb_read_frames -of csv=p=0 -i pipe:0";
    let mut ffprobe = Command::new("ffprobe");
    ffprobe.args(line.split(' '));
    let counted = piped_into(&play, &mut ffprobe);
    assert_eq!(String::from_utf8_lossy(&counted.stdout).trim(), FRAMES);
}

fn the_piped_bytes_are_the_titles() {
    let films = films();
    let (_server, play) = serve(films.path());
    let client = Command::new(program("video-client"))
        .args(&play)
        .args(["--output", "-"])
        .output()
        .expect("video-client runs");
    assert!(client.status.success(), "{}", text(&client.stderr));
    let file = std::fs::read(title()).expect("the title is there");
    assert_eq!(Sha256::digest(&client.stdout), Sha256::digest(&file));
}

fn the_line_of_the_tutorial_makes_a_film_that_the_server_offers() {
    let page = std::fs::read_to_string(root().join("docs/tutorials/operator.md")).expect("the tutorial");
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix("ffmpeg -i yours.mov "))
        .expect("its line");
    let home = Media::new();
    std::fs::create_dir(home.path("films")).expect("a directory");
    home.copy("progressive-moov-first.mp4", "yours.mov");
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg
        .args(["-i", "yours.mov"])
        .args(line.split(' '))
        .current_dir(home.root());
    let made = ffmpeg.output().expect("ffmpeg runs");
    assert!(made.status.success(), "{}", text(&made.stderr));
    let server = support::serve(&home.path("films"), &[]);
    assert_contains(
        server.announcement(),
        &["Serving 1 title and 0 other files", "avc1.", "mp4a.40.2"],
    );
}
