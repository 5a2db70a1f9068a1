//! `distdgl`: neighbourhoods sampled over the whole graph, and input features fetched.

use std::collections::BTreeSet;

use crate::command::{EXPERIMENT, folder_with, grapevine};
use crate::common::{CORA, Case, KINDS, assert_close, losses};
use grapevine::graph::{BatchSpec, Sampler, shuffled};
use grapevine::model::{ModelKind, OptimizerConfig};
use grapevine::net::TrafficKind;
use grapevine::sim::Outcome;

fn case(kind: ModelKind, workers: usize, size: usize, fanouts: &[usize]) -> Case {
    Case {
        kind,
        workers,
        layers: fanouts.len(),
        batch: Some(BatchSpec {
            size,
            fanouts: fanouts.to_vec(),
        }),
        // Small steps, so that rounding does not send the trajectories apart.
        optimizer: OptimizerConfig::Sgd {
            learning_rate: 0.01,
            weight_decay: 0.0,
            momentum: 0.5,
        },
        ..Case::default()
    }
}

#[test]
fn one_batch_of_all_training_nodes_with_all_neighbours_is_full_batch_training() {
    for kind in KINDS {
        for workers in [1, 4] {
            let step = case(kind, workers, 1000, &[1000; 3]);
            let once = Case {
                batch: None,
                ..step.clone()
            };
            let found = losses(&step.run("distdgl", ""));
            let what = format!("{kind:?}, {workers} workers");
            assert_close(&found, &losses(&once.run("full", "")), 1e-5, &what);
        }
    }
    let cora = Case {
        data: CORA,
        ..case(ModelKind::Gcn, 3, 1000, &[1000; 2])
    };
    let once = Case {
        batch: None,
        ..cora.clone()
    };
    let (found, expected) = (cora.run("distdgl", ""), once.run("full", ""));
    assert_close(&losses(&found), &losses(&expected), 1e-5, "sparse features");
}

#[test]
fn it_trains_as_workers_do_that_sample_together() {
    for kind in KINDS {
        // With 40 workers some have no training node, or none left in the last step.
        let sizes: [(usize, usize, &[usize]); 4] = [
            (1, 7, &[2, 3, 1]),
            (4, 6, &[3, 2, 2]),
            (40, 2, &[1, 2, 2]),
            (4, 6, &[2]),
        ];
        for (workers, size, fanouts) in sizes {
            let case = case(kind, workers, size, fanouts);
            let (found, expected) = (case.run("distdgl", ""), case.run("full", ""));
            let what = format!("{kind:?}, {workers} workers, {fanouts:?}");
            assert_close(&losses(&found), &losses(&expected), 1e-5, &what);
        }
    }
}

#[test]
fn remote_inputs_cost_their_features_and_their_numbers_and_remote_draws_twelve_bytes_and_more() {
    let case = case(ModelKind::Sage, 4, 6, &[3, 2, 2]);
    let outcome = case.run("distdgl", "");
    let setting = case.setting(Case::strategy("distdgl", "").as_ref());
    let (graph, train) = (&setting.dataset.graph, &setting.dataset.split.train);
    let owner = |v: u32| setting.partition.assignment[v as usize] as usize;
    let (steps, width) = (setting.steps(), setting.model.features() as u64);
    assert!(steps.count() > 1);
    for epoch in 0..case.epochs {
        let (mut inputs, mut asked, mut drawn) = (0, 0, 0);
        for (step, worker) in (0..steps.count()).flat_map(|s| (0..4).map(move |w| (s, w))) {
            let sampler = Sampler::new(setting.seed, epoch, step, &[3, 2, 2]);
            let own = train.iter().copied().filter(|&v| owner(v) == worker);
            let order = shuffled(setting.seed, epoch, worker, &own.collect::<Vec<u32>>());
            let mut nodes: BTreeSet<u32> =
                order[steps.range(worker, step)].iter().copied().collect();
            for hop in 0..3 {
                for v in nodes.clone() {
                    let found = sampler.draw(hop, v, graph.neighbours(v as usize), |u| u);
                    if owner(v) != worker {
                        asked += 1;
                        drawn += found.len() as u64;
                    }
                    nodes.extend(found);
                }
            }
            inputs += nodes.iter().filter(|&&v| owner(v) != worker).count() as u64;
        }
        let traffic = outcome.ledger.epoch(epoch).expect("there was one");
        let bytes = |kind| traffic.payload_of(kind).0;
        assert!(inputs > 0 && asked > 0);
        assert_eq!(bytes(TrafficKind::Feature), 4 * width * inputs);
        assert_eq!(bytes(TrafficKind::Sample), 4 * (inputs + asked) + 8 * drawn);
        assert_eq!(
            bytes(TrafficKind::ParameterGradient),
            (steps.count() * 2 * 3 * 4 * outcome.parameters) as u64
        );
        let kinds: BTreeSet<TrafficKind> = traffic.iter().map(|(lane, ..)| lane.kind).collect();
        assert_eq!(kinds.len(), 3, "nothing else travels: {kinds:?}");
    }
}

