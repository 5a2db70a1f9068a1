//! Grappa against the definition of its gradient, computed by one process that sees everything, and what it sends.

use crate::common::{Case, KINDS, assert_close, losses};
use crate::reference::{Term, degrees, single_device, train};
use crate::variant::{EVERY, PLAIN, Variant, chunks, edges};
use grapevine::graph::BatchSpec;
use grapevine::model::{ModelKind, OptimizerConfig};
use grapevine::net::TrafficKind;

fn case(kind: ModelKind, workers: usize) -> Case {
    Case {
        kind,
        workers,
        layers: 2,
        epochs: 7,
        optimizer: OptimizerConfig::Sgd {
            learning_rate: 0.2,
            weight_decay: 0.0,
            momentum: 0.0,
        },
        ..Case::default()
    }
}

/// Variants that every kind of model trains with.
fn variants() -> impl Iterator<Item = Variant> {
    let weighted = [
        ("none", "none"),
        ("node_ht", "none"),
        ("node_ht", "kappa"),
        ("batch_mean", "none"),
        ("batch_mean", "kappa"),
        ("batch_mean", "lambda"),
    ];
    let schedules = [
        (true, "sweep"),
        (true, "fixed"),
        (false, "sweep"),
        (false, "fixed"),
    ];
    schedules
        .into_iter()
        .flat_map(move |(halo, schedule)| {
            weighted
                .into_iter()
                .enumerate()
                .map(move |(number, (weight, shrinkage))| Variant {
                    halo,
                    schedule,
                    weight,
                    shrinkage,
                    normalise: if number % 2 == 0 && weight != "none" {
                        "mean"
                    } else {
                        "none"
                    },
                    ..PLAIN
                })
        })
        .chain([
            Variant {
                halo: false,
                weight: "node_ht",
                cap: Some(0.4),
                ..PLAIN
            },
            Variant {
                halo: false,
                weight: "node_ht",
                normalise: "mean",
                cap: Some(1.1),
                ..PLAIN
            },
        ])
        .chain(further())
}

/// What is finer than one chunk a worker or coverage alone.
fn further() -> impl Iterator<Item = Variant> {
    let weighted = |halo| {
        [
            ("node_hajek", "none", "none"),
            ("node_hajek", "none", "rho"),
            ("node_ht", "kappa", "rho"),
            ("batch_mean", "none", "rho"),
            ("batch_mean", "james_stein", "mean"),
        ]
        .map(|(weight, shrinkage, normalise)| Variant {
            halo,
            weight,
            shrinkage,
            normalise,
            ..PLAIN
        })
    };
    let gram = Variant {
        // Norms are measured once, of the model that all begin with.
        schedule: "fixed",
        weight: "batch_gram",
        ..PLAIN
    };
    let dealt = [(2, "sweep"), (3, "fixed"), (2, "regroup"), (3, "regroup")];
    let dealt = dealt.into_iter().flat_map(|(each, schedule)| {
        [(true, 0.0), (false, 0.0), (false, 0.4)].map(|(halo, sampling)| Variant {
            each,
            schedule,
            halo,
            sampling,
            weight: "batch_mean",
            normalise: "mean",
            ..PLAIN
        })
    });
    let regrouped = Variant {
        each: 2,
        schedule: "regroup",
        halo: false,
        weight: "node_ht",
        normalise: "rho",
        ..PLAIN
    };
    let swept = |each, halo| Variant {
        each,
        schedule: "sweep",
        halo,
        ..regrouped
    };
    let sampled = |sampling| Variant {
        halo: false,
        sampling,
        weight: "node_ht",
        ..PLAIN
    };
    let authors = |halo| Variant {
        halo,
        weight: "batch_mean",
        shrinkage: "authors",
        hops: Some(1),
        ..PLAIN
    };
    weighted(true)
        .into_iter()
        .chain(weighted(false))
        .chain([authors(true), authors(false)])
        .chain([
            gram,
            Variant {
                halo: false,
                shrinkage: "james_stein",
                normalise: "rho",
                ..gram
            },
        ])
        .chain(dealt)
        .chain([regrouped, swept(2, false), swept(3, true)])
        .chain([sampled(0.5), sampled(1.0)])
}

