//! Cost of viewers 20 ms away who fetch at the title's own rate: `video-server` and Caddy, each with many viewers.

use std::path::Path;
use std::process::Command;

use super::caddy::{Caddy, Certificate, ServerProcess};
use super::spread;

const ROUNDS: usize = 5;
const CONTROLLERS: [&str; 2] = ["video", "cubic"];
const TITLE: &str = "title-720p.mp4";

/// Prints every server's processor time per GB, with `viewers` viewers.
pub(crate) fn compare(viewers: u64) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = Command::new("cargo")
        .args(["build", "--release", "-p", "video-server", "-p", "video-client"])
        .args(["--bin", "video-server", "--example", "many_viewers"])
        .current_dir(&root)
        .status();
    assert!(
        built.unwrap().success(),
        "video-server and many_viewers must build"
    );
    let caddy = Caddy::build();
    let certificate = Certificate::new();
    let media = tempfile::tempdir().unwrap();
    std::fs::copy(root.join("assets").join(TITLE), media.path().join(TITLE)).unwrap();

    let mut names: Vec<_> = CONTROLLERS.map(|name| format!("`video-server`, `{name}`")).into();
    match &caddy {
        Ok(_) => names.push("Caddy".to_owned()),
        Err(reason) => println!("without Caddy: {reason}"),
    }
    let mut costs = vec![Vec::new(); names.len()];
    for round in 0..ROUNDS {
        for turn in 0..names.len() {
            let which = (turn + round) % names.len();
            let server = match (CONTROLLERS.get(which), &caddy) {
                (None, Ok(caddy)) => caddy.serve(media.path(), &certificate),
                (Some(controller), _) => video_server(&root, media.path(), &certificate, controller),
                (None, Err(_)) => unreachable!("there is no such name"),
            };
            costs[which].push(cost(&root, &server, &certificate, viewers));
        }
    }
    println!("{viewers} viewers at the title's rate, 20 ms, {ROUNDS} rounds\n");
    println!("| server | CPU s/GB | `video` ÷ this |\n| --- | ---: | ---: |");
    for (name, of) in names.iter().zip(&costs) {
        let ratios = costs[0].iter().zip(of).map(|(video, other)| video / other);
        println!(
            "| {name} | {} | {} |",
            spread(of.clone()),
            spread(ratios.collect())
        );
    }
}

fn video_server(root: &Path, media: &Path, certificate: &Certificate, controller: &str) -> ServerProcess {
    ServerProcess::start(|port| {
        let mut command = Command::new(root.join("target/release/video-server"));
        command.args(["serve", "--no-tcp", "--no-watch", "--controller", controller]);
        command.args([
            "--max-connections",
            "4096",
            "--max-connections-per-address",
            "4096",
        ]);
        command
            .args(["--listen", &format!("127.0.0.1:{port}"), "--media"])
            .arg(media);
        command.arg("--cert").arg(certificate.file("certificate.pem"));
        command.arg("--key").arg(certificate.file("key.pem"));
        command
    })
}

/// Processor time of the server in seconds per GB that the viewers receive.
fn cost(root: &Path, server: &ServerProcess, certificate: &Certificate, viewers: u64) -> f64 {
    let rows = certificate.file("rows.jsonl");
    let url = format!("https://localhost:{}/{TITLE}", server.port);
    let run = Command::new("taskset")
        .args(["-c", "1"])
        .arg(root.join("target/release/examples/many_viewers"))
        .args([&url, "--pin", &certificate.pin.to_string(), "--rtt", "20ms"])
        .args([
            "--sessions",
            &viewers.to_string(),
            "--server-process",
            &server.id().to_string(),
        ])
        .args(["--arrive", "3s", "--lasts", "15s", "--json"])
        .arg(&rows)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let row: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&rows).unwrap()).unwrap();
    assert_eq!(row["watched"], viewers, "{row}");
    row["server_cpu_s_per_gb"].as_f64().unwrap()
}
