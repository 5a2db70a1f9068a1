//! What preparation remembers, and what it lets go.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Preparation, data_turns};
use crate::experiment::config::{Experiment, PAPER, Vocabulary};
use crate::strategies::Registry;

const SWEPT: &str = r#"
name = "x"
seeds = [0, 1]
[model]
kind = "gcn"
[training]
epochs = 2
[partition]
method = "random"
workers = 2
[network]
preset = "ethernet-1g"
[sweep]
"partition.workers" = [2, 3]
dataset = [
    { synthetic = { kind = "sbm", nodes = 60, classes = 2, features = 4, degree_within = 4.0, degree_between = 2.0 }, split = { train = 0.5, val = 0.2 } },
    { synthetic = { kind = "sbm", nodes = 80, classes = 2, features = 4, degree_within = 4.0, degree_between = 2.0 }, split = { train = 0.5, val = 0.2 } },
]
[[strategy]]
kind = "full"
"#;

#[test]
fn what_is_of_other_data_and_seeds_is_let_go_where_it_is_large() {
    let registry = Registry::builtin();
    let vocabulary = Vocabulary {
        registry: &registry,
        figures: &[],
    };
    let experiment = Experiment::parse(SWEPT, "x.toml", PAPER, &[], &vocabulary).unwrap();
    let cells = experiment.cells();
    // Cells in order: the last key of the sweep changes fastest.
    let turns = data_turns(cells.iter());
    assert_eq!(turns, [0, 1, 0, 1]);
    let mut preparation = Preparation::new(&registry, PathBuf::new());
    let mut fit = |cell: usize, seed, most| {
        let data = &cells[cell].settings.dataset;
        preparation.keep_at_most(most, data, seed);
        let fitted = preparation.fit(&cells[cell], seed).unwrap();
        let found = (preparation.raw.0.len(), preparation.parts.0.len());
        (Arc::clone(&fitted.setting.partition), found)
    };
    let first = fit(0, 0, usize::MAX).0;
    assert_eq!(fit(2, 0, usize::MAX).1, (1, 2));
    assert_eq!(fit(0, 1, usize::MAX).1, (1, 3));
    assert_eq!(fit(1, 1, usize::MAX).1, (2, 4));
    // All of the other data set goes, and of this one what is of the other seed.
    assert_eq!(fit(3, 1, 0).1, (1, 2));
    let (again, left) = fit(0, 0, usize::MAX);
    assert_eq!(left, (2, 3));
    // Made again it is the same.
    assert!(!Arc::ptr_eq(&first, &again));
    assert_eq!(first, again);
}
