//! The file of one worker's checkpoint.
//!
//! ```text
//!   "grapevine checkpoint 3\n" · SHA-256 of what follows · length and CBOR of the past · state
//! ```

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use super::{Checkpoints, Past};
use crate::atomic;
use crate::sim::SimError;

/// What a file begins with: the version of its format.
const MAGIC: &[u8] = b"grapevine checkpoint 3\n";

/// Bytes of the hash behind it.
const HASH: usize = 32;

impl Checkpoints {
    fn path(&self, rank: usize, workers: usize, epochs: usize) -> PathBuf {
        let name = format!("{}{epochs}", stem(rank, workers));
        self.folder.join(name)
    }

    /// After how many epochs this worker has a file, whole or not, ascending.
    fn listed(&self, rank: usize, workers: usize) -> Vec<usize> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            // None was written yet.
            return Vec::new();
        };
        let stem = stem(rank, workers);
        let number = |entry: io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name();
            name.to_str()?.strip_prefix(&stem)?.parse().ok()
        };
        let mut found: Vec<usize> = entries.filter_map(number).collect();
        found.sort_unstable();
        found
    }

    /// After how many epochs this worker has a file that is whole.
    pub(in crate::sim) fn whole(&self, rank: usize, workers: usize) -> Vec<usize> {
        let listed = self.listed(rank, workers).into_iter();
        let is_whole = |&epochs: &usize| match self.content(rank, workers, epochs) {
            Ok(_) => true,
            Err(error) => {
                (self.note)(&format!("{error}; it is left out"));
                false
            }
        };
        listed.filter(is_whole).collect()
    }

    /// What a file holds behind its hash.
    fn content(&self, rank: usize, workers: usize, epochs: usize) -> Result<Vec<u8>, SimError> {
        let path = self.path(rank, workers, epochs);
        let wrong = |what: &str| SimError::Input(format!("checkpoint {}: {what}", path.display()));
        let mut file = fs::read(&path).map_err(|error| wrong(&error.to_string()))?;
        let Some(rest) = file.strip_prefix(MAGIC) else {
            return Err(wrong("no checkpoint of this version of the program"));
        };
        let hash = rest.get(..HASH).map(<[u8]>::to_vec);
        let content = file.split_off((MAGIC.len() + HASH).min(file.len()));
        if hash.as_deref() != Some(&Sha256::digest(&content)[..]) {
            return Err(wrong("damaged: its hash is another"));
        }
        Ok(content)
    }

    /// The past of a worker, and what its program saved of itself.
    pub(in crate::sim) fn read(
        &self,
        rank: usize,
        workers: usize,
        epochs: usize,
    ) -> Result<(Past, Vec<u8>), SimError> {
        let mut content = self.content(rank, workers, epochs)?;
        let path = self.path(rank, workers, epochs);
        let wrong = |what: &str| SimError::Input(format!("checkpoint {}: {what}", path.display()));
        let split = || {
            let (length, rest) = content.split_first_chunk::<8>()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            Some((rest.get(..length)?, length))
        };
        let (past, length) = split().ok_or_else(|| wrong("it is too short"))?;
        let past: Past = ciborium::from_reader(past).map_err(|error| wrong(&error.to_string()))?;
        let state = content.split_off(8 + length);
        Ok((past, state))
    }

    /// Writes the checkpoint of a worker.
    pub(in crate::sim) fn write(
        &self,
        rank: usize,
        workers: usize,
        past: &Past,
        state: &[u8],
    ) -> Result<(), SimError> {
        let path = self.path(rank, workers, past.epochs);
        let unwritten = |error: io::Error| {
            SimError::Checkpoint(format!("cannot write {}: {error}", path.display()))
        };
        let mut packed = Vec::new();
        ciborium::into_writer(past, &mut packed)
            .map_err(|error| unwritten(io::Error::other(error)))?;
        let length = (packed.len() as u64).to_le_bytes();
        let mut hash = Sha256::new();
        for part in [&length[..], &packed, state] {
            hash.update(part);
        }
        let hash = hash.finalize();
        let write = |file: &mut io::BufWriter<&fs::File>| {
            for part in [MAGIC, &hash[..], &length[..], &packed, state] {
                file.write_all(part)?;
            }
            Ok(())
        };
        atomic::write(&path, write).map_err(unwritten)
    }

    /// Removes the files of a worker that are of more epochs than these.
    pub(in crate::sim) fn forget_after(&self, rank: usize, workers: usize, epochs: usize) {
        for later in self
            .listed(rank, workers)
            .into_iter()
            .filter(|&listed| listed > epochs)
        {
            let _ = fs::remove_file(self.path(rank, workers, later));
        }
    }

    /// Removes the files of a worker but for its two newest. Where all workers' are in this folder,
    /// those that are older than one that all have.
    pub(in crate::sim) fn prune(&self, rank: usize, workers: usize, all_here: bool) {
        let listed = self.listed(rank, workers);
        let Some(&oldest) = listed.iter().rev().nth(1) else {
            return;
        };
        let everybody = || (0..workers).all(|other| self.path(other, workers, oldest).exists());
        if all_here && !everybody() {
            return;
        }
        for &epochs in listed.iter().filter(|&&epochs| epochs < oldest) {
            // What stays takes room and does no harm.
            let _ = fs::remove_file(self.path(rank, workers, epochs));
        }
    }
}

