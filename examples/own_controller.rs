//! A custom controller with a fixed window. Once registered, it can be named wherever a spec is read.
//!
//! ```toml
//! [dependencies]
//! anyhow = "1"
//! playrate = { path = "../playrate", default-features = false }
//! # Only for the lab, and its line in `main`.
//! lab = { path = "../playrate/crates/lab", package = "playrate-lab" }
//! ```
//!
//! - `cargo run --example own_controller` builds it for a connection of quinn, and without any transport;
//! - with arguments this is `lab` with the additional controller:
//!   `cargo run --release --example own_controller -- demo --controllers 'fixed(100kB),video'`.

use std::process::ExitCode;
use std::sync::Arc;

use playrate::cc::events::{AckFrame, Acked, Sent};
use playrate::cc::registry::{Entry, Parameter, Registry};
use playrate::cc::{Bytes, CongestionController, ControllerSpec, Path, Timestamp, VideoKnowledge};
use playrate::quinn::{ConnectionController, ControllerChoice};

/// Keeps the given number of bytes in flight, whatever happens.
#[derive(Clone, Debug)]
struct Fixed(Bytes);

impl CongestionController for Fixed {
    fn window(&self) -> Bytes {
        self.0
    }

    fn clone_box(&self) -> Box<dyn CongestionController> {
        Box::new(self.clone())
    }
}

fn register() -> anyhow::Result<()> {
    let sizes = Bytes::from_kb(3)..=Bytes::from_kb(10_000);
    let window = Parameter::size("window", Bytes::from_kb(60), sizes).about("bytes in flight");
    let fixed = Entry::custom("fixed", |_path, arguments, _known| {
        Box::new(Fixed(arguments.size("window")))
    })
    .about("a fixed window")
    .defined_in("this example")
    .with_parameters(&[window]);
    let mut registry = Registry::builtin();
    registry.register(fixed)?;
    // From here on, every spec read by this process may name it.
    Ok(registry.install()?)
}

fn main() -> anyhow::Result<ExitCode> {
    register()?;
    if std::env::args().len() > 1 {
        // `video_server::main()` runs the server in the same way.
        return Ok(lab::main());
    }

    // For a connection of quinn: install it as examples/quinn_server.rs does.
    let choice: ControllerChoice = "fixed(100kB)".parse()?;
    println!("{}", ConnectionController::new(choice).current_choice());

    // Or without any transport.
    let spec: ControllerSpec = "fixed(100kB)".parse()?;
    let mut controller = spec.build(&Path::default(), Arc::new(VideoKnowledge::new()));
    let (sent, acked) = (Timestamp::ZERO, Timestamp::from_millis(50));
    let packet = Bytes::new(1_200);
    controller.on_sent(&Sent::new(sent, packet));
    let runs = [Acked::new(sent, packet, 1)];
    let window = controller.on_ack_frame(&AckFrame::new(acked, &runs, Bytes::ZERO));
    println!("window {window}");
    Ok(ExitCode::SUCCESS)
}
