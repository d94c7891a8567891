//! Options about who may watch and about proxies in front, and the command `video-server sign`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, anyhow};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use http::HeaderName;
use ipnet::IpNet;
use playrate_media::manifest::Manifest;
use playrate_units::duration;
use url::Url;
use video_server::access::{self, Access, AccessKeys, Claims, Grant, JwtKey, Scope, SigningKeys};

use super::serve::wall_clock;
use super::tcp::Proxies;
use super::{Failure, print};
use crate::access::{redacted, without_token};
use crate::http::path::resolve;

#[derive(Debug, clap::Args)]
#[command(
    next_help_heading = "Who may watch (everybody by default)",
    group = clap::ArgGroup::new("access_key").multiple(true)
)]
pub(super) struct AccessOptions {
    /// Answer only requests with a token of a URL that `video-server sign` or your own program signed. The file has one
    /// or two lines ID:KEY, with keys of 64 or more hexadecimal digits; SIGHUP reads it again
    #[arg(long, value_name = "FILE", group = "access_key")]
    signing_key: Option<PathBuf>,

    /// Path that needs no token, such as /trailers/ with all below it, or /index.html; may be repeated
    #[arg(long, value_name = "PATH", requires = "access_key")]
    public: Vec<Scope>,

    /// Answer only requests with a token (JWT) in the Authorization field, or a signed URL if both keys are given. The
    /// file has a secret for HS256, or a public key in PEM for RS256, ES256 or Ed25519; SIGHUP reads it again
    #[arg(long, value_name = "FILE", group = "access_key")]
    jwt_key: Option<PathBuf>,

    /// Audience (claim aud) that a JWT must name
    #[arg(long, value_name = "TEXT", requires = "jwt_key")]
    jwt_audience: Option<String>,

    /// Issuer (claim iss) that a JWT must name
    #[arg(long, value_name = "TEXT", requires = "jwt_key")]
    jwt_issuer: Option<String>,

    /// Claim of a JWT with the path or the paths that it opens: /films/one/ with all below it, or one file. The name
    /// none lets each JWT open everything
    #[arg(long, value_name = "NAME", default_value = "path", requires = "jwt_key")]
    jwt_path_claim: String,
}

impl AccessOptions {
    /// The check of tokens, if there is a key.
    pub(super) fn access(&self) -> Result<Option<Arc<Access>>, Failure> {
        if self.signing_key.is_none() && self.jwt_key.is_none() {
            return Ok(None);
        }
        let keys = self.keys().map_err(Failure::Input)?;
        Ok(Some(Arc::new(Access::new(keys, self.public.clone()))))
    }

    /// Reads the keys again. If a file is unusable, nothing changes.
    pub(super) fn reload(&self, access: Option<&Access>) {
        let Some(access) = access else { return };
        match self.keys() {
            Ok(keys) => {
                let ids = keys.signing.as_ref().map(SigningKeys::ids);
                tracing::info!(
                    ids,
                    "SIGHUP: further requests need a token of the keys as they are now"
                );
                access.set_keys(keys);
            }
            Err(error) => {
                tracing::error!(error = %Failure::Input(error), "SIGHUP: the previous keys stay in use");
            }
        }
    }

    fn keys(&self) -> anyhow::Result<AccessKeys> {
        let jwt = |file: &PathBuf| {
            let claims = Claims {
                audience: self.jwt_audience.clone(),
                issuer: self.jwt_issuer.clone(),
                path: Some(self.jwt_path_claim.clone()).filter(|name| name != "none"),
            };
            read(file)
                .and_then(|text| Ok(JwtKey::new(&text, claims)?))
                .with_context(|| format!("--jwt-key {}", file.display()))
        };
        Ok(AccessKeys {
            signing: self.signing_key.as_deref().map(signing_keys).transpose()?,
            jwt: self.jwt_key.as_ref().map(jwt).transpose()?,
        })
    }
}

fn signing_keys(file: &Path) -> anyhow::Result<SigningKeys> {
    let keys = read(file).and_then(|text| Ok(text.parse()?));
    keys.with_context(|| format!("--signing-key {}", file.display()))
}

/// Reads a file with a key, which only its owner and its group may read unless the key is public.
fn read(file: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(file)?;
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(file)?.permissions());
    if mode & 0o007 != 0 && !JwtKey::is_public(&text) {
        return Err(anyhow!(
            "other users may read this file; run `chmod o= {}`, or mount it with mode 0440",
            file.display()
        ));
    }
    Ok(text)
}

