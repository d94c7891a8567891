//! The access log: one line for each response, as JSON or in the combined format of Apache and nginx.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use http::Request;
use http::header::{HeaderValue, RANGE, REFERER, USER_AGENT};
use playrate_media::cmcd::Cmcd;
use serde::Serializer as _;
use serde_json::json;
use video_server::access::redacted;
use video_server::serve::{ResponseLog, ServedResponse};

use super::Failure;
use super::logging::ACCESS;

/// Destinations other than files.
pub(super) const STDOUT: &str = "-";
const NONE: &str = "none";
/// Maximum number of bytes of one field of a request. The client chooses its length, up to 64 KiB.
const MAX_FIELD: usize = 2 << 10;
/// Status of a response whose client left before there was an answer, as nginx writes it.
const CLIENT_LEFT: u16 = 499;

/// Format of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum AccessLogFormat {
    /// One JSON object per line
    Json,
    /// The combined format of Apache and nginx
    Combined,
}

/// Starts to write lines in this `format` to the file `target`, to stdout if it is `-`, or not at all if it is `none`.
pub(super) fn start(target: &Path, format: AccessLogFormat) -> Result<Option<Arc<dyn ResponseLog>>, Failure> {
    if target.as_os_str() == NONE {
        return Ok(None);
    }
    let path = target.to_owned();
    let started = ACCESS.start(move || {
        if path.as_os_str() == STDOUT {
            return Ok(Box::new(io::stdout()));
        }
        Ok(Box::new(open(&path, true)?))
    });
    started.with_context(|| named(target)).map_err(Failure::Input)?;
    Ok(Some(Arc::new(AccessLog(format))))
}

/// Opens a file to append lines. It is open for reading too, so that Linux does not wait for the reader of a FIFO.
fn open(path: &Path, creates: bool) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).append(true).create(creates).open(path)
}

/// Returns an error if `target` is not a file that can be written to, or its directory is missing. Creates no file.
pub(super) fn check(target: &Path) -> Result<(), Failure> {
    let directory = target.parent().unwrap_or(target).join(".");
    match open(target, false) {
        _ if target.as_os_str() == NONE || target.as_os_str() == STDOUT => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && directory.is_dir() => Ok(()),
        opened => opened
            .map(drop)
            .with_context(|| named(target))
            .map_err(Failure::Input),
    }
}

fn named(target: &Path) -> String {
    format!("--access-log {}", target.display())
}

#[derive(Debug)]
struct AccessLog(AccessLogFormat);

impl ResponseLog for AccessLog {
    fn ended(&self, response: &ServedResponse) {
        ACCESS.push(&match self.0 {
            AccessLogFormat::Json => json(response),
            AccessLogFormat::Combined => combined(response),
        });
    }
}

/// A line of JSON.
fn json(response: &ServedResponse) -> Vec<u8> {
    let request = &response.request;
    let field = |name| request.headers().get(name).map(|value| bounded(value.as_bytes()));
    let referer = referer(request).map(|referer| bounded(&referer));
    let milliseconds = |time: Duration| time.as_micros() as f64 / 1e3;
    let time = response
        .time
        .map(|time| humantime::format_rfc3339_millis(time).to_string());
    let session = Cmcd::read(request.headers(), request.uri()).and_then(|report| report.session);
    let fields = [
        ("time", json!(time)),
        ("peer_address", json!(response.peer.ip().to_canonical())),
        ("peer_port", json!(response.peer.port())),
        ("method", json!(bounded(request.method().as_str().as_bytes()))),
        ("path", json!(bounded(target(request).as_bytes()))),
        ("range", json!(field(RANGE))),
        ("status", json!(response.status.map(|status| status.as_u16()))),
        ("content_bytes", json!(response.length.as_u64())),
        ("sent_bytes", json!(response.sent.as_u64())),
        ("duration_ms", json!(milliseconds(response.duration))),
        ("first_byte_ms", json!(response.first_byte.map(milliseconds))),
        ("protocol", json!(format!("{:?}", request.version()))),
        ("controller", json!(response.controller)),
        ("arm", json!(response.arm)),
        ("stalls", json!(response.stalls)),
        (
            "cmcd_sid",
            json!(session.map(|session| bounded(session.as_bytes()))),
        ),
        ("user_agent", json!(field(USER_AGENT))),
        ("referer", json!(referer)),
        ("aborted", json!(!response.is_complete)),
    ];
    let mut text = Vec::new();
    // Writing to memory cannot fail.
    let _ = serde_json::Serializer::new(&mut text).collect_map(fields);
    text.push(b'\n');
    text
}

