//! Ways to get an experiment file wrong, and what is then said.

/// What is replaced in a sound file, by what, and the message; `…` ends what is compared.
pub(super) const BAD_INPUTS: &[(&str, &str, &str)] = &[
    // Keys.
    (
        "hidden = 16",
        "hiden = 16",
        "x.toml:7: in [model]: unknown key `hiden`; did you mean `hidden`? Possible keys: kind, \
         layers, hidden, heads, dropout, input_dropout, attention_dropout, activation, self_loops, \
         init, gain, biases, head_biases, weights, norm, residual",
    ),
    (
        "weight_decay",
        "weigth_decay",
        "x.toml:10: in [optimizer]: unknown key `weigth_decay`; did you mean `weight_decay`? \
         Possible keys: kind, learning_rate, weight_decay, epsilon",
    ),
    (
        "name = \"cora\"",
        "synthetic = { kind = \"sbm\", node = 5 }",
        "x.toml:4: in [dataset.synthetic]: unknown key `node`; did you mean `nodes`? Possible \
         keys: kind, nodes, classes, features, degree_within, degree_between, noise, labels, seed",
    ),
    (
        "name = \"cora\"",
        "name = \"cora\"\nsplit = { train = 0.6, vla = 0.2 }",
        "x.toml:5: in [dataset.split]: unknown key `vla`; did you mean `val`? Possible keys: \
         train, val, seed",
    ),
    (
        "profile =",
        "profil =",
        "x.toml:19: in [compute.timing]: unknown key `profil`; did you mean `profile`? Possible \
         keys: profile, staging, sampling",
    ),
    (
        "timing = { profile = \"a100\" }",
        "worker = [{ rank = 1, profile = \"a100\" }]",
        "x.toml:19: in [compute]: `worker` needs timing = { profile = … }, which the other workers \
         have",
    ),
    (
        "timing = { profile = \"a100\" }",
        "timing = { profile = \"a100\" }\nworker = [{ rank = 4, profile = \"a100\" }]",
        "x.toml:20: in [compute]: `worker` names worker 4, but the workers are numbered 0 to 3",
    ),
    (
        "timing = { profile = \"a100\" }",
        "timing = { profile = \"a100\" }\nworker = [{ rank = 0, profile = \"t5\" }]",
        "x.toml:20: in [[compute.worker]]: `profile` cannot be \"t5\". Possible values: cpu-core, t4, v100, a100, h100",
    ),
    (
        "profile = \"a100\"",
        "profile = { operations_per_second = 1e12, bytes_per_second = -1.0 }",
        "x.toml:19: in [compute.timing]: `profile` `bytes_per_second` of a device must be a number above 0",
    ),
    (
        "profile = \"a100\"",
        "profile = { operations_per_second = 1e12 }",
        "x.toml:19: in [compute.timing.profile]: the key `bytes_per_second` is missing; add it",
    ),
    (
        "ratio = 8",
        "rate = 8",
        "x.toml:24: in [[strategy]]: unknown key `rate`; did you mean `ratio`? Possible keys: \
         codec, ratio, …",
    ),
    (
        "kind = \"pareto\"",
        "kind = \"pareto\"\nname = \"x\"",
        "x.toml:35: in [[figure]]: unknown key `name`. Possible keys: kind, title",
    ),
    // Missing.
    (
        "epochs = 200",
        "",
        "x.toml:11: in [training]: the key `epochs` is missing; add it",
    ),
    (
        "seeds = [0, 1, 2]",
        "",
        "x.toml: the key `seeds` is missing; add it",
    ),
    (
        "[training]\nepochs = 200",
        "",
        "x.toml: the section [training] is missing; add it",
    ),
    (
        "kind = \"full\"",
        "",
        "x.toml:20: in [[strategy]]: the key `kind` is missing; add it",
    ),
    (
        "id = \"fixed-accuracy\"",
        "",
        "x.toml:27: in [[claim]]: the key `id` is missing; add it",
    ),
    (
        "name = \"cora\"",
        "synthetic = { nodes = 5 }",
        "x.toml:4: in [dataset.synthetic]: the key `kind` is missing; add it",
    ),
    // Types.
    (
        "epochs = 200",
        "epochs = \"many\"",
        "x.toml:12: in [training]: `epochs`: expected a whole number that is not negative, found \
         the text \"many\"",
    ),
    (
        "epochs = 200",
        "epochs = -1",
        "x.toml:12: in [training]: `epochs`: expected a whole number that is not negative, found \
         -1",
    ),
    (
        "weight_decay = 5e-4",
        "weight_decay = true\nlearning_rate = true",
        "x.toml:10: in [optimizer]: `weight_decay`: expected a number, found true",
    ),
    (
        "name = \"cora\"",
        "split = 3",
        "x.toml:4: in [dataset]: `split`: expected \"public\", { train = …, val = … } or \
         { train_per_class = …, val_per_class = … } (or val = …), found 3",
    ),
    (
        "name = \"cora\"",
        "name = \"cora\"\nsplit = { train_per_class = 5, val = 9, val_per_class = 2 }",
        "x.toml:5: in [dataset]: `split` needs either `val_per_class` or `val`: the validation nodes of \
         each class or of all",
    ),
    (
        "[model]\nkind = \"gcn\"\nhidden = 16",
        "[[model]]",
        "x.toml:5: `model`: expected a table [model], found a list",
    ),
    (
        "seeds = [0, 1, 2]",
        "seeds = [0, \"a\"]",
        "x.toml:2: `seeds`: expected a whole number that is not negative, found the text \"a\"",
    ),
    (
        "seeds = [0, 1, 2]",
        "seeds = 3",
        "x.toml:2: `seeds`: expected a list such as [0, 1, 2], or { first = 5, most = 30 }, which \
         adds seeds until the claims are decided, found 3",
    ),
    (
        "seeds = [0, 1, 2]",
        "seeds = [0, 18446744073709551616]",
        "x.toml:2: `seeds` must be from -9223372036854775808 to 9223372036854775807, as all whole \
         numbers in TOML, not 18446744073709551616",
    ),
    (
        "epochs = 200",
        "epochs = 9223372036854775808",
        "x.toml:12: in [training]: `epochs` must be from -9223372036854775808 to \
         9223372036854775807, as all whole numbers in TOML, not 9223372036854775808",
    ),
    (
        "\"ethernet-1g\"",
        "\"wan\"\nlink = { bandwidth = true, latency = 0 }",
        "x.toml:18: in [network.link]: `bandwidth`: expected a bandwidth such as \"1Gbps\", found \
         true",
    ),
    (
        "\"ethernet-1g\"",
        "\"wan\"\nlink = { bandwidth = \"-1Gbps\", latency = 0 }",
        "x.toml:18: in [network.link]: `bandwidth` is wrong: \"-1Gbps\" …",
    ),
    (
        "ratio = 8",
        "ratio = \"x\"",
        "x.toml:24: in [[strategy]]: `ratio`: expected a number, found the text \"x\"",
    ),
    // Names.
    (
        "kind = \"gcn\"",
        "kind = \"gnc\"",
        "x.toml:6: in [model]: `kind` cannot be \"gnc\"; did you mean `gcn`? Possible values: gcn, \
         sage, sage-pool, gat, gin",
    ),
    (
        "\"adam\"",
        "\"adm\"",
        "x.toml:9: in [optimizer]: `kind` cannot be \"adm\"; did you mean `adam`? Possible values: \
         adam, sgd",
    ),
    (
        "name = \"cora\"",
        "synthetic = { kind = \"smb\" }",
        "x.toml:4: in [dataset.synthetic]: `kind` cannot be \"smb\"; did you mean `sbm`? Possible \
         values: sbm, csbm, rmat",
    ),
    (
        "method = \"metis\"",
        "method = 3",
        "x.toml:14: in [partition]: `method`: expected a text in quotes, found 3",
    ),
    (
        "{ profile = \"a100\" }",
        "\"mesured\"",
        "x.toml:19: in [compute]: `timing` cannot be \"mesured\"; did you mean `measured`? \
         Possible values: measured, { profile = … }",
    ),
    (
        "kind = \"full\"",
        "kind = \"fulll\"",
        "x.toml:21: in [[strategy]]: `kind` cannot be \"fulll\"; did you mean `full`? Possible \
         values: full, isolated, fixed, varco, …",
    ),
    (
        "preset = \"ethernet-1g\"",
        "preset = \"ethernet\"",
        "x.toml:17: in [network]: `preset` cannot be \"ethernet\"; did you mean `ethernet-1g`? \
         Possible values: …",
    ),
    (
        "\"cora\"",
        "\"Cora\"",
        "x.toml:4: in [dataset]: `name` cannot be \"Cora\"; did you mean `cora`? Possible values: \
         cora, minesweeper, …",
    ),
    (
        "\"a100\"",
        "\"abacus\"",
        "x.toml:19: in [compute.timing]: `profile` cannot be \"abacus\". Possible values: \
         cpu-core, t4, v100, a100, h100",
    ),
    (
        "\"pareto\"",
        "\"parteo\"",
        "x.toml:34: in [[figure]]: `kind` cannot be \"parteo\"; did you mean `pareto`? Possible \
         values: pareto, accuracy-vs-bytes",
    ),
    (
        "to = \"workers=2 full\"",
        "to = \"ful\"",
        "x.toml:32: in [claim.compare]: `to` cannot be \"ful\"; did you mean `full`? Possible \
         values: full, fixed, workers=2 full, workers=2 fixed, workers=4 full, workers=4 fixed",
    ),
    (
        "to = \"workers=2 full\"",
        "to = \"full\"",
        "x.toml:32: in [[claim]]: `compare` names a strategy and a cell; name two of a kind",
    ),
    // Ranges.
    (
        "epochs = 200",
        "epochs = 0",
        "x.toml:12: in [training]: `epochs` must be at least 1, not 0",
    ),
    (
        "epochs = 200",
        "epochs = 2\nevaluate_every = 0",
        "x.toml:13: in [training]: `evaluate_every` must be at least 1, not 0",
    ),
    (
        "epochs = 200",
        "epochs = 2\ncheckpoint_every = 0",
        "x.toml:13: in [training]: `checkpoint_every` must be at least 1, not 0",
    ),
    (
        "epochs = 200",
        "epochs = 2\ntarget_accuracy = 81",
        "x.toml:13: in [training]: `target_accuracy` must be more than 0 and at most 1, not 81",
    ),
    (
        "workers = 4",
        "workers = 0",
        "x.toml:15: in [partition]: `workers` must be at least 1, not 0",
    ),
    (
        "hidden = 16",
        "hidden = 0",
        "x.toml:7: in [model]: `hidden` must be at least 1, not 0",
    ),
    (
        "hidden = 16",
        "hidden = 99999999999",
        "x.toml:7: in [model]: `hidden` must be at most 65536 columns, not 99999999999",
    ),
    (
        "hidden = 16",
        "layers = 100000000000",
        "x.toml:7: in [model]: `layers` must be at most 1024, not 100000000000",
    ),
    (
        "hidden = 16",
        "layers = 0",
        "x.toml:7: in [model]: `layers` must be at least 1, not 0",
    ),
    (
        "hidden = 16",
        "heads = 0",
        "x.toml:7: in [model]: `heads` must be at least 1, not 0",
    ),
    (
        "kind = \"gcn\"\nhidden = 16",
        "kind = \"gat\"\nhidden = 16\nheads = 3",
        "x.toml:8: in [model]: `heads` must divide `hidden`, the width of all heads of a layer \
         together: 3 does not divide 16",
    ),
    (
        "hidden = 16",
        "dropout = 1.0",
        "x.toml:7: in [model]: `dropout` must be 0 or more and less than 1, not 1",
    ),
    (
        "hidden = 16",
        "dropout = nan",
        "x.toml:7: in [model]: `dropout` must be 0 or more and less than 1, not NaN",
    ),
    (
        "hidden = 16",
        "attention_dropout = -0.1",
        "x.toml:7: in [model]: `attention_dropout` must be 0 or more and less than 1, not -0.1",
    ),
    (
        "hidden = 16",
        "activation = \"gelu\"",
        "x.toml:7: in [model]: `activation` cannot be \"gelu\"; did you mean `elu`? Possible \
         values: relu, elu",
    ),
    (
        "hidden = 16",
        "input_dropout = 1.0",
        "x.toml:7: in [model]: `input_dropout` must be 0 or more and less than 1, not 1",
    ),
    (
        "hidden = 16",
        "gain = 0",
        "x.toml:7: in [model]: `gain` must be more than 0, not 0",
    ),
    (
        "hidden = 16",
        "biases = 3",
        "x.toml:7: in [model]: `biases` must be 1, or 2 for one of each product of a `sage` \
         layer, or a list of such with one number a layer",
    ),
    (
        "hidden = 16",
        "biases = [1, 2, 2]",
        "x.toml:7: in [model]: `biases` must be 1, or 2 for one of each product of a `sage` \
         layer, or a list of such with one number a layer",
    ),
    (
        "hidden = 16",
        "init = \"he\"",
        "x.toml:7: in [model]: `init` cannot be \"he\". Possible values: glorot, \
         uniform-fan-in, dgl",
    ),
    (
        "weight_decay = 5e-4",
        "weight_decay = -1",
        "x.toml:10: in [optimizer]: `weight_decay` must be 0 or more, not -1",
    ),
    (
        "weight_decay = 5e-4",
        "learning_rate = 0",
        "x.toml:10: in [optimizer]: `learning_rate` must be more than 0, not 0",
    ),
    (
        "weight_decay = 5e-4",
        "learning_rate = nan",
        "x.toml:10: in [optimizer]: `learning_rate` must be more than 0, not NaN",
    ),
    (
        "\"ethernet-1g\"",
        "\"wan\"\nworker = [{ rank = 0 }, { rank = 4 }]",
        "x.toml:18: in [[network.worker]]: `rank` must be less than the number of workers, 4 \
         (of [partition], a sweep or a strategy's `with`), not 4",
    ),
    (
        "name = \"cora\"",
        "synthetic = { kind = \"sbm\", nodes = 9, classes = 3, features = 4, degree_within = -1, \
         degree_between = 1 }",
        "x.toml:4: in [dataset.synthetic]: `degree_within` must be 0 or more, not -1",
    ),
    (
        "name = \"cora\"",
        "name = \"cora\"\nsplit = { train = 0.6, val = 0.4 }",
        "x.toml:5: in [dataset]: `split` leaves no test nodes: `train` and `val` must add up to \
         less than 1",
    ),
    (
        "ratio = 8",
        "ratio = 0",
        "x.toml:24: in [[strategy]]: `ratio` must be a number from 1 to 1000000000",
    ),
    (
        "kind = \"fixed\"\nratio = 8",
        "kind = \"varco\"\nschedule = { kind = \"linear\", form = 8 }",
        "x.toml:24: in [strategy.schedule]: unknown key `form`; did you mean `from`? Possible \
         keys: …",
    ),
    (
        "kind = \"fixed\"\nratio = 8",
        "kind = \"varco\"\nschedule = 8",
        "x.toml:24: in [[strategy]]: `schedule`…",
    ),
    (
        "ratio = 8",
        "ratio = 8\nwith = { \"partition.wokers\" = 2 }",
        "x.toml:25: in [partition]: unknown key `wokers`; did you mean `workers`? Possible keys: \
         method, workers, file, seed, balance, objective, concentration",
    ),
    (
        "ratio = 8",
        "ratio = 8\nwith = { partition = 2 }",
        "x.toml:25: in [strategy.with]: `partition` is not a whole key of a section, in quotes, like \
         \"partition.workers\" = 1",
    ),
    (
        "ratio = 8",
        "ratio = 8\nwith = { \"partition.workers\" = 0 }",
        "x.toml:25: in [partition]: `workers` must be at least 1, not 0",
    ),
];
