//! The Debian package and the image have programs that run.
//!
//! The package needs `cargo-deb` and `dpkg-deb`; the image needs `buildah`, `curl`, `ip`, `unshare` and root.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::Value;

use crate::support::{on_the_path, output_within, required};
use playrate_test_support::{assert_contains, certify, fixture, root};

/// Time for a script of `packaging`, which may have to build the program.
const LIMIT: Duration = Duration::from_secs(1_200);

pub(crate) fn tests() -> Vec<Trial> {
    let missing = on_the_path(&[("cargo-deb", "--version"), ("dpkg-deb", "--version")]);
    let mut tests = tests![&missing, the_debian_package_fits_its_config_file_and_unit];
    let tools = ["buildah", "curl", "unshare"].map(|tool| (tool, "--version"));
    let missing = on_the_path(&tools)
        .and_then(|()| on_the_path(&[("ip", "-V")]))
        .and_then(|()| required(rustix::process::getuid().is_root(), "this needs root"));
    tests.extend(tests![
        &missing,
        the_image_serves_as_an_unprivileged_user_and_is_healthy
    ]);
    tests
}

/// Output of `program` with these arguments.
fn run(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    // Cargo sets these for the test. Its crates would be built again because of them.
    let is_of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars().filter(|(name, _)| is_of_package(name)) {
        command.env_remove(name);
    }
    output_within(LIMIT, &mut command, "").trim().to_owned()
}

fn put_film(directory: &Path) {
    fs::create_dir_all(directory).expect("a directory can be made");
    let film = fixture("progressive-moov-first.mp4");
    fs::copy(film, directory.join("film.mp4")).expect("a file can be written");
}

fn the_debian_package_fits_its_config_file_and_unit() {
    let package = run("packaging/make-deb", &["dev"]);
    let unpacked = tempfile::tempdir().expect("a temporary directory");
    let at = |path: &str| unpacked.path().join(path);
    let text = |path: &str| fs::read_to_string(at(path)).expect(path);
    run(
        "dpkg-deb",
        &["-x", &package, unpacked.path().to_str().expect("UTF-8")],
    );

    let etc = at("etc/video-server");
    certify(&etc);
    for (made, name) in [("cert.pem", "fullchain.pem"), ("key.pem", "privkey.pem")] {
        fs::rename(etc.join(made), etc.join(name)).expect("it is there");
    }
    put_film(&at("srv/films"));
    for directory in ["var/lib/video-server", "var/log/video-server"] {
        fs::create_dir_all(at(directory)).expect("a directory can be made");
    }
    let config =
        text("etc/video-server/server.toml").replace("\"/", &format!("\"{}/", unpacked.path().display()));
    fs::write(etc.join("here.toml"), config).expect("a file can be written");
    let mut check = Command::new(at("usr/bin/video-server"));
    check.args(["check", "here.toml"]).current_dir(&etc);
    let checked = output_within(LIMIT, &mut check, "");
    assert_contains(&checked, &["1 title", "certificate and key that match"]);

    let unit = text("usr/lib/systemd/system/video-server.service");
    assert_eq!(unit, text("usr/lib/systemd/system/video-server@.service"));
    let start = "ExecStart=/usr/bin/video-server serve --config /etc/video-server/server.toml";
    assert_contains(&unit, &[start]);
    let script = run("dpkg-deb", &["-I", &package, "postinst"]);
    assert_contains(&script, &["systemd-sysusers", "systemd-tmpfiles"]);
    let kept = run("dpkg-deb", &["-I", &package, "conffiles"]);
    assert_contains(&kept, &["/etc/video-server/server.toml"]);
    for path in [
        "etc/logrotate.d/video-server",
        "usr/lib/sysusers.d/video-server.conf",
        "usr/share/bash-completion/completions/video-server",
        "usr/share/man/man1/video-server.1.gz",
    ] {
        assert!(at(path).is_file(), "{path}");
    }
    let tree = "tree --locked --package video-server --edges normal --prefix none --format {p}";
    let tree = run("cargo", &tree.split(' ').collect::<Vec<_>>());
    let notices = text("usr/share/doc/video-server/THIRD-PARTY-LICENSES");
    for line in tree.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let entry = format!("\n{} {}, ", words[0], words[1].trim_start_matches('v'));
        assert!(notices.contains(&entry), "no licence of {line}");
    }
    // Of the crates, the object store's notice, and the standard library.
    let texts = [
        "Permission is hereby granted",
        "Apache Arrow Object Store",
        "The Rust Project Developers",
    ];
    assert_contains(&notices, &texts);
}

/// A container of the image, and the image: removed when dropped.
struct Container {
    name: String,
    image: String,
}

impl Drop for Container {
    fn drop(&mut self) {
        for arguments in [&["rm", &self.name][..], &["rmi", "--force", &self.image]] {
            // Nothing depends on it if a test has failed.
            let _ = Command::new("buildah").args(arguments).status();
        }
    }
}

/// Runs server and health check in the directory `$1` with a network of their own, as the image says.
const SESSION: &str = r#"
set -e
ip link set lo up
mkdir -p "$1/proc" && mount -t proc proc "$1/proc"
chroot --userspec "$2" "$1" $3 >&2 &
tries=0
until chroot --userspec "$2" "$1" $4; do
    tries=$((tries + 1))
    [ $tries -lt 100 ]
    sleep 0.2
done
curl --silent --fail --insecure --output "$5" https://127.0.0.1:4433/film.mp4
kill -TERM $!
wait $!
"#;

fn the_image_serves_as_an_unprivileged_user_and_is_healthy() {
    let name = format!("playrate-test-{}", std::process::id());
    let image = run("env", &[&format!("IMAGE={name}"), "packaging/make-image", "dev"]);
    let container = Container {
        name: run("buildah", &["from", "--pull-never", &image]),
        image,
    };
    let inspected = run("buildah", &["inspect", "--type", "image", &container.image]);
    let inspected: Value = serde_json::from_str(&inspected).expect("JSON");
    let config = &inspected["Docker"]["config"];
    let words =
        |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).expect("a list of words") };
    let serve = [words(&config["Entrypoint"]), words(&config["Cmd"])]
        .concat()
        .join(" ");
    let health = words(&config["Healthcheck"]["Test"]);
    assert_eq!(health[0], "CMD");
    let user = config["User"].as_str().expect("a user");
    assert!(user.starts_with("10001"), "{user}");

    let mounted = run("buildah", &["mount", &container.name]);
    put_film(&Path::new(&mounted).join("media"));
    for licences in [
        "video-server/THIRD-PARTY-LICENSES",
        "libc6/copyright",
        "ca-certificates/copyright",
    ] {
        let file = Path::new(&mounted).join("usr/share/doc").join(licences);
        assert!(file.is_file(), "{}", file.display());
    }
    let fetched = tempfile::NamedTempFile::new().expect("a temporary file");
    let path = fetched.path().to_str().expect("UTF-8");
    let isolated = [
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        SESSION,
        "sh",
    ];
    let arguments = [&mounted, user, &serve, &health[1..].join(" "), path];
    run("unshare", &[&isolated[..], &arguments].concat());
    let length = |path: &Path| fs::metadata(path).expect("it is there").len();
    assert_eq!(
        length(fetched.path()),
        length(&Path::new(&mounted).join("media/film.mp4"))
    );
}