fn by_edge() -> impl Iterator<Item = Variant> {
    let each = [
        (true, 1, "sweep"),
        (false, 1, "sweep"),
        (true, 2, "sweep"),
        (false, 3, "sweep"),
        (true, 2, "regroup"),
        (false, 2, "regroup"),
    ];
    each.into_iter().map(|(halo, each, schedule)| Variant {
        halo,
        each,
        schedule,
        weight: "edge_ht",
        ..PLAIN
    })
}

/// Trains, compares with the reference, and returns the losses.
fn check(case: &Case, variant: &Variant) -> Vec<f64> {
    let options = variant.options(case.workers);
    let setting = case.setting(Case::strategy("grappa", &options).as_ref());
    let terms: Vec<Vec<Term>> = (0..case.epochs)
        .map(|epoch| variant.terms(&setting, epoch))
        .collect();
    let expected = train(&setting, |epoch| &terms[epoch]);
    let found = losses(&case.run("grappa", &options));
    let what = format!("{:?}\n{options}", case.kind);
    assert_close(&found, &expected.losses, 1e-5, &what);
    found
}

#[test]
fn the_distributed_training_is_that_of_the_weighted_sum_of_parts() {
    let different = |a: &[f64], b: &[f64]| a.iter().zip(b).any(|(x, y)| (x - y).abs() > 1e-4);
    for kind in [ModelKind::Gcn, ModelKind::Sage, ModelKind::Gat] {
        let case = case(kind, 3);
        let seen: Vec<Vec<f64>> = variants().map(|variant| check(&case, &variant)).collect();
        assert!(
            different(&seen[0], &seen[12]),
            "the halo makes a difference"
        );
        assert!(
            different(&seen[0], &seen[6]),
            "the schedule makes a difference"
        );
        assert!(different(&seen[12], &seen[13]), "weights make a difference");
        for sampling in [0.0, 0.5] {
            let of = |degrees| {
                let halo = sampling == 0.0;
                let variant = Variant {
                    halo,
                    sampling,
                    degrees,
                    ..PLAIN
                };
                check(&case, &variant)
            };
            // Of the three kinds only a GCN divides by degrees of what it reads.
            let global = of("global");
            assert_eq!(different(&global, &of("seen")), kind == ModelKind::Gcn);
            // The reference has no attention without a halo row's own.
            if kind != ModelKind::Gat {
                let authors = of("authors");
                assert_eq!(different(&global, &authors), kind == ModelKind::Gcn);
            }
        }
    }
    // A mean with a node's own row, which the authors' halo rows do not have.
    let looped = Case {
        self_loops: Some(true),
        ..case(ModelKind::Sage, 3)
    };
    let [global, authors] =
        ["global", "authors"].map(|degrees| check(&looped, &Variant { degrees, ..PLAIN }));
    assert!(different(&global, &authors));
    for kind in [ModelKind::Gcn, ModelKind::Sage, ModelKind::Gin] {
        // Sums of GIN grow with the weights; a small step keeps them finite.
        let case = Case {
            optimizer: OptimizerConfig::Sgd {
                learning_rate: 0.01,
                weight_decay: 0.0,
                momentum: 0.0,
            },
            ..case(kind, 4)
        };
        let seen: Vec<Vec<f64>> = by_edge().map(|variant| check(&case, &variant)).collect();
        let plain = Variant {
            halo: false,
            ..PLAIN
        };
        assert!(different(&seen[1], &check(&case, &plain)));
    }
}

#[test]
fn expected_coverage_over_several_hops_is_that_of_the_whole_graph() {
    for (halo, layers) in [(true, 3), (false, 3), (false, 2)] {
        let case = Case {
            layers,
            ..case(ModelKind::Sage, 4)
        };
        let variant = Variant {
            halo,
            weight: "node_ht",
            normalise: "rho",
            cap: Some(2.0),
            ..PLAIN
        };
        check(&case, &variant);
    }
}

