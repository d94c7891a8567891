//! Resource names from request targets.
//!
//! Segments are split before they are percent-decoded, so an encoded slash never makes a new segment. A name that could
//! leave the directory, or reach something that the operator did not mean to publish, is "not found" and not an error:
//! the answer tells a prober nothing.

use percent_encoding::percent_decode_str;
use thiserror::Error;

/// A name below the media directory: segments joined by `/`. No segment is empty, hidden (`.…`) or able to escape.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceName(String);

impl ResourceName {
    /// The name as text, with `/` between segments and none in front.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name without its extension.
    pub(crate) fn stem(&self) -> &str {
        self.0.rsplit_once('.').map_or(&self.0, |(stem, _)| stem)
    }

    /// The name of a file in the media directory, from its relative path; `None` if no request can name it: hidden, not
    /// UTF-8, or not below the directory.
    pub fn from_relative(path: &std::path::Path) -> Option<Self> {
        let segments = path
            .components()
            .map(|component| match component {
                std::path::Component::Normal(segment) => segment.to_str().filter(|text| is_public(text)),
                _ => None,
            })
            .collect::<Option<Vec<_>>>()?;
        (!segments.is_empty()).then(|| Self(segments.join("/")))
    }

    /// The name without its first segment, if that is `first`.
    pub fn below(&self, first: &str) -> Option<Self> {
        let rest = self.0.strip_prefix(first)?.strip_prefix('/')?;
        Some(Self(rest.to_owned()))
    }

    /// The URL path of this resource, with a leading slash and everything unsafe percent-encoded.
    pub fn to_url_path(&self) -> String {
        use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
        // RFC 3986 §3.3: unreserved characters need no encoding in a path; the slash separates.
        const UNSAFE: &AsciiSet = &NON_ALPHANUMERIC
            .remove(b'-')
            .remove(b'.')
            .remove(b'_')
            .remove(b'~')
            .remove(b'/');
        format!("/{}", utf8_percent_encode(&self.0, UNSAFE))
    }

    /// The media type, by the extension in any case; `application/octet-stream` for unknown extensions.
    ///
    /// Named here: containers as registered, such as `video/mp4` (RFC 4337), `video/iso.segment` (ISO/IEC 23009-1 §C),
    /// `video/matroska` (RFC 9559); playlists (RFC 8216 §4); texts, which are UTF-8. `mime_guess` knows the others.
    pub(crate) fn content_type(&self) -> &'static str {
        let extension = self.0.rsplit_once('.').map(|(_, extension)| extension);
        let extension = extension.map(str::to_ascii_lowercase);
        match extension.as_deref().unwrap_or_default() {
            "mp4" | "m4v" | "cmfv" => "video/mp4",
            "m4a" | "cmfa" => "audio/mp4",
            "m4s" => "video/iso.segment",
            "m3u8" => "application/vnd.apple.mpegurl",
            "ts" => "video/mp2t",
            "mkv" => "video/matroska",
            "vtt" => "text/vtt; charset=utf-8",
            "html" | "htm" => "text/html; charset=utf-8",
            "js" | "mjs" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "txt" => "text/plain; charset=utf-8",
            "map" => "application/json",
            other => {
                let known = mime_guess::from_ext(other).first_raw();
                known.unwrap_or("application/octet-stream")
            }
        }
    }
}

impl core::fmt::Display for ResourceName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reason why a request target names no resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(crate) enum PathError {
    /// Not a path: no slash in front, a broken percent-escape, not UTF-8 once decoded. Answered with 400.
    #[error(
        "the request target is not a path: percent-escapes are % and two hexadecimal digits, the text is UTF-8"
    )]
    Malformed,
    /// A path that cannot name anything here: `..`, hidden, a directory, a NUL. Answered with 404.
    #[error("no such resource")]
    NotFound,
}

/// Maximum length in bytes of a path as sent: Linux's own limit (`PATH_MAX`).
const LONGEST: usize = 4096;

/// Reads the path of a request target (without its query).
pub(crate) fn resolve(path: &str) -> Result<ResourceName, PathError> {
    let segments = path.strip_prefix('/').ok_or(PathError::Malformed)?;
    if path.len() > LONGEST {
        return Err(PathError::NotFound);
    }
    let mut decoded = Vec::new();
    for segment in segments.split('/') {
        decoded.push(decode(segment)?);
    }
    // A malformed segment anywhere makes the path malformed, so this check follows the decoding of all segments.
    if decoded.iter().all(|segment| is_public(segment)) {
        Ok(ResourceName(decoded.join("/")))
    } else {
        Err(PathError::NotFound)
    }
}

fn decode(segment: &str) -> Result<String, PathError> {
    let well_formed = segment.split('%').skip(1).all(|rest| {
        let mut digits = rest.bytes();
        let mut hexadecimal = || digits.next().is_some_and(|byte| byte.is_ascii_hexdigit());
        hexadecimal() && hexadecimal()
    });
    if !well_formed {
        return Err(PathError::Malformed);
    }
    let text = percent_decode_str(segment).decode_utf8();
    text.map(Into::into).map_err(|_| PathError::Malformed)
}

