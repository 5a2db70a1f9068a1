//! The folder in which a set is put together, and the lock on it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::error::FetchError;

/// Where sets are put together, in the data folder.
const STAGING: &str = ".fetching";

/// What a set has beside its files: where they came from.
pub(super) const ACCOUNT: &str = ".fetched.toml";

/// Follows the name of a part: which version of the file it is of.
pub(super) const TAG: &str = "tag";

/// Makes an error of what the file system says about writing a path.
pub(super) fn writing(path: &Path) -> impl FnOnce(io::Error) -> FetchError + use<> {
    let path = path.to_owned();
    move |source| FetchError::Write { path, source }
}

/// The folder of a set in the making, which this process alone uses while it lives.
pub(super) struct Staging {
    folder: PathBuf,
    // The lock goes with the open file, also where the process is ended.
    _lock: File,
}

impl Staging {
    /// Makes the folder and locks it; `waits` is told where another process has it.
    pub(super) fn locked(
        data: &Path,
        name: &str,
        waits: impl FnOnce(),
    ) -> Result<Self, FetchError> {
        let all = data.join(STAGING);
        let folder = all.join(name);
        fs::create_dir_all(&folder).map_err(writing(&folder))?;
        let path = all.join(format!("{name}.lock"));
        // Beside the folder, and never removed: whoever waits holds this very file, and a new one
        // of its name would be another lock.
        let lock = File::create(&path).map_err(writing(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                waits();
                lock.lock().map_err(writing(&path))?;
                // The other one has removed it when it was done.
                fs::create_dir_all(&folder).map_err(writing(&folder))?;
            }
            Err(TryLockError::Error(error)) => return Err(writing(&path)(error)),
        }
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    /// Where a whole and checked file is.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Where a file is while it is downloaded.
    pub(super) fn part(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.part"))
    }

    /// Deletes what is here of a file.
    pub(super) fn forget(&self, name: &str) {
        let part = self.part(name);
        for path in [self.file(name), part.with_added_extension(TAG), part] {
            // It may not be there.
            let _ = fs::remove_file(path);
        }
    }

    /// An empty folder to unpack into.
    pub(super) fn empty(&self) -> Result<PathBuf, FetchError> {
        let path = self.folder.join("unpacked");
        if path.exists() {
            fs::remove_dir_all(&path).map_err(writing(&path))?;
        }
        fs::create_dir(&path).map_err(writing(&path))?;
        Ok(path)
    }

    /// Gives what was unpacked its name, without the folders that hold nothing but one folder, and
    /// removes the rest.
    pub(super) fn finish(self, goal: &Path) -> Result<(), FetchError> {
        let unpacked = self.folder.join("unpacked");
        let account = unpacked.join(ACCOUNT);
        let mut inner = unpacked.clone();
        while let Some(only) = only_folder(&inner).map_err(writing(&inner))? {
            inner = only;
        }
        if inner != unpacked {
            // It lies beside the one folder, and would be left behind with what is above it.
            fs::rename(&account, inner.join(ACCOUNT)).map_err(writing(&account))?;
        }
        // One step on one file system: nobody finds a folder of this name that is not whole.
        fs::rename(&inner, goal).map_err(writing(goal))?;
        // What is left is of no use to anyone, and in nobody's way.
        let _ = fs::remove_dir_all(&self.folder);
        Ok(())
    }
}

/// The folder that is all that a folder holds, hidden files aside.
fn only_folder(folder: &Path) -> io::Result<Option<PathBuf>> {
    let mut found = None;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if found.is_some() || !entry.file_type()?.is_dir() {
            return Ok(None);
        }
        found = Some(entry.path());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_around_the_files_are_left_out() {
        let data = tempfile::tempdir().unwrap();
        let staging = Staging::locked(data.path(), "set", || panic!("nobody has it")).unwrap();
        let into = staging.empty().unwrap();
        fs::create_dir_all(into.join("outer/inner/raw")).unwrap();
        fs::write(into.join("outer/inner/a.csv"), "a").unwrap();
        fs::write(into.join(ACCOUNT), "").unwrap();
        let goal = data.path().join("set");
        staging.finish(&goal).unwrap();
        assert!(goal.join("a.csv").is_file() && goal.join("raw").is_dir());
        assert!(goal.join(ACCOUNT).is_file());
        assert!(!data.path().join(STAGING).join("set").exists());
    }
}
