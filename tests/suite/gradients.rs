//! Gradients that are encoded on their way, or summed seldom.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::sample::select;

use crate::common::{Case, Program, bits, losses};
use grapevine::graph::BatchSpec;
use grapevine::model::{OptimizerConfig, parameter_shapes};
use grapevine::net::{AllReduceChoice, TrafficKind};
use grapevine::rng::mix;
use grapevine::sim::{EpochReport, Outcome};
use grapevine::strategies::parts::Gradients;
use grapevine::strategies::parts::gradients::Round;
use grapevine::strategies::parts::plan::plan_each;

const KIND: TrafficKind = TrafficKind::ParameterGradient;

/// Everything that a codec may be, and whether what it leaves out is fed back.
const CODECS: [(&str, bool); 11] = [
    ("codec = \"identity\"", false),
    ("codec = { kind = \"top_k\", ratio = 4 }", true),
    (
        "codec = { kind = \"top_k\", ratio = 4 }\nfeedback = false",
        false,
    ),
    ("codec = { kind = \"random_k\", ratio = 4 }", true),
    (
        "codec = { kind = \"random_k\", ratio = 4 }\nfeedback = false",
        false,
    ),
    ("codec = { kind = \"qsgd\", levels = 7, bucket = 5 }", false),
    ("codec = \"sign\"", true),
    ("codec = \"sign\"\nfeedback = false", false),
    ("codec = { kind = \"power_sgd\", rank = 2 }", true),
    ("codec = \"f16\"\nfeedback = true", true),
    ("codec = \"bf16\"", false),
];

fn read(gradients: &str) -> Gradients {
    toml::from_str(gradients).expect("gradients as a file has them")
}

/// What sums of `values(worker, round)` come to: of each worker the sums, and what it kept back.
struct Summed {
    sums: Vec<Vec<Vec<f32>>>,
    left_out: Vec<Vec<f32>>,
}

/// Sums of so many rounds of parameters of these shapes, as a training that does nothing else; so
/// the plan is held against the ledger and the clock.
fn summed(
    case: &Case,
    gradients: Gradients,
    shapes: &[Vec<usize>],
    values: impl Fn(usize, usize) -> Vec<f32> + Send + Sync + 'static,
) -> Summed {
    let workers = case.workers;
    let found = Arc::new(Mutex::new(vec![(Vec::new(), Vec::new()); workers]));
    let (told, shapes) = (Arc::clone(&found), shapes.to_vec());
    let planned = shapes.clone();
    let program = Program {
        plan: Arc::new(move |setting| {
            let sum = gradients.sum(workers, setting.seed, &planned);
            let sum = Mutex::new(sum);
            plan_each(workers, move |_, rank, track| {
                sum.lock().unwrap().plan(track, rank, KIND);
            })
        }),
        train: Arc::new(move |worker| {
            let mut sum = gradients.sum(workers, worker.setting().seed, &shapes);
            for epoch in 0..worker.epochs() {
                worker.begin_epoch(epoch)?;
                let round = Round {
                    number: epoch as u64,
                    kind: KIND,
                };
                let found = sum.sum(worker, values(worker.rank(), epoch), round)?;
                told.lock().unwrap()[worker.rank()].0.push(found);
                worker.end_epoch(epoch, EpochReport::default());
            }
            told.lock().unwrap()[worker.rank()].1 = sum.left_out().to_vec();
            Ok(())
        }),
    };
    case.train("sums", &program);
    let found = std::mem::take(&mut *found.lock().unwrap());
    let (sums, left_out) = found.into_iter().unzip();
    Summed { sums, left_out }
}

/// Numbers between −1 and 1, the same for the same worker, round and place.
fn noise(worker: usize, round: usize, len: usize) -> Vec<f32> {
    let of = |at: usize| {
        let hash = mix(mix(worker as u64, round as u64), at as u64);
        (hash % 20_001) as f32 / 10_000.0 - 1.0
    };
    (0..len).map(of).collect()
}

fn length(values: &[f32]) -> f64 {
    let squares = values.iter().map(|&value| f64::from(value).powi(2));
    squares.sum::<f64>().sqrt()
}

/// The sum over all workers of what each has in a place.
fn over_workers(of: &[Vec<f32>], at: usize) -> f64 {
    let values = of.iter().filter_map(|values| values.get(at));
    values.map(|&value| f64::from(value)).sum()
}

