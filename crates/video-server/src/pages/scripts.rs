//! [`PlayerScripts`]: dash.js and hls.js, from a directory chosen by the operator.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::Page;

pub(super) const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// Name below the prefix of the pages, and the possible files in a directory of scripts or in `node_modules`.
const PLAYERS: [(&str, [&str; 2]); 2] = [
    (
        "dash.js",
        ["dash.all.min.js", "dashjs/dist/modern/umd/dash.all.min.js"],
    ),
    ("hls.js", ["hls.min.js", "hls.js/dist/hls.min.js"]),
];

/// Players for manifests, which the page loads when a title needs one.
#[derive(Clone, Debug, Default)]
pub struct PlayerScripts(Vec<(&'static str, Page)>);

/// Errors in reading a directory of players.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlayerScriptsError {
    /// A directory without a player.
    #[error(
        "{} contains neither dash.all.min.js (dash.js) nor hls.min.js (hls.js); put one there, or \
         pass the node_modules directory of `npm install dashjs hls.js`",
        .0.display()
    )]
    Empty(PathBuf),
    /// A script that cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the script.
        path: PathBuf,
        /// Reason of the failure.
        source: io::Error,
    },
}

impl PlayerScripts {
    /// Reads the players in `directory`: `dash.all.min.js`, `hls.min.js`, or both, also at the paths where npm installs
    /// them.
    ///
    /// # Errors
    /// There is none, or one cannot be read.
    pub fn read(directory: &Path) -> Result<Self, PlayerScriptsError> {
        let mut players = Vec::new();
        for (name, candidates) in PLAYERS {
            let paths = candidates.map(|candidate| directory.join(candidate));
            let Some(path) = paths.into_iter().find(|path| path.is_file()) else {
                continue;
            };
            let read = |source| PlayerScriptsError::Read {
                path: path.clone(),
                source,
            };
            players.push((name, Page::new(JAVASCRIPT, fs::read(&path).map_err(read)?)));
        }
        if players.is_empty() {
            return Err(PlayerScriptsError::Empty(directory.to_owned()));
        }
        Ok(Self(players))
    }

    pub(super) fn find(&self, name: &str) -> Option<&Page> {
        let (_, page) = self.0.iter().find(|(player, _)| *player == name)?;
        Some(page)
    }

    /// Names of the available players.
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|&(name, _)| name).collect()
    }
}
