//! Bad input: exit code 2, a message that says what, where and what to do, and no partial result.

use std::fs;
use std::path::Path;

use ndarray_npy::NpzWriter;

use crate::command::{EXPERIMENT, Ran, folder_with, grapevine_with};

/// The folder of an experiment with something wrong in it, and what the message must say.
struct Bad<'a> {
    folder: tempfile::TempDir,
    says: &'a [&'a str],
}

const DATA: &str = r#"synthetic = { kind = "sbm", nodes = 600, classes = 4, features = 32, degree_within = 8, degree_between = 2 }
split = { train = 0.5, val = 0.2 }"#;

impl<'a> Bad<'a> {
    fn new(from: &str, to: &str, says: &'a [&'a str]) -> Self {
        assert!(EXPERIMENT.contains(from), "{from}");
        let folder = folder_with(&EXPERIMENT.replacen(from, to, 1));
        Self { folder, says }
    }

    fn data(to: &str, says: &'a [&'a str]) -> Self {
        Self::new(DATA, to, says)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn check(&self) {
        self.check_with(&[], &[]);
    }

    fn check_with(&self, arguments: &[&str], variables: &[(&str, &str)]) {
        let mut all = vec!["run", "x.toml", "--out", "out"];
        all.extend(arguments);
        let Ran {
            code,
            stdout,
            stderr,
        } = grapevine_with(self.path(), &all, variables);
        assert_eq!(code, 2, "{:?}: {stderr}", self.says);
        assert_eq!(stdout, "", "{:?}", self.says);
        for text in self.says {
            assert!(stderr.contains(text), "`{text}` is not in: {stderr}");
        }
        assert!(
            stderr.contains("error: ") && !stderr.contains("panicked"),
            "{stderr}"
        );
        for name in ["out", "results"] {
            assert!(
                !self.path().join(name).exists(),
                "no partial result: {:?}",
                self.says
            );
        }
    }
}

#[test]
fn keys_and_types_are_named_with_file_and_line() {
    for (from, to, says) in [
        (
            "hidden = 8",
            "hiden = 8",
            &[
                "x.toml:8",
                "[model]",
                "unknown key `hiden`",
                "did you mean `hidden`?",
            ][..],
        ),
        (
            "epochs = 6",
            "epochs = \"many\"",
            &[
                "x.toml:10",
                "[training]",
                "`epochs`",
                "whole number",
                "\"many\"",
            ],
        ),
        (
            "epochs = 6",
            "epochs = 0",
            &["x.toml:10", "`epochs` must be at least 1, not 0"],
        ),
        (
            "workers = 3",
            "workers = 0",
            &["x.toml:14", "`workers` must be at least 1"],
        ),
        ("seeds = [0, 1]", "seeds = []", &["x.toml:2", "`seeds`"]),
        (
            "hidden = 8",
            "dropout = 1.5",
            &["x.toml:8", "`dropout`", "1.5"],
        ),
        (
            "[model]\nkind = \"gcn\"",
            "[model]\nkind = \"gnc\"",
            &["x.toml:7", "\"gnc\"", "did you mean `gcn`?"],
        ),
        (
            "method = \"random\"",
            "method = \"metsi\"",
            &["x.toml:13", "\"metsi\"", "did you mean `metis`?"],
        ),
        (
            "\"a100\"",
            "\"a10\"",
            &["x.toml:18", "\"a10\"", "did you mean `a100`?"],
        ),
        (
            "measure = \"payload_bytes\"",
            "measure = \"paylod_bytes\"",
            &["x.toml", "did you mean `payload_bytes`?"],
        ),
        (
            "to = \"full\"",
            "to = \"ful\"",
            &["x.toml", "did you mean `full`?"],
        ),
        (
            "name = \"small\"",
            "name = small",
            &["x.toml:1", "not valid TOML"],
        ),
        (
            "[training]",
            "[trainin]",
            &["x.toml:9", "trainin", "did you mean `training`?"],
        ),
    ] {
        Bad::new(from, to, says).check();
    }
}