/// Remote inputs that are fetched in each epoch where every worker has room for so many rows, of the
/// nodes of others with most neighbours.
fn fetched(case: &Case, rooms: &[usize]) -> Vec<u64> {
    let setting = case.setting(Case::strategy("distdgl", "").as_ref());
    let (graph, train) = (&setting.dataset.graph, &setting.dataset.split.train);
    let fanouts = &setting.batches.as_ref().expect("there are").spec.fanouts;
    let owner = |v: u32| setting.partition.assignment[v as usize] as usize;
    let steps = setting.steps();
    let room = |worker: usize| -> BTreeSet<u32> {
        let mut others: Vec<u32> = (0..graph.nodes() as u32).collect();
        others.retain(|&v| owner(v) != worker);
        others.sort_by_key(|&v| (usize::MAX - graph.degree(v as usize), v));
        others.into_iter().take(rooms[worker]).collect()
    };
    let rooms: Vec<BTreeSet<u32>> = (0..case.workers).map(room).collect();
    let mut kept = vec![BTreeSet::new(); case.workers];
    let mut all = Vec::new();
    for epoch in 0..case.epochs {
        let mut fetched = 0;
        for (step, worker) in
            (0..steps.count()).flat_map(|s| (0..case.workers).map(move |w| (s, w)))
        {
            let sampler = Sampler::new(setting.seed, epoch, step, fanouts);
            let own = train.iter().copied().filter(|&v| owner(v) == worker);
            let order = shuffled(setting.seed, epoch, worker, &own.collect::<Vec<u32>>());
            let mut nodes: BTreeSet<u32> =
                order[steps.range(worker, step)].iter().copied().collect();
            for hop in 0..fanouts.len() {
                for v in nodes.clone() {
                    nodes.extend(sampler.draw(hop, v, graph.neighbours(v as usize), |u| u));
                }
            }
            for v in nodes.into_iter().filter(|&v| owner(v) != worker) {
                fetched += u64::from(!kept[worker].contains(&v));
                if rooms[worker].contains(&v) {
                    kept[worker].insert(v);
                }
            }
        }
        all.push(fetched);
    }
    all
}

fn feature_rows(outcome: &Outcome, width: usize) -> Vec<u64> {
    let rows = |(_, traffic): (usize, &grapevine::net::Traffic)| {
        traffic.payload_of(TrafficKind::Feature).0 / (4 * width as u64)
    };
    outcome.ledger.iter().map(rows).collect()
}

#[test]
fn a_cache_of_so_many_bytes_keeps_rows_of_the_largest_degree_and_changes_no_loss() {
    let case = Case {
        epochs: 5,
        ..case(ModelKind::Gcn, 3, 9, &[3, 2])
    };
    // Ten features: 40 bytes a row, and what is left over holds none.
    let plain = case.run("distdgl", "");
    let sizes = [
        ("0", 0),
        ("39", 0),
        ("40", 1),
        ("\"1.019kB\"", 25),
        ("\"1GB\"", 120),
    ];
    for (size, rows) in sizes {
        for prefetch in [true, false] {
            let options = format!("cache = {size}\nprefetch = {prefetch}");
            let found = case.run("distdgl", &options);
            assert_eq!(losses(&found), losses(&plain), "{options}");
            assert_eq!(
                feature_rows(&found, 10),
                fetched(&case, &[rows; 3]),
                "{options}"
            );
        }
    }
}

#[test]
fn a_cache_as_large_as_grappas_halo_has_room_for_what_its_worker_holds_beside_its_own() {
    let case = Case {
        // Few neighbours, so that a worker does not hold nearly everything.
        data: "synthetic = { kind = \"sbm\", nodes = 120, classes = 3, features = 10, degree_within = 1.5, degree_between = 0.5 }\nsplit = { train = 0.5, val = 0.2 }",
        epochs: 4,
        ..case(ModelKind::Sage, 4, 9, &[3, 2])
    };
    // By the boundary plan of the chunks that Grappa trains on.
    let chunks = case.setting(Case::strategy("grappa", "").as_ref());
    let parts = &chunks.boundary.parts;
    let rooms = (0..4).map(|worker| {
        let (own, variable) = (&parts[worker], &parts[(worker + 1) % 4]);
        let mut held: BTreeSet<u32> = [&own.halo[..], &variable.halo, &variable.owned]
            .concat()
            .into_iter()
            .collect();
        own.owned.iter().for_each(|node| {
            held.remove(node);
        });
        held.len()
    });
    let rooms: Vec<usize> = rooms.collect();
    assert!(
        rooms.iter().all(|&rows| rows > 30 && rows < 85),
        "{rooms:?}"
    );
    let found = case.run("distdgl", "cache = \"grappa-halo\"");
    assert_eq!(feature_rows(&found, 10), fetched(&case, &rooms));
}

