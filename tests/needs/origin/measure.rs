//! Cost and latency of objects compared with files and with the store itself. Measures, but asserts nothing.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Runtime;

use super::store::{Store, environment};
use super::{LOCATION, connect, get, noise};
use crate::support;
use playrate_test_support::{Process, ServerProcess, program};

/// Size in bytes of the object that is read from memory.
const LARGE: usize = 200 << 20;
/// Number of reads of it per round.
const READS: u32 = 2;
const ROUNDS: usize = 5;
/// Objects that are read once.
const COLD: usize = 40;

/// The program to measure: `PLAYRATE_SERVER`, or the one of this build.
fn server() -> Command {
    let program = std::env::var_os("PLAYRATE_SERVER").map_or_else(|| program("video-server"), Into::into);
    Command::new(program)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub(super) fn warm_objects_beside_files_and_cold_ones_beside_the_store() {
    let (runtime, store) = (Runtime::new().expect("a runtime"), Store::start());
    let large = noise(LARGE, 1);
    store.put("published/large.bin", large.clone());
    let name = |number| format!("cold-{number}.m4s");
    for number in 0..COLD {
        store.put(&format!("published/{}", name(number)), noise(2_500_000, 2));
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("large.bin");
    fs::write(&file, large).expect("a file is written");
    let old = SystemTime::now() - Duration::from_secs(60);
    let opened = fs::File::options().write(true).open(&file);
    let dated = opened.and_then(|file| file.set_modified(old));
    dated.expect("the file is there");
    let options = ["--cache", "1GB", "--no-tcp"];
    let local = support::serve_with(server(), directory.path(), &options);
    let mut remote = server();
    remote.envs(environment(store.address()));
    let remote = support::serve_with(remote, LOCATION.as_ref(), &options);

    let cost = |server: &ServerProcess| {
        let connection = connect(&runtime, server);
        let used = || Process::read(server.id()).expect("it runs").processor_time;
        let before = used();
        for _ in 0..READS {
            let answer = runtime.block_on(get(&connection, "/large.bin", &[]));
            assert_eq!(answer.content.len(), LARGE);
        }
        used().saturating_sub(before).as_secs_f64() / (f64::from(READS) * LARGE as f64 / 1e9)
    };
    // From the second read on it is in memory.
    let _ = (cost(&local), cost(&remote));
    let mut costs = Vec::new();
    for round in 0..ROUNDS {
        let (file, object) = if round % 2 == 0 {
            let file = cost(&local);
            (file, cost(&remote))
        } else {
            let object = cost(&remote);
            (cost(&local), object)
        };
        costs.push((file, object));
    }
    let of = |value: fn(&(f64, f64)) -> f64| median(costs.iter().map(value).collect());
    println!("file, in memory    {:.3} CPU s/GB", of(|&(file, _)| file));
    println!("object, in memory  {:.3} CPU s/GB", of(|&(_, object)| object));
    println!(
        "ratio, median of {ROUNDS} rounds  {:.3}",
        of(|&(file, object)| object / file)
    );

    let connection = connect(&runtime, &remote);
    let (mut own, mut ours) = (Vec::new(), Vec::new());
    for number in 0..COLD {
        let begun = Instant::now();
        store.first_byte(&format!("published/{}", name(number)));
        own.push(begun.elapsed().as_secs_f64() * 1e3);
        let begun = Instant::now();
        runtime.block_on(async {
            let path = format!("/{}", name(number));
            let (_, mut body) = connection
                .get(&path, http::HeaderMap::new())
                .await
                .expect("an answer");
            body.chunk().await.expect("the content comes");
            ours.push(begun.elapsed().as_secs_f64() * 1e3);
            while body.chunk().await.expect("the content comes").is_some() {}
        });
    }
    let added: Vec<_> = ours.iter().zip(&own).map(|(ours, own)| ours - own).collect();
    println!(
        "first byte, cold   {:.2} ms of the server, {:.2} ms of the store",
        median(ours),
        median(own)
    );
    println!("difference, median {:.2} ms", median(added));
}