#[test]
fn mini_batches_that_cannot_be_are_named() {
    for (batch, says) in [
        (
            "{ size = 0, fanouts = [4, 3] }",
            &["x.toml:11", "`size` must be at least 1"][..],
        ),
        (
            "{ size = 9, fanouts = [4, 0] }",
            &["x.toml:11", "fanouts", "must be at least 1, not 0"],
        ),
        (
            "{ size = 9, fanouts = [4] }",
            &["x.toml:11", "`fanouts`", "2 in all, not 1"],
        ),
        (
            "{ size = 9, fanouts = 4 }",
            &["x.toml:11", "`fanouts`", "a list", "4"],
        ),
        ("{ size = 9 }", &["x.toml:11", "`fanouts`"]),
        (
            "{ size = 9, fanout = [4, 3] }",
            &[
                "x.toml:11",
                "unknown key `fanout`",
                "did you mean `fanouts`?",
            ],
        ),
        ("9", &["x.toml:11", "`batch`", "9"]),
    ] {
        let to = format!("epochs = 6\nbatch = {batch}");
        Bad::new("epochs = 6", &to, says).check();
    }
    let set = "training.batch={ size = 9, fanouts = [4, 3] }";
    let says = &["x.toml", "`codec`", "training.batch"];
    let differences = "kind = \"varco\"\ncodec = { kind = \"difference\", of = \"top_k\" }";
    Bad::new("kind = \"varco\"", differences, says).check_with(&["--set", set], &[]);
    let says = &["2 in all, not 3"];
    let sweep = "sweep.\"training.batch.fanouts\"=[[4, 3], [4, 3, 2]]";
    Bad::new("seeds = [0, 1]", "seeds = [0]", says)
        .check_with(&["--set", set, "--set", sweep], &[]);
}

#[test]
fn networks_that_cannot_be_are_named() {
    for (to, says) in [
        (
            "preset = \"ethernet-1\"",
            &["x.toml:16", "\"ethernet-1\"", "did you mean `ethernet-1"][..],
        ),
        (
            "preset = \"wan\"\nlink = { bandwidth = \"-1Gbps\", latency = 0 }",
            &["x.toml:17", "`bandwidth`", "-1Gbps"],
        ),
        (
            "preset = \"wan\"\nlink = { bandwidth = \"0Gbps\", latency = 0 }",
            &["x.toml:17", "`bandwidth`", "0Gbps"],
        ),
        (
            "preset = \"wan\"\nlink = { bandwidth = \"1Gbps\", latency = \"-1ms\" }",
            &["x.toml:17", "`latency`", "-1ms"],
        ),
    ] {
        Bad::new("preset = \"ethernet-1g\"", to, says).check();
    }
}

#[test]
fn a_network_without_figures_is_told_as_other_sections_are() {
    let section = "[network]\npreset = \"ethernet-1g\"\n";
    let says = ["error: x.toml: the section [network] is missing; add it, such as preset = \""];
    Bad::new(section, "", &says).check();
    let says = ["error: x.toml:15: in [network]: say how fast it is: preset = "];
    Bad::new("preset = \"ethernet-1g\"", "duplex = \"full\"", &says).check();
}

#[test]
fn strategies_and_their_options_are_named() {
    for (from, to, says) in [
        (
            "kind = \"full\"",
            "kind = \"ful\"",
            &["x.toml:20", "\"ful\"", "did you mean `full`?"][..],
        ),
        (
            "kind = \"retexo\"",
            "kind = \"rexeto\"",
            &["x.toml", "did you mean `retexo`?"],
        ),
        (
            "ratio = 8",
            "ratoi = 8",
            &["x.toml:25", "unknown key `ratoi`", "did you mean `ratio`?"],
        ),
        (
            "ratio = 8",
            "ratio = 0.5",
            &["x.toml:25", "`ratio`", "from 1 to 1000000000"],
        ),
        (
            "ratio = 8",
            "ratio = \"x\"",
            &["x.toml:25", "`ratio`", "\"x\""],
        ),
        (
            "repartition_every = 2",
            "repartition_every = 0",
            &["x.toml:30", "`repartition_every` must be at least 1"],
        ),
        (
            "repartition_every = 2",
            "lambda = 2",
            &["x.toml:30", "`lambda`", "between 0 and 1"],
        ),
        (
            "repartition_every = 2",
            "weight = \"none_such\"",
            &["x.toml:30", "weight"],
        ),
        (
            "repartition_every = 2",
            "coverage_hops = 9",
            &["x.toml:30", "coverage_hops", "at most the model's 2 layers"],
        ),
        (
            "repartition_every = 2",
            "weight = \"node_ht\"\nshrinkage = \"lambda\"",
            &["x.toml", "shrinkage", "kappa"],
        ),
        (
            "rounds_per_layer = 3",
            "rounds_per_layer = 0",
            &["x.toml:33", "`rounds_per_layer` must be at least 1"],
        ),
        (
            "kind = \"varco\"",
            "kind = \"varco\"\nschedule = { kind = \"linear\", from = 1, to = 8 }",
            &["x.toml", "schedule"],
        ),
        (
            "kind = \"varco\"",
            "kind = \"varco\"\nschedule = { kind = \"linear\", form = 8 }",
            &["x.toml:28", "form"],
        ),
        (
            "kind = \"varco\"",
            "kind = \"varco\"\ncodec = \"top-k\"",
            &["x.toml", "top_k"],
        ),
        (
            "kind = \"varco\"",
            "kind = \"varco\"\ncodec = { kind = \"quantise\", bits = 3 }",
            &["x.toml", "1, 2, 4 or 8"],
        ),
        (
            "kind = \"varco\"",
            "kind = \"varco\"\ncodec = \"f16\"\nschedule = { kind = \"cosine\" }",
            &["x.toml", "schedule", "a cost of its own"],
        ),
        (
            "kind = \"isolated\"",
            "kind = \"isolated\"\nratio = 2",
            &["x.toml:23", "unknown key `ratio`"],
        ),
    ] {
        Bad::new(from, to, says).check();
    }
}