#[test]
fn coverage_is_counted_over_as_many_hops_as_asked_for() {
    for halo in [true, false] {
        for (weight, normalise) in [
            ("node_ht", "rho"),
            ("node_ht", "none"),
            ("batch_mean", "mean"),
        ] {
            let case = Case {
                layers: 3,
                ..case(ModelKind::Gcn, 4)
            };
            let seen = [1, 2, 3].map(|hops| {
                let variant = Variant {
                    halo,
                    weight,
                    normalise,
                    hops: Some(hops),
                    ..PLAIN
                };
                check(&case, &variant)
            });
            assert!(seen[0] != seen[1] && seen[1] != seen[2], "{weight}");
        }
    }
}

#[test]
fn a_constant_weight_leaves_adam_alone_and_scales_the_step_of_sgd() {
    const QUARTER: f64 = 0.25;
    // Smoothed so much, no weight is below what all of them are capped at.
    let weighted = "weight = \"node_ht\"\nshrinkage = \"kappa\"\nkappa = 1000\nnormalise = \"none\"\ncap = 0.25";
    let trained = |options: &str, optimizer| {
        let case = Case {
            epochs: 20,
            optimizer,
            ..case(ModelKind::Sage, 3)
        };
        let options = format!("repartition_every = 4\nhalo = false\n{options}");
        losses(&case.run("grappa", &options))
    };
    let sgd = |learning_rate| OptimizerConfig::Sgd {
        learning_rate,
        weight_decay: 0.0,
        momentum: 0.9,
    };
    let adam = |epsilon| OptimizerConfig::Adam {
        learning_rate: 0.01,
        weight_decay: 0.0,
        epsilon,
    };
    // Losses are weighted too.
    let unscaled = |optimizer| -> Vec<f64> {
        let losses = trained(weighted, optimizer).into_iter();
        losses.map(|loss| loss / QUARTER).collect()
    };
    let plain = |optimizer| trained("weight = \"none\"", optimizer);
    assert_eq!(unscaled(sgd(0.5)), plain(sgd(0.5 * QUARTER)));
    let apart = |optimizer| {
        let (found, expected) = (unscaled(optimizer), plain(optimizer));
        let both = found.iter().zip(&expected);
        both.map(|(f, e)| (f / e - 1.0).abs()).fold(0.0, f64::max)
    };
    assert!(apart(sgd(0.5)) > 1e-2, "{}", apart(sgd(0.5)));
    assert!(apart(adam(1e-9)) < 1e-5, "{}", apart(adam(1e-9)));
    assert!(apart(adam(1e-1)) > 1e-2, "{}", apart(adam(1e-1)));
}

#[test]
fn one_worker_weighted_by_edges_is_single_device_training_to_the_bit() {
    for kind in [ModelKind::Gcn, ModelKind::Sage, ModelKind::Gin] {
        for halo in [true, false] {
            let case = Case {
                workers: 1,
                optimizer: OptimizerConfig::default(),
                ..case(kind, 1)
            };
            let options = format!("weight = \"edge_ht\"\nhalo = {halo}");
            let setting = case.setting(Case::strategy("grappa", &options).as_ref());
            let expected = single_device(&setting).losses;
            assert_eq!(losses(&case.run("grappa", &options)), expected, "{kind:?}");
        }
    }
}

#[test]
fn fetching_the_whole_halo_in_every_epoch_trains_as_loading_it_once() {
    for each in [1, 2] {
        let case = case(ModelKind::Sage, 4);
        let once = Variant { each, ..PLAIN };
        let anew = Variant {
            halo: false,
            sampling: 1.0,
            ..once
        };
        let run = |variant: &Variant| losses(&case.run("grappa", &variant.options(4)));
        assert_eq!(run(&once), run(&anew));
    }
}

#[test]
fn two_workers_with_a_halo_see_everything_and_train_as_one_device() {
    for kind in KINDS {
        for weight in ["none", "node_ht", "node_hajek", "batch_mean", "batch_gram"] {
            let case = Case {
                layers: 3,
                ..case(kind, 2)
            };
            let options = Variant { weight, ..PLAIN }.options(2);
            let setting = case.setting(Case::strategy("grappa", &options).as_ref());
            let expected = single_device(&setting);
            let outcome = case.run("grappa", &options);
            assert_close(&losses(&outcome), &expected.losses, 1e-5, &options);
            assert!(
                outcome
                    .epochs
                    .iter()
                    .all(|epoch| epoch.coverage == Some(1.0))
            );
        }
    }
}

