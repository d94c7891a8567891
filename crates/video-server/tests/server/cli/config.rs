//! Options from a file.

use std::fs;
use std::process::Output;

use crate::cli::process::{checked, program, refused, start};
use playrate_test_support::{Media, assert_contains, certify, root, text};
use rstest::rstest;

/// A directory with a title, and a config file where `$MEDIA` is that directory.
fn config(toml: &str) -> (Media, String) {
    let directory = Media::new();
    directory.copy("fragmented.mp4", "media/film.mp4");
    directory.put("server.toml", toml.replace("$MEDIA", &directory.text("media")));
    let file = directory.text("server.toml");
    (directory, file)
}

const GOOD: &str = r#"
media = "$MEDIA"
controller = "cubic+start=hystartpp"
max-connections = 7
no-tcp = true
drain-timeout = "3s"
choose-by = "query"
arm = ["a=reno", "b=vegas"]
log-format = "json"
"#;

#[test]
fn a_good_file_is_said_to_be_good_and_what_it_names_is_looked_at() {
    let (_directory, file) = config(GOOD);
    let parts = [
        "server.toml is good",
        "1 title",
        "cubic+start=hystartpp",
        "2 arms chosen by query",
    ];
    assert_contains(&checked(&file), &parts);
}

#[test]
fn a_server_does_what_the_file_says_and_flags_go_before() {
    let (directory, file) = config(GOOD);
    let flags = ["--controller=ccp", "--arm=c=compound", "--metrics=127.0.0.1:0"];
    let serving = start(
        &directory.path("media"),
        &[&["--config", &file], &flags[..]].concat(),
    );
    assert_eq!(serving.announced("Controller"), "ccp");
    assert_eq!(serving.announced("Arm"), "c compound");
    assert!(
        !serving.announcement().contains("vegas"),
        "{}",
        serving.announcement()
    );
    assert!(serving.announced("Listening on").ends_with("(UDP)"));
    let log = serving.stop();
    assert!(log.lines().all(|line| line.starts_with('{')), "{log}");
    assert!(log.contains("\"deadline\":\"3s\""), "{log}");
}

#[test]
fn arms_may_be_a_table() {
    let (_directory, file) = config(
        "media = \"$MEDIA\"\nchoose-by = \"path\"\n[arm]\na = \"reno\"\nb = \"cubic+start=hystartpp\"\n",
    );
    assert_contains(&checked(&file), &["2 arms chosen by path"]);
}

#[rstest]
#[case::value("controller = \"qubic\"", 2, &["controller", "`qubic`", "did you mean `cubic`"])]
#[case::unknown_key("contoller = \"cubic\"", 2, &["unknown key `contoller`", "did you mean `controller`?"])]
#[case::strange_key("zzz = 1", 2, &["unknown key `zzz`", "media, strict"])]
#[case::underscore("drain_timeout = \"3s\"", 2, &["drain_timeout", "did you mean `drain-timeout`?"])]
#[case::switch("\nno-tcp = \"yes\"", 3, &["no-tcp", "true or false"])]
#[case::kind("controller = true", 2, &["controller = \"SPEC\""])]
#[case::unit("drain-timeout = 10", 2, &["drain-timeout", "`10`", "100ms"])]
#[case::syntax("controller = cubic", 2, &["string", "text needs quotes"])]
#[case::address("listen = [::]:443", 2, &["text needs quotes"])]
#[case::twice("listen = \"[::]:1\"\nlisten = \"[::]:2\"", 3, &["duplicate"])]
#[case::arm("choose-by = \"path\"\narm = [\n  \"a=reno\",\n  \"b=qubic\",\n]", 5, &["arm", "`cubic`"])]
#[case::arms("choose-by = \"path\"\n[arm]\na = \"reno\"\nb = \"qubic\"", 5, &["arm", "`cubic`"])]
#[case::arm_twice("choose-by = \"path\"\narm = [\"a=reno\", \"a=cubic\"]", 3, &["duplicate arm name", "`a`"])]
#[case::window("send-window = \"1B\"", 2, &["send-window", "between"])]
#[case::certificate("key = \"/no/key.pem\"\ncert = \"/no/cert.pem\"", 3, &["cert", "/no/cert.pem"])]
#[case::itself("config = \"other.toml\"", 2, &["unknown key `config`"])]
fn errors_have_file_line_and_correction(#[case] toml: &str, #[case] line: usize, #[case] parts: &[&str]) {
    let (_directory, file) = config(&format!("media = \"$MEDIA\"\n{toml}\n"));
    for arguments in [&["check", &file][..], &["serve", "--config", &file]] {
        let complaint = refused(arguments);
        let place = format!("error: {file}:{line}: ");
        assert!(
            complaint.starts_with(&place),
            "{place} is not where it begins: {complaint}"
        );
        assert_contains(&complaint, parts);
        let is_advised = parts.contains(&"text needs quotes");
        assert_eq!(complaint.contains("text needs quotes"), is_advised, "{complaint}");
    }
}

