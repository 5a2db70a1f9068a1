//! Studies as they are written, rightly and wrongly.

use super::*;

const STUDY: &str = "name = \"small\"\n\
    [[graph]]\nkind = \"sbm\"\nnodes = 24\nclasses = 3\nfeatures = 4\ndegree_within = 3\ndegree_between = 1\n\
    [model]\nhidden = 4\n\
    [[design]]\nkind = \"random\"\nworkers = [2, 3]\n\
    [[estimator]]\nweight = \"none\"\n\
    [[estimator]]\nweight = \"batch_mean\"\nshrinkage = \"lambda\"\n";

fn message(from: &str, to: &str) -> String {
    assert!(STUDY.contains(from));
    EstimatorStudy::parse(&STUDY.replacen(from, to, 1), "x.toml", &[])
        .unwrap_err()
        .to_string()
}

#[test]
fn what_is_not_said_has_a_default() {
    let study = EstimatorStudy::parse(STUDY, "x.toml", &["seed=7".to_owned()]).unwrap();
    assert_eq!(
        (study.seed, study.sampling.seed, study.sampling.samples),
        (7, 7, 2000)
    );
    assert_eq!(
        (study.designs[0].halo.as_slice(), study.designs[0].label()),
        (&[false][..], "random".to_owned())
    );
    let shown: Vec<String> = study.figure.iter().map(Estimator::label).collect();
    assert_eq!(shown, ["none", "batch_mean(lambda)"]);
    assert_eq!(
        study.model,
        ToyModel {
            hidden: 4,
            ..ToyModel::default()
        }
    );
}

#[test]
fn mistakes_are_told_with_their_line_and_what_would_be_right() {
    for (from, to, expected) in [
        (
            "hidden = 4",
            "hiden = 4",
            "x.toml:10: in [model]: unknown key `hiden`; did you mean `hidden`?",
        ),
        (
            "hidden = 4",
            "hidden = 100000000000",
            "x.toml:10: in [model]: `hidden` must be at most 65536 columns, not 100000000000",
        ),
        (
            "[model]",
            "[modle]",
            "x.toml:9: unknown key `modle`; did you mean `model`?",
        ),
        (
            "\"none\"",
            "\"nope\"",
            "x.toml:15: in [[estimator]]: `weight` cannot be \"nope\"; did you mean `none`?",
        ),
        (
            "\"none\"",
            "\"node_ht\"",
            "x.toml:14: `estimator` must have one of weight = \"none\"",
        ),
        (
            "\"batch_mean\"",
            "\"node_ht\"",
            "x.toml:18: in [[estimator]]: `shrinkage` of this kind needs a batch weight",
        ),
        (
            "\"batch_mean\"\nshrinkage = \"lambda\"",
            "\"none\"",
            "x.toml:16: `estimator` \"none\" is there twice",
        ),
        (
            "[2, 3]",
            "[2, 25]",
            "x.toml:13: in [[design]]: `workers` must make 1 to 24 parts",
        ),
        (
            "[2, 3]",
            "[]",
            "x.toml:13: in [[design]]: `workers` must list at least one number",
        ),
        (
            "[2, 3]",
            "[2]\nchunking = \"metis\"",
            "x.toml:14: in [[design]]: `chunking` goes with kind",
        ),
        (
            "\"random\"",
            "\"radnom\"",
            "x.toml:12: in [[design]]: `kind` cannot be \"radnom\"; did you mean `random`?",
        ),
        (
            "nodes = 24",
            "nodes = 2400",
            "x.toml:4: in [[graph]]: `nodes` must give a small graph, of at most 2000 nodes",
        ),
        (
            "nodes = 24",
            "node = 24",
            "x.toml:4: in [[graph]]: unknown key `node`; did you mean `nodes`?",
        ),
        (
            "[model]",
            "figure = [\"all\"]\n[model]",
            "x.toml:9: in [[graph]]: unknown key `figure`",
        ),
        (
            "[model]",
            "[sampling]\nsamples = 3\n[model]",
            "x.toml:10: in [sampling]: `samples` must be at least 40",
        ),
        (
            "[[graph]]",
            "figure = [\"nonne\"]\n[[graph]]",
            "x.toml:2: `figure` cannot be \"nonne\"; did you mean `none`?",
        ),
        (
            "name = \"small\"",
            "name = \"A b\"",
            "x.toml:1: `name` must be made of a to z",
        ),
        (
            "\"lambda\"\n",
            "\"lambda\"\nlambda = 2\n",
            "x.toml:19: in [[estimator]]: `lambda` must be between 0 and 1",
        ),
    ] {
        let found = message(from, to);
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
}