/// Returns true if a decoded segment may be looked up. A leading dot covers `.`, `..` and hidden files alike.
pub(crate) fn is_public(segment: &str) -> bool {
    !segment.is_empty()
        && !segment.starts_with('.')
        && !segment.chars().any(|c| matches!(c, '/' | '\\') || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("/film.mp4", "film.mp4")]
    #[case("/films/one/film.mp4", "films/one/film.mp4")]
    #[case("/my%20film.mp4", "my film.mp4")]
    #[case("/f%C3%BCr%20dich.mp4", "für dich.mp4")]
    #[case("/%66ilm%2Emp4", "film.mp4")]
    #[case("/100%25.mp4", "100%.mp4")]
    #[case("/a+b&c=d;e.mp4", "a+b&c=d;e.mp4")]
    #[case("/film..mp4", "film..mp4")]
    #[case("/film%253F.mp4", "film%3F.mp4")]
    fn a_path_names_a_file(#[case] path: &str, #[case] name: &str) {
        assert_eq!(resolve(path).as_ref().map(ResourceName::as_str), Ok(name));
    }

    #[rstest]
    #[case::root("/")]
    #[case::directory("/films/")]
    #[case::empty_segment("/films//film.mp4")]
    #[case::parent("/../etc/passwd")]
    #[case::parent_inside("/films/../film.mp4")]
    #[case::parent_last("/films/..")]
    #[case::encoded_parent("/%2e%2e/etc/passwd")]
    #[case::half_encoded_parent("/.%2E/etc/passwd")]
    #[case::encoded_slash("/..%2fetc%2fpasswd")]
    #[case::encoded_slash_in_a_name("/films%2Ffilm.mp4")]
    #[case::backslash("/..\\etc\\passwd")]
    #[case::encoded_backslash("/films%5Cfilm.mp4")]
    #[case::this("/./film.mp4")]
    #[case::hidden("/.git/config")]
    #[case::hidden_below("/films/.htpasswd")]
    #[case::nul("/film.mp4%00.html")]
    #[case::newline("/film%0A.mp4")]
    fn a_path_that_could_escape_names_nothing(#[case] path: &str) {
        assert_eq!(resolve(path), Err(PathError::NotFound));
    }

    #[rstest]
    #[case::no_slash("film.mp4")]
    #[case::star("*")]
    #[case::empty("")]
    #[case::broken_escape("/film%zz.mp4")]
    #[case::cut_escape("/film%4")]
    #[case::bare_percent("/100%")]
    #[case::not_utf8("/film%ff.mp4")]
    #[case::overlong_slash("/..%c0%afetc")]
    #[case::malformed_past_a_traversal("/../%zz")]
    fn what_is_not_a_path_is_malformed(#[case] path: &str) {
        assert_eq!(resolve(path), Err(PathError::Malformed));
    }

    #[test]
    fn a_path_longer_than_any_file_has_is_not_looked_at() {
        assert_eq!(
            resolve(&format!("/{}", "a".repeat(LONGEST))),
            Err(PathError::NotFound)
        );
    }

    #[rstest]
    #[case("film.mp4")]
    #[case("a b/100%/für?dich#.mp4")]
    fn the_url_of_a_name_resolves_to_it(#[case] file: &str) {
        let name = ResourceName::from_relative(std::path::Path::new(file)).unwrap();
        assert_eq!(resolve(&name.to_url_path()), Ok(name));
    }

    #[rstest]
    #[case("")]
    #[case("../film.mp4")]
    #[case("/etc/passwd")]
    #[case(".git/config")]
    #[case("films/.hidden")]
    fn a_file_that_no_request_can_name_has_no_name(#[case] file: &str) {
        assert_eq!(ResourceName::from_relative(std::path::Path::new(file)), None);
    }

    proptest::proptest! {
        #[test]
        fn no_path_leads_out_of_the_directory(path in "/?((%2[eEfF]|%5c|%00|\\.|/|\\\\|%|[a-z]|\\PC){0,12})") {
            if let Ok(name) = resolve(&path) {
                let below = std::path::Path::new(name.as_str());
                let plain = below
                    .components()
                    .all(|part| matches!(part, std::path::Component::Normal(_)));
                proptest::prop_assert!(plain && below.is_relative() && !name.as_str().contains('\0'), "{name}");
                proptest::prop_assert_eq!(resolve(&name.to_url_path()), Ok(name));
            }
        }
    }

    #[rstest]
    #[case("film.mp4", "video/mp4")]
    #[case("FILM.MP4", "video/mp4")]
    #[case("a.b/film.v2.mp4", "video/mp4")]
    #[case("seg-0-00001.m4s", "video/iso.segment")]
    #[case("manifest.mpd", "application/dash+xml")]
    #[case("master.m3u8", "application/vnd.apple.mpegurl")]
    #[case("sound.m4a", "audio/mp4")]
    #[case("index.html", "text/html; charset=utf-8")]
    #[case("dash.all.min.js", "text/javascript; charset=utf-8")]
    #[case("uPlot.min.css", "text/css; charset=utf-8")]
    #[case("poster.jpeg", "image/jpeg")]
    #[case("film.mov", "video/quicktime")]
    #[case("film.webm", "video/webm")]
    #[case("film.mkv", "video/matroska")]
    #[case("film.ogv", "video/ogg")]
    #[case("sound.aac", "audio/aac")]
    #[case("sound.mp3", "audio/mpeg")]
    #[case("sound.wav", "audio/wav")]
    #[case("sound.flac", "audio/flac")]
    #[case("sound.opus", "audio/ogg")]
    #[case("dash.all.min.js.map", "application/json")]
    #[case("poster.webp", "image/webp")]
    #[case("player.wasm", "application/wasm")]
    #[case("icon.svg", "image/svg+xml")]
    #[case("README", "application/octet-stream")]
    #[case("film.", "application/octet-stream")]
    #[case("film.mp4.part", "application/octet-stream")]
    #[case("", "application/octet-stream")]
    fn the_extension_names_the_media_type(#[case] name: &str, #[case] media_type: &str) {
        assert_eq!(ResourceName(name.to_owned()).content_type(), media_type);
    }
}
