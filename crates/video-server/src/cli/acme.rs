//! Certificates by ACME (RFC 8555): [`Acme`] obtains one for the domains of `--acme-domain`, keeps it in the directory
//! of `--state`, and renews it. The authority validates the domains over TLS on the TCP port (RFC 8737).

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, anyhow};
use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeType, Error, Identifier, NewAccount,
    NewOrder, Order, OrderStatus, RetryPolicy,
};
use playrate_transport::{Certificates, Identity, time};
use playrate_units::duration;
use quinn::TokioRuntime;
use rustls::pki_types::DnsName;
use video_server::serve::VideoServer;

use super::certificate::{DAY, Leaf};
use super::options::AcmeOptions;
use super::serve::wall_clock;
use super::state;

/// Shortest and longest pause after a failure.
const PAUSES: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(3600));
/// Maximum time until the authority suggests when to renew.
const SUGGESTION_LIMIT: Duration = Duration::from_secs(30);
/// Maximum duration of an order.
const ORDER_LIMIT: Duration = Duration::from_secs(600);
/// Time for the authority to validate the domains, and again to issue the certificate.
const STEP_LIMIT: Duration = Duration::from_secs(180);

/// Number of failed attempts to obtain or renew a certificate.
static FAILURES: AtomicU64 = AtomicU64::new(0);

pub(super) fn failures() -> u64 {
    FAILURES.load(Relaxed)
}

/// Reads a name that an authority can validate over TLS.
pub(super) fn domain(text: &str) -> Result<String, &'static str> {
    match DnsName::try_from(text) {
        Ok(name) if !name.as_ref().ends_with('.') => Ok(name.as_ref().to_ascii_lowercase()),
        _ => Err("expected a domain such as films.example, without a wildcard, port or path"),
    }
}

/// Reads the address of an authority's directory.
pub(super) fn directory(text: &str) -> Result<String, &'static str> {
    match url::Url::parse(text) {
        Ok(url) if url.scheme() == "https" => Ok(url.into()),
        _ => Err("expected a URL such as https://acme-v02.api.letsencrypt.org/directory"),
    }
}

/// Obtains and renews the certificate for some domains.
pub(super) struct Acme {
    domains: Vec<String>,
    directory: String,
    account_file: PathBuf,
    /// The certificate chain and its key, so that both are replaced at once.
    certificate_file: PathBuf,
    /// Text of a new certificate that could not be written to the file.
    unsaved: Option<String>,
    /// From 0 to 1: the position within a period for renewal, so that servers started together do not renew together.
    jitter: f64,
}

impl Acme {
    /// The `options`, with files in the directory `state`; `None` without a domain.
    pub(super) fn new(options: &AcmeOptions, state: Option<&Path>) -> Option<Self> {
        let state = state.filter(|_| !options.acme_domain.is_empty())?;
        let directory = options.directory();
        // Certificates and accounts of one authority do not work with another.
        let file = |extension| {
            let authority = directory.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            state.join(format!("acme-{authority}.{extension}"))
        };
        Some(Self {
            domains: options.acme_domain.clone(),
            account_file: file("json"),
            certificate_file: file("pem"),
            unsaved: None,
            directory,
            jitter: RandomState::new().hash_one(0) as f64 / u64::MAX as f64,
        })
    }

    /// The stored certificate, or a self-signed one until the authority has issued one.
    pub(super) fn identity(&self) -> anyhow::Result<Identity> {
        if let Some((stored, _)) = self.stored() {
            return Ok(stored);
        }
        tracing::warn!("clients get a self-signed certificate until the authority has issued one");
        Ok(Identity::development(&self.domains)?)
    }

    /// The stored certificate, unless it has expired.
    fn stored(&self) -> Option<(Identity, Leaf)> {
        if !self.certificate_file.exists() {
            return None;
        }
        let read = self
            .read()
            .map_err(|error| tracing::warn!(%error, "cannot use the stored certificate"));
        read.ok().filter(|(_, leaf)| wall_clock() < leaf.end)
    }

