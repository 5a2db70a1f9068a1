use crate::common::{CORA, Case};
use grapevine::graph::PartitionMethod;
use grapevine::model::OptimizerConfig;
use std::time::Instant;

#[test]
fn try_cora() {
    let base = Case {
        data: CORA,
        layers: 2,
        hidden: 16,
        epochs: 200,
        method: PartitionMethod::Metis,
        optimizer: OptimizerConfig::Adam {
            learning_rate: 0.01,
            weight_decay: 5e-4,
            epsilon: 1e-8,
        },
        ..Case::default()
    };
    let mut sum = 0.0;
    let mut sl = 0.0;
    for seed in 0..10 {
        let start = Instant::now();
        let case = Case {
            workers: 1,
            seed,
            ..base.clone()
        };
        let out = case.run("full", "");
        let (e, best) = out.best().unwrap();
        let last = out.epochs.last().unwrap().scores.unwrap();
        sum += best.test.unwrap();
        sl += last.test.unwrap();
        println!(
            "seed {seed}: best {e} {:?} last {:?} {:?} model {:?}",
            best.test,
            last.test,
            start.elapsed(),
            out.model
        );
    }
    println!("mean best {} last {}", sum / 10.0, sl / 10.0);
    for (kind, options) in [
        ("full", ""),
        ("isolated", ""),
        ("fixed", "ratio=8"),
        ("varco", ""),
        ("grappa", ""),
        ("retexo", ""),
    ] {
        let start = Instant::now();
        let out = base.run(kind, options);
        let (e, best) = out.best().unwrap();
        println!(
            "{kind}: best {e} {:?} {:?} model {:?} sim {:?} comm {:?} exposed {:?}",
            best.test,
            start.elapsed(),
            out.model,
            out.simulated(),
            out.mean_time(|t| t.communication),
            out.mean_time(|t| t.exposed)
        );
    }
}