#[test]
fn prefetching_sends_the_same_and_hides_the_time_of_it() {
    let full = ModelKind::Sage;
    for (workers, fanouts) in [(4, &[3, 2, 2][..]), (2, &[4]), (40, &[2, 2])] {
        let case = Case {
            network: "wan", // where waiting is all
            epochs: 6,
            ..case(full, workers, 6, fanouts)
        };
        let plain = case.run("distdgl", "prefetch = false");
        let ahead = case.run("distdgl", "");
        assert_eq!(losses(&ahead), losses(&plain));
        assert_eq!(
            ahead.ledger, plain.ledger,
            "the same messages in the same epochs"
        );
        let time = |outcome: &Outcome| outcome.epochs.last().expect("an epoch").simulated.0;
        // Without it a step waits for two messages a remote hop and two for features, one after
        // another, and for a sum; with it for the sum alone, in whose time they all travel. The
        // first batch has none to hide behind.
        let (hops, steps) = (
            fanouts.len() as f64,
            case.setting(Case::strategy("distdgl", "").as_ref())
                .steps()
                .count(),
        );
        let sums = 2.0 * (workers - 1) as f64;
        let filling = 2.0 * hops / (6.0 * steps as f64);
        let expected = (sums + 2.0 * hops) / (sums + filling);
        let found = time(&plain) / time(&ahead);
        assert!(
            (found / expected - 1.0).abs() < 0.1,
            "{workers} workers: {found} times, not {expected}"
        );
    }
}

#[test]
fn rows_divided_by_their_block_change_a_gcn_and_no_bytes() {
    for kind in [ModelKind::Gcn, ModelKind::Sage] {
        let case = case(kind, 4, 6, &[2, 2]);
        let global = case.run("distdgl", "");
        let block = case.run("distdgl", "degrees = \"block\"");
        assert_eq!(block.ledger, global.ledger, "{kind:?}");
        if kind == ModelKind::Sage {
            let what = "a mean over those drawn is one";
            assert_close(&losses(&block), &losses(&global), 1e-5, what);
        } else {
            assert_ne!(losses(&block), losses(&global));
        }
    }
    let (key, said) = case(ModelKind::Gcn, 4, 6, &[2]).refused("distdgl", "degrees = \"seen\"");
    assert!(
        said.contains("block") && said.contains("global"),
        "{key:?}: {said}"
    );
}

#[test]
fn it_does_not_run_ahead_of_what_is_measured() {
    let case = case(ModelKind::Gcn, 4, 5, &[2, 2]);
    let codec = "codec = \"quantise\"\nratio = 8\nmeasure_error = true";
    let (key, said) = case.refused("distdgl", &format!("{codec}\nprefetch = true"));
    assert_eq!(key.as_deref(), Some("prefetch"), "{said}");
    let (silent, stated) = (
        case.run("distdgl", codec),
        case.run("distdgl", &format!("{codec}\nprefetch = false")),
    );
    assert_eq!(silent.times, stated.times);
}

#[test]
fn without_mini_batches_it_is_refused() {
    let folder = folder_with(&format!("{EXPERIMENT}\n[[strategy]]\nkind = \"distdgl\"\n"));
    for command in ["run", "project"] {
        let ran = grapevine(folder.path(), &[command, "x.toml"]).expect(2);
        for said in ["training.batch", "distdgl", "x.toml"] {
            assert!(ran.stderr.contains(said), "{}", ran.stderr);
        }
    }
    let fixed =
        "with = { \"training.batch\" = { size = 50, fanouts = [4, 3] } }\ncache = \"50kB\"\n";
    let folder = folder_with(&format!(
        "{EXPERIMENT}\n[[strategy]]\nkind = \"distdgl\"\n{fixed}"
    ));
    grapevine(folder.path(), &["run", "x.toml", "--quiet", "--out", "out"]).expect(0);
    grapevine(folder.path(), &["verify", "out"]).expect(0);
    grapevine(folder.path(), &["project", "x.toml"]).expect(0);
    let ran = grapevine(
        folder.path(),
        &["run", "x.toml", "--set", "strategy.6.cache=1.5"],
    );
    let ran = ran.expect(2);
    assert!(ran.stderr.contains("`cache`"), "{}", ran.stderr);
}

