//! Measures how busy the server is, for [`Admission`].

use std::sync::{Arc, Weak};
use std::time::Duration;

use playrate_transport::time;
use quinn::Runtime;

use crate::admission::{Admission, TICK};

/// Sleeps and sees how late it wakes up, until `admission` is gone.
pub(super) async fn observe(
    admission: Weak<Admission>,
    runtime: Arc<dyn Runtime>,
    processor_time: Option<fn() -> Duration>,
) {
    loop {
        let due = runtime.now() + TICK;
        time::sleep(&*runtime, TICK).await;
        let Some(admission) = admission.upgrade() else {
            return;
        };
        admission.observe(due, runtime.now(), processor_time.map(|clock| clock()));
    }
}
