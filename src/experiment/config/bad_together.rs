//! Keys that do not go together, and what is then said.

/// What is replaced in a sound file, by what, and the message, as in `bad_inputs`.
pub(super) const TOGETHER: &[(&str, &str, &str)] = &[
    (
        "name = \"cora\"",
        "",
        "x.toml:3: in [dataset]: no data; give one of `name`, `path` (with `format`), `synthetic`, \
         `shards` and `counts`",
    ),
    (
        "name = \"cora\"",
        "name = \"cora\"\npath = \"x\"",
        "x.toml:3: in [dataset]: `name`, `path`, `synthetic`, `shards` and `counts` exclude each other; \
         keep the one you mean",
    ),
    (
        "name = \"cora\"",
        "path = \"x\"",
        "x.toml:4: in [dataset]: `path` needs `format` beside it, how the files are written: planetoid, linqs, …",
    ),
    (
        "method = \"metis\"",
        "method = \"given\"",
        "x.toml:14: in [partition]: `method` \"given\" needs `file` beside it: one worker number \
         per node and line",
    ),
    (
        "method = \"metis\"",
        "method = \"ldg\"\nbalance = [\"training\"]",
        "x.toml:15: in [partition]: `balance` goes with `method = \"metis\"` only: the other methods \
         know nodes alone; leave it out",
    ),
    (
        "method = \"metis\"",
        "method = \"random\"\nobjective = \"volume\"",
        "x.toml:15: in [partition]: `objective` goes with `method = \"metis\"` only: the other methods \
         have one of their own; leave it out",
    ),
    (
        "method = \"metis\"",
        "method = \"dirichlet\"",
        "x.toml:14: in [partition]: `method` \"dirichlet\" and `concentration` need each other: a number, like 1; the \
         smaller, the more workers differ in their classes",
    ),
    (
        "method = \"metis\"",
        "concentration = 1",
        "x.toml:14: in [partition]: `concentration` and `method = \"dirichlet\"` need each other: a number, like 1; the \
         smaller, the more workers differ in their classes",
    ),
    (
        "method = \"metis\"",
        "method = \"dirichlet\"\nconcentration = 0",
        "x.toml:15: in [partition]: `concentration` must be from 1e-9 to 1e9, not 0",
    ),
    (
        "method = \"metis\"",
        "balance = [\"edges\", \"nodes\", \"edges\"]",
        "x.toml:14: in [partition]: `balance` has an entry twice; say each of \"nodes\", \"training\" \
         and \"edges\" once at most",
    ),
    // The experiment as a whole.
    (
        "\"quickstart\"",
        "\"Quick start\"",
        "x.toml:1: `name` must be made of a to z, 0 to 9, `-` and `_`, because folders are named \
         after it; \"Quick start\" is not",
    ),
    (
        "seeds = [0, 1, 2]",
        "seeds = []",
        "x.toml:2: `seeds` must have at least one seed, like [0, 1, 2]",
    ),
    (
        "seeds = [0, 1, 2]",
        "seeds = [0, 1, 0]",
        "x.toml:2: `seeds` must be distinct, and 0 is there twice",
    ),
    (
        "seeds = [0, 1, 2]",
        "seeds = { first = 1, most = 30 }",
        "x.toml:2: in [seeds]: `first` must be 3 or more, not 1: a look at fewer decides nothing (statistics.minimum_seeds)",
    ),
    (
        "seeds = [0, 1, 2]",
        "seeds = { first = 5, most = 4 }",
        "x.toml:2: in [seeds]: `most` must be `first` or more, and 4 is less than 5",
    ),
    (
        "kind = \"fixed\"\nratio = 8",
        "kind = \"full\"",
        "x.toml:22: in [[strategy]]: two strategies would be called \"full\"; give this one a \
         `label` of its own",
    ),
    (
        "ratio = 8",
        "ratio = 8\nlabel = \"Full\"",
        "x.toml:25: in [[strategy]]: `label` \"Full\" is the name of a strategy, `full`, and this one is `fixed`; choose another label",
    ),
    (
        "ratio = 8",
        "ratio = 8\nlabel = \"eight \"",
        "x.toml:25: in [[strategy]]: `label` must not begin or end with a blank, nor have a line break or another control character",
    ),
    (
        "statement = \"same accuracy\"",
        "statement = \"same\\naccuracy\"",
        "x.toml:30: in [[claim]]: `statement` must have a text, on one line",
    ),
    (
        "\"partition.workers\" = [2, 4]",
        "\"partition.workers\" = [2, 4]\npartition = [{ workers = 8 }]",
        "x.toml:27: in [sweep]: `partition` comes after `partition.workers` and sets it anew, so that the values of \
         `partition.workers` are lost; write `partition` first",
    ),
    (
        "[2, 4]",
        "[2, 0]",
        "x.toml:26: in [partition]: `workers` must be at least 1, not 0",
    ),
    (
        "\"partition.workers\"",
        "\"partition.wokers\"",
        "x.toml:26: in [partition]: unknown key `wokers`; did you mean `workers`? Possible keys: \
         method, workers, file, seed, balance, objective, concentration",
    ),
    (
        "\"partition.workers\" = [2, 4]",
        "\"strategy.1.ratio\" = [2, 4]",
        "x.toml:26: in [sweep]: `strategy.1.ratio` cannot be swept; the key must be in one of the \
         sections dataset, task, model, optimizer, training, partition, network, device, compute",
    ),
    (
        "[2, 4]",
        "4",
        "x.toml:26: in [sweep]: `partition.workers` needs a list of values, like [4], not 4",
    ),
    (
        "\"partition.workers\" = [2, 4]",
        "dataset = \"cora\"",
        "x.toml:26: in [sweep]: `dataset` needs a list of whole sections, like [{ key = \"cora\" }], not \"cora\"",
    ),
    (
        "[2, 4]",
        "[]",
        "x.toml:26: in [sweep]: `partition.workers` has no values; give at least one or remove the \
         key",
    ),
    (
        "[2, 4]",
        "[2, 2]",
        "x.toml:26: in [sweep]: `partition.workers` has the value 2 twice",
    ),
    (
        "\"partition.workers\" = [2, 4]",
        "partition.workers = [2, 4]",
        "x.toml:26: in [sweep]: write the whole key in quotes, like \"partition.workers\" = [1, 2]",
    ),
    (
        "within = 0.01 }",
        "within = 0.01, equals = 1 }",
        "x.toml:32: in [[claim]]: `compare` is wrong: give exactly one condition of within, at_most_below, at_least_above, at_least_below and times_less (with `to`), equals, at_least, at_most and between (without)",
    ),
    (
        "within = 0.01 }",
        "within = 5 }",
        "x.toml:32: in [[claim]]: 5 is no difference of shares: accuracies are from 0 to 1, and 0.05 is five points",
    ),
    (
        "to = \"workers=2 full\", within = 0.01 }",
        "between = [0.5, 80] }",
        "x.toml:32: in [[claim]]: 80 is no share: accuracies are from 0 to 1, and 0.8 is 80 %",
    ),
    (
        "\"test_accuracy\"",
        "\"test_acuracy\"",
        "x.toml:31: in [[claim]]: `measure` cannot be \"test_acuracy\"; did you mean \
         `test_accuracy`? Possible values: …",
    ),
    // Statistics.
    (
        "[[figure]]",
        "[[figure]]\nkind = \"pareto\"\n[[figure]]",
        "x.toml:36: in [[figure]]: `kind` is drawn already: there is one figure of each kind",
    ),
    (
        "[[figure]]",
        "[statistics]\nlevel = 95\n[[figure]]",
        "x.toml:34: in [statistics]: `level` must be between 0 and 1, like 0.95, not 95",
    ),
    (
        "[[figure]]",
        "[statistics]\ninterval = \"normal\"\n[[figure]]",
        "x.toml:34: in [statistics]: `interval` cannot be \"normal\". Possible values: student-t, bootstrap",
    ),
    (
        "[[figure]]",
        "[statistics]\nminimum_seeds = 0\n[[figure]]",
        "x.toml:34: in [statistics]: `minimum_seeds` must be 1 or more",
    ),
    (
        "measure = \"test_accuracy\"",
        "measure = \"seconds_to_target\"",
        "x.toml:31: in [[claim]]: `measure` \"seconds_to_target\" needs training.target_accuracy in every cell; set it",
    ),
    (
        "epochs = 200",
        "epochs = 200\nbyte_budget = 0",
        "x.toml:13: in [training]: `byte_budget` must be 1 or more, not 0",
    ),
    (
        "epochs = 200",
        "epochs = 200\ntime_budget = \"5 MB\"",
        "x.toml:13: in [training]: `time_budget` is wrong: \"5 MB\" is not a valid time: unknown unit \"MB\"…",
    ),
];
