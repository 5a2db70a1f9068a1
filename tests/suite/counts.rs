//! Plans from counts alone: the same as those from the graph, where both can be made.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::command::{folder_with, grapevine};
use crate::common::Case;
use grapevine::graph::{BoundaryPlan, CountSpec, Csr, Dataset, Features, Part, Partition, Split};
use grapevine::model::{ModelKind, NormKind};
use grapevine::net::Traffic;
use grapevine::sim::{Course, Played, Setting, WorkerTimes, play, play_equals};
use grapevine::strategies::Strategy;

/// The setting without its graph: the counts stay, and the width of the features.
fn counts_alone(setting: &Setting) -> Arc<Setting> {
    let data = &setting.dataset;
    let workers = setting.workers();
    Arc::new(Setting {
        dataset: Arc::new(Dataset {
            name: data.name.clone(),
            graph: Arc::new(Csr::undirected(0, std::iter::empty())),
            features: Arc::new(Features::Dense {
                width: data.features.width(),
                values: Vec::new(),
            }),
            labels: Vec::new().into(),
            classes: data.classes,
            metric: data.metric,
            split: Split::default(),
            reading: Arc::default(),
        }),
        partition: Arc::new(Partition {
            parts: workers,
            assignment: Vec::new(),
        }),
        boundary: Arc::new(BoundaryPlan {
            parts: (0..workers).map(|_| Part::default()).collect(),
            nodes: setting.counts.nodes,
            edges: setting.counts.edges,
        }),
        ..setting.clone()
    })
}

fn planned(strategy: &dyn Strategy, setting: &Arc<Setting>) -> (Traffic, Vec<WorkerTimes>) {
    let training = strategy.fit(setting).expect("it fits");
    let mut planner = training.planner();
    let played = play(
        &setting.cluster(),
        &setting.timing,
        planner.as_mut(),
        Course::whole(training.epochs()),
        &BTreeMap::new(),
        |_| (),
    );
    let played = played.expect("it can be played");
    (played.ledger.traffic(), played.times)
}

#[test]
fn what_plans_from_counts_plans_what_it_would_from_the_graph() {
    let known = [
        ("full", ""),
        ("full", "cache_features = false\noverlap = true"),
        ("isolated", ""),
        ("fixed", "ratio = 4\ncodec = \"top_k\""),
        ("varco", ""),
        ("pipe", ""),
        ("pipe", "cache_features = false\noverlap = true"),
        ("sylvie", "fresh_every = 2"),
        ("ecgraph", "period = 2"),
        ("cagnet", ""),
        ("sancus", "bound = 2"),
        ("adaqp", "bits = 4"),
        ("adaqp", "bits = \"random\"\ncache_features = true"),
        ("retexo", "rounds_per_layer = 2"),
        ("train", ""),
        ("train", "late = true\nexchange = \"input\""),
        ("llcg", "local_steps = 2\nserver_steps = 2"),
        ("fedavg", "local_steps = 2\nabsent = 0.3"),
        ("fedgcn", "hops = 1"),
        ("fedgcn", "hops = 2"),
    ];
    for kind in [ModelKind::Sage, ModelKind::Gcn, ModelKind::Gat] {
        for (name, options) in known {
            // Its sums are those with which a gcn begins.
            if name == "fedgcn" && kind != ModelKind::Gcn {
                continue;
            }
            let case = Case {
                kind,
                norm: NormKind::Layer,
                epochs: 4,
                ..Case::default()
            };
            let strategy = Case::strategy(name, options);
            assert!(strategy.plans_from(false).counts, "{name} {options}");
            let setting = case.setting(strategy.as_ref());
            let from_graph = planned(strategy.as_ref(), &setting);
            let from_counts = planned(strategy.as_ref(), &counts_alone(&setting));
            assert!(from_graph == from_counts, "{name} {options} {kind:?}");
        }
    }
}

/// A graph in numbers that are large enough for all parts to be alike.
fn large(setting: &Setting) -> Arc<Setting> {
    let spec: CountSpec =
        toml::from_str("rmat = { scale = 21, edge_factor = 16 }").expect("counts");
    let counted = spec.read(Path::new("")).expect("a graph");
    let width = setting.model.features();
    let counts = counted
        .graph
        .counts(setting.workers(), counted.training, width);
    Arc::new(Setting {
        counts: Arc::new(counts),
        ..counts_alone(setting).as_ref().clone()
    })
}

/// Four machines of four, with two NICs each.
const MACHINES: &str = "all_reduce = \"hierarchical\"\nmachine = { gpus = 4, nics = 2, nic = { bandwidth = \"500Mbps\", latency = \"5us\" } }";

