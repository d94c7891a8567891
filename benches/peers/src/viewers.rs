//! Cost of many viewers: `video-server`, Caddy and nginx over HTTP/3, with viewers who fetch at the title's own rate;
//! and over TCP, with downloads as fast as they go.

use std::path::Path;
use std::process::Command;

use super::process::Process;
use super::servers::{Caddy, Certificate, Nginx, ServerProcess, video_server, workspace};
use super::spread;

const ROUNDS: usize = 5;
const TITLE: &str = "title-720p.mp4";

/// A server by its name in the table.
type Peer<'a> = (String, Box<dyn Fn(&Path, &Certificate) -> ServerProcess + 'a>);

/// Prints the processor time per GB of every server over HTTP/3, with `viewers` viewers at this round-trip time.
pub(crate) fn over_udp(viewers: u64, rtt: &str) {
    build();
    let media = tempfile::tempdir().unwrap();
    std::fs::copy(workspace().join("assets").join(TITLE), media.path().join(TITLE)).unwrap();
    println!("{viewers} viewers at the title's rate, {rtt}, {ROUNDS} rounds");
    compare(&["video", "cubic"], media.path(), |server, certificate| {
        watched(server, certificate, viewers, rtt)
    });
}

/// Prints the processor time per GB of every server over HTTP/2 and HTTP/1.1, in eight downloads at once.
pub(crate) fn over_tcp(megabytes: u64) {
    build();
    let media = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(media.path().join("large.bin")).unwrap();
    file.set_len(megabytes * 1_000_000).unwrap();
    for version in ["--http2", "--http1.1"] {
        println!("curl {version}, 8 downloads of {megabytes} MB, {ROUNDS} rounds");
        compare(&["video"], media.path(), |server, _| {
            downloaded(server, version, megabytes)
        });
    }
}

/// Measures `cost` with each server in changing order. Ratios are within a round.
fn compare(controllers: &[&str], media: &Path, cost: impl Fn(&ServerProcess, &Certificate) -> f64) {
    let (caddy, nginx) = (Caddy::build(), Nginx::find());
    let certificate = Certificate::new();
    let mut peers: Vec<Peer<'_>> = Vec::new();
    for &controller in controllers {
        let name = format!("`video-server`, `{controller}`");
        let serve =
            move |media: &Path, certificate: &Certificate| video_server(media, certificate, controller);
        peers.push((name, Box::new(serve)));
    }
    match &caddy {
        Ok(caddy) => peers.push(("Caddy".to_owned(), Box::new(|media, of| caddy.serve(media, of)))),
        Err(reason) => println!("without Caddy: {reason}"),
    }
    match &nginx {
        Ok(nginx) => peers.push(("nginx".to_owned(), Box::new(|media, of| nginx.serve(media, of)))),
        Err(reason) => println!("without nginx: {reason}"),
    }
    let mut costs = vec![Vec::new(); peers.len()];
    let mut kernel_shares = costs.clone();
    for round in 0..ROUNDS {
        for turn in 0..peers.len() {
            let which = (turn + round) % peers.len();
            let server = (peers[which].1)(media, &certificate);
            costs[which].push(cost(&server, &certificate));
            kernel_shares[which].push(kernel_share(server.id()));
        }
    }
    println!("\n| server | CPU s/GB | `video-server` ÷ this | in the kernel |\n| --- | ---: | ---: | ---: |");
    for (((name, _), of), shares) in peers.iter().zip(&costs).zip(&kernel_shares) {
        let ratios = costs[0].iter().zip(of).map(|(ours, other)| ours / other);
        println!(
            "| {name} | {} | {} | {} |",
            spread(of.clone()),
            spread(ratios.collect()),
            spread(shares.clone())
        );
    }
    println!();
}

/// Share of a process's CPU time that the kernel took for it, receiving by the other end of loopback included.
fn kernel_share(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // The name in parentheses may contain spaces. User and system time are the 14th and 15th field (proc_pid_stat(5)).
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    let times: Vec<f64> = fields
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse().unwrap())
        .collect();
    times[1] / (times[0] + times[1])
}

fn build() {
    let built = Command::new("cargo")
        .args(["build", "--release", "-p", "video-server", "-p", "video-client"])
        .args(["--bin", "video-server", "--example", "many_viewers"])
        .current_dir(workspace())
        .status();
    assert!(
        built.unwrap().success(),
        "video-server and many_viewers must build"
    );
}

/// Processor time of the server in seconds per GB that the viewers receive.
fn watched(server: &ServerProcess, certificate: &Certificate, viewers: u64, rtt: &str) -> f64 {
    let rows = certificate.file("rows.jsonl");
    let url = format!("https://localhost:{}/{TITLE}", server.port);
    let run = Command::new("taskset")
        .args(["-c", "1"])
        .arg(workspace().join("target/release/examples/many_viewers"))
        .args([&url, "--pin", &certificate.pin.to_string()])
        .args(if rtt == "0ms" { vec![] } else { vec!["--rtt", rtt] })
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
    std::fs::remove_file(&rows).unwrap();
    assert_eq!(row["watched"], viewers, "{row}");
    row["server_cpu_s_per_gb"].as_f64().unwrap()
}

/// Processor time of the server in seconds per GB, without the time of its start.
fn downloaded(server: &ServerProcess, version: &str, megabytes: u64) -> f64 {
    let used = || Process::read(server.id()).unwrap().processor_time;
    let url = format!("https://localhost:{}/large.bin", server.port);
    let before = used();
    let downloads: Vec<_> = (0..8)
        .map(|_| {
            let mut curl = Command::new("taskset");
            curl.args([
                "-c",
                "1",
                "curl",
                "--silent",
                "--fail",
                "--insecure",
                "--retry-connrefused",
                version,
            ]);
            curl.args([
                "--retry",
                "5",
                "--output",
                "/dev/null",
                "--write-out",
                "%{size_download}",
                &url,
            ]);
            curl.stdout(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for download in downloads {
        let output = download.wait_with_output().unwrap();
        let received: u64 = String::from_utf8_lossy(&output.stdout).parse().unwrap();
        assert_eq!(received, megabytes * 1_000_000);
    }
    (used() - before).as_secs_f64() / (8.0 * megabytes as f64 / 1e3)
}