#[test]
fn keys_that_belong_elsewhere_are_told_where() {
    for (from, to, says) in [
        (
            "kind = \"isolated\"",
            "kind = \"isolated\"\nfeedback = true",
            &[
                "x.toml:23",
                "unknown key `feedback`",
                "is a key of `gradients`: gradients = { feedback = … }",
            ][..],
        ),
        (
            "kind = \"isolated\"",
            "kind = \"isolated\"\nepochs = 7",
            &["x.toml:23", "`epochs` is a key of [training]"],
        ),
        (
            "kind = \"varco\"",
            "kind = \"varco\"\nslope = 5",
            &[
                "unknown key `slope`",
                "is a key of `schedule`: schedule = { kind = \"linear\", slope = … }",
            ],
        ),
        (
            "kind = \"varco\"",
            "kind = \"varco\"\ncodec = \"quantise\"\nbits = 3",
            &["is a key of `codec`: codec = { kind = \"quantise\", bits = … }"],
        ),
        (
            "kind = \"varco\"",
            "kind = \"varco\"\nratio = 4",
            &[
                "unknown key `ratio`",
                "`ratio` is an option of fixed, ",
                "here it is that of `schedule`",
            ],
        ),
        (
            "kind = \"varco\"",
            "kind = \"varco\"\nschedule = \"linear\"",
            &["`schedule`: expected a table like { kind = \"linear\" }, found the text"],
        ),
        (
            "kind = \"varco\"",
            "kind = \"varco\"\nschedule = { kind = \"cosine\", slope = 5 }",
            &["`slope` is a key of kind = \"linear\""],
        ),
        (
            "kind = \"isolated\"",
            "kind = \"isolated\"\nrho = 2",
            &["unknown key `rho`", "`rho` is an option of llcg"],
        ),
        (
            "[training]",
            "[optimizer]\nmomentum = 0.9\n[training]",
            &["unknown key `momentum`", "is a key of kind = \"sgd\""],
        ),
    ] {
        Bad::new(from, to, says).check();
    }
}

#[test]
fn options_that_do_not_suit_the_model_are_named_before_anything_trains() {
    for (from, to, says) in [
        (
            "kind = \"grappa\"",
            "kind = \"grappa\"\nweight = \"edge_ht\"\nwith = { \"model.kind\" = \"gat\" }",
            &["`weight`", "sums messages"][..],
        ),
        (
            "rounds_per_layer = 3",
            "form = \"distributed\"\nwith = { \"model.kind\" = \"gin\" }",
            &["`form`", "`gin`"],
        ),
    ] {
        Bad::new(from, to, says).check();
    }
}

#[test]
fn possible_values_are_those_and_no_more() {
    let folder = folder_with(EXPERIMENT);
    for (set, ends) in [
        ("strategy.3.codec=x", "compose, difference"),
        ("strategy.3.schedule.kind=x", "adaptive-error"),
        (
            "strategy.3.schedule={kind=\"linear\",slop=1}",
            "from, to, slope",
        ),
        ("strategy.4.weight=x", "edge_ht"),
        ("strategy.5.form=x", "distributed"),
    ] {
        let ran = grapevine_with(folder.path(), &["run", "x.toml", "--set", set], &[]).expect(2);
        assert!(ran.stderr.trim_end().ends_with(ends), "{}", ran.stderr);
    }
}

