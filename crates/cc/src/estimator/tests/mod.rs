//! Estimators, told by hand and on a small deterministic path.

mod delivery_rate;
mod loss_guard;
mod path;
