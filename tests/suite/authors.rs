//! Losses of the authors' own programs, from the same graph, parts and initial weights, epoch by
//! epoch: `tests/authors/losses.csv` is what `scripts/authors` left of them
//! (docs/beside-the-authors.md).

use std::fs;

use crate::command::{folder_with, grapevine};

/// The training losses of each strategy of an experiment on a bundled graph over four random parts,
/// by its label.
fn losses(graph: &str, settings: &str) -> Vec<(String, Vec<f64>)> {
    let text = format!(
        "name = \"beside\"\nseeds = [0]\n\
        dataset = {{ name = \"{graph}\", split = \"public\", normalise_features = false }}\n\
        partition = {{ method = \"random\", workers = 4 }}\nnetwork = {{ preset = \"ethernet-1g\" }}\n\
        compute = {{ timing = {{ profile = \"t4\" }} }}\n{settings}"
    );
    let folder = folder_with(&text);
    grapevine(folder.path(), &["run", "x.toml", "--out", "out", "--quiet"]).expect(0);
    let epochs = fs::read_to_string(folder.path().join("out/epochs.csv")).expect("a table");
    let mut rows = epochs
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let header = rows.next().expect("a header");
    let column = |name| {
        header
            .iter()
            .position(|known| *known == name)
            .expect("a column")
    };
    let (cell, loss) = (column("cell"), column("train_loss"));
    let mut found: Vec<(String, Vec<f64>)> = Vec::new();
    for row in rows {
        let loss = row[loss].parse().expect("a number");
        match found.last_mut() {
            Some((known, losses)) if known == row[cell] => losses.push(loss),
            _ => found.push((row[cell].to_owned(), vec![loss])),
        }
    }
    found
}

/// The losses of the authors' program in a case of `scripts/beside/cases.py`.
fn theirs(program: &str, case: &str) -> Vec<f64> {
    let all = include_str!("../authors/losses.csv");
    // A case may have commas: "program,case,epoch,theirs,ours" is read from its end.
    let of_case = all.lines().filter_map(|line| {
        let mut columns = line.rsplitn(4, ',');
        let (_, theirs, _) = (columns.next()?, columns.next()?, columns.next()?);
        let (of, named) = columns.next()?.split_once(',')?;
        (of == program && named.trim_matches('"') == case).then(|| theirs.parse().expect("a loss"))
    });
    of_case.collect()
}

/// Trains the strategies of these settings on Cora and holds each to the authors' program, by its label
/// there and the name of the case.
fn assert_theirs(program: &str, settings: &str, cases: &[(&str, &str)]) {
    assert_theirs_on("cora", program, settings, cases);
}

fn assert_theirs_on(graph: &str, program: &str, settings: &str, cases: &[(&str, &str)]) {
    let ours = losses(graph, settings);
    assert_eq!(ours.len(), cases.len(), "{ours:?}");
    for ((cell, ours), (label, case)) in ours.iter().zip(cases) {
        assert_eq!(cell, label);
        let theirs = theirs(program, case);
        assert_eq!(ours.len(), theirs.len(), "epochs of {case}");
        for (epoch, (our, their)) in ours.iter().zip(&theirs).enumerate() {
            // Sums are taken in other orders, in single precision: that alone parts losses by
            // 7e-5 at most, and those of a hundredth of a thousandth by more of themselves.
            assert!(
                (our - their).abs() < 2e-4 * their + 1e-6,
                "{cell}, epoch {epoch}: {our} for {their}"
            );
        }
    }
}

/// GraphSAGE as BNS-GCN's and `PipeGCN`'s authors have it, with one bias a layer.
const SAGE: &str = "optimizer = { kind = \"adam\", learning_rate = 0.01 }\n\
    model = { kind = \"sage\", layers = 3, hidden = 16, norm = \"layer\", self_loops = true, dropout = 0.0 }\n";

#[test]
fn losses_are_those_of_bns_gcns_program() {
    let settings = format!(
        "{SAGE}training = {{ epochs = 40, evaluate_every = 40 }}\nstrategy = [{{ kind = \"bns\", share = 1.0 }}]\n"
    );
    assert_theirs("bns", &settings, &[("bns", "GraphSAGE, p = 1")]);
    // With the degrees of its halo mended, without which theirs are others.
    let settings = "optimizer = { kind = \"adam\", learning_rate = 0.01 }\n\
        model = { kind = \"gcn\", layers = 2, hidden = 16, norm = \"layer\", dropout = 0.0 }\n\
        training = { epochs = 20, evaluate_every = 20 }\nstrategy = [{ kind = \"bns\", share = 1.0 }]\n";
    assert_theirs("bns", settings, &[("bns", "GCN, p = 1, degrees mended")]);
}

#[test]
fn losses_of_training_nodes_alone_are_those_of_bns_gcns_program() {
    let settings = format!(
        "{SAGE}task = {{ metric = \"accuracy\" }}\n\
        training = {{ epochs = 20, evaluate_every = 20, inductive = true }}\n\
        strategy = [{{ kind = \"bns\", share = 1.0 }}]\n"
    );
    assert_theirs_on(
        "minesweeper",
        "bns",
        &settings,
        &[("bns", "inductive, p = 1")],
    );
}

#[test]
fn losses_are_those_of_pipe_gcns_program_late_and_smoothed() {
    let settings = format!(
        "{SAGE}training = {{ epochs = 20, evaluate_every = 20 }}\nstrategy = [\n\
        {{ kind = \"full\", exchange = \"input\" }},\n{{ kind = \"pipe\" }},\n\
        {{ kind = \"pipe\", smoothing = \"features\", label = \"F\" }},\n\
        {{ kind = \"pipe\", smoothing = \"gradients\", label = \"G\" }},\n\
        {{ kind = \"pipe\", smoothing = \"both\", label = \"GF\" }},\n\
        {{ kind = \"pipe\", cache_features = false, label = \"features late\" }},\n]\n"
    );
    let cases = [
        ("full", "no pipeline"),
        ("pipe", "PipeGCN"),
        ("F", "PipeGCN-F"),
        ("G", "PipeGCN-G"),
        ("GF", "PipeGCN-GF"),
        ("features late", "without --use-pp"),
    ];
    assert_theirs("pipe", &settings, &cases);
}

#[test]
fn losses_are_those_of_retexos_program() {
    let mended = "GCN, 30 rounds, degrees and ties mended";
    for (kind, case) in [("gcn", mended), ("sage", "SAGE, 30 rounds")] {
        let settings = format!(
            "optimizer = {{ kind = \"adam\", learning_rate = 0.003, weight_decay = 5e-4 }}\n\
            model = {{ kind = \"{kind}\", layers = 2, hidden = 256, norm = \"layer\", self_loops = false, dropout = 0.0 }}\n\
            training = {{ epochs = 30, evaluate_every = 1 }}\nstrategy = [{{ kind = \"retexo\" }}]\n"
        );
        assert_theirs("retexo", &settings, &[("retexo", case)]);
    }
}

#[test]
fn losses_are_those_of_varcos_program_where_nothing_is_compressed() {
    let settings = "optimizer = { kind = \"adam\", learning_rate = 0.01 }\n\
        model = { kind = \"sage\", layers = 3, hidden = 256, self_loops = true, gain = 1.4142135623730951, dropout = 0.0, input_dropout = 0.0 }\n\
        training = { epochs = 20, evaluate_every = 20 }\nstrategy = [{ kind = \"full\", cache_features = false }]\n";
    let case = "no compression, all columns of features";
    assert_theirs("varco", settings, &[("full", case)]);
}