#[test]
fn one_of_equal_parts_takes_the_time_of_all_and_stands_for_their_bytes() {
    for (name, options) in [
        ("full", ""),
        ("full", "cache_features = false\noverlap = true"),
        ("fixed", "ratio = 4"),
        ("pipe", "overlap = true"),
        ("sylvie", "fresh_every = 2"),
        ("ecgraph", "period = 2"),
        ("cagnet", ""),
        ("sancus", ""),
        ("adaqp", "bits = 4"),
        ("retexo", "rounds_per_layer = 2"),
        ("isolated", ""),
    ] {
        for (workers, wiring) in [(2, ""), (16, ""), (16, MACHINES)] {
            let case = Case {
                wiring,
                kind: ModelKind::Sage,
                workers,
                // Widths that give parameters in sixteenths.
                data: "synthetic = { kind = \"sbm\", nodes = 120, classes = 16, features = 16, degree_within = 4.0, degree_between = 2.0 }\nsplit = { train = 0.5, val = 0.2 }",
                hidden: 16,
                epochs: 2,
                ..Case::default()
            };
            let strategy = Case::strategy(name, options);
            let setting = large(&case.setting(strategy.as_ref()));
            let (traffic, times) = planned(strategy.as_ref(), &setting);
            let training = strategy.fit(&setting).expect("it fits");
            let course = Course::whole(training.epochs());
            let (cluster, mut planner) = (setting.cluster(), training.planner());
            let one = play_equals(&cluster, &setting.timing, planner.as_mut(), course, |_| ());
            let one = one.expect("it can be played");
            let Played {
                times: equal,
                ledger,
                ..
            } = one.expect("all parts are alike");
            let framing = &cluster.framing;
            assert_eq!(
                traffic.total(framing),
                ledger.total(framing),
                "{name} {options}"
            );
            let last = |times: &[WorkerTimes]| {
                let clocks = times.iter().map(|times| times.clock.0);
                clocks.fold(0.0, f64::max)
            };
            let (all, one) = (last(&times), last(&equal));
            assert!(
                (all - one).abs() <= 1e-9 * all,
                "{name} {options}: {all} {one}"
            );
        }
    }
}

#[test]
fn strategies_that_read_the_graph_say_that_they_do() {
    for (name, options) in [
        ("cluster", ""),
        ("distgnn", ""),
        ("retexo", "form = \"distributed\""),
        ("adaqp", ""),
        ("train", "repartition_every = 2"),
    ] {
        assert!(
            !Case::strategy(name, options).plans_from(false).counts,
            "{name} {options}"
        );
    }
}