/// Target of the request, as in its first line over HTTP/1.1, without a token that others could use.
fn target<B>(request: &Request<B>) -> Cow<'_, str> {
    let target = request.uri().path_and_query();
    redacted(target.map_or("", |target| target.as_str()))
}

/// The field `Referer`, also without a token.
fn referer<B>(request: &Request<B>) -> Option<Cow<'_, [u8]>> {
    let field = request.headers().get(REFERER)?;
    let url = field.to_str().ok().and_then(|text| {
        let path = text.find("://").map(|scheme| scheme + 3)?;
        Some(text.split_at(path + text[path..].find('/')?))
    });
    Some(match url {
        Some((origin, target)) => format!("{origin}{}", redacted(target)).into_bytes().into(),
        None => field.as_bytes().into(),
    })
}

/// The first [`MAX_FIELD`] bytes of a field, and a mark if there are more. JSON escapes the control characters of
/// ASCII; others, which some terminals obey, are replaced.
fn bounded(field: &[u8]) -> String {
    let (text, rest) = field.split_at(field.len().min(MAX_FIELD));
    let mut text = String::from_utf8_lossy(text).replace(|c| ('\u{7f}'..='\u{9f}').contains(&c), "\u{fffd}");
    if !rest.is_empty() {
        text.push('…');
    }
    text
}

/// A line in nginx's format `combined`: `ADDRESS - - [TIME] "REQUEST" STATUS BYTES "REFERER" "USER AGENT"`.
fn combined(response: &ServedResponse) -> Vec<u8> {
    let (request, address) = (&response.request, response.peer.ip().to_canonical());
    // From `Sun, 06 Nov 1994 08:49:37 GMT`.
    let date = response.time.map(httpdate::fmt_http_date).unwrap_or_default();
    let date = match date.split(' ').collect::<Vec<_>>()[..] {
        [_, day, month, year, time, _] => format!("{day}/{month}/{year}:{time} +0000"),
        _ => date,
    };
    let field = |name| escaped(request.headers().get(name).map_or(b"-", HeaderValue::as_bytes));
    let [method, target] = [request.method().as_str(), &target(request)].map(|text| escaped(text.as_bytes()));
    let (version, sent) = (request.version(), response.sent.as_u64());
    let status = response.status.map_or(CLIENT_LEFT, |status| status.as_u16());
    let referer = escaped(&referer(request).unwrap_or_else(|| b"-".into()));
    let agent = field(USER_AGENT);
    format!(
        "{address} - - [{date}] \"{method} {target} {version:?}\" {status} {sent} \"{referer}\" \"{agent}\"\n"
    )
    .into_bytes()
}

