//! Why a published graph could not be brought.

use std::path::PathBuf;

use thiserror::Error;

/// Why a published graph could not be brought into the data folder.
#[derive(Debug, Error)]
pub(crate) enum FetchError {
    /// What was asked for cannot be done; it says what to ask for.
    #[error("{what}")]
    Asked {
        /// What is wrong, and what to do.
        what: String,
    },
    /// No address has it.
    #[error("{file} could not be downloaded: {}\n{by_hand}", reasons.join("; "))]
    Download {
        /// Name of the file.
        file: String,
        /// What happened at each address.
        reasons: Vec<String>,
        /// What to do without the program.
        by_hand: String,
    },
    /// It came, and is not what was published.
    #[error("{}: {what}", path.display())]
    Wrong {
        /// Where it is, or was.
        path: PathBuf,
        /// What was expected, what was found, and what to do.
        what: String,
    },
    /// An archive does not unpack, or must not.
    #[error("{}: {what}; nothing of it is kept", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The data folder cannot be written.
    #[error("cannot write {}: {source}; another data folder is given with --data", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The file system's error.
        source: std::io::Error,
    },
}

impl FetchError {
    /// The same with what to do where no address has the file.
    pub(super) fn without_network(mut self, text: String) -> Self {
        if let Self::Download { by_hand, .. } = &mut self {
            *by_hand = text;
        }
        self
    }

    /// The same with more to say of a file that is not the published one.
    pub(super) fn and(mut self, more: &str) -> Self {
        if let Self::Wrong { what, .. } = &mut self {
            what.push_str(more);
        }
        self
    }

    /// Whether what was asked for is to blame, not the network, the disk or who published the file.
    pub(crate) const fn is_input(&self) -> bool {
        matches!(self, Self::Asked { .. })
    }
}
