//! The end of a connection whose window is full.

use quinn::{ConnectionError, VarInt};

use super::*;

#[test]
fn a_close_leaves_past_a_full_window() {
    for name in ["cubic", "quinn-cubic"] {
        let choice: ControllerChoice = name.parse().unwrap();
        let control = ConnectionController::new(choice.clone()).with_alternatives(&[choice]);
        let mut path = path("50ms");
        path.backward.delay = "50ms,down@1.1s".parse().unwrap();
        let mut wire = Wire::new(&control, &path);
        wire.run_for(Duration::from_secs(1));
        // From now on nothing is acknowledged, and more data waits to be sent than fits the window.
        wire.server_sends(400_000);
        wire.run_for(Duration::from_millis(300));
        let received = wire.received();
        assert!((1..100_000).contains(&received), "{name}: {received}");
        control.lift_window();
        wire.server.close(VarInt::from_u32(7), b"over");
        wire.run_for(Duration::from_millis(51));
        let reason = wire.client.close_reason();
        assert!(
            matches!(&reason, Some(ConnectionError::ApplicationClosed(close)) if close.reason == "over"),
            "{name}: {reason:?}"
        );
        assert_eq!(
            wire.received(),
            received,
            "{name}: nothing but the close was sent"
        );
    }
}
