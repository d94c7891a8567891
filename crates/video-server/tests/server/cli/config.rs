//! Options from a file.

use std::fs;

use crate::cli::process::{checked, refused, start};
use playrate_test_support::{Media, assert_contains, certify};
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
#[case::syntax("controller = cubic", 2, &["string"])]
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

#[test]
fn the_packaged_example_is_good() {
    let (directory, _) = config("");
    certify(directory.root());
    let path = |name: &str| directory.text(name);
    fs::rename(path("cert.pem"), path("fullchain.pem")).unwrap();
    fs::rename(path("key.pem"), path("privkey.pem")).unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/server.toml");
    let text_of = fs::read_to_string(example)
        .unwrap()
        .replace("/srv/films", &path("media"))
        .replace("/var/lib/video-server", &path(""))
        .replace("/etc/video-server/", &path(""));
    for (comments, found) in [("#", "video, certificate"), ("", "2 arms chosen by path")] {
        // Commented-out options are valid as well.
        let whole = text_of.replace("# To compare controllers on live traffic:\n", "");
        let whole = whole.replace("# choose-by", &format!("{comments}choose-by"));
        let whole = whole
            .replace("# [arm]", &format!("{comments}[arm]"))
            .replace("# a =", &format!("{comments}a ="));
        let whole = whole.replace("# b =", &format!("{comments}b ="));
        directory.put("example.toml", whole);
        assert_contains(&checked(&path("example.toml")), &[found]);
    }
}
