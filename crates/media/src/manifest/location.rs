//! Resolves references in a manifest to names below the media directory.

use core::ops::Range;
use core::time::Duration;
use std::borrow::Cow;
use std::rc::Rc;

use percent_encoding::percent_decode_str;
use url::Position::{AfterQuery, BeforePath};
use url::Url;

use super::Piece;

/// The root of a server with an unknown name, to which players may add queries. RFC 6761 reserves such hosts.
pub(super) const SITE: &str = "https://site.invalid/";

/// A URL in a manifest, from which references are resolved.
#[derive(Clone, Debug)]
pub(super) struct Location {
    /// The manifest, whose origin is the server's.
    manifest: Rc<Url>,
    /// `None` if a reference is not a URL.
    target: Option<Url>,
}

impl Location {
    /// The manifest at this URL.
    pub(super) fn of(manifest: &Url) -> Self {
        Self {
            manifest: Rc::new(manifest.clone()),
            target: Some(manifest.clone()),
        }
    }

    /// Length of its URL in bytes.
    pub(super) fn len(&self) -> usize {
        self.target.as_ref().map_or(0, |url| url.as_str().len())
    }

    /// The target of `reference` from this base (RFC 3986 §5).
    pub(super) fn join(&self, reference: &str) -> Self {
        let target = self.target.as_ref();
        Self {
            manifest: Rc::clone(&self.manifest),
            target: target.and_then(|url| url.join(reference.trim()).ok()),
        }
    }

    /// Returns true if it is not on the server of the manifest (RFC 6454).
    pub(super) fn is_foreign(&self) -> bool {
        let origin = |url: &Url| url.origin();
        self.target.as_ref().map(origin) != Some(origin(&self.manifest))
    }

    /// The path below the media directory, with `/` between segments; `None` if there is none. The URL has no dot
    /// segments left, but decoding can create some: `..%2f`.
    pub(super) fn file(&self) -> Option<String> {
        let url = self.target.as_ref()?;
        let path = percent_decode_str(url.path().strip_prefix('/')?)
            .decode_utf8()
            .ok()?;
        let leads_out = path.starts_with('/')
            || path.contains('\0')
            || path.split('/').any(|segment| matches!(segment, "." | ".."));
        (url.has_host() && !path.is_empty() && !leads_out).then(|| path.into_owned())
    }

    /// The value of all variables that are unknown below [`SITE`]; no file name contains it.
    pub(super) fn unknown(&self) -> Option<Cow<'_, str>> {
        self.manifest.as_str().starts_with(SITE).then_some("%00".into())
    }

    /// The first value of a parameter of its query, decoded.
    pub(super) fn parameter(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut pairs = self.target.as_ref()?.query_pairs();
        pairs.find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The piece at this location, or a part of it.
    pub(super) fn piece(&self, bytes: Option<Range<u64>>, duration: Option<Duration>) -> Piece {
        Piece {
            file: self.file(),
            path: self.target.as_ref().map(|url| url[BeforePath..AfterQuery].into()),
            is_foreign: self.is_foreign(),
            bytes,
            duration,
            hidden: Duration::ZERO,
            is_gap: false,
        }
    }

    /// The last part of the path.
    pub(super) fn file_name(&self) -> String {
        let file = self.file().unwrap_or_default();
        file.rsplit('/').next().unwrap_or_default().to_owned()
    }
}