const FILE: &str = "name = \"large\"
seeds = [0]
[dataset]
counts = { rmat = { scale = 36, edge_factor = 16 } }
[model]
kind = \"sage\"
layers = 3
hidden = 128
[training]
epochs = 2
[partition]
method = \"random\"
workers = 16
[network]
preset = \"ethernet-10g\"
[compute]
timing = { profile = \"a100\" }
[[strategy]]
kind = \"full\"
[[strategy]]
kind = \"retexo\"
";

/// What a command says of such a file: its code, and both its streams.
fn program(command: &str, text: &str) -> (Option<i32>, String, String) {
    let folder = folder_with(text);
    told(folder.path(), &[command, "x.toml", "--json"])
}

/// What a command that ends well answers about such a file.
fn answer(command: &str, text: &str) -> serde_json::Value {
    let (code, out, error) = program(command, text);
    assert_eq!(code, Some(0), "{error}");
    serde_json::from_str(&out).expect("JSON")
}

fn told(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let ran = grapevine(folder, &[arguments, &["--quiet"]].concat());
    (Some(ran.code), ran.stdout, ran.stderr)
}

#[test]
fn a_trillion_edges_are_projected() {
    let cells = answer("project", FILE);
    let of = |cell: usize, key: &str| cells[cell][key].as_f64().expect("a number");
    assert!(
        cells[0]["assumed"]
            .as_str()
            .expect("a note")
            .contains("equal random parts")
    );
    // Two epochs: features once; each time 128 columns before the second layer and 16 after the
    // product of the third.
    let feature = cells[0]["bytes_by_kind"]["feature"]
        .as_f64()
        .expect("bytes");
    let activation = cells[0]["bytes_by_kind"]["activation"]
        .as_f64()
        .expect("bytes");
    assert_eq!(activation, 2.0 * (128.0 + 16.0) / 128.0 * feature);
    assert!(of(0, "simulated_seconds") > of(1, "simulated_seconds"));
}

/// Sixteen workers on 2^scale nodes, drawn or in numbers.
fn sampled(scale: u32, drawn: bool, batch: &str) -> String {
    let data = if drawn {
        format!(
            "synthetic = {{ kind = \"rmat\", scale = {scale}, edge_factor = 16, classes = 16, features = 128 }}\nsplit = {{ train = 0.1, val = 0.01 }}"
        )
    } else {
        format!("counts = {{ rmat = {{ scale = {scale}, edge_factor = 16 }} }}")
    };
    let counts = "counts = { rmat = { scale = 36, edge_factor = 16 } }";
    let strategies = if batch.is_empty() {
        "kind = \"bns\"\nshare = 0.5\ncache_features = false\n[[strategy]]\nkind = \"grappa\"\n"
    } else {
        "kind = \"distdgl\"\nlabel = \"plain\"\nprefetch = false\n[[strategy]]\nkind = \"distdgl\"\n\
         [[strategy]]\nkind = \"distdgl\"\nlabel = \"cached\"\ncache = \"grappa-halo\"\n\
         [[strategy]]\nkind = \"grappa\"\n[[strategy]]\nkind = \"grappa\"\nlabel = \"chunks\"\nchunks = 32\nrepartition_every = 1\n\
         [[strategy]]\nkind = \"grappa\"\nlabel = \"again\"\nrepartition_every = 1\nkeep_halo = false\n\
         [[strategy]]\nkind = \"full\"\n[[strategy]]\nkind = \"full\"\nlabel = \"resent\"\ncache_features = false\n\
         [[strategy]]\nkind = \"fixed\"\nratio = 4\n[[strategy]]\nkind = \"isolated\"\n[[strategy]]\nkind = \"adaqp\"\nbits = 4\n\
         [[strategy]]\nkind = \"retexo\"\n"
    };
    let file = FILE
        .replace(counts, &data)
        .replace("epochs = 2", &format!("epochs = 2\n{batch}"));
    let first = file.find("[[strategy]]").expect("a strategy");
    format!("{}[[strategy]]\n{strategies}", &file[..first])
}

#[test]
fn what_is_expected_of_samples_and_chunks_is_what_is_drawn_and_cut() {
    const BATCH: &str = "batch = { size = 1000, fanouts = [15, 10, 5] }";
    for (scale, batch) in [(11, BATCH), (13, BATCH), (11, ""), (13, "")] {
        let cells = |drawn: bool| answer("project", &sampled(scale, drawn, batch));
        let (drawn, expected) = (cells(true), cells(false));
        let pairs = drawn.as_array().expect("cells").iter();
        for (drawn, expected) in pairs.zip(expected.as_array().expect("cells")) {
            let cell = drawn["cell"].as_str().expect("a name");
            let of = |cells: &serde_json::Value, key: &str| cells[key].as_f64().expect("a number");
            for (kind, bytes) in drawn["bytes_by_kind"].as_object().expect("bytes") {
                let found = of(&expected["bytes_by_kind"], kind);
                let ratio = found / bytes.as_f64().expect("bytes");
                let most = if cell == "plain" && kind == "feature" {
                    0.03
                } else {
                    0.05
                };
                assert!((ratio - 1.0).abs() < most, "{cell} {scale} {kind}: {ratio}");
            }
            // A cut graph has links that carry more than others, and ends when these do.
            let ratio = of(expected, "simulated_seconds") / of(drawn, "simulated_seconds");
            assert!((0.9..1.02).contains(&ratio), "{cell} {scale}: {ratio}");
            let ratio = of(expected, "compute_seconds") / of(drawn, "compute_seconds");
            assert!((ratio - 1.0).abs() < 0.06, "{cell} {scale}: {ratio}");
        }
    }
}

#[test]
fn features_that_are_kept_are_those_that_come_step_after_step() {
    for (size, epochs) in [(50, 1), (50, 4), (10, 4)] {
        let batch = format!("batch = {{ size = {size}, fanouts = [15, 10, 5] }}");
        let bytes = |drawn: bool| {
            let file =
                sampled(13, drawn, &batch).replace("epochs = 2", &format!("epochs = {epochs}"));
            let cells = answer("project", &file);
            let mut cells = cells.as_array().expect("cells").iter();
            let full = cells.find(|cell| cell["cell"] == "full").expect("there");
            full["bytes_by_kind"]["feature"].as_f64().expect("bytes")
        };
        let ratio = bytes(false) / bytes(true);
        assert!((ratio - 1.0).abs() < 0.05, "{size}, {epochs}: {ratio}");
    }
}

#[test]
fn a_cache_of_two_workers_has_room_for_all_that_is_not_their_own() {
    let graphs = [
        "rmat = { scale = 14, edge_factor = 16 }, features = 50, classes = 7, train = 0.3",
        "degrees = \"degrees.txt\", features = 50, classes = 7, train = 0.3",
    ];
    for graph in graphs {
        let text = format!(
            "name = \"two\"\nseeds = [0]\ndataset = {{ counts = {{ {graph} }} }}\nmodel = {{ kind = \"sage\", layers = 2, hidden = 16 }}\n\
             training = {{ epochs = 4, batch = {{ size = 200, fanouts = [10, 5] }} }}\npartition = {{ method = \"random\", workers = 2 }}\n\
             network = {{ preset = \"ethernet-10g\" }}\ncompute = {{ timing = {{ profile = \"a100\" }} }}\n\
             strategy = [{{ kind = \"distdgl\" }}, {{ kind = \"distdgl\", cache = \"grappa-halo\", label = \"halo\" }}, \
             {{ kind = \"distdgl\", cache = \"100MB\", label = \"all\" }}]\n"
        );
        let folder = folder_with(&text);
        // Some of no neighbours at all.
        std::fs::write(folder.path().join("degrees.txt"), "3,1000\n5,200\n0,500\n").unwrap();
        let (code, out, error) = told(folder.path(), &["project", "x.toml", "--json"]);
        assert_eq!(code, Some(0), "{error}");
        let cells: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        let of = |number: usize| cells[number]["bytes_by_kind"]["feature"].as_u64();
        assert_eq!(of(1), of(2), "{graph}");
        assert!(of(1) < of(0), "{graph}");
    }
}

#[test]
fn many_workers_that_are_no_power_of_two_are_told_what_takes_seconds() {
    let text = FILE
        .replace("scale = 36", "scale = 14")
        .replace("workers = 16", "workers = 65")
        .replace("kind = \"full\"", "kind = \"isolated\"");
    let folder = folder_with(&text);
    let said = |set: &[&str]| {
        let ran = grapevine(folder.path(), &[&["project", "x.toml"], set].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stderr.contains("65 workers, which are no power of two")
    };
    assert!(said(&[]));
    assert!(!said(&["--set", "network.all_reduce=ring"]));
}

#[test]
fn a_projection_is_a_table_and_says_what_a_worker_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large.toml");
    std::fs::write(&path, FILE).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_grapevine"))
        .args(["project", "large.toml", "--quiet", "--out", "table"])
        .current_dir(folder.path())
        .output()
        .expect("the program");
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(", more than 40.0 GB"), "{text}");
    let small = "A worker's memory is too small for full, retexo: times";
    assert!(text.contains(small), "{text}");
    assert!(folder.path().join("table/projection.parquet").exists());
    let csv = std::fs::read_to_string(folder.path().join("table/projection.csv")).expect("a table");
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 3, "{csv}");
    let columns: Vec<&str> = rows[0].split(',').collect();
    assert!(columns.contains(&"memory_bytes") && columns.contains(&"feature_bytes"));
    // 2^32 own nodes of 128 features alone are 2.2 TB.
    let cells = answer("project", FILE);
    assert!(cells[0]["memory_bytes"].as_u64().expect("bytes") > 2_199_023_255_552);
    // Random parts are equal.
    let each = cells[0]["memory_bytes_by_worker"]
        .as_array()
        .expect("bytes");
    assert!(!each.is_empty() && each.iter().all(|bytes| *bytes == cells[0]["memory_bytes"]));
    assert_eq!(cells[0]["fits"], serde_json::Value::Bool(false));
}

