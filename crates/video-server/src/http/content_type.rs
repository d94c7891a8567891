//! The media type of a file, derived from its name.

/// The media type of a file `name`, by its extension in any case; `application/octet-stream` for unknown extensions.
///
/// Video containers as registered: `video/mp4` (RFC 4337), `video/iso.segment` (ISO/IEC 23009-1 §C),
/// playlists (RFC 8216 §4), manifests (ISO/IEC 23009-1 §C.1).
pub(crate) fn of(name: &str) -> &'static str {
    let extension = name
        .rsplit_once('.')
        .map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref().unwrap_or_default() {
        "mp4" | "m4v" | "cmfv" => "video/mp4",
        "m4a" | "cmfa" => "audio/mp4",
        "m4s" => "video/iso.segment",
        "mpd" => "application/dash+xml",
        "m3u8" => "application/vnd.apple.mpegurl",
        "ts" => "video/mp2t",
        "vtt" => "text/vtt; charset=utf-8",
        "html" | "htm" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "ico" => "image/x-icon",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::of;
    use rstest::rstest;

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
    #[case("README", "application/octet-stream")]
    #[case("film.", "application/octet-stream")]
    #[case("film.mp4.part", "application/octet-stream")]
    #[case("", "application/octet-stream")]
    fn the_extension_names_the_type(#[case] name: &str, #[case] media_type: &str) {
        assert_eq!(of(name), media_type);
    }
}