#[test]
fn a_cache_that_is_no_size_is_refused() {
    for options in [
        "cache = -1",
        "cache = 0.3",
        "cache = \"half\"",
        "cache = nan",
    ] {
        let case = case(ModelKind::Gcn, 4, 5, &[2, 2]);
        let (key, said) = case.refused("distdgl", options);
        assert_eq!(key.as_deref(), Some("cache"), "{options}: {said}");
        assert!(said.contains("64MB"), "{said}");
    }
}

/// Where there is nobody to ask, a rival must not pay for asking.
#[test]
fn on_one_worker_it_takes_the_time_of_workers_that_sample_for_themselves() {
    let case = Case {
        data: CORA,
        profile: "t4", // on which starting a piece of work costs most
        ..case(ModelKind::Sage, 1, 200, &[10, 5])
    };
    let time = |strategy: &str| {
        let outcome = case.run(strategy, "");
        outcome.epochs.last().expect("an epoch").simulated.0
    };
    let alone = time("grappa").min(time("full"));
    let found = time("distdgl");
    assert!(found <= 1.2 * alone, "{found} over {alone}");
}

/// Owners answer all who ask them in one piece of work, of which a GPU pays the start once.
#[test]
fn its_pieces_of_work_do_not_grow_with_those_who_ask() {
    let computing = |workers: usize| {
        let case = Case {
            profile: "t4", // on which starting is all that this little work costs
            ..case(ModelKind::Sage, workers, 1000, &[4; 3])
        };
        let outcome = case.run("distdgl", "");
        let times = outcome.times.iter().map(|times| times.compute.0);
        times.fold(0.0, f64::max)
    };
    let (few, many) = (computing(4), computing(12));
    assert!(many <= 1.1 * few, "{many} over {few}");
}

#[test]
fn mini_batches_made_beside_the_device_take_none_of_its_time() {
    let told = |timing: &str| -> Vec<(String, [f64; 4])> {
        let text = format!(
            "name = \"beside\"\nseeds = [0]\n\
            dataset = {{ synthetic = {{ kind = \"rmat\", scale = 9, edge_factor = 8, classes = 4, features = 16 }} }}\n\
            model = {{ kind = \"sage\", layers = 2, hidden = 8 }}\n\
            training = {{ epochs = 3, batch = {{ size = 20, fanouts = [5, 5] }} }}\n\
            partition = {{ method = \"random\", workers = 4 }}\nnetwork = {{ preset = \"ethernet-10g\" }}\n\
            compute = {{ timing = {{ profile = \"t4\"{timing} }} }}\n\
            strategy = [{{ kind = \"distdgl\" }}, {{ kind = \"distdgl\", prefetch = false, label = \"plain\" }}, \
            {{ kind = \"grappa\", repartition_every = 2 }}, {{ kind = \"full\" }}, {{ kind = \"isolated\" }}, {{ kind = \"retexo\" }}, \
            {{ kind = \"retexo\", form = \"distributed\", label = \"clients\" }}]\n"
        );
        let folder = folder_with(&text);
        let ran = grapevine(folder.path(), &["project", "x.toml", "--json"]).expect(0);
        let cells: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
        grapevine(folder.path(), &["run", "x.toml", "--out", "out", "--quiet"]).expect(0);
        let read =
            |name| std::fs::read_to_string(folder.path().join("out").join(name)).expect(name);
        let said = read("report.html").contains("drawn and gathered beside it");
        assert_eq!(said, !timing.is_empty(), "the page");
        let runs = read("runs.csv");
        let mut rows = runs.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let header = rows.next().expect("a header");
        let column = |name| header.iter().position(|known| *known == name);
        let time = column("simulated_seconds").expect("a column");
        let of_cell = |(cell, row): (&serde_json::Value, Vec<&str>)| {
            let of = |key: &str| cell[key].as_f64().expect(key);
            let trained = row[time].parse().expect("a number");
            let name = cell["cell"].as_str().expect("a name").to_owned();
            let keys = ["compute_seconds", "payload_bytes", "simulated_seconds"].map(of);
            (name, [keys[0], keys[1], keys[2], trained])
        };
        let cells = cells.as_array().expect("a list").iter();
        cells.zip(rows).map(of_cell).collect()
    };
    let (device, beside) = (told(""), told(", sampling = false"));
    assert_eq!(device.len(), 7, "{device:?}");
    for ((name, on), (same, off)) in device.iter().zip(&beside) {
        assert_eq!(name, same);
        let [computing, bytes, time, trained] = *on;
        let [less, as_many, sooner, trained_so] = *off;
        assert!(less < 0.99 * computing, "{name}: {less} of {computing}");
        assert!(sooner < time, "{name}: {sooner} of {time}");
        assert!((bytes - as_many).abs() < 0.5, "{name}");
        for (planned, trained) in [(time, trained), (sooner, trained_so)] {
            assert!(
                (planned / trained - 1.0).abs() < 1e-9,
                "{name}: {planned} {trained}"
            );
        }
    }
}
