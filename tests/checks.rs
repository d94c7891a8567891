//! Properties of the workspace that hold without running it: its text, its links, its tutorial, its dependencies,
//! its sizes.

mod links;
mod rooms;
mod state_size;
mod style;
mod tutorials;
