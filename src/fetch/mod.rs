//! Published graphs brought into the data folder: downloaded, checked, unpacked, and only then
//! given their name.
//!
//! ```text
//!  PublishedSet ──→ http: each file, gone on with where it broke off ──→ check: kind, size, sum
//!               └─→ --from DIR: a file that is there ──────────────────┘         │
//!                                                                       unpack: zip, tar.gz
//!                                                                                │
//!                    DATA/<name>  ←── renamed in one step ── DATA/.fetching/<name>/unpacked
//! ```
//!
//! 1. Two fetches of one set wait for each other by a lock; the second finds the set there.
//! 2. What was downloaded before a break stays in `.fetching` and is gone on with.
//! 3. A file that is not what was published is deleted, and both sums are said.
//! 4. Archives unpack within their folder, to regular files, to no more bytes than declared.
//! 5. A folder of a set's name has all its files: whoever finds it can read it.

mod check;
mod error;
mod http;
mod manual;
mod staging;
#[cfg(test)]
mod tests;
mod unpack;

use std::fs;
use std::path::{Path, PathBuf};

use crate::graph::{PublishedFile, PublishedSet};
use crate::net::Bytes;

pub(crate) use check::Sum;
pub(crate) use error::FetchError;
use http::Client;
pub(crate) use http::Patience;
use manual::by_hand;
use staging::{Staging, writing};

/// From so many bytes on a person is asked before anything is downloaded.
const ASK_FROM: u64 = 1_000_000_000;

/// Archives whose table says nothing unpack to no more than so many times their length, and a bit.
const MOST_TIMES: u64 = 32;
const AND_A_BIT: u64 = 16 << 20;

/// Where files come from, other than the addresses of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A folder with files that were downloaded by hand.
    Folder(PathBuf),
    /// A mirror: the address that stands before the names of the files.
    Mirror(String),
}

impl Source {
    /// An address where the text is one, else a folder.
    pub(crate) fn new(text: &str) -> Self {
        if text.starts_with("http://") || text.starts_with("https://") {
            Self::Mirror(text.to_owned())
        } else {
            Self::Folder(PathBuf::from(text))
        }
    }
}

/// What is told while files are fetched, and what is asked.
pub(crate) trait Watch {
    /// A file begins, of so many bytes if that is known, `have` of which are here.
    fn begin(&self, file: &str, bytes: Option<u64>, have: u64);
    /// So many bytes more are here.
    fn more(&self, bytes: u64);
    /// Something that a person may want to know.
    fn say(&self, text: &str);
    /// Whether so many bytes may be downloaded for a set.
    fn may_take(&self, name: &str, bytes: u64) -> bool;
}

/// What became of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// It was there.
    There(PathBuf),
    /// It is there now.
    Now(PathBuf),
}

/// How sets are fetched.
pub(crate) struct Fetch<'a> {
    /// The data folder.
    pub folder: PathBuf,
    /// Where files come from, if not from the addresses of the table.
    pub from: Option<Source>,
    /// The sum that the one file of the set must have, in place of the published one.
    pub sum: Option<Sum>,
    /// How long is waited.
    pub patience: Patience,
    /// Who is told.
    pub watch: &'a dyn Watch,
}

