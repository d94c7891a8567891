//! A real S3 server with objects, and a fault between it and the server under test.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, sleep};
use std::time::Duration;

use futures_util::StreamExt as _;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::{ObjectStoreExt as _, path::Path};
use tokio::runtime::Runtime;

use super::until;
use crate::support::free_address;
use playrate_test_support::{Running, root};

const BUCKET: &str = "films";
const KEY: &str = "test-key";
pub(super) const SECRET: &str = "test-secret";

pub(super) fn program() -> PathBuf {
    root().join("target/store/versitygw")
}

/// A running S3 server with its objects in a separate directory.
pub(super) struct Store {
    _process: Running,
    directory: tempfile::TempDir,
    address: SocketAddr,
    client: AmazonS3,
    runtime: Runtime,
}

impl Store {
    pub(super) fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        fs::create_dir_all(data.join(BUCKET)).expect("a directory");
        let address = free_address();
        let child = Command::new(program())
            .args(["--access", KEY, "--secret", SECRET])
            .args(["--port", &address.to_string(), "posix"])
            .arg(&data)
            .stdout(fs::File::create(directory.path().join("access.log")).expect("a file"))
            .stderr(Stdio::null())
            .spawn()
            .expect("versitygw starts");
        let process = Running(child);
        until("versitygw listens", || TcpStream::connect(address).is_ok());
        // As the program does; it may be installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = AmazonS3Builder::new()
            .with_bucket_name(BUCKET)
            .with_access_key_id(KEY)
            .with_secret_access_key(SECRET)
            .with_region("us-east-1")
            .with_endpoint(format!("http://{address}"))
            .with_allow_http(true)
            .build()
            .expect("a client");
        Self {
            _process: process,
            directory,
            address,
            client,
            runtime: Runtime::new().expect("a runtime"),
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Puts an object, replacing an existing one.
    pub(super) fn put(&self, name: &str, content: impl Into<Vec<u8>>) {
        let path = Path::from(name);
        let put = self.client.put(&path, content.into().into());
        self.runtime.block_on(put).expect("the object is stored");
    }

    pub(super) fn delete(&self, name: &str) {
        let path = Path::from(name);
        let delete = self.client.delete(&path);
        self.runtime.block_on(delete).expect("the object is deleted");
    }

    /// Requests an object, and waits for its first bytes.
    pub(super) fn first_byte(&self, name: &str) {
        self.runtime.block_on(async {
            let path = Path::from(name);
            let answer = self.client.get(&path).await.expect("the object is there");
            let first = answer.into_stream().next().await;
            first.expect("it has bytes").expect("they come");
        });
    }

    /// Number of requests so far for bytes of the object `name`, as the store has logged them.
    pub(super) fn gets(&self, name: &str) -> usize {
        let log = fs::read_to_string(self.directory.path().join("access.log")).unwrap_or_default();
        let path = format!("/{BUCKET}/{name}");
        let is_get =
            |line: &&str| line.contains("GET") && line.contains(&path) && !line.contains("list-type");
        log.lines().filter(is_get).count()
    }
}

/// Environment of a server that reaches the store at `endpoint`.
pub(super) fn environment(endpoint: SocketAddr) -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ENDPOINT", format!("http://{endpoint}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
    ])
}

/// Fault that a [`Proxy`] adds to connections to the store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    None,
    /// The first byte of each answer is delayed by this much.
    Delay(Duration),
    /// Each request is answered with 503 instead of reaching the store.
    Unavailable,
    /// Each request for an object of this name is answered with 503.
    UnavailableObject(&'static str),
    /// The signature of each request is wrong, so the store refuses it.
    WrongSignature,
    /// The store does not answer.
    Silence,
    /// The connection ends once after this many bytes of an answer; then the fault is over.
    CutOnce(usize),
    /// Bytes of answers per second, in steps of 10 ms.
    Rate(usize),
}

/// Forwards TCP connections to the store, each with the present fault.
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    fault: Arc<Mutex<Fault>>,
    is_over: Arc<AtomicBool>,
}

impl Proxy {
    pub(super) fn start(store: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let fault = Arc::new(Mutex::new(Fault::None));
        let is_over = Arc::new(AtomicBool::new(false));
        let (shared, over) = (Arc::clone(&fault), Arc::clone(&is_over));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if over.load(Relaxed) {
                    return;
                }
                let fault = Arc::clone(&shared);
                // Connections are expected to break.
                thread::spawn(move || drop(forward(client, store, &fault)));
            }
        });
        Self {
            address,
            fault,
            is_over,
        }
    }

    pub(super) fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        // Wakes the thread that accepts.
        drop(TcpStream::connect(self.address));
    }
}

fn forward(mut client: TcpStream, store: SocketAddr, shared: &Mutex<Fault>) -> std::io::Result<()> {
    let present = || *shared.lock().unwrap_or_else(PoisonError::into_inner);
    let mut store = TcpStream::connect(store)?;
    let (mut from_client, mut to_store) = (client.try_clone()?, store.try_clone()?);
    let mut buffer = [0; 16 << 10];
    // The head of a request comes first; the store closes the connection after each answer.
    let count = from_client.read(&mut buffer)?;
    let fault = present();
    let is_refused = match fault {
        Fault::Unavailable => true,
        Fault::UnavailableObject(name) => String::from_utf8_lossy(&buffer[..count]).contains(name),
        _ => false,
    };
    if is_refused {
        return client.write_all(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    match fault {
        Fault::Silence => {
            while present() == Fault::Silence {
                sleep(Duration::from_millis(20));
            }
            return client.shutdown(Shutdown::Both);
        }
        Fault::WrongSignature => {
            let marker = b"Signature=";
            let found = buffer.windows(marker.len()).position(|bytes| bytes == marker);
            let digit = &mut buffer[found.expect("a signed request") + marker.len()];
            *digit = if *digit == b'0' { b'1' } else { b'0' };
        }
        Fault::Delay(time) => sleep(time),
        _ => {}
    }
    to_store.write_all(&buffer[..count])?;
    thread::spawn(move || std::io::copy(&mut from_client, &mut to_store));
    let mut sent = 0;
    loop {
        let most = match present() {
            Fault::Rate(rate) => {
                sleep(Duration::from_millis(10));
                (rate / 100).clamp(1, buffer.len())
            }
            _ => buffer.len(),
        };
        let count = store.read(&mut buffer[..most])?;
        if count == 0 {
            return client.shutdown(Shutdown::Both);
        }
        client.write_all(&buffer[..count])?;
        sent += count;
        if let Fault::CutOnce(after) = present()
            && sent > after
        {
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = Fault::None;
            return client.shutdown(Shutdown::Both);
        }
    }
}
