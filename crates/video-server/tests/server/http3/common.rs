//! A running server, and clients for it.

use std::fs;
use std::sync::{Arc, Mutex};

use http::{HeaderMap, HeaderName, Response};
use playrate_test_support::{Media, client, until};
use playrate_transport::telemetry::{Sink, TimeSeries};
use playrate_transport::{
    Body, ClientOptions, Connection, ExchangeError, Identity, Pin, Server, ServerOptions, Target,
};
use quinn::{Runtime, TokioRuntime};
use video_server::library::Library;
use video_server::serve::{ConnectionInfo, Observer, SessionSummary, Settings, VideoServer};

pub(crate) fn runtime() -> Arc<dyn Runtime> {
    Arc::new(TokioRuntime)
}

/// Keeps the samples and the summary of every session.
#[derive(Debug, Default)]
pub(crate) struct Summaries {
    ended: Mutex<Vec<SessionSummary>>,
    pub(crate) series: Mutex<Vec<Arc<TimeSeries>>>,
}

impl Observer for Summaries {
    fn connecting(&self, _: &ConnectionInfo) -> Vec<Arc<dyn Sink>> {
        let series = Arc::new(TimeSeries::new(256));
        self.series.lock().unwrap().push(Arc::clone(&series));
        vec![series]
    }

    fn finished(&self, session: &SessionSummary) {
        self.ended.lock().unwrap().push(session.clone());
    }
}

impl Summaries {
    /// The summary of the `n`th session, once that has ended.
    pub(crate) async fn nth(&self, n: usize) -> SessionSummary {
        until("the session ended", async || self.ended.lock().unwrap().len() > n).await;
        self.ended.lock().unwrap()[n].clone()
    }
}

/// A server over a directory of its own.
pub(crate) struct Running {
    pub(crate) server: VideoServer,
    pub(crate) directory: Media,
    pub(crate) summaries: Arc<Summaries>,
    pub(crate) identity: Identity,
}

/// Setup of a test's server.
pub(crate) struct Setup {
    pub(crate) settings: Settings,
    pub(crate) options: ServerOptions,
    /// Puts more into the directory.
    pub(crate) media: fn(&Media),
    /// Runs the server's tasks, but not its transport.
    pub(crate) runtime: Arc<dyn Runtime>,
}

impl Running {
    /// Serves `film.mp4` (progressive), `other.mp4` (fragmented), `pages/index.html` and `long.bin` (16 MiB).
    pub(crate) fn start() -> Self {
        Self::with(|_| ())
    }

    /// The same with `change` applied to the defaults.
    pub(crate) fn with(change: impl FnOnce(&mut Setup)) -> Self {
        let identity = Identity::development(&[]).unwrap();
        let summaries = Arc::new(Summaries::default());
        let mut setup = Setup {
            settings: Settings::new("cubic".parse().unwrap()),
            options: ServerOptions::new(identity.clone()),
            media: |_| (),
            runtime: runtime(),
        };
        setup.settings.observers.push(summaries.clone());
        change(&mut setup);
        let directory = Media::film();
        directory.copy("fragmented.mp4", "other.mp4");
        directory.put("pages/index.html", "<p>Films</p>");
        directory.put("long.bin", long());
        (setup.media)(&directory);
        let transport = Server::bind("127.0.0.1:0".parse().unwrap(), runtime(), setup.options).unwrap();
        let library = Library::scan(directory.root()).unwrap();
        Self {
            server: VideoServer::start(transport, setup.runtime, library, setup.settings),
            directory,
            summaries,
            identity,
        }
    }

    /// The same, and a connection to it.
    pub(crate) async fn connected(change: impl FnOnce(&mut Setup)) -> (Self, Connection) {
        let running = Self::with(change);
        let connection = running.connect().await;
        (running, connection)
    }

    pub(crate) fn pin(&self) -> Pin {
        self.identity.pin()
    }

    pub(crate) fn target(&self) -> Target {
        Target::at("localhost", self.server.local_addr().unwrap())
    }

    pub(crate) async fn connect(&self) -> Connection {
        self.connect_with(|_| ()).await
    }

    pub(crate) async fn connect_with(&self, change: impl FnOnce(&mut ClientOptions)) -> Connection {
        let client = client(self.pin(), change);
        client.connect(&self.target()).await.unwrap()
    }

    pub(crate) fn file(&self, name: &str) -> Vec<u8> {
        fs::read(self.directory.path(name)).unwrap()
    }
}

/// 16 MiB without repetition.
pub(crate) fn long() -> Vec<u8> {
    (0_u32..4 << 20)
        .flat_map(|word| word.wrapping_mul(0x9e37_79b9).to_le_bytes())
        .collect()
}

pub(crate) fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    let field = |&(name, value): &(_, &str)| (HeaderName::from_static(name), value.parse().unwrap());
    fields.iter().map(field).collect()
}

pub(crate) fn field<'a, T>(response: &'a Response<T>, name: &str) -> &'a str {
    response
        .headers()
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

/// Reads a body to its end.
pub(crate) async fn read(body: &mut Body) -> Result<Vec<u8>, ExchangeError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.chunk().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Sends a `GET` and reads the response to its end.
pub(crate) async fn get(
    connection: &Connection,
    path: &str,
    fields: &[(&'static str, &str)],
) -> (Response<()>, Vec<u8>) {
    let (response, mut body) = connection.get(path, headers(fields)).await.unwrap();
    let bytes = read(&mut body).await.unwrap();
    (response, bytes)
}

/// A title in two representations of 3 s segments: 80 kbit/s and 800 kbit/s, declared as 90 and 900, and sound of 8
/// kbit/s.
pub(crate) fn packaged(media: &Media) {
    let mut sets = String::new();
    for (component, representations) in [
        (
            "video",
            &[("low", 30_000, 90_000), ("high", 300_000, 900_000)][..],
        ),
        ("audio", &[("sound", 3_000, 8_000)]),
    ] {
        sets.extend([format!(
            "<AdaptationSet contentType=\"{component}\">\
             <SegmentTemplate media=\"$RepresentationID$-$Number$.m4s\" duration=\"3\"/>"
        )]);
        for (id, size, declared) in representations {
            sets.extend([format!("<Representation id=\"{id}\" bandwidth=\"{declared}\"/>")]);
            for number in 1..=4 {
                media.put(&format!("{id}-{number}.m4s"), vec![0; *size]);
            }
        }
        sets += "</AdaptationSet>";
    }
    let mpd = format!("<MPD mediaPresentationDuration=\"PT12S\"><Period>{sets}</Period></MPD>");
    media.put("manifest.mpd", mpd);
}