/// The first [`MAX_FIELD`] bytes of a field as nginx writes it: quotes, backslashes, control characters and everything
/// that is not ASCII as `\xHH`.
fn escaped(field: &[u8]) -> String {
    let mut text = String::with_capacity(field.len().min(MAX_FIELD));
    for &byte in field.iter().take(MAX_FIELD) {
        if matches!(byte, b'"' | b'\\') || !(b' '..=b'~').contains(&byte) {
            let _ = write!(text, "\\x{byte:02X}");
        } else {
            text.push(char::from(byte));
        }
    }
    text + if field.len() > MAX_FIELD { "..." } else { "" }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::UNIX_EPOCH;

    use http::Request;
    use playrate_transport::{ControllerChoice, Identity, Server, ServerOptions};
    use quinn::{Runtime, TokioRuntime};
    use rstest::rstest;
    use serde_json::Value;
    use video_server::library::Library;
    use video_server::serve::{Settings, VideoServer};

    use super::*;
    use crate::serve::PendingRecord;

    /// Keeps the last record.
    #[derive(Debug, Default)]
    struct Last(Mutex<Option<ServedResponse>>);

    impl ResponseLog for Last {
        fn ended(&self, response: &ServedResponse) {
            *self.0.lock().unwrap() = Some(response.clone());
        }
    }

    /// Record of a response that was dropped before there was an answer.
    fn record(path: &str, agent: &[u8]) -> ServedResponse {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        let options = ServerOptions::new(Identity::development(&[]).unwrap());
        let transport = Server::bind("127.0.0.1:0".parse().unwrap(), Arc::clone(&runtime), options).unwrap();
        let last = Arc::new(Last::default());
        let mut settings = Settings::new("cubic".parse::<ControllerChoice>().unwrap());
        settings.response_log = Some(Arc::clone(&last) as _);
        settings.wall_clock = Some(|| UNIX_EPOCH + Duration::from_millis(784_111_777_250));
        let server = VideoServer::start(transport, Arc::clone(&runtime), Library::new(), settings);
        let request = Request::builder().uri(path).header("user-agent", agent);
        let request = request.body(bytes::Bytes::new()).unwrap();
        let peer = "[::ffff:192.0.2.1]:4433".parse().unwrap();
        drop(PendingRecord::begin(server.site(), &runtime, peer, &request).unwrap());
        last.0.lock().unwrap().take().unwrap()
    }

    #[rstest]
    #[case::plain("/film.mp4", b"curl/8.9", "/film.mp4", "curl/8.9")]
    #[case::quotes("/a?%22", b"a\"b\\c\td", "/a?%22", r"a\x22b\x5Cc\x09d")]
    #[case::utf8("/a", "für".as_bytes(), "/a", r"f\xC3\xBCr")]
    #[case::no_utf8("/a", b"\xff\x9b31m", "/a", r"\xFF\x9B31m")]
    #[tokio::test]
    async fn no_field_ends_early_in_the_combined_format(
        #[case] path: &str,
        #[case] agent: &[u8],
        #[case] logged_path: &str,
        #[case] logged_agent: &str,
    ) {
        let line = String::from_utf8(combined(&record(path, agent))).unwrap();
        let request = format!("GET {logged_path} HTTP/1.1");
        let expected = format!(
            "192.0.2.1 - - [06/Nov/1994:08:49:37 +0000] \"{request}\" 499 0 \"-\" \"{logged_agent}\"\n"
        );
        assert_eq!(line, expected);
    }

    #[tokio::test]
    async fn a_line_of_json_is_one_line_whatever_the_client_sends() {
        let record = record("/a?CMCD=sid%3D%22a%5C%22b%22", b"\xff\xc2\x9b31m\"");
        let text = String::from_utf8(json(&record)).unwrap();
        assert!(!text.trim_end().contains(|c: char| c.is_control()), "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        let found =
            ["time", "peer_address", "cmcd_sid", "user_agent"].map(|name| line[name].as_str().unwrap());
        let agent = "\u{fffd}\u{fffd}31m\"";
        let expected = ["1994-11-06T08:49:37.250Z", "192.0.2.1", "a\"b", agent];
        assert_eq!(found, expected);
        assert_eq!(line["status"], Value::Null);
    }

    #[tokio::test]
    async fn long_fields_are_cut() {
        let (path, agent) = (format!("/{}", "x".repeat(60_000)), "ü".repeat(30_000));
        let record = record(&path, agent.as_bytes());
        // Each byte of the user agent takes four.
        assert!(combined(&record).len() < 6 * MAX_FIELD && json(&record).len() < 4 * MAX_FIELD);
    }
}
