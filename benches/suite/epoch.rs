//! Ten epochs of every strategy on the quickstart's graph, network emulation included.

use std::path::Path;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion};
use grapevine::cli::{ExperimentArgs, read_experiment};
use grapevine::experiment::Preparation;
use grapevine::strategies::{Registry, run};

/// One benchmark per strategy of the quickstart.
pub(crate) fn epochs(criterion: &mut Criterion) {
    ten_epochs(criterion, "ten epochs", &[]);
}

/// One benchmark per model, on one worker.
pub(crate) fn models(criterion: &mut Criterion) {
    let kinds = r#"sweep."model.kind"=["gcn", "sage", "sage-pool", "gat", "gin"]"#;
    let alone = "strategy=[{ kind = \"full\" }]";
    let sets = [kinds, alone, "claim=[]", "partition.workers=1"];
    ten_epochs(criterion, "ten epochs of a model", &sets);
}

/// Ten epochs of every cell of the quickstart with these changes.
fn ten_epochs(criterion: &mut Criterion, name: &str, sets: &[&str]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/quickstart.toml");
    let registry = Registry::builtin();
    let short = ["training.epochs=10", "training.evaluate_every=10"];
    let sets = short.iter().chain(sets);
    let args = ExperimentArgs {
        sets: sets.map(|&set| set.to_owned()).collect(),
        ..ExperimentArgs::of(&file)
    };
    let experiment = read_experiment(&args, &registry).expect("the quickstart is valid");
    let mut preparation = Preparation::new(&registry, file);
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10);
    for cell in experiment.cells() {
        let fitted = preparation.fit(cell, 0).expect("the options fit");
        let together = fitted.needs.together;
        group.bench_function(BenchmarkId::from_parameter(&cell.name), |bencher| {
            bencher.iter(|| {
                run(fitted.training.as_ref(), together, Arc::new(|_| {})).expect("it trains")
            });
        });
    }
    group.finish();
}
