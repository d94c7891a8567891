//! Tokens, keys and addresses of clients behind proxies, as an operator and clients see them.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, Method, StatusCode, Version};
use playrate_test_support::{Media, ServerProcess, assert_contains, root, text, until};
use rstest::rstest;
use socket2::{Domain, Socket, Type};

use crate::cli::process::{program, refused, run, start_with_metrics};
use crate::cli::tcp::{Site, field};
use crate::http3::common;

pub(super) const KEY: &str = "k1:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const OTHER: &str = "k2:202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f";
const SECRET: &str = "a secret of at least thirty-two bytes";
/// Under `SECRET`: HS256, until 2100, `path` is `/`. Made with OpenSSL.
const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.\
    eyJleHAiOjQxMDI0NDQ4MDAsInBhdGgiOiIvIn0.MlOQeT1XqS3IMswO2Sfh_pazpxSYytrVBAMUr52QbVw";

/// Writes a file that only its owner may read, and returns its path.
pub(super) fn keep(directory: &Media, name: &str, content: &str) -> String {
    directory.put(name, content);
    fs::set_permissions(directory.path(name), Permissions::from_mode(0o600)).unwrap();
    directory.text(name)
}

/// The URL that `sign` prints, without scheme and authority.
pub(super) fn sign(key: &str, path: &str, more: &[&str]) -> String {
    let url = format!("https://localhost{path}");
    let arguments = ["sign", "--signing-key", key, "--expires", "1h", "--url", &url];
    let output = run(&[&arguments, more].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = text(&output.stdout);
    printed
        .trim()
        .strip_prefix("https://localhost")
        .unwrap()
        .to_owned()
}

/// Status, fields and content of an answer over this version.
#[expect(
    clippy::too_many_arguments,
    reason = "all parts of a request, for each version of HTTP"
)]
async fn ask(
    site: &Site,
    serving: &ServerProcess,
    version: Version,
    (method, path): (Method, &str),
    fields: &[(&'static str, &str)],
) -> (StatusCode, HeaderMap, Vec<u8>) {
    let (status, mut head, body) = if version == Version::HTTP_3 {
        let connection = serving.connect().await;
        let fields = common::headers(fields);
        let (response, content) = if method == Method::HEAD {
            (connection.head(path, fields).await.unwrap(), Vec::new())
        } else {
            let (response, mut body) = connection.get(path, fields).await.unwrap();
            (response, common::read(&mut body).await.unwrap())
        };
        connection.close();
        let (head, ()) = response.into_parts();
        (head.status, head.headers, content)
    } else {
        let mut client = site.connect(serving.address(), version).await;
        let (status, head, body) = client.request(method, path, fields).await;
        (status, head, body.to_vec())
    };
    for varying in ["date", "alt-svc"] {
        head.remove(varying);
    }
    (status, head, body)
}

#[rstest]
#[case(Version::HTTP_11)]
#[case(Version::HTTP_2)]
#[case(Version::HTTP_3)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_version_refuses_alike_and_says_nothing_of_titles(#[case] version: Version) {
    let site = Site::new();
    site.directory.put("media/films/one/main.m3u8", "#EXTM3U\n");
    let (key, secret) = (
        keep(&site.directory, "key", KEY),
        keep(&site.directory, "secret", SECRET),
    );
    let serving = site.serve(&[
        "--signing-key",
        &key,
        "--jwt-key",
        &secret,
        "--cors",
        "*",
        "--public",
        "/long.bin",
        "--header",
        "*.mpd: Cache-Control: public, max-age=9, immutable",
        "--metrics",
        "127.0.0.1:0",
        "--max-sessions",
        "0",
    ]);
    let ask = async |method, path: &str, fields: &[(&'static str, &str)]| {
        ask(&site, &serving, version, (method, path), fields).await
    };
    let origin = ("origin", "https://player.test");
    let wrong = [origin, ("authorization", "Bearer a.b.c")];
    let token = sign(&key, "/films/one/main.m3u8", &[]);
    let foreign = token.replace("/films/one/main.m3u8", "/film.mp4");
    for method in [Method::GET, Method::HEAD] {
        let (status, fields, content) = ask(method.clone(), "/film.mp4", &[origin]).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert_eq!(field(&fields, "www-authenticate"), "Bearer");
        assert_eq!(field(&fields, "access-control-allow-origin"), "*");
        assert_eq!(field(&fields, "cache-control"), "private, no-store");
        let expected = if method == Method::HEAD {
            ""
        } else {
            "this resource needs a valid token\n"
        };
        assert_eq!(text(&content), expected);
        let missing = (status, fields, content);
        for path in [
            "/",
            "/no.mp4",
            "/manifest.mpd",
            "/films/one/main.m3u8",
            "/~x/film.mp4",
        ] {
            assert_eq!(ask(method.clone(), path, &[origin]).await, missing, "{path}");
        }
        // An expired token is answered in the same way.
        let refused = ask(method.clone(), "/film.mp4", &wrong).await;
        assert_eq!(
            (refused.0, field(&refused.1, "www-authenticate")),
            (StatusCode::UNAUTHORIZED, "Bearer error=\"invalid_token\"")
        );
        assert_eq!(
            (&refused.2, field(&refused.1, "access-control-allow-origin")),
            (&missing.2, "*")
        );
        assert_eq!(ask(method.clone(), "/no.mp4", &wrong).await, refused);
        let forbidden = ask(method.clone(), &foreign, &wrong).await;
        assert_eq!(
            (forbidden.0, field(&forbidden.1, "www-authenticate")),
            (StatusCode::FORBIDDEN, "Bearer error=\"insufficient_scope\"")
        );
        assert_eq!(
            ask(method.clone(), &foreign.replace("film", "no"), &wrong).await,
            forbidden
        );
        // A path that names nothing is not found, whatever the token.
        let (status, ..) = ask(method.clone(), &format!("{token}/../../two/1.ts"), &wrong).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    }
    let preflight = [origin, ("access-control-request-method", "GET")];
    if version != Version::HTTP_3 {
        let (status, fields, _) = ask(Method::OPTIONS, "/film.mp4", &preflight).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
        assert_contains(field(&fields, "access-control-allow-headers"), &["Authorization"]);
    }

    let (status, fields, content) = ask(Method::GET, &token, &[]).await;
    assert_eq!((status, text(&content).as_str()), (StatusCode::OK, "#EXTM3U\n"));
    assert_eq!(field(&fields, "cache-control"), "private, max-age=1");
    let (status, fields, _) = ask(Method::GET, &token.replace("main.m3u8", "no.ts"), &[]).await;
    assert_eq!(
        (status, field(&fields, "cache-control")),
        (StatusCode::NOT_FOUND, "private, max-age=1")
    );
    let (status, fields, _) = ask(Method::HEAD, "/long.bin", &[]).await;
    assert_eq!(
        (status, field(&fields, "cache-control")),
        (StatusCode::OK, "max-age=60")
    );
    let bearer = format!("Bearer {JWT}");
    let (status, fields, _) = ask(Method::GET, "/manifest.mpd", &[("authorization", &bearer)]).await;
    assert_eq!(
        (status, field(&fields, "cache-control")),
        (StatusCode::OK, "private, max-age=9, immutable")
    );
    let (status, ..) = ask(Method::GET, "/", &[("authorization", &bearer)]).await;
    assert_eq!(status, StatusCode::OK);
    // The full server says so only to those who may watch.
    let (status, ..) = ask(Method::GET, "/film.mp4", &[("authorization", &bearer)]).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        serving.metric("playrate_unauthorized_requests_total{reason=\"missing\"}"),
        12
    );
    assert_eq!(
        serving.metric("playrate_unauthorized_requests_total{reason=\"path\"}"),
        4
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arms_are_chosen_below_a_token_and_no_log_has_it() {
    let media = Media::film();
    let keys = Media::new();
    let key = keep(&keys, "key", KEY);
    let mut command = program();
    command.env("RUST_LOG", "debug");
    let arguments = [
        "--signing-key",
        &key,
        "--metrics",
        "127.0.0.1:0",
        "--choose-by",
        "path",
        "--arm",
        "b=reno",
    ];
    let serving = ServerProcess::start(command, "127.0.0.1:0", media.root(), &arguments);
    let signed = sign(&key, "/film.mp4", &[]);
    let token = signed.strip_suffix("/film.mp4").unwrap();
    let connection = serving.connect().await;
    let (response, _) = common::get(&connection, &format!("{token}/b/film.mp4"), &[]).await;
    assert_eq!(response.status(), StatusCode::OK);
    let (_, connections) = serving.ask("GET /connections.json", "Accept: */*");
    assert_contains(&connections, &["\"arm\":\"b\""]);
    let (response, _) = common::get(&connection, &format!("{token}/b/other.mp4"), &[]).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let query = sign(&key, "/film.mp4", &["--query"]);
    let (response, _) = common::get(&connection, &query, &[]).await;
    assert_eq!(response.status(), StatusCode::OK);
    connection.close();
    let log = serving.stop();
    assert_contains(
        &log,
        &["/~*/b/film.mp4", "without a valid token", "client=127.0.0.1"],
    );
    let secret = token.rsplit_once('.').unwrap().1;
    assert!(!log.contains(secret), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hang_up_reads_new_keys_and_bad_ones_change_nothing() {
    let (media, keys) = (Media::film(), Media::new());
    let key = keep(&keys, "key", KEY);
    let serving = start_with_metrics(&media, &["--signing-key", &key]);
    let url = sign(&key, "/film.mp4", &[]);
    let connection = serving.connect().await;
    let status = async || common::get(&connection, &url, &[]).await.0.status();
    assert_eq!(status().await, StatusCode::OK);
    keep(&keys, "key", "no key\n");
    serving.signal("HUP");
    serving.logs("the previous keys stay in use", 1).await;
    assert_eq!(status().await, StatusCode::OK);
    keep(&keys, "key", &format!("{OTHER}\n{KEY}\n"));
    serving.signal("HUP");
    serving
        .logs("token of the keys as they are now ids=\"k2,k1\"", 1)
        .await;
    assert_eq!(status().await, StatusCode::OK);
    keep(&keys, "key", OTHER);
    serving.signal("HUP");
    serving.logs("token of the keys as they are now", 2).await;
    assert_eq!(status().await, StatusCode::FORBIDDEN);
    connection.close();
    serving.stop();
}

#[test]
fn unusable_keys_are_refused_before_the_start() {
    let (media, keys) = (Media::film(), Media::new());
    let (good, bad) = (keep(&keys, "good", KEY), keep(&keys, "bad", "k1:00\n"));
    let open = keep(&keys, "open", KEY);
    fs::set_permissions(&open, Permissions::from_mode(0o644)).unwrap();
    let media = media.text("");
    let complaint = |arguments: &[&str]| refused(&[&["serve", "--media", &media], arguments].concat());
    for (arguments, parts) in [
        (
            ["--signing-key", &bad],
            ["--signing-key", "line 1: expected ID:KEY"],
        ),
        (["--signing-key", &open], ["--signing-key", "chmod o= "]),
        (
            ["--signing-key", "/no/key"],
            ["--signing-key /no/key", "No such file"],
        ),
        (["--jwt-key", &bad], ["--jwt-key", "expected a secret"]),
        (["--jwt-key", &open], ["--jwt-key", "chmod o= "]),
        (["--public", "/a/"], ["--signing-key", "--jwt-key"]),
        (["--jwt-audience", "us"], ["--jwt-key", "required"]),
        (
            ["--proxy-protocol", "--no-tcp"],
            ["--trusted-proxies", "required"],
        ),
        (
            ["--trusted-proxies", "10.0.0.0/33"],
            ["--trusted-proxies", "is not an address"],
        ),
        (
            ["--trusted-proxies", "10.0.0.1"],
            ["--proxy-protocol", "--forwarded-field"],
        ),
        (
            ["--forwarded-field", "via"],
            ["--forwarded-field", "x-forwarded-for"],
        ),
    ] {
        assert_contains(&complaint(&arguments), &parts);
    }
    let wrong = ["--signing-key", &good, "--public", "films"];
    assert_contains(&complaint(&wrong), &["--public", "`films` is not a path"]);
    let config = |key: &str| {
        keys.put(
            "server.toml",
            format!("media = {media:?}\nsigning-key = {key:?}\npublic = [\"/a/\", \"/b.mp4\"]\n"),
        );
        run(&["check", &keys.text("server.toml")])
    };
    assert_contains(&text(&config(&good).stdout), &["keys of tokens"]);
    let output = config(&open);
    assert_eq!(output.status.code(), Some(2));
    assert_contains(
        &text(&output.stderr),
        &["server.toml:2: --signing-key", "chmod o= "],
    );
}

#[test]
fn a_signed_url_opens_no_more_than_its_title() {
    let keys = Media::new();
    let key = keep(&keys, "key", &format!("{OTHER}\n{KEY}"));
    let refusal = |path: &str, more: &[&str]| {
        let url = format!("https://localhost{path}");
        let arguments = ["sign", "--signing-key", &key, "--expires", "1h", "--url", &url];
        refused(&[&arguments, more].concat())
    };
    assert_contains(&refusal("/main.m3u8", &[]), &["all titles", "--prefix /"]);
    assert_contains(
        &refusal("/films/two/1.ts", &["--prefix", "/films/one/"]),
        &["not below --prefix"],
    );
    assert_contains(&refusal("/films/", &[]), &["no such resource"]);
    let signed = sign(&key, "/a.mp4", &[]);
    let (_, signature) = signed.split_once('.').unwrap();
    for path in [
        &signed,
        &signed.replacen('.', "%2E", 1),
        "/a.mp4?token=x",
        "/a.mp4?a&token=",
    ] {
        let complaint = refusal(path, &[]);
        assert_contains(&complaint, &["it has a token already"]);
        assert!(!complaint.contains(&signature[..20]), "{complaint}");
    }
    for expires in ["0s", "999ms"] {
        let url = "https://localhost/a.mp4";
        let arguments = ["sign", "--signing-key", &key, "--expires", expires, "--url", url];
        assert_contains(&refused(&arguments), &["--expires must be at least 1s"]);
    }
    assert_contains(
        &refusal("/a.mp4", &["--address", "here"]),
        &["--address", "is not an address"],
    );
    let message = |signed: &str| {
        let encoded = signed.trim_start_matches("/~").split('.').next().unwrap();
        text(&URL_SAFE_NO_PAD.decode(encoded).unwrap())
    };
    let address = ["--address", "192.0.2.7"];
    let one = message(&sign(&key, "/films/one%20two/main.mpd", &address));
    assert!(
        one.starts_with("k2,") && one.ends_with(",192.0.2.7/32,/films/one two/"),
        "{one}"
    );
    let all = message(&sign(&key, "/", &[]));
    assert!(all.ends_with(",,/"), "{all}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_url_of_the_page_shows_it_and_opens_its_titles() {
    let (site, keys) = (Site::new(), Media::new());
    let key = keep(&keys, "key", KEY);
    let serving = site.serve(&["--signing-key", &key]);
    let page = sign(&key, "/", &[]);
    let mut client = site.connect(serving.address(), Version::HTTP_2).await;
    for (path, expected) in [
        (page.as_str(), StatusCode::OK),
        (&format!("{page}film.mp4"), StatusCode::OK),
        (&format!("{page}.playrate/page.js"), StatusCode::OK),
        (&sign(&key, "/", &["--query"]), StatusCode::OK),
        ("/", StatusCode::FORBIDDEN),
    ] {
        let (status, fields, _) = client.get(path, &[]).await;
        assert_eq!(status, expected, "{path}: {fields:?}");
    }
    // Its relative links would lead nowhere.
    let path = page.trim_end_matches('/');
    for (query, method) in [("", Method::GET), ("?arm=b", Method::HEAD)] {
        let response = client.start(method, &format!("{path}{query}"), &[]).await;
        assert_eq!(response.status(), StatusCode::PERMANENT_REDIRECT);
        assert_eq!(response.headers()["location"], format!("{page}{query}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_keys_a_name_with_the_form_of_a_token_is_a_name() {
    let (site, keys) = (Site::new(), Media::new());
    let signed = sign(&keep(&keys, "key", KEY), "/film.mp4", &[]);
    site.directory.put(&format!("media{signed}"), "content");
    let serving = site.serve(&[]);
    let mut client = site.connect(serving.address(), Version::HTTP_2).await;
    let (status, _, content) = client.get(&signed, &[]).await;
    assert_eq!((status, &content[..]), (StatusCode::OK, &b"content"[..]));
}

/// The block of code in the language `language` of the page for operators.
fn block(language: &str) -> String {
    let page = fs::read_to_string(root().join("docs/operating/access.md")).unwrap();
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[rstest]
#[case::python("python", "python3", "sign.py")]
#[case::javascript("js", "node", "sign.js")]
#[case::shell("sh", "sh", "sign.sh")]
fn the_pages_programs_sign_as_the_server_reads(
    #[case] language: &str,
    #[case] runs: &str,
    #[case] file: &str,
) {
    let directory = Media::new();
    directory.put(file, block(language));
    for line in include_str!("../../../src/access/vectors/signed.txt").lines() {
        let [path, address, token] = line.split('|').collect::<Vec<_>>().try_into().unwrap();
        let mut command = Command::new(runs);
        command
            .arg(directory.path(file))
            .args([KEY, path, "4102444800", address]);
        match command.output() {
            Ok(output) => assert_eq!(text(&output.stdout).trim(), token, "{output:?}"),
            #[expect(clippy::print_stderr, reason = "says which interpreter was not there")]
            Err(error) if std::env::var_os("CI").is_none() => eprintln!("{runs} is not installed: {error}"),
            Err(error) => panic!("{runs} is not installed: {error}"),
        }
    }
}

/// A TCP connection from `from`, on which `head` has been sent.
fn connect(from: &str, to: SocketAddr, head: &str) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let from = SocketAddr::new(from.parse::<IpAddr>().unwrap(), 0);
    socket.bind(&from.into()).unwrap();
    socket.connect(&to.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_proxy_can_name_addresses_and_each_of_them_has_its_own_limit() {
    let media = Media::film();
    let serving = start_with_metrics(
        &media,
        &[
            "--trusted-proxies",
            "127.0.0.2",
            "--proxy-protocol",
            "--max-connections-per-address",
            "2",
        ],
    );
    let accepted = async |count: u64| {
        until("the connections are accepted", async || {
            serving.metric("playrate_tcp_connections_accepted_total") == count
        })
        .await;
    };
    let displaced = || {
        ["refused", "evicted"].map(|what| serving.metric(&format!("playrate_{what}_tcp_connections_total")))
    };
    let address = serving.address();
    let named = |from: &str, client: usize| {
        connect(
            from,
            address,
            &format!("PROXY TCP4 192.0.2.{client} 192.0.2.200 1 2\r\n"),
        )
    };
    // Of one proxy with ten clients, and for itself.
    let mut open: Vec<_> = (0..10).map(|client| named("127.0.0.2", client)).collect();
    open.extend((0..10).map(|_| connect("127.0.0.2", address, "PROXY UNKNOWN\r\n")));
    accepted(20).await;
    assert_eq!(displaced(), [0, 0]);
    // Two more of one client: the third is one too many.
    open.extend([named("127.0.0.2", 3), named("127.0.0.2", 3)]);
    until("one is displaced", async || displaced().iter().sum::<u64>() == 1).await;
    // A client that claims to be a proxy for others has one address: its own. What it wrote is not TLS.
    open.extend((20..30).map(|client| named("127.0.0.3", client)));
    until("its connections are ended", async || {
        serving.metric("playrate_failed_tcp_handshakes_total") + displaced().iter().sum::<u64>() >= 10
    })
    .await;
    let mut last = open.pop().unwrap();
    let mut answer = Vec::new();
    // A TLS alert, or a reset.
    let _ = last.read_to_end(&mut answer);
    assert!(answer.len() < 10, "{answer:?}");
    // Without a header, a proxy is not served.
    let mut silent = connect("127.0.0.2", address, "GET / HTTP/1.1\r\n\r\n");
    assert_eq!(silent.read_to_end(&mut Vec::new()).unwrap_or_default(), 0);
    serving.logs("without a valid PROXY header", 1).await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_wait_for_their_header_take_places() {
    let media = Media::film();
    let options = [
        "--trusted-proxies",
        "127.0.0.2",
        "--proxy-protocol",
        "--max-connections",
        "4",
    ];
    let serving = start_with_metrics(&media, &options);
    let total = |what: &str| serving.metric(&format!("playrate_{what}_total"));
    let mut open: Vec<_> = (0..4)
        .map(|_| connect("127.0.0.3", serving.address(), ""))
        .collect();
    until("all places are taken", async || {
        total("tcp_connections_accepted") == 4
    })
    .await;
    open.extend((0..4).map(|_| connect("127.0.0.2", serving.address(), "")));
    until("some make room, or none is free", async || {
        total("evicted_tcp_connections") + total("refused_tcp_connections") == 4
    })
    .await;
    // They make room like any others.
    let before = total("tcp_connections_accepted");
    until("a connection with a header has a place", async || {
        drop(connect(
            "127.0.0.2",
            serving.address(),
            "PROXY TCP4 192.0.2.7 192.0.2.200 1 2\r\n",
        ));
        total("tcp_connections_accepted") > before
    })
    .await;
    until("those that send none are counted", async || {
        total("failed_tcp_handshakes") > 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_for_an_address_means_the_one_that_a_trusted_proxy_names() {
    for (trusted, expected) in [
        ("127.0.0.0/8", StatusCode::OK),
        ("10.0.0.0/8", StatusCode::FORBIDDEN),
    ] {
        let site = Site::new();
        let key = keep(&site.directory, "key", KEY);
        let forwarded = [
            "--trusted-proxies",
            trusted,
            "--forwarded-field",
            "x-forwarded-for",
        ];
        let serving = site.serve(&[&["--signing-key", &key], &forwarded[..]].concat());
        let url = sign(&key, "/film.mp4", &["--address", "192.0.2.7"]);
        let mut client = site.connect(serving.address(), Version::HTTP_2).await;
        for (field, expected) in [
            ("198.51.100.1, 192.0.2.7", expected),
            ("192.0.2.7, 198.51.100.1", StatusCode::FORBIDDEN),
        ] {
            let (status, ..) = client.get(&url, &[("x-forwarded-for", field)]).await;
            assert_eq!(status, expected, "{trusted}: {field}");
        }
        let (status, ..) = client.get(&url, &[("forwarded", "for=192.0.2.7")]).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
    }
}