/// Six strategies in a size that can be trained.
const VALIDATE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/experiments/scale/validate.toml"
);

#[test]
fn errors_of_the_smallest_graph_that_was_trained_are_within_those_that_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    let sweep = |kind: &str| format!("sweep={{ \"dataset.{kind}.scale\" = [11] }}");
    let (trained, projected) = (sweep("synthetic"), sweep("counts.rmat"));
    let (code, _, error) = told(
        here,
        &[
            "run", VALIDATE, "--scale", "trained", "--set", &trained, "--out", "trained",
        ],
    );
    assert_eq!(code, Some(0), "{error}");
    let project = ["project", VALIDATE, "--set", &projected];
    let beside = ["--beside", "trained", "--out", "out"];
    let (code, out, error) = told(here, &[&project[..], &beside].concat());
    assert_eq!(code, Some(0), "{error}");
    assert!(out.contains("bytes and time where trained"), "{out}");
    let (_, json, _) = told(here, &[&project[..], &["--json"]].concat());
    let cells: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let errors = std::fs::read_to_string(here.join("out/beside.csv")).expect("errors");
    let mut held = 0;
    for cell in cells.as_array().expect("cells") {
        let name = cell["cell"].as_str().expect("a name");
        let told = &cell["validated"];
        for (measure, told) in [("payload_bytes", &told[0]), ("simulated_seconds", &told[1])] {
            let told = told.as_f64().expect("an error that is told");
            let mut lines = errors.lines();
            let line = lines.find(|line| line.contains(name) && line.contains(measure));
            let line = line.expect("the cell was trained");
            let fields: Vec<&str> = line.split(',').collect();
            let (trained, projected) = (fields[3].parse::<f64>(), fields[4].parse::<f64>());
            let (trained, projected) = (trained.expect("a number"), projected.expect("a number"));
            // What is told is rounded to a tenth of a percent.
            let error = (projected / trained - 1.0).abs();
            assert!(
                error <= told.abs() + 0.0005,
                "{name} {measure}: {error}, told {told}"
            );
            held += 1;
        }
    }
    assert_eq!(held, 12);
    // Nothing is told of what was not trained: more parts, which are more unequal than counts say,
    // another model, batches in place of whole graphs, another share of the boundary.
    let told_of = |set: &[&str]| -> Vec<serde_json::Value> {
        let set = set.iter().flat_map(|set| ["--set", set]);
        let asked: Vec<&str> = project.into_iter().chain(["--json"]).chain(set).collect();
        let (code, json, error) = told(here, &asked);
        assert_eq!(code, Some(0), "{error}");
        let cells: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let cells = cells.as_array().expect("cells").iter();
        cells.map(|cell| cell["validated"].clone()).collect()
    };
    let nothing = |told: &serde_json::Value| told.is_null();
    assert!(told_of(&["partition.workers=32"]).iter().all(nothing));
    assert!(told_of(&["model.kind=\"gcn\""]).iter().all(nothing));
    let batches = "strategy.4.with={ \"training.batch\" = { size = 1000, fanouts = [15, 10, 5] } }";
    let other = told_of(&["strategy.2.share=0.5", batches]);
    let left: Vec<bool> = other.iter().map(nothing).collect();
    assert_eq!(left, [false, false, true, false, true, false]);
    // On another network the bytes are the same, and the times are not.
    let other = told_of(&["network.preset=\"wan\"", "model.hidden=32"]);
    let bytes_alone = |told: &serde_json::Value| told[0].is_number() && told[1].is_null();
    assert!(other.iter().all(bytes_alone), "{other:?}");
    // So they are with other columns. Smaller graphs, and less skewed ones, were not trained.
    let narrow = told_of(&["model.hidden=32"]);
    assert!(narrow.iter().all(bytes_alone), "{narrow:?}");
    let scale = |scale: &str| {
        let sweep = format!("sweep={{ \"dataset.counts.rmat.scale\" = [{scale}] }}");
        let (_, json, _) = told(here, &["project", VALIDATE, "--json", "--set", &sweep]);
        let cells: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let cells = cells.as_array().expect("cells").iter();
        let known = cells.map(|cell| cell["validated"].is_array());
        known.collect::<Vec<bool>>()
    };
    assert_eq!((scale("10"), scale("12")), (vec![false; 6], vec![true; 6]));
    let even = told_of(&["dataset.counts.rmat.quadrants=[0.25, 0.25, 0.25]"]);
    assert!(even.iter().all(nothing), "{even:?}");
}

