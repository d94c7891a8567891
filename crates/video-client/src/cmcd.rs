//! Options for sending CMCD ([`playrate_media::cmcd`]).

use http::HeaderMap;
use playrate_media::cmcd::Cmcd;

/// Place of CMCD in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[non_exhaustive]
pub enum CmcdMode {
    /// No CMCD is sent.
    #[default]
    Off,
    /// The header fields `CMCD-Object`, `CMCD-Request`, `CMCD-Session` and `CMCD-Status`.
    Header,
    /// The query parameter `CMCD`.
    Query,
}

/// `pr` of a player with this speed in per cent; left out at normal speed, as CTA-5004 requires.
pub(crate) fn playback_rate(speed_percent: u32) -> Option<f64> {
    (speed_percent != 100).then(|| f64::from(speed_percent) / 100.0)
}

/// Place of CMCD, and the identifier of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CmcdOptions {
    /// Place in the request.
    pub mode: CmcdMode,
    /// Writes version 2 (CTA-5004-B): lists by object type, `lb`, `sta` and `v`.
    pub version_2: bool,
    /// `sid`: a UUID, according to CTA-5004; at most 64 characters. Left out if empty.
    pub session: String,
}

impl CmcdOptions {
    /// Completes `said` with the keys that all requests of this client share, and adds it to the request. Returns the
    /// path to request.
    pub(crate) fn add(&self, mut said: Cmcd, path: &str, headers: &mut HeaderMap) -> String {
        said.session = Some(self.session.clone()).filter(|session| !session.is_empty());
        said.version_2 = self.version_2;
        // This client plays only on-demand titles.
        said.stream_type = Some("v");
        match self.mode {
            CmcdMode::Off => path.to_owned(),
            CmcdMode::Header => {
                said.write_headers(headers);
                path.to_owned()
            }
            CmcdMode::Query => said.append_to(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(mode: CmcdMode, version_2: bool) -> (String, HeaderMap) {
        let options = CmcdOptions {
            mode,
            version_2,
            session: "6e2fb550".into(),
        };
        let mut headers = HeaderMap::new();
        let mut said = Cmcd::default();
        said.startup = true;
        (options.add(said, "/v/1.m4s?t=1", &mut headers), headers)
    }

    #[test]
    fn each_mode_has_its_place() {
        assert_eq!(
            add(CmcdMode::Off, true),
            ("/v/1.m4s?t=1".into(), HeaderMap::new())
        );
        let (path, headers) = add(CmcdMode::Header, true);
        assert_eq!((path.as_str(), headers.len()), ("/v/1.m4s?t=1", 2));
        assert_eq!(headers["cmcd-session"], "sid=\"6e2fb550\",st=v,v=2");
        let (path, headers) = add(CmcdMode::Query, false);
        assert_eq!(
            (path.as_str(), headers.len()),
            ("/v/1.m4s?t=1&CMCD=sid%3D%226e2fb550%22%2Cst%3Dv%2Csu", 0)
        );
    }
}
