//! A packaged title, a server that has it, and ways to play it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use playrate_test_support::{client, fixture};
use playrate_transport::{ControllerChoice, Identity, Server, ServerOptions, Target};
use playrate_units::Bytes;
use quinn::{Runtime, TokioRuntime};
use tempfile::TempDir;
use video_client::cmcd::{CmcdMode, CmcdOptions};
use video_client::dash::{Abr, DashOptions};
use video_client::{Observer, Played, Session};
use video_server::library::Library;
use video_server::serve::{Settings, VideoServer};

use crate::common;

/// Numbers of frames of the four segments.
pub(crate) const FRAMES: [u64; 4] = [90, 90, 88, 90];
/// A position in the middle of the second segment.
pub(crate) const WITHIN_SECOND: Duration = Duration::from_millis(4_500);

/// The boxes of a file, by type and bytes.
pub(crate) fn boxes(file: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut rest = file;
    let mut found = Vec::new();
    while let Some(size) = rest.first_chunk::<4>() {
        let (one, after) = rest.split_at(u32::from_be_bytes(*size) as usize);
        found.push((&one[4..8], one));
        rest = after;
    }
    found
}

pub(crate) fn boxed(name: [u8; 4], body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(8 + body.len()).unwrap();
    [&size.to_be_bytes()[..], &name, body].concat()
}

/// The files of one representation.
pub(crate) struct Packaged {
    pub(crate) initialization: Vec<u8>,
    pub(crate) segments: Vec<Vec<u8>>,
}

impl Packaged {
    /// The four segments of the fixture (the last one repeats the first), each with `padding` bytes.
    /// No player reads the padding.
    pub(crate) fn new(padding: usize) -> Self {
        let file = fs::read(fixture("fragmented-dash.mp4")).unwrap();
        let boxes = boxes(&file);
        let of = |wanted: &[u8; 4]| -> Vec<&[u8]> {
            let all = boxes.iter().filter(|(name, _)| name == wanted);
            all.map(|(_, bytes)| *bytes).collect()
        };
        let free = boxed(*b"free", &vec![0; padding]);
        let mut segments: Vec<_> = of(b"moof")
            .iter()
            .zip(of(b"mdat"))
            .map(|(moof, mdat)| [&free[..], moof, mdat].concat())
            .collect();
        segments.push(segments[0].clone());
        Self {
            initialization: [of(b"ftyp")[0], of(b"moov")[0]].concat(),
            segments,
        }
    }

    pub(crate) fn whole(&self) -> Vec<u8> {
        [&self.initialization[..], &self.segments.concat()].concat()
    }

    /// One file with a segment index, and the position of that index.
    pub(crate) fn indexed(&self) -> (Vec<u8>, std::ops::Range<usize>) {
        // Version 0, track 1, 1000 ticks per second, from time 0, the first immediately after, four of them.
        let mut words = vec![0, 1, 1_000, 0, 0, 4];
        for segment in &self.segments {
            words.extend([u32::try_from(segment.len()).unwrap(), 3_000, 0x9000_0000]);
        }
        let body: Vec<_> = words.into_iter().flat_map(u32::to_be_bytes).collect();
        let index = boxed(*b"sidx", &body);
        let begins = self.initialization.len();
        let file = [&self.initialization[..], &index, &self.segments.concat()].concat();
        (file, begins..begins + index.len())
    }
}

/// Padding of `high`: 1.2 Mbit/s.
pub(crate) const PADDING: usize = 450_000;