#[test]
fn a_projection_stands_beside_what_was_trained_with_its_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    // Nine is projected alone.
    let train = ["run", VALIDATE, "--scale", "smoke", "--out", "trained"];
    let eight = ["--set", "sweep={ \"dataset.synthetic.scale\" = [8] }"];
    let (code, _, error) = told(here, &[&train[..], &eight].concat());
    assert_eq!(code, Some(0), "{error}");
    let counts = [
        "project",
        VALIDATE,
        "--set",
        "dataset={ counts = { rmat = { scale = 8, edge_factor = 4 }, features = 16, classes = 4, train = 0.6 } }",
        "--set",
        "sweep={ \"dataset.counts.rmat.scale\" = [8, 9] }",
        "--set",
        "model.hidden=16",
        "--set",
        "strategy.5.with={ \"training.batch\" = { size = 100, fanouts = [5, 5, 5] } }",
    ];
    let four = ["--set", "partition.workers=4"];
    let wrong = |more: &[&[&str]], said: &str| {
        let arguments = [&counts[..], &["--beside", "trained"], &more.concat()].concat();
        let (code, _, error) = told(here, &arguments);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(said), "{error}");
    };
    wrong(&[], "4 workers on ethernet-10g, 2 epochs");
    wrong(
        &[&four, &["--set", "model.kind=\"gcn\""]],
        "trained with sage of 3 × 16",
    );
    wrong(
        &[&four, &["--set", "dataset.counts.features=24"]],
        "trained on one of 256 nodes, 16 features and 4 classes, and is projected on one of 256 nodes, 24 features",
    );
    wrong(&[&["--json"]], "is not part of the JSON document");
    let beside = [
        "--set",
        "partition.workers=4",
        "--beside",
        "trained",
        "--out",
        "out",
    ];
    let (code, out, error) = told(here, &[&counts[..], &beside].concat());
    assert_eq!(code, Some(0), "{error}");
    assert!(out.contains("bytes and time where trained"), "{out}");
    assert!(out.contains("as projected: size"), "{out}");
    let read = |file: &str| std::fs::read_to_string(here.join("out").join(file)).expect(file);
    let errors = read("beside.csv");
    assert_eq!(errors.lines().count(), 1 + 6 * 6, "{errors}");
    for line in errors.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let (trained, projected) = (fields[3].parse::<f64>(), fields[4].parse::<f64>());
        let (trained, projected) = (trained.expect("a number"), projected.expect("a number"));
        // So small a graph is far from its expectation, and not everything that is held
        // against it is that small.
        let most = if fields[2] == "payload_bytes" {
            0.15
        } else {
            0.5
        };
        assert!(
            (projected - trained).abs() <= most * trained.max(1e-9),
            "{line}"
        );
    }
    let page = read("projection.html");
    for part in [
        "Where it was trained, too, in 6 cells",
        "Crosses are runs",
        "Nothing was trained",
        "Projected: ",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.contains("equal random parts") && !page.contains("Peak memory"));
    assert!(!page.contains("Measured: "));
    for file in [
        "figures/projected-scaling.svg",
        "tables/projected-errors.md",
        "beside.parquet",
    ] {
        assert!(here.join("out").join(file).exists(), "{file}");
    }
    // Without runs, what stood beside it is gone, crosses too.
    let crossed = read("figures/projected-scaling.svg");
    let again = ["--set", "partition.workers=4", "--out", "out"];
    assert_eq!(told(here, &[&counts[..], &again].concat()).0, Some(0));
    assert!(!here.join("out/tables/projected-errors.md").exists());
    assert!(!here.join("out/beside.csv").exists());
    assert!(read("figures/projected-scaling.svg").len() < crossed.len());
    let nobody = ["--set", "partition.workers=4", "--beside", "out"];
    let (code, _, error) = told(here, &[&counts[..], &nobody].concat());
    assert_eq!(code, Some(2), "{error}");
}

