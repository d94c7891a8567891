//! What our client writes is the title, to the byte, and a player nobody here wrote decodes every frame of it.
//!
//! Needs `ffmpeg` and `ffprobe` on the PATH; skips loudly without them, fails without them when
//! `PLAYRATE_REQUIRE_TOOLS=1`.
