//! `grapevine advise`: held to what trainings measure.

use serde_json::Value;

use crate::command::{folder_with, grapevine};

fn advice(text: &str, arguments: &[&str]) -> (i32, Value, String) {
    let folder = folder_with(text);
    let all = [&["advise", "x.toml", "--json", "--quiet"], arguments].concat();
    let ran = grapevine(folder.path(), &all);
    let document = serde_json::from_str(&ran.stdout).unwrap_or(Value::Null);
    (ran.code, document, ran.stderr)
}

/// One setting that can be trained: the network, workers, model and hidden columns.
type Setting = (&'static str, usize, &'static str, usize);

const SETTINGS: [Setting; 12] = [
    ("preset = \"wan\"", 4, "sage", 64),
    ("preset = \"wan\"", 16, "gcn", 16),
    ("preset = \"ethernet-1g\"", 4, "gcn", 128),
    ("preset = \"ethernet-1g\"", 8, "sage", 16),
    ("preset = \"ethernet-1g\"", 16, "sage", 128),
    ("preset = \"ethernet-10g\"", 4, "sage", 128),
    ("preset = \"ethernet-10g\"", 8, "gcn", 64),
    ("preset = \"ethernet-10g\"", 16, "gin", 64),
    ("preset = \"ethernet-100g\"", 4, "gcn", 64),
    ("preset = \"infiniband-200g\"", 8, "sage", 64),
    ("preset = \"infiniband-200g\"", 16, "gcn", 128),
    (
        "link = { bandwidth = \"50Mbps\", latency = \"5ms\" }",
        8,
        "sage",
        32,
    ),
];

const STRATEGIES: &str = "
[[strategy]]
kind = \"full\"
[[strategy]]
kind = \"fixed\"
ratio = 16
[[strategy]]
kind = \"varco\"
[[strategy]]
kind = \"bns\"
[[strategy]]
kind = \"pipe\"
[[strategy]]
kind = \"adaqp\"
bits = 4
[[strategy]]
kind = \"retexo\"
rounds_per_layer = 1
[[strategy]]
kind = \"grappa\"
[[strategy]]
kind = \"isolated\"
[[strategy]]
kind = \"sylvie\"
[[strategy]]
kind = \"ecgraph\"
[[strategy]]
kind = \"cagnet\"
[[strategy]]
kind = \"sancus\"
[[strategy]]
kind = \"llcg\"
[[strategy]]
kind = \"fedavg\"
";

fn file((network, workers, model, hidden): Setting) -> String {
    let graph = "scale = 11, edge_factor = 8";
    // Its sums are those with which a gcn begins.
    let sums = if model == "gcn" {
        "[[strategy]]\nkind = \"fedgcn\"\n"
    } else {
        ""
    };
    format!(
        "name = \"advised\"\nseeds = [0]\n[dataset]\ncounts = {{ rmat = {{ {graph} }}, features = 64 }}\n\
         [model]\nkind = \"{model}\"\nlayers = 3\nhidden = {hidden}\n[training]\nepochs = 2\nevaluate_every = 2\n\
         [partition]\nmethod = \"random\"\nworkers = {workers}\n[network]\n{network}\n\
         [compute]\ntiming = {{ profile = \"a100\" }}\n{STRATEGIES}{sums}\n\
         [scale.trained]\ndataset = {{ synthetic = {{ kind = \"rmat\", {graph}, classes = 16, features = 64 }}, \
         split = {{ train = 0.1, val = 0.01 }} }}\n"
    )
}

/// Simulated seconds of each strategy, trained.
fn trained(text: &str) -> Vec<(String, f64)> {
    let folder = folder_with(text);
    let run = "run x.toml --scale trained --out out --quiet --json";
    grapevine(folder.path(), &run.split(' ').collect::<Vec<_>>()).expect(0);
    let table = std::fs::read_to_string(folder.path().join("out/runs.csv")).expect("a table");
    let mut lines = table
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    let place = |name: &str| {
        header
            .iter()
            .position(|column| *column == name)
            .expect("a column")
    };
    let (strategy, seconds) = (place("strategy"), place("simulated_seconds"));
    let row = |row: Vec<&str>| {
        (
            row[strategy].to_owned(),
            row[seconds].parse().expect("seconds"),
        )
    };
    lines.map(row).collect()
}