const SHAPES: [&[usize]; 4] = [&[9, 7], &[7], &[7, 3], &[3]];

fn shapes() -> Vec<Vec<usize>> {
    SHAPES.iter().map(|shape| shape.to_vec()).collect()
}

const LEN: usize = 9 * 7 + 7 + 7 * 3 + 3;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn all_workers_have_the_same_bits_and_what_is_missing_is_what_was_kept(
        codec in select(CODECS.to_vec()),
        workers in 1_usize..7,
        all_reduce in select(vec![
            AllReduceChoice::Ring, AllReduceChoice::HalvingDoubling, AllReduceChoice::Tree,
            AllReduceChoice::ParameterServer, AllReduceChoice::Auto,
        ]),
        seed in 0_u64..1000,
    ) {
        let (gradients, fed_back) = codec;
        let rounds = 6;
        let case = Case { workers, all_reduce, seed, epochs: rounds, ..Case::default() };
        let found = summed(&case, read(gradients), &shapes(), |worker, round| noise(worker, round, LEN));
        for other in &found.sums {
            for (one, other) in found.sums[0].iter().zip(other) {
                prop_assert!(one.iter().zip(other).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
        }
        for at in 0..LEN {
            let given: f64 = (0..rounds)
                .map(|round| (0..workers).map(|w| f64::from(noise(w, round, LEN)[at])).sum::<f64>())
                .sum();
            let came: f64 = found.sums[0].iter().map(|sum| f64::from(sum[at])).sum();
            let kept = over_workers(&found.left_out, at);
            if fed_back || workers == 1 || gradients.contains("identity") {
                prop_assert!((given - came - kept).abs() < 1e-4, "{given} − {came} − {kept}");
            } else {
                prop_assert!(kept == 0.0, "nothing is kept without feedback");
            }
        }
    }
}

#[test]
fn what_is_kept_back_stays_within_the_bound_of_its_codec() {
    // Lemma 3 of Karimireddy et al. (ICML 2019): ‖e‖² ≤ 4 (1 − δ)/δ² · G², where a codec loses at
    // most 1 − δ of what it is given and gradients are at most G long.
    let (workers, rounds) = (4, 200);
    for (gradients, delta) in [
        // 20 entries of 32 bits and a map of 94 bits are less than a quarter of 94 · 32 bits.
        ("codec = { kind = \"top_k\", ratio = 4 }", 20.0 / 94.0),
        ("codec = \"f16\"\nfeedback = true", 1.0 - 1e-6),
    ] {
        let case = Case {
            workers,
            epochs: rounds,
            ..Case::default()
        };
        let found = summed(&case, read(gradients), &shapes(), |worker, round| {
            // The same way in each round, and another one for each worker.
            let (mut all, drawn) = (noise(worker, 0, LEN), noise(worker, round, LEN));
            all.iter_mut().zip(drawn).for_each(|(a, b)| *a += b);
            all
        });
        let longest = 2.0 * (LEN as f64).sqrt();
        let bound = 2.0 * (1.0_f64 - delta).sqrt() / delta * longest;
        for kept in &found.left_out {
            assert!(
                length(kept) <= bound,
                "{gradients}: {} of {bound}",
                length(kept)
            );
        }
    }
}

/// What the workers keep back together after so many rounds of gradients, each of which has a part
/// that is the same in all rounds.
fn kept_together(gradients: &str, rounds: usize) -> f64 {
    let case = Case {
        epochs: rounds,
        ..Case::default()
    };
    let found = summed(&case, read(gradients), &shapes(), |worker, round| {
        let (mut all, drawn) = (noise(worker, 0, LEN), noise(worker, round, LEN));
        all.iter_mut().zip(drawn).for_each(|(a, b)| *a += b);
        all
    });
    let sum = (0..LEN).map(|at| over_workers(&found.left_out, at) as f32);
    length(&sum.collect::<Vec<f32>>())
}

#[test]
fn what_all_keep_back_together_does_not_grow_with_the_rounds() {
    for gradients in [
        "codec = { kind = \"power_sgd\", rank = 2 }",
        "codec = { kind = \"random_k\", ratio = 4 }",
        "codec = \"sign\"",
    ] {
        let [some, many] = [100, 400].map(|rounds| kept_together(gradients, rounds));
        assert!(many < 2.0 * some, "{gradients}: {some}, then {many}");
    }
}

#[test]
fn what_is_said_to_be_unbiased_is_right_on_average() {
    let (workers, rounds, len) = (3, 4_000, 12);
    for gradients in [
        "codec = { kind = \"qsgd\", levels = 2, bucket = 4 }",
        "codec = { kind = \"random_k\", ratio = 4 }\nfeedback = false",
    ] {
        let case = Case {
            workers,
            epochs: rounds,
            ..Case::default()
        };
        let values = move |worker, _| noise(worker, 0, len);
        let found = summed(&case, read(gradients), &[vec![len]], values);
        for at in 0..len {
            let exact: f64 = (0..workers).map(|w| f64::from(noise(w, 0, len)[at])).sum();
            let of = |sum: &Vec<f32>| f64::from(sum[at]);
            let mean = found.sums[0].iter().map(of).sum::<f64>() / rounds as f64;
            let spread = found.sums[0].iter().map(|sum| (of(sum) - mean).powi(2));
            let error = (spread.sum::<f64>() / (rounds * (rounds - 1)) as f64).sqrt();
            assert!(
                (mean - exact).abs() < 5.0 * error + 1e-6,
                "{gradients}: {mean} for {exact}"
            );
        }
    }
}

#[test]
fn a_sum_of_matrices_of_low_rank_is_exact_from_the_first_step_on() {
    let (rows, columns) = (20, 15);
    for (rank, workers) in [(1, 2), (2, 3), (3, 3)] {
        // A product of one column and one row from each worker: of rank `workers` together, and so
        // of rank 1 where they all give the same.
        let values = move |worker: usize, round: usize| {
            let which = if rank == 1 { 0 } else { worker % rank };
            let (p, q) = (
                noise(which, round, rows),
                noise(which + 100, round, columns),
            );
            let row = move |p: f32| q.clone().into_iter().map(move |q| p * q);
            p.into_iter().flat_map(row).collect::<Vec<f32>>()
        };
        let case = Case {
            workers,
            epochs: 5,
            ..Case::default()
        };
        let gradients = read(&format!(
            "codec = {{ kind = \"power_sgd\", rank = {rank} }}\nfeedback = false"
        ));
        let found = summed(&case, gradients, &[vec![rows, columns]], values);
        for (round, sum) in found.sums[0].iter().enumerate() {
            for (at, value) in sum.iter().enumerate() {
                let exact: f32 = (0..workers).map(|worker| values(worker, round)[at]).sum();
                assert!(
                    (value - exact).abs() < 1e-4,
                    "{rank} {round}: {value} for {exact}"
                );
            }
        }
    }
}

#[test]
fn factors_of_a_round_begin_with_those_of_the_round_before() {
    // A matrix of rank five that does not change: Σ σ_k u_k v_kᵀ, with u and v of discrete sines,
    // which are orthonormal. What two columns leave out is no less than the last three σ.
    let (rows, columns) = (20_usize, 15_usize);
    let sigma = [1.0, 0.8, 0.6, 0.4, 0.2];
    let sine = |count: usize, place: usize, number: usize| {
        let step = std::f64::consts::PI / (count + 1) as f64;
        let angle = step * ((place + 1) * (number + 1)) as f64;
        (2.0 / (count + 1) as f64).sqrt() * angle.sin()
    };
    let matrix: Vec<f32> = (0..rows * columns)
        .map(|at| {
            let (row, column) = (at / columns, at % columns);
            let terms = sigma.iter().enumerate();
            let sum: f64 = terms
                .map(|(k, sigma)| sigma * sine(rows, row, k) * sine(columns, column, k))
                .sum();
            sum as f32
        })
        .collect();
    let case = Case {
        workers: 2,
        epochs: 30,
        ..Case::default()
    };
    // Of two workers with a half each; one alone sends nothing and loses nothing.
    let halves: Vec<f32> = matrix.iter().map(|value| value / 2.0).collect();
    let gradients = read("codec = { kind = \"power_sgd\", rank = 2 }\nfeedback = false");
    let values = move |_, _| halves.clone();
    let found = summed(&case, gradients, &[vec![rows, columns]], values);
    let least = sigma[2..].iter().map(|s| s * s).sum::<f64>().sqrt();
    let errors: Vec<f64> = found.sums[0]
        .iter()
        .map(|sum| {
            let apart = sum
                .iter()
                .zip(&matrix)
                .map(|(a, b)| f64::from(a - b).powi(2));
            apart.sum::<f64>().sqrt() / least
        })
        .collect();
    assert!(errors.iter().all(|error| *error > 1.0 - 1e-4), "{errors:?}");
    // Each round multiplies what is missing by (0.6/0.8)² or so. Factors drawn anew would leave as
    // much in the last round as in the first.
    assert!(errors[0] > 1.02, "{errors:?}");
    assert!(errors[29] < 1.001, "{errors:?}");
}

/// Strategies with what else they need.
const STRATEGIES: [(&str, &str); 8] = [
    ("full", ""),
    ("isolated", ""),
    ("fixed", "ratio = 2\n"),
    ("bns", "share = 0.5\n"),
    ("pipe", ""),
    ("adaqp", "bits = 4\n"),
    ("grappa", ""),
    ("retexo", "rounds_per_layer = 3\n"),
];

fn with(options: &str, gradients: &str) -> String {
    let inside = gradients.replace('\n', ", ");
    format!("{options}gradients = {{ {inside} }}")
}

#[test]
fn one_worker_sends_nothing_and_so_loses_nothing() {
    let case = Case {
        workers: 1,
        ..Case::default()
    };
    for (kind, options) in STRATEGIES {
        let plain = bits(&case.run(kind, options));
        for (gradients, _) in CODECS {
            let found = case.run(kind, &with(options, gradients));
            assert_eq!(bits(&found), plain, "{kind} {gradients}");
        }
    }
}

#[test]
fn with_sgd_the_mean_of_models_after_each_step_is_what_the_sum_of_gradients_makes() {
    let case = Case {
        optimizer: OptimizerConfig::Sgd {
            learning_rate: 0.1,
            weight_decay: 5e-4,
            momentum: 0.0,
        },
        epochs: 5,
        ..Case::default()
    };
    for (kind, options) in STRATEGIES {
        let plain = losses(&case.run(kind, options));
        let found = losses(&case.run(kind, &with(options, "average = \"models\"")));
        for (found, plain) in found.iter().zip(&plain) {
            assert!((found - plain).abs() < 1e-5, "{kind}: {found} for {plain}");
        }
    }
}

#[test]
fn between_two_sums_nothing_travels_but_rows() {
    let case = Case {
        epochs: 7,
        ..Case::default()
    };
    for (average, kind) in [("gradients", KIND), ("models", TrafficKind::Parameter)] {
        let options = with("", &format!("every = 3\naverage = \"{average}\""));
        let found = case.run("isolated", &options);
        let plain = case.run("isolated", "");
        let of = |outcome: &Outcome, kind, epoch: usize| {
            let traffic = outcome.ledger.iter().find(|(at, _)| *at == epoch);
            traffic.map_or(0, |(_, traffic)| traffic.payload_of(kind).0)
        };
        for epoch in 0..7 {
            let expected = match epoch {
                // After three steps, after six, and after the last.
                2 | 5 | 6 => of(&plain, KIND, epoch),
                _ => 0,
            };
            assert!(of(&plain, KIND, epoch) > 0);
            assert_eq!(of(&found, kind, epoch), expected, "{average} {epoch}");
        }
    }
}

#[test]
fn bytes_are_those_of_the_formulas() {
    let case = Case {
        kind: grapevine::model::ModelKind::Gcn,
        hidden: 16,
        epochs: 1,
        ..Case::default()
    };
    let setting = case.setting(Case::strategy("isolated", "").as_ref());
    let device = setting.device();
    let model = grapevine::model::Gnn::new(&setting.model, 0, &device);
    let shapes = parameter_shapes(&model);
    let n: usize = shapes
        .iter()
        .map(|shape| shape.iter().product::<usize>())
        .sum();
    // Two hidden layers of 16 on 10 features and for 3 classes.
    assert_eq!(n, 10 * 16 + 16 + 16 * 16 + 16 + 16 * 3 + 3);
    let p = case.workers;
    let ring = |values: usize| 2 * (p - 1) * 4 * values;
    let chunks = || (0..p).map(|at| n / p + usize::from(at < n % p));
    let split = |bytes: &dyn Fn(usize) -> usize| -> usize {
        let there = chunks().map(|chunk| (p - 1) * bytes(chunk));
        let back = chunks().map(|chunk| (p - 1) * bytes(chunk).next_multiple_of(4));
        there.sum::<usize>() + back.sum::<usize>()
    };
    // 32 bits of value and 9 of place are 41; a tenth of the bits of all, and of words of 4 bytes.
    let kept = 32 * n / 10 / 41;
    let message = (9 * kept).div_ceil(8) + 4 * kept;
    // Of 10 × 16, 16 × 16 and 16 × 3, and three biases.
    let factors = 2 * (10 + 16) + 2 * (16 + 16) + 2 * (16 + 3) + 16 + 16 + 3;
    for (gradients, expected) in [
        ("codec = \"identity\"", ring(n)),
        ("codec = { kind = \"random_k\", ratio = 10 }", ring(n / 10)),
        (
            "codec = { kind = \"top_k\", ratio = 10 }",
            p * (p - 1) * message.next_multiple_of(4),
        ),
        (
            "codec = { kind = \"qsgd\", levels = 7, bucket = 50 }",
            split(&|chunk| 4 * chunk.div_ceil(50) + chunk.div_ceil(2)),
        ),
        ("codec = \"sign\"", split(&|chunk| 4 + chunk.div_ceil(8))),
        ("codec = \"f16\"", split(&|chunk| 2 * chunk)),
        ("codec = { kind = \"power_sgd\", rank = 2 }", ring(factors)),
    ] {
        let found = case.run("isolated", &with("", gradients));
        let bytes = found.ledger.traffic().payload_of(KIND).0;
        assert_eq!(bytes, expected as u64, "{gradients}");
    }
}

#[test]
fn what_does_nothing_or_cannot_be_is_refused_in_a_sentence() {
    let case = Case::default();
    for (options, key, says) in [
        (
            "gradients = { feedback = true }",
            "gradients",
            "without `codec`",
        ),
        (
            "gradients = { codec = \"qsgd\", feedback = true }",
            "gradients",
            "grow",
        ),
        ("gradients = { every = 0 }", "gradients", "at least 1"),
        (
            "gradients = { codec = \"topk\" }",
            "gradients.codec",
            "top_k",
        ),
        (
            "gradients = { codec = { kind = \"top_k\", k = 3 } }",
            "gradients.codec",
            "unknown field",
        ),
        (
            "gradients = { codec = { kind = \"top_k\", ratio = 0.5 } }",
            "gradients",
            "ratio",
        ),
        (
            "gradients = { codec = { kind = \"power_sgd\", rank = 0 } }",
            "gradients",
            "rank",
        ),
        (
            "gradients = { codec = { kind = \"power_sgd\", rank = 4611686018427387904 } }",
            "gradients",
            "from 1 to 65535",
        ),
        (
            "gradients = { codec = { kind = \"qsgd\", levels = 0 } }",
            "gradients",
            "levels",
        ),
        (
            "overlap = true\ngradients = { codec = \"f16\" }",
            "overlap",
            "leave out one",
        ),
    ] {
        let (found, message) = case.refused("full", options);
        assert_eq!(found.as_deref(), Some(key), "{options}: {message}");
        assert!(message.contains(says), "{options}: {message}");
    }
    let (key, _) = case.refused(
        "retexo",
        "form = \"distributed\"\ngradients = { codec = \"f16\" }",
    );
    assert_eq!(key.as_deref(), Some("gradients"));
    assert!(
        case.refused("llcg", "gradients = { every = 2 }")
            .1
            .contains("unknown field")
    );
}

#[test]
fn mini_batches_sum_seldom_too_and_every_kind_learns() {
    let batch = BatchSpec {
        size: 10,
        fanouts: vec![4, 4, 4],
    };
    let case = Case {
        batch: Some(batch),
        epochs: 20,
        dropout: 0.0,
        ..Case::default()
    };
    for kind in ["full", "grappa", "distdgl", "retexo"] {
        for gradients in [
            "every = 2",
            "every = 3\naverage = \"models\"",
            "codec = { kind = \"power_sgd\", rank = 2 }\nevery = 2\naverage = \"models\"",
            "codec = { kind = \"top_k\", ratio = 8 }",
        ] {
            let options = with("", gradients);
            let losses = losses(&case.run(kind, &options));
            let (first, last) = (losses[0], losses[losses.len() - 1]);
            assert!(last < first, "{kind} {gradients}: {first} to {last}");
        }
    }
}
