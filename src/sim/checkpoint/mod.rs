//! Checkpoints: where a long training goes on after it was killed.
//!
//! ```text
//!   checkpoints/<run>/worker-0-of-4-after-120   what worker 0 has after 120 epochs
//!                     worker-1-of-4-after-120   …
//! ```
//!
//! Every worker writes its own, at the same place of its program. It holds what the program saves
//! of itself (parameters, an optimiser's moments, what codecs remember), the messages that are
//! under way, and what was measured and reported. What was sent before is not in it: that is in the
//! plan, of which the training does nothing else. In simulation the plan is therefore played again
//! up to the checkpoint, by sizes, with the times that computing took, which leaves clocks, links,
//! queues and ledger as they were. A process over MPI takes its clock and its ledger from the
//! checkpoint.
//!
//! A file appears whole or not at all, and says by a hash whether it still is. The two newest of
//! each worker stay: one of them all workers have.

mod files;
mod pages;
mod past;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

pub use pages::{Loading, Saving};
pub(in crate::sim) use past::Past;

/// Where a run's checkpoints are, and how often one is written.
#[derive(Clone)]
pub struct Checkpoints {
    /// A folder of this run alone: whoever finds files in it takes them for its own.
    pub folder: PathBuf,
    /// After every so many epochs, from the first on.
    pub every: usize,
    /// Hears of files that cannot be used.
    pub note: Arc<dyn Fn(&str) + Send + Sync>,
    /// In simulation, after how many epochs all workers go on.
    begins: OnceLock<usize>,
}

impl Checkpoints {
    /// Those of a run that has this folder for itself.
    pub fn new(folder: PathBuf, every: usize, note: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            folder,
            every,
            note: Arc::new(note),
            begins: OnceLock::new(),
        }
    }

    /// Whether there is one after so many epochs, of so many.
    pub(in crate::sim) const fn are_due(&self, over: usize, epochs: usize) -> bool {
        over.is_multiple_of(self.every) && over < epochs
    }

    /// After how many epochs all of so many workers, whose files are all here, can go on; 0 without
    /// checkpoints.
    pub(in crate::sim) fn common(&self, workers: usize) -> usize {
        *self.begins.get_or_init(|| {
            let mine = (0..workers).map(|rank| self.whole(rank, workers));
            newest_of_all(&mine.collect::<Vec<_>>())
        })
    }
}

/// The largest number that all lists have; 0 if there is none.
pub(in crate::sim) fn newest_of_all(lists: &[Vec<usize>]) -> usize {
    let Some((first, rest)) = lists.split_first() else {
        return 0;
    };
    let all = first
        .iter()
        .filter(|&epoch| rest.iter().all(|list| list.contains(epoch)));
    all.max().copied().unwrap_or(0)
}