#[test]
fn the_first_that_is_advised_is_the_fastest_that_is_trained_or_near_it() {
    for setting in SETTINGS {
        let text = file(setting);
        let (code, advice, error) = advice(&text, &[]);
        assert_eq!(code, 0, "{error}");
        let ranking: Vec<&str> = (advice[0]["ranking"].as_array().expect("a ranking").iter())
            .map(|advised| advised["strategy"].as_str().expect("a name"))
            .collect();
        let measured = trained(&text);
        let time = |name: &str| {
            measured
                .iter()
                .find(|(other, _)| other == name)
                .map(|found| found.1)
        };
        // Also of those that send node data alone, and without the fastest of these: the order
        // below the first is advice, too.
        for without in [
            &[][..],
            &["isolated"],
            &["isolated", "grappa"],
            &["isolated", "grappa", "retexo"],
        ] {
            let asked = |name: &&str| !without.contains(name);
            // What the program adds was not trained here, and nothing is left to add.
            let mut known = ranking.iter().copied().filter(asked);
            let first = time(known.next().expect("one that fits")).expect("it was trained");
            let fastest = (measured.iter())
                .filter(|(name, _)| asked(&name.as_str()))
                .map(|(_, seconds)| *seconds)
                .fold(f64::INFINITY, f64::min);
            assert!(
                first <= 1.1 * fastest,
                "{setting:?} without {without:?}: {first} {fastest}\n{ranking:?}\n{measured:?}"
            );
        }
    }
}

#[test]
fn advice_says_what_would_change_it_and_what_is_left_out() {
    let (_, advice, _) = advice(&file(SETTINGS[4]), &[]);
    let setting = &advice[0];
    assert_eq!(setting["workers"], 16);
    let reasons = setting["reasons"].as_array().expect("reasons");
    assert_eq!(
        reasons.len(),
        setting["ranking"].as_array().expect("a ranking").len()
    );
    let refused = setting["left_out"].to_string();
    // Both read the graph to plan.
    assert!(
        refused.contains("cluster") && refused.contains("plans from the graph itself"),
        "{refused}"
    );
    // The strategy stands beside the reason, which need not name its cell.
    assert!(!refused.contains("(cell "), "{refused}");
    let changes = setting["changes"].as_array().expect("changes");
    let of = |to: &str| {
        let change = changes
            .iter()
            .find(|change| change["to"] == to)
            .expect("a change");
        let full = change["ranking"].as_array().expect("a ranking").iter();
        let full = full.clone().find(|entry| entry[0] == "full").expect("full");
        full[1].as_f64().expect("seconds")
    };
    let advised = setting["ranking"].as_array().expect("a ranking").iter();
    let now = advised
        .clone()
        .find(|advised| advised["strategy"] == "full")
        .expect("full");
    let now = now["projection"]["simulated_seconds"]
        .as_f64()
        .expect("seconds");
    assert!(of("faster_network") < now && now < of("slower_network"));
    // Nearly all of the time is that of the network, whose latency is small.
    assert!(of("slower_network") > 8.0 * now);
}

