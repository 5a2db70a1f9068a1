//! The folder that holds published graphs.

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::graph::GraphError;

/// Moves the data folder where `--data` does not say where it is.
const VARIABLE: &str = "GRAPEVINE_DATA";

/// The folder set by hand.
static BY_HAND: OnceLock<PathBuf> = OnceLock::new();

/// Sets the data folder of this process, if any is given; the first time counts.
pub(crate) fn keep_data_in(folder: Option<PathBuf>) {
    if let Some(folder) = folder {
        // A second call has nothing to say: the program calls this once.
        let _ = BY_HAND.set(folder);
    }
}

/// The folder that holds published graphs, each in a folder of its name: what `--data` says, else
/// the environment variable `GRAPEVINE_DATA`, else `grapevine` in the user's cache folder.
///
/// # Errors
/// If nothing says where it is: a user without a home.
pub(crate) fn data_folder() -> Result<PathBuf, GraphError> {
    let by_variable = || std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty());
    (BY_HAND.get().cloned())
        .or_else(|| by_variable().map(PathBuf::from))
        .or_else(|| dirs::cache_dir().map(|cache| cache.join("grapevine")))
        .ok_or_else(|| {
            let what = format!(
                "this user has no cache folder to look for published data in; give one with \
                 --data DIR or the environment variable {VARIABLE}"
            );
            GraphError::key("dataset.name", what)
        })
}
