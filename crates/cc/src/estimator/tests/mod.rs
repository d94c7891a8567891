//! Estimators, fed by hand and on a small deterministic path.

mod bounds;
mod capacity;
mod delivery_rate;
mod path;
mod train_capacity;