#[test]
fn who_is_first_by_sending_nothing_of_nodes_is_told_as_such() {
    let text = "name = \"x\"\nseeds = [0]\n\
        dataset = { counts = { rmat = { scale = 16, edge_factor = 16 } } }\n\
        model = { kind = \"sage\", layers = 2, hidden = 32 }\ntraining = { epochs = 3 }\n\
        partition = { method = \"random\", workers = 8 }\n\
        network = { machine = { gpus = 4, nics = 1, nic = { bandwidth = \"10Gbps\", latency = \"10us\" } }, \
        link = { bandwidth = \"200Gbps\", latency = \"2us\" } }\n\
        compute = { timing = { profile = \"t4\" } }\n\
        strategy = [{ kind = \"isolated\" }, { kind = \"full\" }, { kind = \"grappa\" }]\n";
    let folder = folder_with(text);
    let ran = grapevine(folder.path(), &["advise", "x.toml", "--quiet"]).expect(0);
    // Of random parts of eight an edge joins two with a chance of seven eighths.
    let said = "It sends nothing of nodes, and 87.5 % of the edges join two workers. Of the strategies that send or move some, ";
    let (head, rest) = ran.stdout.split_once(said).expect("it is said");
    assert!(head.starts_with("isolated first, "), "{head}");
    for told in [
        "evaluating",
        "note: grappa: its chunks are dealt in the first epoch and never again: repartition_every = 50, and it trains for 3 epochs",
        "note: an epoch is something else to some: ",
        "retexo has 6 epochs of one sub-model",
    ] {
        assert!(rest.contains(told), "{told}: {rest}");
    }
    // Two machines work for as long as each of their eight workers.
    let (_, advice, _) = advice(text, &[]);
    let first = &advice[0]["ranking"][0]["projection"];
    let of = |key: &str| first[key].as_f64().expect("a number");
    let machines = of("machine_hours") * 3600.0 / of("simulated_seconds");
    assert!((machines - 2.0).abs() < 1e-9, "{machines}");
}

#[test]
fn what_is_assumed_is_said_once_and_of_whom_where_strategies_differ() {
    let told = |text: &str| -> Vec<String> {
        let folder = folder_with(text);
        let ran = grapevine(folder.path(), &["advise", "x.toml", "--quiet"]).expect(0);
        let lines = ran.stdout.lines().map(str::to_owned);
        lines
            .filter(|line| line.contains("known in expectation"))
            .collect()
    };
    let text = file(SETTINGS[5]);
    let text = text.split("[scale.trained]").next().expect("text");
    let alike = told(text);
    assert_eq!(alike.len(), 1, "{alike:?}");
    assert!(alike[0].starts_with("note: 2048 nodes, "), "{alike:?}");
    // Grappa's chunks are random, whatever the parts of the others.
    let fit = "features = 64, fit = { scales = [8, 9, 10, 11], graphs = 1 } }";
    let fitted = text
        .replace("features = 64 }", fit)
        .replace("\"random\"", "\"ldg\"");
    let mut differ = told(&fitted);
    assert_eq!(differ.len(), 2, "{differ:?}");
    differ.sort_by_key(|note| !note.starts_with("note: grappa: "));
    let [grappa, others] = [&differ[0], &differ[1]];
    assert!(grappa.starts_with("note: grappa: 2048 nodes, "), "{grappa}");
    assert!(grappa.contains("equal random parts"), "{grappa}");
    assert!(others.contains("parts of ldg by a fit"), "{others}");
    let names = others.split(": ").nth(1).expect("names");
    let names: Vec<&str> = names.split(", ").collect();
    assert!(
        names.contains(&"full") && names.contains(&"bns"),
        "{names:?}"
    );
    assert!(!names.contains(&"grappa"), "{names:?}");
}

#[test]
fn what_no_device_can_hold_is_left_out_with_both_sizes() {
    let text = file(SETTINGS[0]).replace("scale = 11", "scale = 36");
    let (code, advice, error) = advice(text.split("[scale.trained]").next().expect("text"), &[]);
    assert_eq!(code, 2, "nothing fits: {error}");
    let names = |list: &str| advice[0][list].to_string();
    assert!(!names("ranking").contains("\"full\""), "{advice}");
    assert!(
        names("left_out").contains("\"there\":40000000000"),
        "{advice}"
    );
}

