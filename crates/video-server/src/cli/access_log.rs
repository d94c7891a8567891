//! The access log: one line for each response, as JSON or in the combined format of Apache and nginx.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serializer as _;
use serde::ser::SerializeMap as _;
use video_server::serve::{ResponseLog, ServedResponse};

use super::Failure;
use super::logging::ACCESS;

/// Destinations other than files.
pub(super) const STDOUT: &str = "-";
const NONE: &str = "none";
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
            AccessLogFormat::Json => json(response).unwrap_or_default(),
            AccessLogFormat::Combined => combined(response),
        });
    }
}

/// A line of JSON. Writing to memory cannot fail.
fn json(response: &ServedResponse) -> serde_json::Result<Vec<u8>> {
    let field = |field: &Option<Vec<u8>>| field.as_deref().map(printable).map(Cow::into_owned);
    let milliseconds = |time: Duration| time.as_micros() as f64 / 1e3;
    let time = response.time.map(humantime::format_rfc3339_millis);
    let mut text = Vec::with_capacity(512);
    let mut writer = serde_json::Serializer::new(&mut text);
    let mut line = writer.serialize_map(None)?;
    line.serialize_entry("time", &time.map(|time| time.to_string()))?;
    line.serialize_entry("peer_address", &response.peer.ip().to_canonical())?;
    line.serialize_entry("peer_port", &response.peer.port())?;
    line.serialize_entry("method", &printable(&response.method))?;
    line.serialize_entry("path", &printable(&response.target))?;
    line.serialize_entry("range", &field(&response.range))?;
    line.serialize_entry("status", &response.status.map(|status| status.as_u16()))?;
    line.serialize_entry("content_bytes", &response.length.as_u64())?;
    line.serialize_entry("sent_bytes", &response.sent.as_u64())?;
    line.serialize_entry("duration_ms", &milliseconds(response.duration))?;
    line.serialize_entry("first_byte_ms", &response.first_byte.map(milliseconds))?;
    line.serialize_entry("protocol", &format_args!("{:?}", response.version))?;
    line.serialize_entry("controller", &response.controller)?;
    line.serialize_entry("arm", &response.arm)?;
    line.serialize_entry("stalls", &response.stalls)?;
    line.serialize_entry("cmcd_sid", &field(&response.session))?;
    line.serialize_entry("user_agent", &field(&response.user_agent))?;
    line.serialize_entry("referer", &field(&response.referer))?;
    line.serialize_entry("aborted", &!response.is_complete)?;
    line.end()?;
    text.push(b'\n');
    Ok(text)
}

/// Text of a field. JSON escapes the control characters of ASCII; others, which some terminals obey, are replaced.
fn printable(field: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(field);
    let is_control = |c| ('\u{7f}'..='\u{9f}').contains(&c);
    if text.contains(is_control) {
        return text.replace(is_control, "\u{fffd}").into();
    }
    text
}

/// A line in nginx's format `combined`: `ADDRESS - - [TIME] "REQUEST" STATUS BYTES "REFERER" "USER AGENT"`.
fn combined(response: &ServedResponse) -> Vec<u8> {
    let address = response.peer.ip().to_canonical();
    // From `Sun, 06 Nov 1994 08:49:37 GMT`.
    let date = response.time.map(httpdate::fmt_http_date).unwrap_or_default();
    let date = match date.split(' ').collect::<Vec<_>>()[..] {
        [_, day, month, year, time, _] => format!("{day}/{month}/{year}:{time} +0000"),
        _ => date,
    };
    let field = |field: &Option<Vec<u8>>| escaped(field.as_deref().unwrap_or(b"-"));
    let [method, target] = [&response.method, &response.target].map(|text| escaped(text));
    let (version, sent) = (response.version, response.sent.as_u64());
    let status = response.status.map_or(CLIENT_LEFT, |status| status.as_u16());
    let [referer, agent] = [&response.referer, &response.user_agent].map(field);
    format!(
        "{address} - - [{date}] \"{method} {target} {version:?}\" {status} {sent} \"{referer}\" \"{agent}\"\n"
    )
    .into_bytes()
}

