//! Paths, ranges and conditions of requests, against a directory with files that must not be served.

use std::fs;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use http::header::{ACCEPT_RANGES, ALLOW, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG};
use http::{HeaderName, Method, Request, Response, StatusCode};
use playrate_media::MemorySource;
use playrate_netsim::{HostConfig, Seed, Simulation};
use playrate_transport::{Identity, Server, ServerOptions};
use playrate_units::Bytes;
use tempfile::TempDir;
use video_server::library::Library;
use video_server::serve::{Settings, VideoServer};
use video_server::site::{Content, ResourceBody, Site};

use super::text_request::request;

/// Methods, fields, forms of ranges and paths.
pub(super) const WORDS: &str = "\
    GET HEAD OPTIONS POST CONNECT Range: If-Range: If-Match: If-None-Match: If-Modified-Since: \
    If-Unmodified-Since: Origin: Access-Control-Request-Method: bytes= 0-0 0- -1 -0 99- 5-2 , \" W/\" * /film.mp4 \
    /memory.mp4 /pages/index.html /empty.bin /.hidden /pages/.hidden /link.txt /inner.txt /b/ /a/ .. . %2e %2f %5c \
    %00 %ff %25 // \\ https://player.example Sun, 06 Nov 1994 08:49:37 GMT 18446744073709551615";

/// Names and contents of the files that may be served.
type PublicFiles = Vec<(&'static str, Vec<u8>)>;

struct Served {
    site: Arc<Site>,
    files: PublicFiles,
    _directory: TempDir,
}

/// Text of the files that must not be served.
const SECRET: &[u8] = b"not to be served";

thread_local! {
    /// Removed when the thread of the test ends. libFuzzer ends its process immediately, so the directory of each run
    /// remains.
    static SERVED: Served = served();
}

fn served() -> Served {
    let film = include_bytes!("../../../assets/fixtures/fragmented-dash.mp4");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let root = directory.path().join("media");
    let page = b"<p>Films</p>".to_vec();
    let files: PublicFiles = vec![
        ("film.mp4", film.to_vec()),
        ("memory.mp4", film.to_vec()),
        ("empty.bin", Vec::new()),
        ("pages/index.html", page.clone()),
        ("inner.txt", page),
    ];
    fs::create_dir_all(root.join("pages")).expect("a directory");
    for (name, content) in files
        .iter()
        .filter(|(name, _)| !matches!(*name, "memory.mp4" | "inner.txt"))
    {
        fs::write(root.join(name), content).expect("a file");
    }
    for name in ["media/.hidden", "media/pages/.hidden", "outside.txt"] {
        fs::write(directory.path().join(name), SECRET).expect("a file");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::symlink;
        symlink(directory.path().join("outside.txt"), root.join("link.txt")).expect("a link");
        symlink(root.join("pages/index.html"), root.join("inner.txt")).expect("a link");
    }
    let memory = MemorySource::new(film.as_slice()).expect("a title");
    let library = Library::scan(&root).expect("a library");
    let library = library
        .with_source("memory.mp4", Arc::new(memory))
        .expect("a name");
    Served {
        site: site(library),
        files,
        _directory: directory,
    }
}

fn site(library: Library) -> Arc<Site> {
    let sim = Simulation::new(Seed::new(1));
    let host = sim.add_host(HostConfig::default());
    let options = ServerOptions::new(Identity::development(&[]).expect("an identity"));
    let socket = sim.bind(host, 443).expect("a socket");
    let transport = Server::new(sim.runtime(), socket, options).expect("an endpoint");
    let mut settings = Settings::new("cubic".parse().expect("a controller"));
    settings.cors = Some("https://player.example".parse().expect("an origin"));
    settings.wall_clock = Some(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000));
    let server = VideoServer::start(transport, sim.runtime(), library, settings);
    Arc::clone(server.site())
}

/// Answers the request; its content must be a part of the named public file, or empty.
pub(super) fn check(bytes: &[u8]) {
    if let Some(request) = request(bytes) {
        SERVED.with(|served| reply(served, &request));
    }
}

fn reply(served: &Served, request: &Request<()>) {
    let (head, content) = served.site.reply(request).into_parts();
    let head = Response::from_parts(head, ());
    let status = head.status();
    let is_known = matches!(
        status.as_u16(),
        200 | 204 | 206 | 304 | 400 | 404 | 405 | 412 | 416
    );
    assert!(is_known, "{status} for {request:?}");
    let length = field(&head, &CONTENT_LENGTH).map(|length| length.parse::<u64>().expect("a length"));
    let is_get = request.method() == Method::GET;
    match content {
        Content::Resource(body) => {
            assert!(is_get, "content for {}", request.method());
            assert_eq!(length, Some(body.len()));
            is_part_of_a_public_file(&head, body, &served.files);
        }
        Content::Text(text) => {
            // A response to HEAD declares the length of the omitted content (RFC 9110 §9.3.2).
            let is_left_out = request.method() == Method::HEAD && text.is_empty();
            assert!(
                is_left_out || length.unwrap_or(0) == text.len() as u64,
                "{length:?}: {text:?}"
            );
            assert!(
                !is_get || !matches!(status.as_u16(), 200 | 206),
                "{status} without its content"
            );
            assert!(!text.windows(SECRET.len()).any(|text| text == SECRET));
        }
    }
    assert_eq!(
        status == StatusCode::METHOD_NOT_ALLOWED,
        field(&head, &ALLOW).is_some() && status != 204
    );
    let allowed = field(&head, &http::header::ACCESS_CONTROL_ALLOW_ORIGIN);
    assert!(
        allowed.is_none_or(|origin| origin == "https://player.example"),
        "{allowed:?}"
    );
}

fn field<'a>(head: &'a Response<()>, name: &HeaderName) -> Option<&'a str> {
    let value = head.headers().get(name)?;
    Some(value.to_str().expect("visible ASCII"))
}

fn is_part_of_a_public_file(head: &Response<()>, mut body: ResourceBody, files: &PublicFiles) {
    let name = body.name.as_str().to_owned();
    let found = files.iter().find(|(public, _)| *public == name);
    let (_, file) = found.unwrap_or_else(|| panic!("`{name}` is not to be served"));
    let range = body.bytes().clone();
    assert!(range.start <= range.end, "{range:?} of {name}");
    assert!(range.end <= file.len() as u64, "{range:?} of {name}");
    for name in [&ETAG, &CONTENT_TYPE, &ACCEPT_RANGES] {
        assert!(field(head, name).is_some(), "{name} is missing");
    }
    let said = field(head, &CONTENT_RANGE).map(str::to_owned);
    if head.status() == StatusCode::PARTIAL_CONTENT {
        assert!(!range.is_empty());
        assert_eq!(
            said,
            Some(format!("bytes {}-{}/{}", range.start, range.end - 1, file.len()))
        );
    } else {
        assert_eq!((head.status(), said, range.start), (StatusCode::OK, None, 0));
        assert_eq!(range.end, file.len() as u64);
    }
    let mut content = Vec::new();
    while let Some(chunk) = at_once(body.next_chunk(Bytes::new(7_000))).expect("a readable file") {
        assert!(!chunk.is_empty() && chunk.len() <= 7_000);
        content.extend_from_slice(&chunk);
    }
    let expected = usize::try_from(range.start)
        .ok()
        .zip(usize::try_from(range.end).ok());
    let expected = expected.and_then(|(start, end)| file.get(start..end));
    assert!(
        Some(content.as_slice()) == expected,
        "other bytes than {range:?} of {name}"
    );
}

/// Result of `future`, which must not wait: a file is read where it is requested.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("a file was waited for"),
    }
}