#[test]
fn what_is_missing_is_named_and_so_is_a_missing_file() {
    let (_directory, file) = config("controller = \"cubic\"\n");
    assert_contains(&refused(&["check", &file]), &["server.toml", "--media"]);
    assert_contains(
        &refused(&["serve", "--config", "/no/such.toml"]),
        &["/no/such.toml"],
    );
}

#[test]
fn a_media_directory_that_is_not_there_is_named_with_its_line() {
    let (_directory, file) = config("\n\nmedia = \"/no/such/media\"\n");
    assert_contains(
        &refused(&["check", &file]),
        &["server.toml:3: ", "/no/such/media"],
    );
}

/// A file of `packaging` with the paths of this test's directory.
fn packaged(name: &str, directory: &Media) -> String {
    let path = root().join("packaging").join(name);
    let text = fs::read_to_string(path).unwrap();
    let local = |path: &str| directory.text(path);
    text.replace("/srv/films", &local("media"))
        .replace("/var/lib/video-server", &local("state"))
        .replace("/var/log/video-server", &local("state"))
        .replace("/etc/video-server/", &local(""))
}

/// A machine with what the packaged files name, apart from object stores and players.
fn machine() -> Media {
    let (directory, _) = config("");
    certify(directory.root());
    for (made, name) in [("cert.pem", "fullchain.pem"), ("key.pem", "privkey.pem")] {
        fs::rename(directory.text(made), directory.text(name)).unwrap();
    }
    directory.put("quic-lb.toml", "config-id = 0\nserver-id-length = 2\n");
    directory.put("endpoint-key", [7; 32]);
    fs::create_dir(directory.path("state")).unwrap();
    directory
}

/// Runs `check` in the directory with the certificate, as the unit does.
fn check(directory: &Media, text: &str) -> Output {
    directory.put("checked.toml", text);
    let mut check = program();
    check
        .args(["check", "checked.toml"])
        .current_dir(directory.root());
    // Nothing listens at port 1.
    check
        .env("AWS_ENDPOINT", "http://127.0.0.1:1")
        .env("AWS_ALLOW_HTTP", "true");
    check
        .env("AWS_ACCESS_KEY_ID", "id")
        .env("AWS_SECRET_ACCESS_KEY", "key");
    check.output().unwrap()
}

#[rstest]
#[case::one_machine("server.toml", "1 title and 0 other files")]
#[case::load_balancer("examples/load-balancer.toml", "server 12 of QUIC-LB")]
fn a_packaged_file_is_good(#[case] name: &str, #[case] found: &str) {
    let directory = machine();
    let output = check(&directory, &packaged(name, &directory));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_contains(&text(&output.stdout), &[found, "certificate and key that match"]);
}

#[test]
fn each_line_that_the_packaged_file_offers_is_good() {
    let directory = machine();
    directory.put("players/hls.min.js", "");
    let whole = packaged("server.toml", &directory);
    let whole = whole.replace("/srv/players/node_modules", &directory.text("players"));
    let is_option = |line: &str| line.starts_with('[') || line.split_once(" = ").is_some();
    let is_offered = |line: &&str| line.strip_prefix("# ").is_some_and(is_option);
    let offered: Vec<_> = whole.lines().filter(is_offered).collect();
    assert!(offered.len() > 8, "{offered:?}");
    // Not both: the page, and no page.
    let (no_pages, others): (Vec<_>, _) = offered.into_iter().partition(|line| line.contains("no-pages"));
    for lines in [no_pages, others] {
        let with = lines
            .iter()
            .fold(whole.clone(), |text, line| text.replace(line, &line[2..]));
        let output = check(&directory, &with);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let arms = text(&output.stdout).contains("2 arms chosen by path");
        assert_eq!(arms, with.contains("\n[arm]"), "{output:?}");
    }
}

#[cfg(feature = "object-store")]
#[test]
fn the_packaged_file_for_an_object_store_only_lacks_the_store() {
    let directory = machine();
    let whole = packaged("examples/object-store.toml", &directory) + "store-timeout = \"1s\"\n";
    let output = check(&directory, &whole);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_contains(&text(&output.stderr), &["--media", "s3://films/published"]);
}