impl Fetch<'_> {
    /// Brings a set into the data folder.
    ///
    /// # Errors
    /// If a file cannot be had, is not what was published, or does not unpack; if a person does not
    /// want it; if the data folder cannot be written.
    pub(crate) fn set(&self, set: &PublishedSet) -> Result<Fetched, FetchError> {
        let goal = self.folder.join(&set.name);
        // Before the lock, so that nobody waits, or needs to write, for what is there.
        if goal.is_dir() {
            return Ok(Fetched::There(goal));
        }
        if self.sum.is_some() && set.files.len() != 1 {
            return Err(FetchError::Asked {
                what: format!(
                    "--sum stands for the sum of one file, and `{}` has {}; leave it out",
                    set.name,
                    set.files.len()
                ),
            });
        }
        let waits = || {
            let text = format!("{}: another process fetches it; waiting for that", set.name);
            self.watch.say(&text);
        };
        let staging = Staging::locked(&self.folder, &set.name, waits)?;
        // The other one may have brought it.
        if goal.is_dir() {
            return Ok(Fetched::There(goal));
        }
        self.ask(set)?;
        let mut come = Vec::new();
        for file in &set.files {
            come.push(self.file(set, file, &staging)?);
        }
        self.unpack(set, &come, &staging)?;
        staging.finish(&goal)?;
        Ok(Fetched::Now(goal))
    }

    /// Asks before much is downloaded.
    fn ask(&self, set: &PublishedSet) -> Result<(), FetchError> {
        let here = matches!(self.from, Some(Source::Folder(_)));
        match set.bytes() {
            Some(bytes) if !here && bytes >= ASK_FROM => self.may_take(set, bytes),
            _ => Ok(()),
        }
    }

    fn may_take(&self, set: &PublishedSet, bytes: u64) -> Result<(), FetchError> {
        if self.watch.may_take(&set.name, bytes) {
            return Ok(());
        }
        Err(FetchError::Asked {
            what: format!(
                "`{}` is {} to download, and nobody agreed to that; say --yes to fetch it",
                set.name,
                Bytes(bytes)
            ),
        })
    }

    /// One file, here and checked: in the staging folder, or where a person has put it.
    fn file(
        &self,
        set: &PublishedSet,
        file: &PublishedFile,
        staging: &Staging,
    ) -> Result<PathBuf, FetchError> {
        let sum = self.sum_of(file)?;
        // A sum that stands for the published one is of another version, whose length nobody said.
        let other = self.sum.as_ref().map(|_| PublishedFile {
            bytes: None,
            ..file.clone()
        });
        let file = other.as_ref().unwrap_or(file);
        let addresses = match &self.from {
            Some(Source::Folder(folder)) => return put_by_hand(folder, set, file, sum.as_ref()),
            Some(Source::Mirror(base)) => vec![below(base, file.name())],
            None => std::iter::once(&file.at)
                .chain(&file.mirrors)
                .cloned()
                .collect(),
        };
        let path = staging.file(file.name());
        if path.is_file() {
            // Whole since an earlier attempt, in which another file of the set failed; perhaps by
            // another sum than it has to have now.
            if check::whole(&path, file, sum.as_ref()).is_ok() {
                return Ok(path);
            }
            fs::remove_file(&path).map_err(writing(&path))?;
        }
        let client = Client::new(&self.patience, self.watch)?;
        let part = staging.part(file.name());
        // Sizes that are not in the table are known when the answer comes.
        let unasked = set.bytes().is_none_or(|bytes| bytes < ASK_FROM);
        let agree = |bytes: u64| {
            if unasked && bytes >= ASK_FROM {
                self.may_take(set, bytes)
            } else {
                Ok(())
            }
        };
        for again in [true, false] {
            let resumed = (client.download(&addresses, file, &part, &agree))
                .map_err(|error| error.without_network(by_hand(&set.name, &set.files)))?;
            match check::whole(&part, file, sum.as_ref()) {
                Ok(()) => break,
                Err(error) => {
                    staging.forget(file.name());
                    // What was put together of two answers may be of two files.
                    if !(again && resumed) {
                        return Err(error.and("; what came is deleted"));
                    }
                    self.watch
                        .say(&format!("{error}; fetching it from the start"));
                }
            }
        }
        fs::rename(&part, &path).map_err(writing(&path))?;
        Ok(path)
    }

    /// The sum that a file must have.
    fn sum_of(&self, file: &PublishedFile) -> Result<Option<Sum>, FetchError> {
        match (&self.sum, &file.sum) {
            (Some(sum), _) => Ok(Some(sum.clone())),
            (None, Some(text)) => text.parse().map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Puts all files of the set, unpacked, into one folder.
    fn unpack(
        &self,
        set: &PublishedSet,
        files: &[PathBuf],
        staging: &Staging,
    ) -> Result<(), FetchError> {
        let into = staging.empty()?;
        let mut account = String::new();
        for (path, file) in files.iter().zip(&set.files) {
            let bytes = path.metadata().map_err(writing(path))?.len();
            let sum = self.sum_of(file)?.map_or_else(|| Sum::sha256(path), Ok)?;
            let from = match &self.from {
                Some(Source::Folder(_)) => path.display().to_string(),
                Some(Source::Mirror(base)) => below(base, file.name()),
                None => file.at.clone(),
            };
            account += &format!("[[file]]\nfrom = {from:?}\nbytes = {bytes}\nsum = \"{sum}\"\n");
            if file.sum.is_none() {
                let name = file.name();
                self.watch.say(&format!(
                    "{name}: no sum is published to check it by; what came has {sum}"
                ));
            }
            // Published sizes are exact bounds; of others only the length of the archive is known.
            let most = set
                .unpacked
                .unwrap_or(bytes.saturating_mul(MOST_TIMES) + AND_A_BIT);
            let own = *path == staging.file(file.name());
            let place = into.join(file.name());
            if unpack::is_archive(file.name()) {
                let done = unpack::archive(path, &into, most);
                if done.is_err() && own {
                    // It was checked as far as it can be: only another download may help.
                    staging.forget(file.name());
                }
                done?;
            } else if own {
                fs::rename(path, &place).map_err(writing(&place))?;
            } else {
                fs::copy(path, &place).map_err(writing(&place))?;
            }
        }
        let path = into.join(staging::ACCOUNT);
        fs::write(&path, account).map_err(writing(&path))
    }
}

/// A file that a person has put into a folder, or into a folder of the set's name there.
fn put_by_hand(
    folder: &Path,
    set: &PublishedSet,
    file: &PublishedFile,
    sum: Option<&Sum>,
) -> Result<PathBuf, FetchError> {
    let places = [folder.to_owned(), folder.join(&set.name)];
    let found = places
        .map(|place| place.join(file.name()))
        .into_iter()
        .find(|path| path.is_file());
    let Some(path) = found else {
        return Err(FetchError::Asked {
            what: format!(
                "{} has no file {}\n{}",
                folder.display(),
                file.name(),
                by_hand(&set.name, &set.files)
            ),
        });
    };
    check::whole(&path, file, sum)?;
    Ok(path)
}

/// The address of a file on a mirror.
fn below(base: &str, name: &str) -> String {
    if base.ends_with(&format!("/{name}")) {
        base.to_owned()
    } else {
        format!("{}/{name}", base.trim_end_matches('/'))
    }
}