#[test]
fn overrides_are_named_as_they_were_given() {
    let says = ["--set model.hiden=4", "did you mean `hidden`?"];
    let bad = Bad::new("", "", &says);
    bad.check_with(&["--set", "model.hiden=4"], &[]);
    let says = ["--set training.epochs=0", "at least 1"];
    Bad::new("", "", &says).check_with(&["--set", "training.epochs=0"], &[]);
    let says = ["--set epochs", "key.path=value"];
    Bad::new("", "", &says).check_with(&["--set", "epochs"], &[]);
}

#[test]
fn an_experiment_file_that_is_not_there_is_named() {
    let folder = folder_with("");
    let ran = grapevine_with(folder.path(), &["run", "nowhere.toml"], &[]).expect(2);
    assert!(ran.stderr.contains("nowhere.toml"), "{}", ran.stderr);
    assert!(!folder.path().join("results").exists());
}

#[test]
fn data_that_are_not_there_are_named() {
    Bad::data(
        "name = \"cara\"",
        &["x.toml:4", "\"cara\"", "did you mean `cora`?"],
    )
    .check();
    let says = ["\"arxiv\"", "did you mean `ogbn-arxiv`?"];
    Bad::data("name = \"arxiv\"", &says).check();
    for format in ["planetoid", "linqs", "npz-csr", "npz-edges", "ogb"] {
        Bad::data(
            &format!("path = \"nowhere\"\nformat = \"{format}\""),
            &["nowhere"],
        )
        .check();
    }
    Bad::data("path = \"nowhere\"", &["x.toml:4", "`format`"]).check();
    let edges = "path = \"edges.txt\"\nformat = \"edge-list\"\nsplit = \"public\"";
    let bad = Bad::data(
        edges,
        &["x.toml:4: in [dataset]", "neither labels nor features"],
    );
    fs::write(bad.path().join("edges.txt"), "0 1\n1 2\n").unwrap();
    bad.check();
    let split = DATA.replace("{ train = 0.5, val = 0.2 }", "\"public-7\"");
    Bad::data(&split, &["x.toml:5: in [dataset]: `split`: ", "one split"]).check();
}

#[test]
fn a_truncated_npz_is_named() {
    let says = ["graph.npz"];
    let data = "path = \"graph.npz\"\nformat = \"npz-edges\"\nsplit = { train = 0.5, val = 0.2 }";
    let bad = Bad::data(data, &says);
    let path = bad.path().join("graph.npz");
    let mut writer = NpzWriter::new(fs::File::create(&path).unwrap());
    let features = ndarray::Array2::<f32>::from_shape_fn((40, 3), |(i, j)| (i * j) as f32);
    let edges = ndarray::Array2::<i64>::from_shape_fn((39, 2), |(i, j)| {
        i64::try_from(i + j).expect("small")
    });
    let labels =
        ndarray::Array1::<i64>::from_shape_fn(40, |i| i64::try_from(i % 2).expect("small"));
    writer.add_array("node_features", &features).unwrap();
    writer.add_array("node_labels", &labels).unwrap();
    writer.add_array("edges", &edges).unwrap();
    for (number, name) in ["train_masks", "val_masks", "test_masks"]
        .iter()
        .enumerate()
    {
        let mask = ndarray::Array2::<bool>::from_shape_fn((1, 40), |(_, j)| j % 3 == number);
        writer.add_array(*name, &mask).unwrap();
    }
    writer.finish().unwrap();
    let whole = fs::read(&path).unwrap();
    for share in [0, 1, 5, 9] {
        fs::write(&path, &whole[..whole.len() * share / 10]).unwrap();
        bad.check();
    }
    // Whole it is read, so that it was the truncation that was found.
    fs::write(&path, &whole).unwrap();
    let run = ["run", "x.toml", "-q", "--out", "out"];
    grapevine_with(bad.path(), &run, &[]).expect(0);
}

#[test]
fn a_corrupt_pickle_is_named_and_nothing_of_it_is_run() {
    let call: &[u8] = b"\x80\x02cos\nsystem\nU\x0etouch executed\x85R.";
    for content in [&b""[..], b"not a pickle", b"\x80\x02}q\x00(U\x04data", call] {
        let data = "path = \"planetoid\"\nformat = \"planetoid\"";
        let bad = Bad::data(data, &["ind.toy."]);
        let folder = bad.path().join("planetoid");
        fs::create_dir(&folder).unwrap();
        for part in ["x", "y", "tx", "ty", "allx", "ally", "graph"] {
            fs::write(folder.join(format!("ind.toy.{part}")), content).unwrap();
        }
        fs::write(folder.join("ind.toy.test.index"), "2\n3\n").unwrap();
        bad.check();
        assert!(!bad.path().join("executed").exists());
    }
}

