//! Resolves references in a manifest to names below the media directory.

use core::ops::Range;
use core::time::Duration;

use percent_encoding::percent_decode_str;
use url::Url;

use super::Piece;

/// Base of references. A reference to another host leaves the media directory.
#[derive(Clone, Debug)]
pub(super) struct Location(Option<Url>);

/// Stands for the media directory; RFC 6761 reserves such names.
const SITE: &str = "https://site.invalid/";

impl Location {
    /// The manifest of this name below the media directory.
    pub(super) fn of(name: &str) -> Self {
        let mut url = Url::parse(SITE).ok();
        if let Some(url) = &mut url {
            url.set_path(&name.replace('%', "%25"));
        }
        Self(url)
    }

    /// Length of its URL in bytes.
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |url| url.as_str().len())
    }

    /// The target of `reference` from this base (RFC 3986 §5).
    pub(super) fn join(&self, reference: &str) -> Self {
        Self(self.0.as_ref().and_then(|url| url.join(reference.trim()).ok()))
    }

    /// The path below the media directory, with `/` between segments; `None` if it is elsewhere. The URL has no dot
    /// segments left, but decoding can create some: `..%2f`.
    pub(super) fn file(&self) -> Option<String> {
        let url = self.0.as_ref()?;
        let here = url.host_str() == Some("site.invalid") && url.port().is_none() && url.scheme() == "https";
        let path = percent_decode_str(url.path().strip_prefix('/')?)
            .decode_utf8()
            .ok()?;
        let leads_out = path.starts_with('/')
            || path.contains('\0')
            || path.split('/').any(|segment| matches!(segment, "." | ".."));
        (here && !path.is_empty() && !leads_out).then(|| path.into_owned())
    }

    /// Query of a request for it, such as a token, as in the manifest.
    pub(super) fn query(&self) -> Option<Box<str>> {
        let query = self.0.as_ref()?.query()?;
        Some(query.into()).filter(|_| !query.is_empty())
    }

    /// The piece at this location, or a part of it.
    pub(super) fn piece(&self, bytes: Option<Range<u64>>, duration: Option<Duration>) -> Piece {
        Piece {
            file: self.file(),
            query: self.query(),
            bytes,
            duration,
        }
    }

    /// The last part of the path.
    pub(super) fn file_name(&self) -> String {
        let file = self.file().unwrap_or_default();
        file.rsplit('/').next().unwrap_or_default().to_owned()
    }
}
