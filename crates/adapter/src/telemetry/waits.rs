//! [`WaitLog`]: logs once that a controller waits for knowledge of the video, and once that it has received it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use playrate_cc::Facts;

/// Log messages of one connection so far.
#[derive(Debug, Default)]
pub(super) struct WaitLog {
    began: AtomicBool,
    ended: AtomicBool,
}

impl WaitLog {
    /// Logs a change in the facts that components of `connection`'s controller wait for.
    pub(super) fn log(&self, connection: &str, waiting_for: Facts) {
        if !waiting_for.is_empty() {
            if !self.began.swap(true, Relaxed) {
                tracing::info!(
                    target: "playrate::telemetry",
                    connection,
                    %waiting_for,
                    "components of the controller act without knowledge of the video until these facts are known"
                );
            }
        } else if self.began.load(Relaxed) && !self.ended.swap(true, Relaxed) {
            tracing::info!(
                target: "playrate::telemetry",
                connection,
                "all facts that the controller waited for are known"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span;
    use tracing::subscriber::with_default;

    use super::*;

    /// Keeps every event's fields as text.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<String>>>);

    struct Text(String);

    impl Visit for Text {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            let _ = write!(self.0, "{field}={value:?};");
        }
    }

    impl tracing::Subscriber for Kept {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }
        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
        fn event(&self, event: &tracing::Event<'_>) {
            let mut text = Text(String::new());
            event.record(&mut text);
            self.0.lock().unwrap().push(text.0);
        }
        fn enter(&self, _: &span::Id) {}
        fn exit(&self, _: &span::Id) {}
    }

    #[test]
    fn a_wait_is_logged_once_when_it_begins_and_once_when_it_ends() {
        let kept = Kept::default();
        with_default(kept.clone(), || {
            let waits = WaitLog::default();
            let both = Facts::AVERAGE_RATE.union(Facts::BUFFERED);
            for facts in [both, both, Facts::BUFFERED, Facts::NONE, both, Facts::NONE] {
                waits.log("7", facts);
            }
        });
        let logged = kept.0.lock().unwrap().clone();
        assert_eq!(logged.len(), 2, "{logged:?}");
        assert!(
            logged[0].contains("waiting_for=average-rate,buffered"),
            "{logged:?}"
        );
        assert!(logged[0].contains("connection=\"7\""), "{logged:?}");
        assert!(logged[1].contains("are known"), "{logged:?}");
    }

    #[test]
    fn a_controller_that_waits_for_nothing_logs_nothing() {
        let kept = Kept::default();
        with_default(kept.clone(), || WaitLog::default().log("7", Facts::NONE));
        assert!(kept.0.lock().unwrap().is_empty());
    }
}