fn stem(rank: usize, workers: usize) -> String {
    format!("worker-{rank}-of-{workers}-after-")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::sim::checkpoint::newest_of_all;

    fn in_folder(folder: &std::path::Path) -> (Checkpoints, Arc<Mutex<Vec<String>>>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&told);
        let note = move |note: &str| notes.lock().unwrap().push(note.to_owned());
        (Checkpoints::new(folder.to_owned(), 5, note), told)
    }

    fn after(epochs: usize) -> Past {
        Past {
            epochs,
            took: vec![1, 2, 3],
            ..Past::default()
        }
    }

    #[test]
    fn what_is_newer_than_all_have_is_forgotten_so_that_what_comes_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (checkpoints, _) = in_folder(folder.path());
        for (rank, epochs) in [(0, 140), (0, 160), (1, 160)] {
            checkpoints.write(rank, 2, &after(epochs), b"").unwrap();
        }
        checkpoints.forget_after(0, 2, 0);
        assert!(checkpoints.whole(0, 2).is_empty());
        assert_eq!(checkpoints.whole(1, 2), [160], "another worker's");
        checkpoints.write(0, 2, &after(20), b"").unwrap();
        checkpoints.prune(0, 2, false);
        assert_eq!(checkpoints.whole(0, 2), [20]);
        checkpoints.forget_after(0, 2, 20);
        assert_eq!(checkpoints.whole(0, 2), [20], "it goes on from there");
    }

    #[test]
    fn a_checkpoint_comes_back_and_a_damaged_one_is_left_out_with_a_note() {
        let folder = tempfile::tempdir().unwrap();
        let (checkpoints, told) = in_folder(folder.path());
        assert!(checkpoints.whole(1, 2).is_empty());
        for epochs in [5, 10] {
            checkpoints.write(1, 2, &after(epochs), b"state").unwrap();
        }
        assert_eq!(checkpoints.whole(1, 2), [5, 10]);
        assert!(checkpoints.whole(0, 2).is_empty(), "another worker's");
        assert!(
            checkpoints.whole(1, 3).is_empty(),
            "another number of workers"
        );
        let (past, state) = checkpoints.read(1, 2, 10).unwrap();
        assert_eq!(
            (past.epochs, past.took, &state[..]),
            (10, vec![1, 2, 3], &b"state"[..])
        );
        let path = folder.path().join("worker-1-of-2-after-10");
        let whole = fs::read(&path).unwrap();
        for place in [0, 25, 60, whole.len() - 1] {
            let mut altered = whole.clone();
            altered[place] ^= 1;
            fs::write(&path, &altered).unwrap();
            assert_eq!(checkpoints.whole(1, 2), [5], "byte {place}");
        }
        for length in [0, 10, 30, whole.len() - 1] {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(checkpoints.whole(1, 2), [5], "{length} bytes");
        }
        let told = told.lock().unwrap();
        assert_eq!(told.len(), 8);
        assert!(told[3].contains("after-10: damaged"), "{}", told[3]);
    }

    #[test]
    fn two_of_each_worker_stay_and_more_until_all_have_one_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let (checkpoints, _) = in_folder(folder.path());
        for epochs in [5, 10, 15] {
            checkpoints.write(0, 2, &after(epochs), b"").unwrap();
            checkpoints.prune(0, 2, true);
        }
        checkpoints.write(1, 2, &after(5), b"").unwrap();
        assert_eq!(checkpoints.whole(0, 2), [5, 10, 15]);
        assert_eq!(checkpoints.common(2), 5);
        checkpoints.write(1, 2, &after(10), b"").unwrap();
        checkpoints.prune(0, 2, true);
        assert_eq!(checkpoints.whole(0, 2), [10, 15]);
        assert_eq!(newest_of_all(&[vec![5, 10], vec![10, 15]]), 10);
        assert_eq!(newest_of_all(&[vec![5], vec![10]]), 0);
    }
}