#[derive(Debug, clap::Args)]
#[command(
    next_help_heading = "Proxies in front, over TCP",
    group = clap::ArgGroup::new("client_address").multiple(true)
)]
pub(super) struct ProxyOptions {
    /// Addresses or networks of proxies, separated by commas, that are believed about their clients' addresses. Logs,
    /// limits per address and tokens for an address then mean the client; the proxies themselves have no limit
    #[arg(
        long,
        value_name = "NETWORKS",
        value_delimiter = ',',
        value_parser = access::network,
        requires = "client_address"
    )]
    trusted_proxies: Vec<IpNet>,

    /// Require that each TCP connection of these proxies begins with a PROXY header, of version 1 or 2
    #[arg(long, requires = "trusted_proxies", group = "client_address")]
    proxy_protocol: bool,

    /// Field to which these proxies add the address of each request's client. Choose the one that they write
    /// themselves: a client can write the other
    #[arg(
        long,
        value_name = "FIELD",
        requires = "trusted_proxies",
        group = "client_address",
        value_parser = PossibleValuesParser::new(["forwarded", "x-forwarded-for"])
            .try_map(|name| name.parse::<HeaderName>())
    )]
    forwarded_field: Option<HeaderName>,
}

impl ProxyOptions {
    pub(super) fn proxies(&self) -> Arc<Proxies> {
        Arc::new(Proxies {
            trusted: self.trusted_proxies.clone(),
            protocol: self.proxy_protocol,
            field: self.forwarded_field.clone(),
            ..Proxies::default()
        })
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  (umask 077; echo \"k1:$(openssl rand -hex 32)\" > signing.key)
  video-server sign --signing-key signing.key --expires 2h \\
      --url https://video.example/films/one/manifest.mpd

A manifest's URL opens its whole directory, as players request segments relative
to it. The URL of another file opens that file alone.")]
pub(super) struct SignOptions {
    /// File of serve's --signing-key; its first key signs
    #[arg(long, value_name = "FILE")]
    signing_key: PathBuf,

    /// URL of a manifest, of a file, or of the page with all titles (/), without a token and without an arm in its path
    #[arg(long)]
    url: Url,

    /// Time for which the URL is valid, such as 2h; later requests for segments are refused too
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    expires: Duration,

    /// Client address or network for which alone it is valid, such as 192.0.2.7 or 192.0.2.0/24
    #[arg(long, value_name = "NETWORK", value_parser = access::network)]
    address: Option<IpNet>,

    /// Path that it opens, not percent-encoded: /films/one/ with all below it, or one file
    #[arg(long, value_name = "PATH")]
    prefix: Option<Scope>,

    /// Put the token into the query (?token=), which relative URLs of players do not keep
    #[arg(long)]
    query: bool,
}

/// Prints a signed URL.
pub(super) fn sign(options: &SignOptions) -> Result<(), Failure> {
    let keys = signing_keys(&options.signing_key).map_err(Failure::Input)?;
    let url = |why: &str| Failure::Input(anyhow!("--url {}: {why}", redacted(options.url.as_str())));
    let path = match options.url.path() {
        "/" => "/".to_owned(),
        path => format!("/{}", resolve(path).map_err(|error| url(&error.to_string()))?),
    };
    if without_token(&path) != path || options.url.query_pairs().any(|(name, _)| name == "token") {
        return Err(url("it has a token already; leave that out"));
    }
    let directory = path.trim_end_matches(|c| c != '/');
    let scope = match &options.prefix {
        Some(prefix) if prefix.contains(&path) => prefix.clone(),
        Some(_) => return Err(url("not below --prefix")),
        None if !Manifest::is_named(Path::new(&path)) => path.parse().map_err(Failure::input)?,
        None if directory == "/" => {
            return Err(url(
                "its directory has all titles; give --prefix / to open them, or another path",
            ));
        }
        None => directory.parse().map_err(Failure::input)?,
    };
    if options.expires.as_secs() == 0 {
        return Err(Failure::Input(anyhow!("--expires must be at least 1s")));
    }
    let now = wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default();
    let token = keys.sign(&Grant {
        scope,
        expires: now.saturating_add(options.expires).as_secs(),
        address: options.address,
    });
    let mut signed = options.url.clone();
    if options.query {
        signed
            .query_pairs_mut()
            .append_pair("token", token.trim_start_matches('~'));
    } else {
        signed.set_path(&format!("/{token}{}", options.url.path()));
    }
    print(&format!("{signed}\n"))
}