#[test]
fn what_is_too_large_now_counts_where_there_is_room() {
    let text = "name = \"room\"\nseeds = [0]\n\
        dataset = { counts = { rmat = { scale = 23 }, features = 128, classes = 16 } }\n\
        model = { kind = \"sage\", layers = 3, hidden = 400 }\ntraining = { epochs = 2 }\n\
        partition = { method = \"random\", workers = 16 }\nnetwork = { preset = \"ethernet-10g\" }\n\
        compute = { timing = { profile = \"t4\" } }\nstrategy = [{ kind = \"isolated\" }, { kind = \"varco\" }]\n";
    let (code, advice, error) = advice(text, &[]);
    assert_eq!(code, 0, "{error}");
    let advised = |list: &str| {
        let list = advice[0][list].as_array().expect("a list").iter();
        list.map(|entry| entry["strategy"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    let (ranking, left_out) = (advised("ranking"), advised("left_out"));
    assert!(ranking.contains(&"isolated".to_owned()), "{ranking:?}");
    assert!(left_out.contains(&"varco".to_owned()), "{left_out:?}");
    let changes = advice[0]["changes"].as_array().expect("changes").iter();
    let fits = |to: &str| {
        let change = changes.clone().find(|change| change["to"] == to);
        let ranking = change.expect(to)["ranking"].as_array().expect("a ranking");
        ranking.iter().any(|entry| entry[0] == "varco")
    };
    assert!(fits("twice_the_workers"));
    assert!(!fits("half_the_workers") && !fits("faster_network"));
}

#[test]
fn other_parts_would_change_a_ranking_but_of_entries_that_have_their_own() {
    let text = "name = \"cora-here\"\nseeds = [0]\ndataset = { name = \"cora\" }\nmodel = { kind = \"gcn\" }\n\
        training = { epochs = 2 }\npartition = { workers = 4 }\nnetwork = { preset = \"ethernet-1g\" }\n\
        compute = { timing = { profile = \"a100\" } }\nstrategy = [{ kind = \"full\" }, \
        { kind = \"full\", label = \"cut\", overlap = true, with = { \"partition.method\" = \"metis\" } }]\n";
    let (code, advice, error) = advice(text, &[]);
    assert_eq!(code, 0, "{error}");
    let setting = &advice[0];
    let ranking = setting["ranking"].as_array().expect("a ranking").iter();
    let now = |name: &str| {
        let one = ranking.clone().find(|one| one["strategy"] == name);
        one.expect(name)["projection"]["simulated_seconds"].as_f64()
    };
    let changes = setting["changes"].as_array().expect("changes").iter();
    let then = |to: &str, name: &str| {
        let change = changes.clone().find(|change| change["to"] == to);
        let mut ranking = change.expect(to)["ranking"].as_array()?.iter();
        ranking.find(|entry| entry[0] == name)?[1].as_f64()
    };
    // Parts are METIS's where nothing else is said; random ones cut more edges.
    assert!(then("random_parts", "full") > now("full"));
    assert_eq!(then("random_parts", "cut"), now("cut"));
    for name in ["full", "cut"] {
        assert_ne!(then("half_the_workers", name), now(name));
    }
    assert!(changes.clone().all(|change| change["to"] != "metis_parts"));
}

#[test]
fn what_cannot_be_asked_has_a_line_that_says_why() {
    let text = "name = \"asked\"\nseeds = [0]\ndataset = { name = \"cora\" }\nmodel = { kind = \"gcn\" }\n\
        training = { epochs = 2 }\npartition = { method = \"dirichlet\", concentration = 1.0, workers = 2 }\n\
        network = { preset = \"ethernet-1g\", worker = [{ rank = 1, bandwidth = \"100Mbps\" }] }\n\
        compute = { timing = { profile = \"a100\" } }\nstrategy = [{ kind = \"full\" }]\n";
    let (code, advice, error) = advice(text, &[]);
    assert_eq!(code, 0, "{error}");
    let asked = |key: &str, to: &str| {
        let all = advice[0][key].as_array().into_iter().flatten();
        let mut found = all.filter(|one| one["to"] == to);
        found.next().cloned()
    };
    // One worker has no link of rank 1.
    let half = asked("unasked", "half_the_workers").expect("half");
    let why = half["why"].as_str().expect("a reason");
    assert!(
        why.contains("`rank` must be less than the 1 workers"),
        "{why}"
    );
    assert!(asked("changes", "half_the_workers").is_none());
    for to in ["twice_the_workers", "faster_network", "random_parts"] {
        assert!(
            asked("changes", to).is_some() && asked("unasked", to).is_none(),
            "{to}"
        );
    }
}

#[test]
fn a_probe_trains_a_part_of_the_graph() {
    let text = "name = \"cora-here\"\nseeds = [0]\ndataset = { name = \"cora\" }\nmodel = { kind = \"gcn\" }\n\
        training = { epochs = 5 }\npartition = { workers = 2 }\nnetwork = { preset = \"ethernet-1g\" }\n\
        compute = { timing = { profile = \"a100\" } }\nstrategy = [{ kind = \"full\" }]\n";
    let (code, advice, error) = advice(text, &["--probe=600"]);
    assert_eq!(code, 0, "{error}");
    let ranking = advice[0]["ranking"].as_array().expect("a ranking");
    assert!(ranking.len() >= 9, "{advice}");
    for advised in ranking {
        let probe = &advised["probe"];
        assert_eq!(
            (probe["nodes"].as_u64(), probe["workers"].as_u64()),
            (Some(600), Some(2))
        );
        let accuracies = probe["accuracies"].as_array().expect("accuracies");
        assert_eq!(accuracies.len(), 3);
        assert!(
            accuracies
                .iter()
                .all(|a| a.as_f64().is_some_and(|a| (0.0..=1.0).contains(&a))),
            "{probe}"
        );
    }
}

#[test]
fn a_probe_of_fewer_workers_says_so() {
    let text = "name = \"cora-here\"\nseeds = [0]\ndataset = { name = \"cora\" }\nmodel = { kind = \"gcn\", hidden = 4 }\n\
        training = { epochs = 1 }\npartition = { workers = 4 }\nnetwork = { preset = \"ethernet-1g\" }\n\
        compute = { timing = { profile = \"a100\" } }\nstrategy = [{ kind = \"full\" }, \
        { kind = \"isolated\", label = \"alone\", with = { \"partition.workers\" = 1 } }]\n";
    let folder = folder_with(text);
    let told = |probe: &str| {
        let arguments = ["advise", "x.toml", "--quiet", probe];
        grapevine(folder.path(), &arguments).expect(0).stdout
    };
    let few = told("--probe=500");
    assert!(few.contains("over 2 workers after 1 epoch, "), "{few}");
    assert!(few.contains("2 workers in place of 4"), "{few}");
    assert!(!told("--probe=1000").contains("in place of 4"));
}

#[test]
fn who_does_not_go_with_a_sample_is_ranked_all_the_same() {
    let text = "name = \"cora-here\"\nseeds = [0]\ndataset = { name = \"cora\" }\nmodel = { kind = \"gcn\", hidden = 4 }\n\
        training = { epochs = 1 }\npartition = { workers = 3 }\nnetwork = { preset = \"ethernet-1g\" }\n\
        compute = { timing = { profile = \"a100\" } }\nstrategy = [{ kind = \"full\" }, { kind = \"grappa\", chunks = 9 }]\n";
    let folder = folder_with(text);
    let arguments = ["advise", "x.toml", "--quiet", "--probe=500"];
    let told = grapevine(folder.path(), &arguments).expect(0).stdout;
    // Nine chunks go with three workers, and not with the two of a sample of 500.
    assert!(told.contains("note: grappa: no probe of it: "), "{told}");
    assert!(told.contains("of the 2 workers"), "{told}");
    assert!(told.contains("half the workers (1)"), "{told}");
    assert!(told.contains("twice the workers (6)"), "{told}");
}

#[test]
fn others_join_where_an_entry_has_the_settings_of_the_file() {
    let text = |with: &str| {
        format!(
            "name = \"cora-here\"\nseeds = [0]\ndataset = {{ name = \"cora\" }}\nmodel = {{ kind = \"gcn\", hidden = 4 }}\n\
             training = {{ epochs = 1 }}\npartition = {{ workers = 2 }}\nnetwork = {{ preset = \"ethernet-1g\" }}\n\
             compute = {{ timing = {{ profile = \"a100\" }} }}\nstrategy = [{{ kind = \"full\"{with} }}]\n"
        )
    };
    let asked = |with: &str| {
        let (code, advice, error) = advice(&text(with), &[]);
        assert_eq!(code, 0, "{error}");
        let left_out = advice[0]["left_out"].as_array().expect("a list");
        let others = left_out.iter().any(|one| one["strategy"] == "all others");
        let ranked = advice[0]["ranking"].as_array().expect("a ranking").len();
        (ranked, others)
    };
    assert_eq!(asked(", with = { \"partition.workers\" = 3 }"), (1, true));
    let (ranked, others) = asked("");
    assert!(ranked > 5 && !others, "{ranked}");
}

#[test]
fn a_probe_of_counts_is_on_a_drawn_graph_of_as_many_nodes() {
    let text = "name = \"numbers\"\nseeds = [0]\n\
        dataset = { counts = { rmat = { scale = 20, edge_factor = 4 }, features = 8, classes = 4 } }\n\
        model = { kind = \"gcn\", hidden = 4 }\ntraining = { epochs = 1 }\n\
        partition = { method = \"random\", workers = 4 }\nnetwork = { preset = \"ethernet-1g\" }\n\
        compute = { timing = { profile = \"a100\" } }\nstrategy = [{ kind = \"full\" }]\n";
    let folder = folder_with(text);
    let told = |probe: &str| {
        let arguments = ["advise", "x.toml", "--quiet", probe];
        grapevine(folder.path(), &arguments).expect(0).stdout
    };
    let all = told("--probe=1100");
    let on = "on 1100 nodes of a drawn graph over 4 workers after 1 epoch, ";
    assert!(all.contains(on), "{all}");
    assert!(!all.contains("in place of 4"), "{all}");
    let few = told("--probe=500");
    assert!(few.contains("on 500 nodes of a drawn graph"), "{few}");
    let so = "at least 250 nodes a worker, so that these are 2 workers in place of 4";
    assert!(few.contains(so), "{few}");
    assert!(few.contains("--probe=1000 has all"), "{few}");
}

#[test]
fn advice_without_a_device_is_refused() {
    let text = file(SETTINGS[0]).replace("timing = { profile = \"a100\" }", "");
    let (code, _, error) = advice(&text, &[]);
    assert_eq!(code, 2);
    assert!(error.contains("must name a device"), "{error}");
    // On fewer nodes there would be one worker, which loses nothing to any strategy.
    let (code, _, error) = advice(&file(SETTINGS[0]), &["--probe=499"]);
    assert_eq!(code, 2, "{error}");
}

/// A file with parts of a graph of numbers, and these sizes of what they are fitted to.
fn fitted(scales: &str) -> String {
    format!(
        "name = \"fit\"\nseeds = [0]\n\
         dataset = {{ counts = {{ rmat = {{ scale = 16, edge_factor = 8 }}, fit = {{ scales = {scales}, graphs = 1 }} }} }}\n\
         model = {{ kind = \"gcn\", hidden = 8 }}\ntraining = {{ epochs = 1 }}\n\
         partition = {{ method = \"ldg\", workers = 8 }}\nnetwork = {{ preset = \"ethernet-10g\" }}\n\
         compute = {{ timing = {{ profile = \"t4\" }} }}\n[[strategy]]\nkind = \"full\"\n"
    )
}

#[test]
fn what_is_wrong_with_the_graph_is_wrong_for_all() {
    let (code, _, error) = advice(&fitted("[2, 4, 5, 6]"), &[]);
    assert_eq!(code, 2, "{error}");
    assert!(
        error.contains("x.toml:3: in [dataset]: `fit.scales`"),
        "{error}"
    );
    let like = fitted("[6, 7, 8, 9]").replace(
        "rmat = { scale = 16, edge_factor = 8 }",
        "like = \"reddit\"",
    );
    let (code, _, error) = advice(&like, &[]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("begin higher"), "{error}");
}

#[test]
fn random_parts_of_numbers_need_no_fit() {
    let (code, advice, error) = advice(&fitted("[6, 7, 8, 9]"), &[]);
    assert_eq!(code, 0, "{error}");
    let unasked = &advice[0]["unasked"];
    assert!(unasked.as_array().is_none_or(Vec::is_empty), "{unasked}");
    let changes = advice[0]["changes"].as_array().expect("a list");
    let random = changes.iter().find(|change| change["to"] == "random_parts");
    assert!(random.is_some(), "{changes:?}");
}