    fn read(&self) -> anyhow::Result<(Identity, Leaf)> {
        let identity = Identity::from_pem_files(&self.certificate_file, &self.certificate_file)?;
        let leaf = Leaf::of(&identity)?;
        Ok((identity, leaf))
    }

    /// Keeps the certificate of `server` valid.
    pub(super) async fn run(mut self, server: VideoServer) {
        let mut failures = 0;
        loop {
            let attempt = self.advance(&server, failures > 0);
            let done = time::timeout(&TokioRuntime, ORDER_LIMIT, attempt).await;
            server.transport().certificates().end_challenges();
            let done = done
                .unwrap_or_else(|time::Elapsed| Err(anyhow!("the order did not complete within 10 minutes")));
            let pause = match done {
                Ok(pause) => {
                    failures = 0;
                    pause
                }
                Err(error) => {
                    failures += 1;
                    FAILURES.fetch_add(1, Relaxed);
                    let pause = retry_pause(failures, self.jitter);
                    tracing::error!(
                        error = format!("{error:#}"),
                        domains = self.domains.join(", "),
                        again = %duration::display(Duration::from_secs(pause.as_secs())),
                        "cannot obtain a certificate"
                    );
                    pause
                }
            };
            time::sleep(&TokioRuntime, pause).await;
        }
    }

    /// Renews the certificate if it is due. Returns the time until the next check.
    async fn advance(&mut self, server: &VideoServer, is_retry: bool) -> anyhow::Result<Duration> {
        self.save()?;
        let mut replaced = None;
        let stored = self.stored();
        if let Some((current, leaf)) = &stored
            && self.domains.iter().all(|name| current.is_for(name))
        {
            let certificates = server.transport().certificates();
            if certificates.identities().first().map(Identity::pin) != Some(current.pin()) {
                // An older process stored it after this one had read the file.
                server.set_identities(vec![current.clone()]);
            }
            let identifier = current.chain().first().map(CertificateIdentifier::try_from);
            let identifier = identifier.and_then(Result::ok);
            let suggestion = self.suggestion(identifier.as_ref()).await;
            let (window, again) = suggestion.map_or((None, DAY), |(window, again)| (Some(window), again));
            let due = renewal_time(leaf, window, self.jitter);
            if let Ok(left) = due.duration_since(wall_clock())
                && !left.is_zero()
            {
                let date = httpdate::fmt_http_date(due);
                tracing::debug!(date, "the certificate is going to be renewed");
                return Ok(left.min(again.clamp(PAUSES.0, DAY)));
            }
            // Refused by some authorities, for example after a change of account.
            replaced = identifier.filter(|_| window.is_some() && !is_retry);
        }
        let text = self.issue(server.transport().certificates(), replaced).await?;
        let identity = Identity::from_pem(&text)?;
        let leaf = Leaf::of(&identity)?;
        server.set_identities(vec![identity]);
        self.unsaved = Some(text);
        self.save()?;
        anyhow::ensure!(
            wall_clock() < renewal_time(&leaf, None, 0.0),
            "the new certificate is already due for renewal; check this machine's clock"
        );
        tracing::info!(
            domains = self.domains.join(", "),
            expires = httpdate::fmt_http_date(leaf.end),
            "new connections get the new certificate"
        );
        // Limits the rate if the authority requests immediate renewal.
        Ok((leaf.lifetime() / 3).clamp(Duration::from_secs(10), PAUSES.1))
    }

    /// Stores the certificate that is not stored yet.
    fn save(&mut self) -> anyhow::Result<()> {
        if let Some(text) = &self.unsaved {
            write(&self.certificate_file, text.as_bytes())?;
            self.unsaved = None;
        }
        Ok(())
    }

