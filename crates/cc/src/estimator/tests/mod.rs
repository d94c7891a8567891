//! Estimators, told by hand and on a small deterministic path.

mod loss_guard;
