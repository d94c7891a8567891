//! The server's certificates and keys: read at the start and again on SIGHUP, obtained by ACME, or generated; and
//! warnings before one expires.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, anyhow};
use playrate_transport::{Certificates, Identity, time};
use quinn::TokioRuntime;
use video_server::serve::VideoServer;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::Failure;
use super::acme::Acme;
use super::options::ServeOptions;
use super::serve::wall_clock;

/// Remaining validity below which the server warns; for certificates of less than six weeks, a third of their validity.
const EXPIRES_SOON: Duration = DAY.saturating_mul(14);
pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);

/// Reads the certificates and keys, or takes that of `acme`, or generates one for development; at least one.
pub(super) fn identities(arguments: &ServeOptions, acme: Option<&Acme>) -> Result<Vec<Identity>, Failure> {
    let (certificates, keys) = (&arguments.address.cert, &arguments.address.key);
    if certificates.len() != keys.len() {
        return Err(Failure::Input(anyhow!(
            "--cert: expected one --key for each certificate, in the same order (got {} and {})",
            certificates.len(),
            keys.len()
        )));
    }
    if let Some(acme) = acme {
        return Ok(vec![acme.identity().map_err(Failure::run)?]);
    }
    if certificates.is_empty() {
        let name = arguments.address.specific_ip().map(|ip| ip.to_string());
        let identity = Identity::development(name.as_slice()).map_err(Failure::run)?;
        return Ok(vec![identity]);
    }
    let pairs = certificates.iter().zip(keys);
    let read = pairs.map(|(certificate, key)| {
        read(certificate, key)
            .with_context(|| format!("--cert {} --key {}", certificate.display(), key.display()))
    });
    read.collect::<Result<_, _>>().map_err(Failure::Input)
}

fn read(certificate: &Path, key: &Path) -> anyhow::Result<Identity> {
    let identity = Identity::from_pem_files(certificate, key)?;
    // A group may have been given the key, as Debian's `ssl-cert` or a supervisor's.
    if std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(key)?.permissions()) & 0o004 != 0 {
        return Err(anyhow!(
            "every user of this machine can read the private key; run `chmod o= {}`",
            key.display()
        ));
    }
    Ok(identity)
}

/// Reloads certificates and keys for new connections. If one is unusable, nothing changes.
pub(super) fn reload(arguments: &ServeOptions, server: &VideoServer) {
    if arguments.address.cert.is_empty() {
        tracing::info!("SIGHUP: no --cert to read again; the server has its certificate from elsewhere");
        return;
    }
    match identities(arguments, None) {
        Ok(identities) => {
            let pin = identities[0].pin();
            let text = if server.set_identities(identities) {
                "new connections get the new certificate"
            } else {
                "the certificate is the one in use"
            };
            tracing::info!(%pin, "SIGHUP: {text}");
            warn_of(server.transport().certificates());
        }
        Err(error) => tracing::error!(%error, "SIGHUP: the previous certificate stays in use"),
    }
}

/// Warns of certificates that have expired or expire soon, now and once a day.
pub(super) async fn watch(certificates: Certificates) {
    loop {
        warn_of(&certificates);
        time::sleep(&TokioRuntime, DAY).await;
    }
}

fn warn_of(certificates: &Certificates) {
    for identity in certificates.identities() {
        if let Ok(leaf) = Leaf::of(&identity)
            && let Some(fault) = leaf.fault(wall_clock()).unwrap_or_else(Some)
        {
            tracing::warn!(certificate = leaf.name, "{fault}");
        }
    }
}

/// Returns warnings of certificates that expire soon, one per line.
///
/// # Errors
/// A certificate is not valid now.
pub(super) fn check(arguments: &ServeOptions, identities: &[Identity]) -> anyhow::Result<String> {
    let mut warnings = String::new();
    for (file, identity) in arguments.address.cert.iter().zip(identities) {
        let option = format!("--cert {}", file.display());
        let fault = Leaf::of(identity).and_then(|leaf| leaf.fault(wall_clock()).map_err(anyhow::Error::msg));
        if let Some(warning) = fault.with_context(|| option.clone())? {
            warnings = format!("{warnings}warning: {option}: {warning}\n");
        }
    }
    Ok(warnings)
}

/// Fields of a server's own certificate.
#[derive(Debug)]
pub(super) struct Leaf {
    /// Its first DNS name in alphabetical order, as authorities may reorder them, or else its pin.
    pub(super) name: String,
    pub(super) begin: SystemTime,
    pub(super) end: SystemTime,
}