#[test]
fn between_switches_nothing_but_parameter_gradients_and_what_is_sampled_crosses() {
    for variant in variants().chain(by_edge()) {
        let case = case(ModelKind::Gcn, 4);
        let outcome = case.run("grappa", &variant.options(4));
        for epoch in 0..case.epochs {
            let traffic = outcome.ledger.epoch(epoch).expect("gradients are sent");
            let of = |kind| traffic.payload_of(kind).0;
            let what = format!("epoch {epoch} of {variant:?}");
            let expected = [
                (TrafficKind::ParameterGradient, true),
                (TrafficKind::Repartition, variant.switches(epoch)),
                (TrafficKind::Control, variant.talks(epoch, case.layers)),
                (TrafficKind::Feature, variant.sampling > 0.0),
            ];
            for kind in TrafficKind::ALL {
                let sent = expected.contains(&(kind, true));
                assert_eq!(of(kind) > 0, sent, "{kind} in {what}");
            }
        }
    }
}

#[test]
fn in_mini_batches_the_sum_of_weights_travels_with_the_gradients_where_it_can() {
    let case = Case {
        batch: Some(BatchSpec {
            size: 5,
            fanouts: vec![3; 3],
        }),
        layers: 3,
        ..case(ModelKind::Gcn, 4)
    };
    // Numbers beside the gradients, and among them.
    for (options, numbers, folded) in [
        ("", 0, 1),
        ("weight = \"node_ht\"", 0, 1),
        ("weight = \"batch_gram\"\nschedule = \"regroup\"", 0, 1),
        ("weight = \"node_ht\"\nnormalise = \"rho\"", 0, 0),
        ("weight = \"none\"", 0, 0),
        ("normalise = \"none\"\nshrinkage = \"lambda\"", 0, 0),
        // What follows the mean here depends on it.
        ("shrinkage = \"lambda\"", 1, 0),
        ("cap = 0.5", 1, 0),
        // The one that needs two: signal and noise.
        ("normalise = \"none\"\nshrinkage = \"james_stein\"", 2, 0),
    ] {
        let options = format!("repartition_every = 3\n{options}");
        let setting = case.setting(Case::strategy("grappa", &options).as_ref());
        let outcome = case.run("grappa", &options);
        for epoch in 1..3 {
            let traffic = outcome.ledger.epoch(epoch).expect("gradients are sent");
            let of = |kind| traffic.payload_of(kind).0;
            // A ring of four passes on each number 2 · 3 times.
            let parameters = setting.model.parameters() as u64;
            let steps = setting.dataset.split.train.len().div_ceil(4).div_ceil(5) as u64;
            let gradients = of(TrafficKind::ParameterGradient) / (4 * 2 * 3);
            let steps = steps..=2 * steps; // chunks have about equally many that train
            let steps = steps
                .into_iter()
                .find(|n| n * (parameters + folded) == gradients);
            let steps = steps.unwrap_or_else(|| panic!("{gradients} values: {options}"));
            assert!(steps > 1, "{steps}");
            let control = of(TrafficKind::Control);
            assert_eq!(control, 4 * 2 * 3 * numbers * steps, "{options}");
            for kind in TrafficKind::ALL {
                let may = [TrafficKind::ParameterGradient, TrafficKind::Control];
                assert!(may.contains(&kind) || of(kind) == 0, "{kind}: {options}");
            }
        }
    }
}

#[test]
fn no_weight_is_above_the_cap_even_if_it_was_pulled_towards_one() {
    let case = case(ModelKind::Gcn, 4);
    for shrinkage in ["none", "lambda", "james_stein", "kappa"] {
        for weight in ["batch_mean", "batch_gram"] {
            let options = format!(
                "halo = false\nweight = \"{weight}\"\nshrinkage = \"{shrinkage}\"\ncap = 0.4"
            );
            let outcome = case.run("grappa", &options);
            let weights = outcome
                .epochs
                .iter()
                .map(|epoch| epoch.weight_mean.unwrap());
            let weights: Vec<f64> = weights.collect();
            assert!(
                weights.iter().all(|w| *w > 0.0 && *w <= 0.4),
                "{options}: {weights:?}"
            );
        }
    }
}