    /// Period that the authority suggests for renewing a certificate (RFC 9773), and the time until it may change.
    async fn suggestion(
        &self,
        certificate: Option<&CertificateIdentifier<'_>>,
    ) -> Option<([SystemTime; 2], Duration)> {
        let certificate = certificate?;
        let asked = async { anyhow::Ok(self.account().await?.renewal_info(certificate).await?) };
        let asked = time::timeout(&TokioRuntime, SUGGESTION_LIMIT, asked).await.ok()?;
        let failed = |error| tracing::debug!(%error, "the authority suggests no time for renewal");
        let (info, again) = asked.map_err(failed).ok()?;
        let window = info.suggested_window;
        Some(([window.start.into(), window.end.into()], again))
    }

    /// The stored account, or a new one if there is none that can be read.
    async fn account(&self) -> anyhow::Result<Account> {
        let stored = fs::read(&self.account_file).ok();
        if let Some(credentials) = stored.and_then(|text| serde_json::from_slice(&text).ok()) {
            return Ok(Account::builder()?.from_credentials(credentials).await?);
        }
        let account = NewAccount {
            contact: &[],
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let created = Account::builder()?.create(&account, self.directory.clone(), None);
        let (account, credentials) = created.await?;
        write(&self.account_file, &serde_json::to_vec(&credentials)?)?;
        Ok(account)
    }

    /// Orders a certificate. Returns its chain and its key as PEM text.
    async fn issue(
        &self,
        certificates: &Certificates,
        replaced: Option<CertificateIdentifier<'_>>,
    ) -> anyhow::Result<String> {
        let identifiers: Vec<_> = self.domains.iter().cloned().map(Identifier::Dns).collect();
        let mut order = NewOrder::new(&identifiers);
        if let Some(replaced) = replaced {
            order = order.replaces(replaced);
        }
        let mut placed = self.account().await?.new_order(&order).await;
        if let Err(Error::Api(problem)) = &placed
            && problem.r#type.as_deref() == Some("urn:ietf:params:acme:error:accountDoesNotExist")
        {
            tracing::warn!("the authority no longer knows the account; making a new one");
            fs::remove_file(&self.account_file)?;
            placed = self.account().await?.new_order(&order).await;
        }
        let mut order = placed?;
        self.validate(&mut order, certificates).await?;
        let key = order.finalize().await?;
        let chain = order
            .poll_certificate(&RetryPolicy::new().timeout(STEP_LIMIT))
            .await?;
        Ok(format!("{chain}\n{key}"))
    }

    /// Proves that this server has all names of `order`.
    async fn validate(&self, order: &mut Order, certificates: &Certificates) -> anyhow::Result<()> {
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let name = authorization.identifier().to_string();
            let mut challenge = authorization
                .challenge(ChallengeType::TlsAlpn01)
                .with_context(|| format!("the authority offers no tls-alpn-01 for {name}"))?;
            let digest = challenge.key_authorization().digest().as_ref().try_into()?;
            certificates.answer_challenge(&name, &digest)?;
            challenge.set_ready().await?;
        }
        let mut failure = match order.poll_ready(&RetryPolicy::new().timeout(STEP_LIMIT)).await {
            Ok(OrderStatus::Ready) => return Ok(()),
            Ok(status) => format!("the order is {status:?}"),
            Err(error) => error.to_string(),
        };
        // Each authorization has its own error.
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let Ok(mut authorization) = authorization else {
                break;
            };
            let Ok(state) = authorization.refresh().await else {
                break;
            };
            let challenges = state.challenges.iter();
            for error in challenges.filter_map(|challenge| challenge.error.as_ref()) {
                failure = format!("{failure}; {}: {error}", state.identifier());
            }
        }
        Err(anyhow!(failure))
    }
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    state::write(path, bytes).with_context(|| format!("--state: cannot write {}", path.display()))
}

/// Time to renew a certificate: within the authority's `window`, or else at two thirds of its validity; in any case
/// before the last tenth of it.
fn renewal_time(leaf: &Leaf, window: Option<[SystemTime; 2]>, jitter: f64) -> SystemTime {
    let lifetime = leaf.lifetime();
    let planned = match window {
        Some([start, end]) => start + end.duration_since(start).unwrap_or_default().mul_f64(jitter),
        None => leaf.begin + lifetime * 2 / 3 + (lifetime / 30).mul_f64(jitter),
    };
    planned.min(leaf.begin + lifetime * 9 / 10)
}