/// A field as nginx writes it: quotes, backslashes, control characters and everything that is not ASCII as `\xHH`.
fn escaped(field: &[u8]) -> String {
    let mut text = String::with_capacity(field.len());
    for &byte in field {
        if matches!(byte, b'"' | b'\\') || !(b' '..=b'~').contains(&byte) {
            let _ = write!(text, "\\x{byte:02X}");
        } else {
            text.push(char::from(byte));
        }
    }
    text
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
    use crate::serve::{MAX_FIELD, PendingRecord};

    /// Keeps the last record.
    #[derive(Debug, Default)]
    struct Last(Mutex<Option<ServedResponse>>);

    impl ResponseLog for Last {
        fn ended(&self, response: &ServedResponse) {
            *self.0.lock().unwrap() = Some(response.clone());
        }
    }

    /// Record of a response that was dropped before there was an answer.
    fn record(path: &str, agent: &[u8], referer: Option<&[u8]>) -> ServedResponse {
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        let options = ServerOptions::new(Identity::development(&[]).unwrap());
        let transport = Server::bind("127.0.0.1:0".parse().unwrap(), Arc::clone(&runtime), options).unwrap();
        let last = Arc::new(Last::default());
        let mut settings = Settings::new("cubic".parse::<ControllerChoice>().unwrap());
        settings.response_log = Some(Arc::clone(&last) as _);
        settings.wall_clock = Some(|| UNIX_EPOCH + Duration::from_millis(784_111_777_250));
        let server = VideoServer::start(transport, Arc::clone(&runtime), Library::new(), settings);
        let mut request = Request::builder().uri(path).header("user-agent", agent);
        if let Some(referer) = referer {
            request = request.header("referer", referer);
        }
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
        let line = String::from_utf8(combined(&record(path, agent, None))).unwrap();
        let request = format!("GET {logged_path} HTTP/1.1");
        let expected = format!(
            "192.0.2.1 - - [06/Nov/1994:08:49:37 +0000] \"{request}\" 499 0 \"-\" \"{logged_agent}\"\n"
        );
        assert_eq!(line, expected);
    }

    #[tokio::test]
    async fn a_line_of_json_is_one_line_whatever_the_client_sends() {
        let record = record("/a?CMCD=sid%3D%22a%5C%22b%22", b"\xff\xc2\x9b31m\"", None);
        let text = String::from_utf8(json(&record).unwrap()).unwrap();
        assert!(!text.trim_end().contains(|c: char| c.is_control()), "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        let found =
            ["time", "peer_address", "cmcd_sid", "user_agent"].map(|name| line[name].as_str().unwrap());
        let agent = "\u{fffd}\u{fffd}31m\"";
        let expected = ["1994-11-06T08:49:37.250Z", "192.0.2.1", "a\"b", agent];
        assert_eq!(found, expected);
        assert_eq!(line["status"], Value::Null);
    }

    #[rstest]
    #[case(b"https://host.example/~T/a?b", "https://host.example/~*/a?b")]
    #[case(b"/~T/a", "/~*/a")]
    #[case(b"https://host.example?token=T", "https://host.example?token=*")]
    #[case(b"/\xff/~T/a", "/\u{fffd}/~*/a")]
    #[tokio::test]
    async fn no_line_has_a_token(#[case] referer: &[u8], #[case] expected: &str) {
        let token = "azEsNDEwMjQ0NDgwMCwsL2ZpbG1zL29uZS8.mt-gAqPQE-3JDIJDlYbNyFlsiaBQfYSeV9p1sj63PJU";
        let before = referer.iter().position(|&byte| byte == b'T').unwrap();
        let referer = [&referer[..before], token.as_bytes(), &referer[before + 1..]].concat();
        let record = record(&format!("/b/~{token}/a"), b"", Some(&referer));
        let line: Value = serde_json::from_slice(&json(&record).unwrap()).unwrap();
        assert_eq!(
            (&line["path"], &line["referer"]),
            (&"/b/~*/a".into(), &expected.into())
        );
        assert!(
            !String::from_utf8(combined(&record))
                .unwrap()
                .contains(&token[..30])
        );
    }

    #[tokio::test]
    async fn long_fields_are_cut_before_the_response() {
        let long = |length| "x".repeat(length);
        let record = record(
            &format!("/{}", long(60_000)),
            "ü".repeat(30_000).as_bytes(),
            Some(long(60_000).as_bytes()),
        );
        let fields = [
            &record.method,
            &record.target,
            record.user_agent.as_ref().unwrap(),
        ];
        let fields = fields.map(Vec::capacity);
        assert!(fields.iter().all(|&kept| kept <= MAX_FIELD), "{fields:?}");
        assert!(record.referer.as_ref().unwrap().capacity() <= MAX_FIELD);
        // Each byte of the user agent takes four.
        assert!(combined(&record).len() < 7 * MAX_FIELD && json(&record).unwrap().len() < 5 * MAX_FIELD);
    }
}
