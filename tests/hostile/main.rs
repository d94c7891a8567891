//! The real `video-server` under attack by hostile clients, over loopback at a bounded rate, while it must serve a good
//! client as usual. `docs/security.md` has the same attacks at full scale.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its attack has nothing better to do than panic"
)]

mod attacks;
mod beside;
mod good;
mod rig;
mod victim;
mod wire;