/// Pause after this many `failures` in a row.
fn retry_pause(failures: u32, jitter: f64) -> Duration {
    let doubled = PAUSES.0 * (1 << failures.saturating_sub(1).min(6));
    doubled.mul_f64(1.0 + jitter / 4.0).min(PAUSES.1)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::UNIX_EPOCH;

    use super::*;

    fn at(days: u32) -> SystemTime {
        UNIX_EPOCH + DAY * days
    }

    #[rstest::rstest]
    #[case::two_thirds(None, 0.0, at(60))]
    #[case::not_all_at_once(None, 1.0, at(63))]
    #[case::start_of_the_window([at(50), at(54)].into(), 0.0, at(50))]
    #[case::within_the_window([at(50), at(54)].into(), 0.5, at(52))]
    #[case::in_the_past([at(0), at(0)].into(), 0.5, at(0))]
    #[case::too_late([at(88), at(95)].into(), 0.5, at(81))]
    #[case::backwards([at(50), at(40)].into(), 0.5, at(50))]
    fn a_certificate_of_90_days_is_renewed_when_the_authority_suggests_or_after_60(
        #[case] window: Option<[SystemTime; 2]>,
        #[case] jitter: f64,
        #[case] expected: SystemTime,
    ) {
        let leaf = Leaf {
            name: String::new(),
            begin: at(0),
            end: at(90),
        };
        assert_eq!(renewal_time(&leaf, window, jitter), expected);
    }

    #[rstest::rstest]
    #[case(1, 60)]
    #[case(2, 120)]
    #[case(6, 1_920)]
    #[case(7, 3_600)]
    #[case(u32::MAX, 3_600)]
    fn pauses_after_failures_grow_from_a_minute_to_an_hour(#[case] failures: u32, #[case] seconds: u64) {
        let pause = retry_pause(failures, 0.0);
        assert_eq!(pause.as_secs(), seconds);
        let late = retry_pause(failures, 1.0);
        assert_eq!(late, pause.mul_f64(1.25).min(PAUSES.1));
    }

    #[test]
    fn a_certificate_is_used_again_unless_it_expired_or_was_of_another_authority() {
        let directory = tempfile::tempdir().unwrap();
        let acme = |authority: &str, end: i32| {
            let options = AcmeOptions {
                acme_domain: vec!["films.example".to_owned()],
                acme_agree: true,
                acme_staging: false,
                acme_directory: Some(format!("https://{authority}/directory")),
            };
            let acme = Acme::new(&options, Some(directory.path())).unwrap();
            let mut params = rcgen::CertificateParams::new(options.acme_domain).unwrap();
            params.not_after = rcgen::date_time_ymd(end, 1, 1);
            let key = rcgen::KeyPair::generate().unwrap();
            let text = params.self_signed(&key).unwrap().pem() + &key.serialize_pem();
            (acme, text)
        };
        let (first, valid) = acme("one.example", 4096);
        assert!(first.stored().is_none());
        state::write(&first.certificate_file, valid.as_bytes()).unwrap();
        let used = [first.stored().unwrap().0.pin(), first.identity().unwrap().pin()];
        assert_eq!(used[0], used[1]);
        let mode = fs::metadata(&first.certificate_file)
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let (other, expired) = acme("other.example", 1999);
        assert!(other.stored().is_none());
        for useless in [expired.as_bytes(), b"half a certif"] {
            state::write(&other.certificate_file, useless).unwrap();
            assert!(other.stored().is_none());
            let used = other.identity().unwrap();
            assert!(used.is_for("localhost") && used.is_for("films.example"));
        }
    }

    #[rstest::rstest]
    #[case("Films.Example", Some("films.example"))]
    #[case("*.films.example", None)]
    #[case("films.example:443", None)]
    #[case("192.0.2.1", None)]
    #[case("films.example.", None)]
    #[case("", None)]
    fn a_domain_is_a_plain_name(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(domain(text).ok().as_deref(), expected);
    }
}