#[test]
fn partitions_that_cannot_be_are_named() {
    let says = ["x.toml:14: in [partition]: `workers`: 1000", "600"];
    Bad::new("workers = 3", "workers = 1000", &says).check();
    let sweep = "[sweep]\n\"partition.workers\" = [2, 1000]\n[[claim]]";
    Bad::new("[[claim]]", sweep, &["x.toml:37", "`workers`: 1000"])
        .check_with(&["--set", "claim=[]"], &[]);
    Bad::new(
        "method = \"random\"\nworkers = 3",
        "method = \"metis\"\nworkers = 601",
        &["601", "600"],
    )
    .check();
    let skewed = "method = \"dirichlet\"\nconcentration = 1e-9\nworkers = 8";
    let says = [
        "x.toml:14: in [partition]: `concentration`: leaves a worker of 8",
        "fewer workers",
    ];
    Bad::new("method = \"random\"\nworkers = 3", skewed, &says).check();
    let given = "method = \"given\"\nfile = \"parts.txt\"";
    Bad::new(
        "method = \"random\"",
        "method = \"given\"",
        &["x.toml:13", "`file`"],
    )
    .check();
    let says = ["x.toml:14: in [partition]", "parts.txt", "relative paths"];
    Bad::new("method = \"random\"", given, &says).check();
    for (content, says) in [
        ("0\n1\n2\n".to_owned(), &["parts.txt", "3", "600"][..]),
        ("0\n1\n2\n".repeat(201), &["parts.txt:601", "600"]),
        ("0\n1\n3\n".repeat(200), &["parts.txt", "3"]),
        ("0\n1\nx\n".repeat(200), &["parts.txt", "3", "x"]),
        ("0\n1\n1\n".repeat(200), &["parts.txt", "2"]),
    ] {
        let bad = Bad::new("method = \"random\"", given, says);
        fs::write(bad.path().join("parts.txt"), content).unwrap();
        bad.check();
    }
}

#[test]
fn backends_that_are_not_there_are_named_with_a_way_on() {
    let device = |backend: &str| format!("[device]\nbackend = \"{backend}\"\n[compute]");
    if cfg!(not(feature = "ndarray")) {
        let says = ["ndarray", "--features ndarray", "backend = \"flex\""];
        Bad::new("[compute]", &device("ndarray"), &says).check();
    }
    Bad::new(
        "[compute]",
        &device("felx"),
        &["x.toml:18", "did you mean `flex`?"],
    )
    .check();
    let adapters = "[device]\nadapters = [\"x\"]\n[compute]";
    Bad::new(
        "[compute]",
        adapters,
        &["x.toml:18", "`adapters` are for backend = \"wgpu\" only"],
    )
    .check();
}

#[test]
fn without_a_graphics_adapter_it_says_what_is_missing_and_how_to_go_on() {
    let device = "[device]\nbackend = \"wgpu\"\n[compute]";
    let says: &[&str] = if cfg!(feature = "wgpu") {
        &[
            "no graphics adapter",
            "mesa-vulkan-drivers",
            "backend = \"flex\"",
        ]
    } else {
        &["no wgpu backend", "--features wgpu", "backend = \"flex\""]
    };
    // Drivers are found by these; a file that is not there hides them all.
    let hidden = [
        "VK_ICD_FILENAMES",
        "VK_DRIVER_FILES",
        "__EGL_VENDOR_LIBRARY_FILENAMES",
    ];
    let bad = Bad::new("[compute]", device, says);
    let nowhere = bad.path().join("nowhere");
    let variables = hidden.map(|name| (name, nowhere.to_str().expect("text")));
    bad.check_with(&[], &variables);
    let ran = grapevine_with(bad.path(), &["list", "devices"], &variables).expect(0);
    assert!(ran.stdout.contains("no adapter") || cfg!(not(feature = "wgpu")));
}

#[test]
fn adapters_that_no_machine_has_are_named() {
    if crate::common::graphics("adapter names").is_none() {
        return;
    }
    let device = "[device]\nbackend = \"wgpu\"\nadapters = [\"no such adapter\"]\n[compute]";
    Bad::new(
        "[compute]",
        device,
        &["no such adapter", "device.adapters", "this machine has"],
    )
    .check();
}