#[test]
fn two_workers_with_a_chunk_each_swap_them_once() {
    let case = case(ModelKind::Gcn, 2);
    let outcome = case.run("grappa", "repartition_every = 2");
    let moves = |epoch: usize| {
        let traffic = outcome.ledger.epoch(epoch).expect("gradients are sent");
        traffic.payload_of(TrafficKind::Repartition).0 > 0
    };
    assert!((0..case.epochs).filter(|epoch| moves(*epoch)).eq([0]));
}

#[test]
fn chances_are_refused_where_nothing_is_left_to_chance() {
    let case = case(ModelKind::Gcn, 4);
    for chunking in ["metis", "partition"] {
        for by_chance in ["weight = \"edge_ht\"", "normalise = \"rho\""] {
            let options = format!("chunking = \"{chunking}\"\nschedule = \"fixed\"\n{by_chance}");
            let (key, says) = case.refused("grappa", &options);
            assert_eq!(key.as_deref(), Some("chunking"), "{says}");
        }
    }
}

#[test]
fn what_is_sampled_is_a_share_of_the_boundary_rows_with_features_and_degrees() {
    let case = case(ModelKind::Gcn, 4);
    for (each, schedule, sampling) in [(1, "sweep", 0.5), (2, "regroup", 0.25), (1, "fixed", 1.0)] {
        let variant = Variant {
            each,
            schedule,
            sampling,
            halo: false,
            ..PLAIN
        };
        let options = variant.options(4);
        let setting = case.setting(Case::strategy("grappa", &options).as_ref());
        let width = setting.dataset.features.width();
        let outcome = case.run("grappa", &options);
        for epoch in 0..case.epochs {
            let traffic = outcome.ledger.epoch(epoch).expect("features are sent");
            let bytes = 4 * variant.fetched(&setting, epoch) * (width + 1);
            assert_eq!(traffic.payload_of(TrafficKind::Feature).0, bytes as u64);
        }
    }
}

