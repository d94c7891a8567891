//! Certificates that the server selects by name, and those that it warns of or refuses.

use std::fs;
use std::time::SystemTime;

use playrate_transport::{Pin, Target};
use rcgen::{CertificateParams, KeyPair};
use rstest::rstest;

use crate::cli::process::{checked, refused, run, start_with_metrics};
use playrate_test_support::{Media, assert_contains, client, put_private};

#[expect(
    clippy::disallowed_methods,
    reason = "the program under test reads the real date"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Puts a certificate for `name`, valid from and to these days from now, and its key into `directory`. Returns its pin
/// and the options that name both.
fn certificate(directory: &Media, name: &str, (from, to): (i64, i64)) -> (Pin, [String; 4]) {
    let day = |days: i64| {
        let seconds = u64::try_from(days.abs() * 24 * 3600).unwrap();
        let distance = std::time::Duration::from_secs(seconds);
        (if days < 0 {
            now() - distance
        } else {
            now() + distance
        })
        .into()
    };
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    (params.not_before, params.not_after) = (day(from), day(to));
    let key = KeyPair::generate().unwrap();
    let made = params.self_signed(&key).unwrap();
    let file = name.replace('*', "any");
    directory.put(&format!("{file}.pem"), made.pem());
    put_private(&directory.path(&format!("{file}.key")), &key.serialize_pem());
    let files = ["pem", "key"].map(|extension| directory.text(&format!("{file}.{extension}")));
    let [cert, key] = files;
    let options = ["--cert".to_owned(), cert, "--key".to_owned(), key];
    (Pin::of(made.der()).unwrap(), options)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_name_gets_its_certificate_after_a_hang_up_too_and_each_has_its_expiry_in_the_metrics() {
    let media = Media::film();
    let names = ["one.example", "two.example", "*.three.example"];
    let made = names.map(|name| certificate(&media, name, (-1, 30)));
    let options: Vec<_> = made
        .iter()
        .flat_map(|(_, options)| options.iter().map(String::as_str))
        .collect();
    let serving = start_with_metrics(&media, &options);
    assert_eq!(serving.pin(), made[0].0);
    let connects = async |name: &str, pin: Pin| {
        let target = Target::at(name, serving.address());
        client(pin, |_| {}).connect(&target).await.is_ok()
    };
    for (name, number) in [
        ("one.example", 0),
        ("two.example", 1),
        ("films.three.example", 2),
        ("three.example", 0),
        ("other.example", 0),
    ] {
        assert!(connects(name, made[number].0).await, "{name}");
    }
    for name in names {
        let expiry = serving.metric(&format!(
            "playrate_certificate_expiry_timestamp_seconds{{name=\"{name}\"}}"
        ));
        let left = expiry - now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        assert!((29 * 24 * 3600..=30 * 24 * 3600).contains(&left), "{left}");
    }
    assert_eq!(serving.metric("playrate_certificate_renewal_failures_total"), 0);
    let (renewed, _) = certificate(&media, "two.example", (-1, 30));
    serving.signal("HUP");
    playrate_test_support::until("the second is renewed", async || {
        connects("two.example", renewed).await
    })
    .await;
    assert!(connects("one.example", made[0].0).await);
    let log = serving.stop();
    assert!(!log.contains("expire"), "{log}");
}

/// A config file with a certificate that is valid in this period of days from now.
fn config(days: (i64, i64)) -> (Media, String) {
    let directory = Media::film();
    let (_, [_, cert, _, key]) = certificate(&directory, "a.example", days);
    let media = directory.text("");
    let text = format!("media = \"{media}\"\n\ncert = \"{cert}\"\nkey = [\"{key}\"]\n");
    directory.put(".server.toml", text);
    let file = directory.text(".server.toml");
    (directory, file)
}

#[rstest]
#[case::over((-30, -1), "the certificate expired on ")]
#[case::not_yet((1, 30), "is not valid before ")]
fn a_check_refuses_a_certificate_that_is_not_valid_now(#[case] days: (i64, i64), #[case] text: &str) {
    let (_directory, file) = config(days);
    assert_contains(
        &refused(&["check", &file]),
        &[".server.toml:3: --cert", "a.example.pem", text],
    );
}

#[rstest]
#[case((-80, 10), Some("expires on"))]
#[case((-60, 30), None)]
#[case((-1, 6), None)]
fn a_check_and_a_server_warn_of_a_certificate_near_its_end(
    #[case] days: (i64, i64),
    #[case] text: Option<&str>,
) {
    let (directory, file) = config(days);
    let serving = start_with_metrics(&directory, &["--config", &file]);
    let output = run(&["check", &file]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for said in [String::from_utf8(output.stderr).unwrap(), serving.stop()] {
        assert_eq!(
            said.contains("the certificate expires on "),
            text.is_some(),
            "{said}"
        );
    }
    assert!(!output.stdout.is_empty() && !output.stdout.windows(7).any(|part| part == b"expires"));
}

#[test]
fn a_key_that_every_user_can_read_is_refused_and_one_for_a_group_is_not() {
    use std::os::unix::fs::PermissionsExt as _;

    let (directory, file) = config((-1, 30));
    let key = directory.path("a.example.key");
    let mode = |mode| fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o640);
    assert_contains(&checked(&file), &["certificate and key that match"]);
    mode(0o644);
    let command = format!("chmod o= {}", key.display());
    assert_contains(&refused(&["check", &file]), &[".server.toml:3: --cert", &command]);
}

#[test]
fn a_check_of_acme_needs_no_network() {
    let directory = Media::film();
    let put = |more: &str| {
        let text = format!(
            "media = \"{0}\"\nstate = \"{0}\"\nacme-domain = [\"a.example\", \"b.example\"]\n{more}",
            directory.text("")
        );
        directory.put(".server.toml", text);
        directory.text(".server.toml")
    };
    let file = put("acme-agree = true\nacme-directory = \"https://127.0.0.1:1/d\"\n");
    assert_contains(
        &checked(&file),
        &["a certificate for a.example, b.example by https://127.0.0.1:1/d"],
    );
    assert_contains(&refused(&["check", &put("")]), &["--acme-agree"]);
}