#[test]
fn a_thousand_workers_and_published_sizes_are_projected() {
    let like = FILE
        .replace(
            "rmat = { scale = 36, edge_factor = 16 }",
            "like = \"ogbn-papers100M\"",
        )
        .replace("workers = 16", "workers = 1024");
    let cells = answer("project", &like);
    let assumed = cells[0]["assumed"].as_str().expect("a note");
    assert!(assumed.contains("size of ogbn-papers100M"), "{assumed}");
    assert!(assumed.contains("1207179 training nodes"), "{assumed}");
    // Between what a more skewed graph sends and what one without skew sends.
    let payload = &cells[0]["payload_bytes"];
    let ends = &cells[0]["between"]["payload_bytes"];
    assert!(ends[0].as_u64() < payload.as_u64(), "{ends}");
    assert!(ends[1].as_u64() > payload.as_u64(), "{ends}");
    // Each of two epochs: 1,024 workers to 1,023 others, three layers' rows forward and two back.
    let messages = cells[0]["messages"].as_u64().expect("a number");
    assert!(messages > 2 * 4 * 1_024 * 1_023, "{messages}");
}

#[test]
fn memory_of_a_published_size_lies_between_ends_that_may_disagree() {
    let like = |workers: usize| {
        FILE.replace(
            "rmat = { scale = 36, edge_factor = 16 }",
            "like = \"ogbn-papers100M\"",
        )
        .replace("workers = 16", &format!("workers = {workers}"))
    };
    // Of 32, 128 and 256 workers, those of `full` hold more than 40 GB, hold that at one end
    // alone, and hold less.
    for (workers, fits) in [(32, Some(false)), (128, None), (256, Some(true))] {
        let cells = answer("project", &like(workers));
        let full = &cells[0];
        let [few, most] = [0, 1].map(|end| full["between"]["memory_bytes"][end].as_u64());
        let middle = full["memory_bytes"].as_u64();
        assert!(few < middle && middle < most, "{full}");
        assert_eq!(full["fits"].as_bool(), fits, "{full}");
    }
    let folder = folder_with(&like(128));
    let (_, text, _) = told(folder.path(), &["project", "x.toml", "--out", "out"]);
    assert!(text.contains("22.6 GB to 63.7 GB of 40.0 GB"), "{text}");
    let table = std::fs::read_to_string(folder.path().join("out/tables/projected-memory.md"));
    let table = table.expect("a table");
    assert!(table.contains("fits at one end alone"), "{table}");
    let other = ["project", "x.toml", "--out", "out", "--set", "name=other"];
    let (code, _, error) = told(folder.path(), &other);
    assert_eq!(code, Some(2), "{error}");
    assert!(
        error.contains("holds a projection of the experiment"),
        "{error}"
    );
}