#[test]
fn a_regrouping_moves_the_chunks_that_are_trained_away_from_home_with_all_their_edges() {
    let case = case(ModelKind::Gcn, 3);
    let variant = Variant {
        schedule: "regroup",
        each: 3,
        halo: false,
        ..PLAIN
    };
    let options = variant.options(3);
    let setting = case.setting(Case::strategy("grappa", &options).as_ref());
    let (graph, chunk) = (&setting.dataset.graph, chunks(&setting));
    let width = setting.dataset.features.width();
    let outcome = case.run("grappa", &options);
    for epoch in [0, 2, 4, 6] {
        let held = variant.held(&setting, epoch);
        let trainer = |v: u32| {
            held.iter()
                .position(|held| held.contains(&chunk[v as usize]))
        };
        let away = |v: &u32| trainer(*v) != Some(chunk[*v as usize] / 3);
        let nodes = (0..graph.nodes() as u32).filter(away).count();
        let heard = edges(graph).filter(|(_, v)| away(v)).count();
        // Degree, end of row, class and features of every node, and every edge into it, 4 bytes
        // each.
        let bytes = 4 * (nodes * (3 + width) + heard) as u64;
        let traffic = outcome.ledger.epoch(epoch).expect("chunks move");
        assert_eq!(traffic.payload_of(TrafficKind::Repartition).0, bytes);
    }
    let groupings: Vec<_> = [0, 2, 4, 6]
        .map(|epoch| variant.held(&setting, epoch))
        .into();
    assert!(groupings.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn options_that_do_not_go_together_are_named() {
    let case = case(ModelKind::Gcn, 4);
    for (options, key, says) in [
        ("chunks = 0", "chunks", "multiple"),
        (
            "schedule = \"regroup\"\nchunks = 4",
            "chunks",
            "twice the workers",
        ),
        (
            "remote_sampling = 1.5",
            "remote_sampling",
            "between 0 and 1",
        ),
        (
            "remote_sampling = 0.5\nhalo = true",
            "remote_sampling",
            "halo = true",
        ),
        (
            "remote_sampling = 0.5\nnormalise = \"rho\"",
            "normalise",
            "remote_sampling",
        ),
        (
            "remote_sampling = 0.5\nweight = \"edge_ht\"",
            "remote_sampling",
            "edge_ht",
        ),
        (
            "weight = \"node_ht\"\nshrinkage = \"james_stein\"",
            "shrinkage",
            "batch weight",
        ),
        (
            "weight = \"none\"\nshrinkage = \"authors\"",
            "shrinkage",
            "coverages",
        ),
        (
            "weight = \"edge_ht\"\nnormalise = \"rho\"",
            "normalise",
            "expectation is 1",
        ),
        ("weight = \"none\"\ncap = 1", "cap", "nodes or batches"),
        ("coverage_hops = 0", "coverage_hops", "at least 1"),
        ("coverage_hops = 3", "coverage_hops", "the model's 2 layers"),
        (
            "schedule = \"fixed\"\nrepartition_every = 5",
            "repartition_every",
            "switches",
        ),
        (
            "weight = \"node_hajek\"\ncoverage_hops = 1",
            "coverage_hops",
            "coverages",
        ),
        ("weight = \"none\"\nkappa = 2", "kappa", "coverages"),
        (
            "shrinkage = \"none\"\nkappa = 2",
            "kappa",
            "shrinkage = \"kappa\"",
        ),
        ("lambda = 0.9", "lambda", "shrinkage = \"lambda\""),
        ("halo = false\nkeep_halo = false", "keep_halo", "a halo"),
        (
            "schedule = \"regroup\"\nkeep_halo = true",
            "keep_halo",
            "sweep",
        ),
        (
            "schedule = \"fixed\"\nkeep_halo = false",
            "keep_halo",
            "sweep",
        ),
        (
            "halo = false\nhalo_degrees = \"seen\"",
            "halo_degrees",
            "a halo",
        ),
        (
            "weight = \"edge_ht\"\nhalo_degrees = \"seen\"",
            "halo_degrees",
            "edge_ht",
        ),
        (
            "weight = \"edge_ht\"\nhalo_degrees = \"authors\"",
            "halo_degrees",
            "edge_ht",
        ),
    ] {
        let (found, message) = case.refused("grappa", options);
        assert_eq!(found.as_deref(), Some(key), "{options}");
        assert!(message.contains(says), "{options}: {message}");
    }
}

#[test]
fn attention_is_not_weighted_by_edges() {
    let case = case(ModelKind::Gat, 2);
    let (key, message) = case.refused("grappa", "weight = \"edge_ht\"");
    assert_eq!(key.as_deref(), Some("weight"));
    assert!(message.contains("attention"), "{message}");
}

#[test]
fn a_switch_moves_one_chunk_to_each_worker_and_with_the_halo_its_surroundings() {
    let case = case(ModelKind::Gcn, 4);
    let without = Variant {
        halo: false,
        ..PLAIN
    };
    let setting = case.setting(Case::strategy("grappa", &without.options(4)).as_ref());
    let graph = &setting.dataset.graph;
    let owner = &setting.partition.assignment;
    let width = setting.dataset.features.width() as u64;
    // Degree, end of row and features of every node once, and every edge inside a chunk, 4 bytes
    // each.
    let internal = edges(graph)
        .filter(|&(u, v)| owner[u as usize] == owner[v as usize])
        .count() as u64;
    let chunks = 4 * (graph.nodes() as u64 * (2 + width) + internal);
    let bare = case.run("grappa", &without.options(4));
    let full = case.run("grappa", &PLAIN.options(4));
    let again = format!("{}\nkeep_halo = false", PLAIN.options(4));
    let again = case.run("grappa", &again);
    assert_eq!(losses(&full), losses(&again));
    for epoch in [0, 2, 4, 6] {
        let of = |outcome: &grapevine::sim::Outcome| {
            let traffic = outcome.ledger.epoch(epoch).unwrap();
            traffic.payload_of(TrafficKind::Repartition).0
        };
        assert_eq!(of(&bare), chunks, "epoch {epoch}");
        // With the halo, chunks come with all edges into them, and with the features and degrees of
        // sources that are not held: of those into a worker's own chunk once, of those into the
        // other only where they are not there already; or, if nothing is kept, of both each time.
        let surroundings = |kept: bool| -> u64 {
            let of = |held: &Vec<usize>| {
                let reads = |u: u32, chunk: usize| {
                    let out = graph.neighbours(u as usize).iter();
                    out.into_iter()
                        .any(|&v| owner[v as usize] as usize == chunk)
                };
                let comes = |u: &u32| {
                    let is_held = held.contains(&(owner[*u as usize] as usize));
                    let (own, other) = (reads(*u, held[0]), reads(*u, held[1]));
                    !is_held
                        && if epoch == 0 || !kept {
                            own || other
                        } else {
                            other && !own
                        }
                };
                (0..graph.nodes() as u32).filter(comes).count() as u64
            };
            PLAIN.held(&setting, epoch).iter().map(of).sum()
        };
        let nodes = graph.nodes() as u64 * (2 + width) + edges(graph).count() as u64;
        for (outcome, kept) in [(&full, true), (&again, false)] {
            let rows = surroundings(kept) * (1 + width);
            assert!(rows > 0);
            assert_eq!(of(outcome), 4 * (nodes + rows), "epoch {epoch}");
        }
    }
}

#[test]
fn one_cycle_pairs_every_chunk_with_every_other_once() {
    let workers = 4;
    let options = Variant {
        halo: false,
        ..PLAIN
    }
    .options(workers);
    let outcome = case(ModelKind::Gcn, workers).run("grappa", &options);
    let mut pairs: Vec<(u32, u32)> = outcome
        .ledger
        .iter()
        .take(EVERY * (workers - 1))
        .flat_map(|(_, traffic)| traffic.iter())
        .filter(|(lane, _, _)| lane.kind == TrafficKind::Repartition)
        .map(|(lane, _, _)| (lane.from, lane.to))
        .collect();
    pairs.sort_unstable();
    let expected: Vec<(u32, u32)> = (0..4)
        .flat_map(|from| (0..4).map(move |to| (from, to)))
        .filter(|(from, to)| from != to)
        .collect();
    assert_eq!(pairs, expected);
}

#[test]
fn isolated_nodes_give_finite_losses_and_see_all_there_is() {
    let case = Case {
        data: "synthetic = { kind = \"sbm\", nodes = 60, classes = 3, features = 6, degree_within = 0.6, degree_between = 0.3 }\nsplit = { train = 0.5, val = 0.2 }",
        ..case(ModelKind::Sage, 3)
    };
    let setting = case.setting(Case::strategy("grappa", "").as_ref());
    assert!(
        degrees(&setting.dataset.graph).contains(&0),
        "the graph has isolated nodes"
    );
    for variant in variants() {
        let outcome = case.run("grappa", &variant.options(3));
        for epoch in &outcome.epochs {
            assert!(epoch.loss.is_finite());
            assert!((0.0..=1.0).contains(&epoch.coverage.unwrap()));
        }
    }

    let alone = Case {
        data: "synthetic = { kind = \"sbm\", nodes = 60, classes = 3, features = 6, degree_within = 0.0, degree_between = 0.0 }\nsplit = { train = 0.5, val = 0.2 }",
        ..case
    };
    for variant in variants().filter(|variant| !variant.halo && variant.cap.is_none()) {
        let outcome = alone.run("grappa", &variant.options(3));
        // The authors' code counts a node's own loop, one of two there.
        let weight = if variant.shrinkage == "authors" {
            0.5
        } else {
            1.0
        };
        for epoch in &outcome.epochs {
            assert_eq!(
                (epoch.coverage, epoch.weight_mean),
                (Some(1.0), Some(weight)),
                "{variant:?}"
            );
        }
    }
}