/// `low` at 14 kbit/s and `high` with this much padding, 12 s, as DASH, as HLS, and as DASH in one file each.
pub(crate) fn package(root: &Path, padding: usize) {
    let write = |name: &str, content: &[u8]| fs::write(root.join(name), content).unwrap();
    let (mut representations, mut single) = (String::new(), String::new());
    let mut main = "#EXTM3U\n".to_owned();
    for (name, padding, rate) in [("low", 0, 20_000), ("high", padding, padding / 3 * 8)] {
        let packaged = Packaged::new(padding);
        fs::create_dir(root.join(name)).unwrap();
        write(&format!("{name}/init.mp4"), &packaged.initialization);
        let mut playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXT-X-MAP:URI=\"init.mp4\"\n".to_owned();
        for (number, segment) in packaged.segments.iter().enumerate() {
            write(&format!("{name}/{number}.m4s"), segment);
            playlist.extend([format!("#EXTINF:3,\n{number}.m4s\n")]);
        }
        playlist.push_str("#EXT-X-ENDLIST\n");
        write(&format!("{name}/index.m3u8"), playlist.as_bytes());
        main.extend([format!(
            "#EXT-X-STREAM-INF:BANDWIDTH={rate},CODECS=\"avc1.64000a\"\n{name}/index.m3u8\n"
        )]);
        let (file, index) = packaged.indexed();
        write(&format!("{name}.mp4"), &file);
        let head = format!("<Representation id=\"{name}\" codecs=\"avc1.64000a\" bandwidth=\"{rate}\"");
        representations.extend([format!("{head}/>")]);
        single.extend([format!(
            "{head}><BaseURL>{name}.mp4</BaseURL><SegmentBase indexRange=\"{}-{}\"><Initialization range=\"0-{}\"/>\
             </SegmentBase></Representation>",
            index.start,
            index.end - 1,
            index.start - 1
        )]);
    }
    write("film.m3u8", main.as_bytes());
    let mpd = |name: &str, set: &str| {
        let text = format!(
            "<MPD mediaPresentationDuration=\"PT12S\">\
             <Period>\n<AdaptationSet contentType=\"video\">{set}</AdaptationSet>\n\
             <AdaptationSet contentType=\"audio\"><Representation id=\"sound\" codecs=\"mp4a.40.2\" \
             bandwidth=\"8000\"><SegmentTemplate media=\"sound-$Number$.m4s\" duration=\"3\"/></Representation>\
             </AdaptationSet></Period></MPD>"
        );
        write(name, text.as_bytes());
    };
    let template = "<SegmentTemplate media=\"$RepresentationID$/$Number$.m4s\" \
        initialization=\"$RepresentationID$/init.mp4\" duration=\"3\" startNumber=\"0\"/>";
    mpd("film.mpd", &format!("{template}{representations}"));
    mpd("single.mpd", &single);
    // Unplayable ones: malformed, and without boxes.
    mpd("broken.mpd", &format!("\n<{template}"));
    let zeros = template.replace("$Number$.m4s", "zeros-$Number$");
    mpd(
        "zeros.mpd",
        &format!("{zeros}<Representation id=\"low\" bandwidth=\"20000\"/>"),
    );
    write("low/zeros-0", &[0; 100]);
}

/// A server with a packaged title, and the knowledge of each connection's controller.
pub(crate) struct Running {
    pub(crate) server: VideoServer,
    pub(crate) directory: TempDir,
    pub(crate) identity: Identity,
    pub(crate) known: playrate_scripted::Known,
}

impl Running {
    pub(crate) fn start() -> Self {
        Self::with(PADDING)
    }

    pub(crate) fn with(padding: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        package(directory.path(), padding);
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        let identity = Identity::development(&[]).unwrap();
        let options = ServerOptions::new(identity.clone());
        let transport = Server::bind(([127, 0, 0, 1], 0).into(), Arc::clone(&runtime), options).unwrap();
        let (registry, known) = playrate_scripted::watched();
        let settings = Settings::new(ControllerChoice::from_registry(&registry, "watched").unwrap());
        let library = Library::scan(directory.path()).unwrap();
        Self {
            server: VideoServer::start(transport, runtime, library, settings),
            directory,
            identity,
            known,
        }
    }

    /// Adds a file to the served directory.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.directory.path().join(name), content).unwrap();
    }

    pub(crate) async fn play(
        &self,
        path: &str,
        options: DashOptions,
        observer: &mut impl Observer,
    ) -> (Played, Vec<u8>) {
        // Keeps the server close to what the observer sees.
        let client = client(self.identity.pin(), |options| {
            options.transport.stream_receive_window = Bytes::new(256 << 10);
        });
        let target = Target::at("localhost", self.server.local_addr().unwrap());
        common::play(Session::new(client, target, path, options), observer).await
    }

    pub(crate) async fn run(&self, name: &str, more: &[&str]) -> Output {
        let url = format!("https://{}/{name}", self.server.local_addr().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_video-client"));
        command.args(["play", &url, "--pin", &self.identity.pin().to_string()]);
        command.args(more);
        let output = tokio::task::spawn_blocking(move || command.output());
        output.await.unwrap().unwrap()
    }
}

pub(crate) fn fixed(name: &str, cmcd: CmcdMode) -> DashOptions {
    let mut options = DashOptions::default();
    options.abr = Abr::Fixed(name.to_owned());
    options.session.cmcd = CmcdOptions {
        mode: cmcd,
        session: "6e2fb550-c457-11e9-bb97-0800200c9a66".to_owned(),
        ..CmcdOptions::default()
    };
    options
}
