//! Certificates that the server selects by name.

use std::time::SystemTime;

use playrate_transport::{Pin, Target};
use rcgen::{CertificateParams, KeyPair};

use crate::cli::process::start_with_metrics;
use playrate_test_support::{Media, client};

/// Puts a certificate for `name`, valid from and to these days from now, and its key into `directory`. Returns its pin
/// and the options that name both.
fn certificate(directory: &Media, name: &str, (from, to): (i64, i64)) -> (Pin, [String; 4]) {
    let day = |days: i64| {
        let seconds = u64::try_from(days.abs() * 24 * 3600).unwrap();
        let now = SystemTime::now();
        let distance = std::time::Duration::from_secs(seconds);
        (if days < 0 { now - distance } else { now + distance }).into()
    };
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    (params.not_before, params.not_after) = (day(from), day(to));
    let key = KeyPair::generate().unwrap();
    let made = params.self_signed(&key).unwrap();
    let file = name.replace('*', "any");
    directory.put(&format!("{file}.pem"), made.pem());
    directory.put(&format!("{file}.key"), key.serialize_pem());
    let files = ["pem", "key"].map(|extension| directory.text(&format!("{file}.{extension}")));
    let [cert, key] = files;
    let options = ["--cert".to_owned(), cert, "--key".to_owned(), key];
    (Pin::of(made.der()).unwrap(), options)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_name_gets_its_certificate_after_a_hang_up_too() {
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
    #[cfg(unix)]
    {
        let (renewed, _) = certificate(&media, "two.example", (-1, 30));
        serving.signal("HUP");
        playrate_test_support::until("the second is renewed", async || {
            connects("two.example", renewed).await
        })
        .await;
        assert!(connects("one.example", made[0].0).await);
    }
    serving.stop();
}