#[test]
fn advice_about_a_published_size_says_who_is_first_at_its_ends() {
    let like = FILE.replace(
        "rmat = { scale = 36, edge_factor = 16 }",
        "like = \"ogbn-products\"",
    );
    let time_at = |advice: &serde_json::Value, to: &str| {
        let changes = advice[0]["changes"].as_array().expect("changes");
        let change = changes.iter().find(|change| change["to"] == to)?;
        let mut ranking = change["ranking"].as_array().expect("a ranking").iter();
        ranking.find(|one| one[0] == "full")?[1].as_f64()
    };
    let cells = answer("project", &like);
    let advice = answer("advise", &like);
    let ends = &cells[0]["between"]["simulated_seconds"];
    assert_eq!(time_at(&advice, "fewest_rows"), ends[0].as_f64());
    assert_eq!(time_at(&advice, "most_rows"), ends[1].as_f64());
    // Of a law that is known there are no ends.
    let law = FILE.replace("scale = 36", "scale = 20");
    assert_eq!(time_at(&answer("advise", &law), "most_rows"), None);
}

#[test]
fn a_fitted_cut_of_a_published_size_says_what_it_does_not_know() {
    let fit = "like = \"ogbn-arxiv\", fit = { scales = [9, 10, 11, 12], graphs = 1 }";
    let like = FILE
        .replace("rmat = { scale = 36, edge_factor = 16 }", fit)
        .replace("\"random\"", "\"ldg\"")
        .replace("workers = 16", "workers = 4");
    let cells = answer("project", &like);
    let assumed = cells[0]["assumed"].as_str().expect("a note");
    assert!(assumed.contains("no communities"), "{assumed}");
    // From a sixth of the fewest rows of a more skewed graph to those of one without skew.
    let bytes = &cells[0]["between"]["payload_bytes"];
    let [low, high] = [0, 1].map(|end: usize| bytes[end].as_f64().expect("bytes"));
    let middle = cells[0]["payload_bytes"].as_f64().expect("bytes");
    assert!(
        low < middle / 4.0 && high > 1.05 * middle,
        "{low} {middle} {high}"
    );
}

#[test]
fn more_bytes_than_can_be_counted_are_refused() {
    let law = "scale = 36, edge_factor = 16 }";
    for other in [
        "scale = 50, edge_factor = 16 }, features = 65536",
        "scale = 12, edge_factor = 16 }, features = 9223372036854775807",
    ] {
        let (code, _, error) = program("project", &FILE.replace(law, other));
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains("more than can be counted"), "{error}");
    }
}

#[test]
fn a_fitted_cut_is_that_of_a_larger_graph_that_is_really_cut() {
    let of = |data: &str, method: &str| -> serde_json::Value {
        let counts = "counts = { rmat = { scale = 36, edge_factor = 16 } }";
        let text = FILE
            .replace(counts, data)
            .replace("\"random\"", &format!("\"{method}\""));
        answer("project", &text)[0].clone()
    };
    for method in ["metis", "ldg", "fennel"] {
        let fitted = of(
            "counts = { rmat = { scale = 13 }, fit = { scales = [8, 9, 10, 11], graphs = 2 } }",
            method,
        );
        let cut = of(
            "synthetic = { kind = \"rmat\", scale = 13, classes = 16, features = 128 }\nsplit = { train = 0.1, val = 0.1 }",
            method,
        );
        let bytes = |cell: &serde_json::Value| cell["payload_bytes"].as_f64().expect("bytes");
        let ratio = bytes(&fitted) / bytes(&cut);
        assert!((ratio - 1.0).abs() < 0.15, "{method}: {ratio}");
        let ends = &fitted["between"]["payload_bytes"];
        let (low, high) = (ends[0].as_f64(), ends[1].as_f64());
        let (low, high) = (low.expect("low"), high.expect("high"));
        assert!(
            low < bytes(&cut) && bytes(&cut) < high,
            "{method}: {ends} {}",
            bytes(&cut)
        );
        assert!(low < bytes(&fitted) && bytes(&fitted) < high, "{method}");
        let seconds = |cell: &serde_json::Value| cell["simulated_seconds"].as_f64().expect("time");
        let ratio = seconds(&fitted) / seconds(&cut);
        assert!((ratio - 1.0).abs() < 0.2, "{method}: {ratio}");
        assert!(
            fitted["assumed"]
                .as_str()
                .expect("a note")
                .contains("the largest left out")
        );
    }
}

