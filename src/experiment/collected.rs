//! Rows of runs that end in any order, in the order of the experiment.

use std::collections::BTreeMap;

use super::tables::Tables;

/// Where a run stands: the place of its cell, and of its seed.
pub(super) type Place = (usize, usize);

/// The rows of all runs so far.
#[derive(Default)]
pub(super) struct Collected {
    tables: Tables,
    lengths: BTreeMap<Place, [usize; Tables::OF_RUNS]>,
}

impl Collected {
    /// Adds the rows of a run where they belong.
    pub(super) fn put(&mut self, place: Place, mut rows: Tables) {
        if place.1 > 0 {
            // The table has the first seed's alone; every trace is a file of its own.
            rows.timeline.clear();
        }
        let mut before = [0; Tables::OF_RUNS];
        for lengths in self.lengths.range(..place).map(|(_, lengths)| lengths) {
            for (sum, length) in before.iter_mut().zip(lengths) {
                *sum += length;
            }
        }
        self.lengths.insert(place, rows.lengths());
        self.tables.insert(before, rows);
    }

    /// What is there.
    pub(super) const fn tables(&self) -> &Tables {
        &self.tables
    }

    /// All of it.
    pub(super) fn into_tables(self) -> Tables {
        self.tables
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::{EpochRow, RunRow};

    fn rows(cell: u64, seed: u64) -> Tables {
        let run = RunRow {
            seed: 10 * cell + seed,
            ..RunRow::default()
        };
        let epoch = |epoch| EpochRow {
            seed: run.seed,
            epoch,
            ..EpochRow::default()
        };
        Tables {
            epochs: (0..=seed).map(epoch).collect(),
            runs: vec![run],
            ..Tables::default()
        }
    }

    #[test]
    fn whatever_ends_first_the_rows_stand_in_the_order_of_the_experiment() {
        let (mut ordered, mut at) = (Tables::default(), [0; Tables::OF_RUNS]);
        let mut places = Vec::new();
        for (cell, seed) in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)] {
            ordered.insert(at, rows(cell, seed));
            at = ordered.lengths();
            places.push((cell, seed));
        }
        for turn in 0..places.len() {
            places.rotate_left(1);
            places.swap(0, turn);
            let mut collected = Collected::default();
            for &(cell, seed) in &places {
                collected.put((cell as usize, seed as usize), rows(cell, seed));
            }
            assert_eq!(collected.tables(), &ordered, "{places:?}");
        }
    }
}
