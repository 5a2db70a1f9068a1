//! Options that several strategies have, as `grapevine list strategies` prints them.

use crate::strategies::OptionInfo;

/// Of strategies that send features in every epoch unless told otherwise.
pub const CACHE_FEATURES: OptionInfo = OptionInfo {
    name: "cache_features",
    default: "false",
    meaning: "Send the constant input features once, whole; the authors' code resends them compressed in every epoch.",
};

/// Of strategies whose authors' layers multiply first where that makes rows narrower.
pub const EXCHANGE_NARROWER: OptionInfo = OptionInfo {
    name: "exchange",
    default: "narrower",
    meaning: "Where the exchange of a layer stands: input (before its product), product (after it) or narrower (whichever has fewer columns, as DGL's SAGEConv with SAR, for VARCO; gradients come back in the same columns). Features that are kept cross as they are.",
};

/// Of strategies whose authors' layers gather their input.
pub const EXCHANGE_INPUT: OptionInfo = OptionInfo {
    name: "exchange",
    default: "input",
    meaning: "Where the exchange of a layer stands: input (before its product, as in the authors' code), product (after it) or narrower (whichever has fewer columns). Features that are kept cross as they are.",
};

/// Of strategies whose rows and features can travel while the workers compute.
pub const OVERLAP: OptionInfo = OptionInfo {
    name: "overlap",
    default: "false",
    meaning: "Communicate while computing: gradients are summed by layer during the backward pass (as PyTorch DDP does by buckets of 25 MB, Li et al., VLDB 2020), and features that are resent travel during the epoch before, unless what is sent depends on the training. Losses are the same up to the order of sums.",
};

/// Of strategies in which gradients alone can travel while the workers compute.
pub const OVERLAP_GRADIENTS: OptionInfo = OptionInfo {
    name: "overlap",
    default: "false",
    meaning: "Sum gradients by layer while the layers below go back (as PyTorch DDP does by buckets of 25 MB, Li et al., VLDB 2020). Losses are the same up to the order of sums.",
};

/// Of strategies that always compress: through which codec.
pub const CODEC: OptionInfo = OptionInfo {
    name: "codec",
    default: "random_columns",
    meaning: "How rows are compressed: random_columns (the same columns for all rows of a layer and epoch, as in the authors' code); ours: random_entries, first_columns, top_k, quantise (codec = { kind = \"quantise\", bits = 4 }: bits are 1, 2, 4 or 8, else by the ratio; stochastic rounding as in QSGD, Alistarh et al., NeurIPS 2017), { kind = \"quantise_rows\", bits = 4 } (1, 2, 4, 8 or \"random\": AdaQP's), f16, bf16, identity, { kind = \"compose\", first = …, second = … }, { kind = \"difference\", of = … } (only the change since the last epoch, as in EF21, Richtárik et al., NeurIPS 2021).",
};

/// Of strategies whose rows come late: when they do not.
pub const FRESH_EVERY: OptionInfo = OptionInfo {
    name: "fresh_every",
    default: "none",
    meaning: "Epochs from one to the next, the first among them, in which workers wait for the rows and gradients of the epoch itself, with `late` (Sylvie's bounded staleness); without it they never do.",
};

/// Of strategies that use rows again: when they do not.
pub const THRESHOLD: OptionInfo = OptionInfo {
    name: "threshold",
    default: "none",
    meaning: "A worker sends its rows of a layer, or their gradients, anew before they are as old as `bound` allows when by the epoch before they had changed by so much, relative to what it sent last (SANCUS's measure of variation); 0 sends in every epoch. Without it all send together, when the bound asks for it.",
};

/// Of strategies that compress: what becomes of the rows of the last layer.
pub const COMPRESS_LAST: OptionInfo = OptionInfo {
    name: "compress_last",
    default: "false",
    meaning: "Compress the rows of the last layer too, which VARCO's code sends whole.",
};

/// Of strategies that compress: whether what is kept at random is scaled.
pub const RESCALE: OptionInfo = OptionInfo {
    name: "rescale",
    default: "false",
    meaning: "Multiply what was kept at random by n/k, which makes the decoded rows unbiased; the authors' code does not.",
};

/// Of strategies that compress: whether the loss of it is measured.
pub const MEASURE_ERROR: OptionInfo = OptionInfo {
    name: "measure_error",
    default: "false",
    meaning: "Record what compression loses, by epoch, layer and message (ours). Each message is decoded once more, which is charged where compute is measured.",
};

/// Of strategies that compress on request: through which codec.
pub const ON_REQUEST_CODEC: OptionInfo = OptionInfo {
    name: "codec",
    default: "none",
    meaning: "Compress the rows that travel, but for the last layer's and cached features, by any codec of `fixed` (see there). Ours: the authors send plain floats.",
};

/// Of strategies that compress on request: how far.
pub const RATIO: OptionInfo = OptionInfo {
    name: "ratio",
    default: "8",
    meaning: "With a codec that follows one: how many times smaller than plain floats rows are (as `fixed`'s).",
};

/// Of strategies that compress on request: how far in which epoch.
pub const SCHEDULE: OptionInfo = OptionInfo {
    name: "schedule",
    default: "none",
    meaning: "In place of ratio: one by epoch, any of `varco`'s (see there).",
};

/// Of strategies that sum parameter gradients: how.
pub const GRADIENTS: OptionInfo = OptionInfo {
    name: "gradients",
    default: "all, whole, in every step",
    meaning: "How parameter gradients are summed: { codec = top_k, random_k, qsgd, sign, power_sgd, f16 or bf16; feedback; every = so many steps; average = gradients or models } (ours; what each is from: docs/gradients.md).",
};