#[test]
fn counts_are_refused_where_the_graph_is_needed() {
    let with = |strategy: &str| FILE.replace("kind = \"retexo\"", strategy);
    for (command, text, message) in [
        (
            "run",
            FILE.to_owned(),
            "`grapevine project` and `grapevine advise` take",
        ),
        (
            "project",
            with("kind = \"cluster\""),
            "plans from the graph itself",
        ),
        (
            "project",
            with("kind = \"grappa\"\nchunking = \"metis\"")
                .replace("method = \"random\"", "method = \"metis\""),
            "must be \"random\" with `dataset.counts` for this strategy",
        ),
        (
            "project",
            FILE.replace(
                "method = \"random\"",
                "method = \"given\"\nfile = \"parts.txt\"",
            ),
            "a file names nodes, and here are none",
        ),
        (
            "project",
            FILE.replace(
                "edge_factor = 16 }",
                "edge_factor = 16 }, fit = { graphs = 1 }",
            ),
            "random parts have a closed form",
        ),
        (
            "project",
            FILE.replace(
                "edge_factor = 16 }",
                "edge_factor = 16 }, fit = { scales = [9, 10, 11] }",
            )
            .replace("method = \"random\"", "method = \"ldg\""),
            "four different `scales` or more",
        ),
        (
            "project",
            FILE.replace(
                "edge_factor = 16 }",
                "edge_factor = 16 }, fit = { scales = [3, 9, 10, 11] }",
            )
            .replace("method = \"random\"", "method = \"ldg\""),
            "3 makes 8 nodes",
        ),
        (
            "project",
            FILE.replace("scale = 36", "scale = 3"),
            "more than the 8 nodes",
        ),
        (
            "project",
            FILE.replace(
                "rmat = { scale = 36, edge_factor = 16 }",
                "like = \"ogbn-papers\"",
            ),
            "choose one of ogbn-arxiv, reddit",
        ),
        (
            "project",
            FILE.replace("workers = 16", "workers = 1000000"),
            "a plan of 1000000 workers needs at least",
        ),
        (
            "project",
            FILE.replace("edge_factor = 16", "edges = 1e30"),
            "more than these nodes can have",
        ),
        (
            "project",
            FILE.replace("[model]", "split = { train = 0.5, val = 0.2 }\n[model]"),
            "has only how many",
        ),
    ] {
        let (code, _, error) = program(command, &text);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(message), "{error}");
    }
}

/// Strategies that send what they plan, whatever the features are.
const PLANNED: [&str; 11] = [
    "kind = \"full\"",
    "kind = \"isolated\"",
    "kind = \"fixed\"\nratio = 4",
    "kind = \"varco\"",
    "kind = \"bns\"",
    "kind = \"pipe\"",
    "kind = \"adaqp\"\nbits = 4",
    "kind = \"grappa\"",
    "kind = \"retexo\"",
    "kind = \"llcg\"",
    "kind = \"cluster\"",
];

#[test]
fn a_plan_needs_no_features_of_a_generated_graph() {
    let graph =
        "synthetic = { kind = \"rmat\", scale = 9, edge_factor = 8, classes = 4, features = 24 }";
    let counts = "counts = { rmat = { scale = 36, edge_factor = 16 } }";
    let strategies = PLANNED.join("\n[[strategy]]\n");
    let first = FILE.find("[[strategy]]").expect("a strategy");
    let text = format!("{}[[strategy]]\n{strategies}\n", &FILE[..first])
        .replace(counts, graph)
        .replace("workers = 16", "workers = 4");
    let planned = answer("project", &text);
    let trained = answer("run", &text);
    let planned = planned.as_array().expect("cells");
    let trained = trained["runs"].as_array().expect("runs");
    assert_eq!(
        (planned.len(), trained.len()),
        (PLANNED.len(), PLANNED.len())
    );
    for (planned, trained) in planned.iter().zip(trained) {
        let cell = &planned["cell"];
        assert_eq!(cell, &trained["cell"]);
        assert_eq!(planned["payload_bytes"], trained["payload_bytes"], "{cell}");
        let of = |row: &serde_json::Value| row["simulated_seconds"].as_f64().expect("seconds");
        let (planned, trained) = (of(planned), of(trained));
        assert!(
            (planned - trained).abs() < 1e-9 * trained,
            "{cell}: {planned} {trained}"
        );
    }
}