impl Leaf {
    pub(super) fn of(identity: &Identity) -> anyhow::Result<Self> {
        let leaf = identity.chain().first().context("no certificate")?;
        let (_, leaf) = X509Certificate::from_der(leaf)?;
        let names = leaf.subject_alternative_name()?;
        let names = names.iter().flat_map(|names| &names.value.general_names);
        let name = names.filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(*name),
            _ => None,
        });
        let (begin, end) = (leaf.validity().not_before, leaf.validity().not_after);
        // Times before 1970 count as 1970.
        let [begin, end] = [begin, end].map(|time| u64::try_from(time.timestamp()).unwrap_or_default());
        let [begin, end] = [begin, end].map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds));
        Ok(Self {
            name: name
                .min()
                .map_or_else(|| identity.pin().to_string(), str::to_owned),
            begin,
            end,
        })
    }

    pub(super) fn lifetime(&self) -> Duration {
        self.end.duration_since(self.begin).unwrap_or_default()
    }

    /// A warning if it expires soon.
    ///
    /// # Errors
    /// It is not valid at the time `now`.
    fn fault(&self, now: SystemTime) -> Result<Option<String>, String> {
        let [begin, end] = [self.begin, self.end].map(httpdate::fmt_http_date);
        if now < self.begin {
            return Err(format!(
                "the certificate is not valid before {begin}; check this machine's clock"
            ));
        }
        match self.end.duration_since(now) {
            Err(_) => Err(format!("the certificate expired on {end}; clients refuse it")),
            Ok(left) if left < EXPIRES_SOON.min(self.lifetime() / 3) => {
                Ok(Some(format!("the certificate expires on {end}; renew it")))
            }
            Ok(_) => Ok(None),
        }
    }
}

/// Refuses a clock that is certainly wrong: every certificate would be too.
pub(super) fn check_clock(now: SystemTime) -> anyhow::Result<()> {
    anyhow::ensure!(
        now >= UNIX_EPOCH,
        "this machine's clock shows a time before 1970; set it"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = DAY.saturating_mul(90);
    const SHORT: Duration = DAY.saturating_mul(6);

    #[rstest::rstest]
    #[case::new(LONG, 0, None)]
    #[case::two_weeks_left(LONG, 76, None)]
    #[case::less_left(LONG, 77, Some("expires on Wed, 01 Apr 1970 00:00:00 GMT; renew it"))]
    #[case::at_the_end(LONG, 90, Some("expires on Wed, 01 Apr 1970"))]
    #[case::a_third_left_of_a_short_one(SHORT, 4, None)]
    #[case::less_of_a_short_one(SHORT, 5, Some("expires on Wed, 07 Jan 1970"))]
    fn a_warning_is_given_near_the_end(
        #[case] lifetime: Duration,
        #[case] days: u32,
        #[case] expected: Option<&str>,
    ) {
        let warning = leaf(lifetime).fault(UNIX_EPOCH + DAY * days).unwrap();
        assert_eq!(warning.is_some(), expected.is_some(), "{warning:?}");
        assert!(warning.unwrap_or_default().contains(expected.unwrap_or_default()));
    }

    #[rstest::rstest]
    #[case::not_yet(UNIX_EPOCH - DAY, "not valid before Thu, 01 Jan 1970 00:00:00 GMT")]
    #[case::over(UNIX_EPOCH + LONG + DAY, "expired on Wed, 01 Apr 1970")]
    fn a_certificate_is_faulty_before_and_after_its_validity(
        #[case] now: SystemTime,
        #[case] expected: &str,
    ) {
        let fault = leaf(LONG).fault(now).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
    }

    fn leaf(lifetime: Duration) -> Leaf {
        Leaf {
            name: String::new(),
            begin: UNIX_EPOCH,
            end: UNIX_EPOCH + lifetime,
        }
    }

    #[test]
    fn a_generated_certificate_has_the_name_and_the_validity_that_it_was_given() {
        let leaf = Leaf::of(&Identity::development(&["films.example".to_owned()]).unwrap()).unwrap();
        assert_eq!((leaf.name.as_str(), leaf.lifetime()), ("films.example", DAY * 13));
        assert_eq!(leaf.fault(wall_clock()), Ok(None));
    }

    #[test]
    fn a_clock_before_1970_is_an_error_that_says_so() {
        let error = check_clock(UNIX_EPOCH - Duration::from_nanos(1)).unwrap_err();
        assert!(error.to_string().contains("before 1970; set it"), "{error}");
        check_clock(UNIX_EPOCH).unwrap();
        check_clock(wall_clock()).unwrap();
    }
}
