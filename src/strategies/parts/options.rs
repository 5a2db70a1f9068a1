//! How strategies state their options, as `grapevine list strategies` prints them, and the options
//! that several have.

use crate::strategies::{OptionError, OptionInfo};

/// Options that several strategies have: `NAME = key: "default", "meaning";`.
macro_rules! shared_options {
    ($( $(#[$about:meta])* pub const $name:ident = $key:ident: $default:literal, $meaning:literal; )*) => {
        $( $(#[$about])* pub const $name: OptionInfo = option_info!($key, $default, $meaning); )*
    };
}

/// A list of options: those of the strategy's own as `key: "default", "meaning";`, those that
/// others have too by their names, `GRADIENTS;`.
macro_rules! option_list {
    ($( $key:ident $(: $default:literal, $meaning:literal)?; )*) => {
        &[$( crate::strategies::parts::options::option_info!(
            $key $(, $default, $meaning)?
        ) ),*]
    };
}

/// A struct into which options are read, the values of those that are not given, and their list,
/// `INFO`, each said once: `key: type = value, "meaning";`, with how the value is listed before the
/// meaning if it is not as it stands in the code, `= 1.0, "1", "meaning";`. Of an option that other
/// strategies have too, its name stands for both: `= Gradients::PLAIN, GRADIENTS;`.
macro_rules! option_struct {
    (
        $(#[$about:meta])*
        $sees:vis struct $options:ident {
            $( $(#[$key_about:meta])* $sees_key:vis $key:ident: $type:ty = $value:expr, $($info:tt),+; )*
        }
    ) => {
        $(#[$about])*
        #[derive(serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        $sees struct $options {
            $( $(#[$key_about])* $sees_key $key: $type, )*
        }

        impl Default for $options {
            fn default() -> Self {
                Self { $( $key: $value, )* }
            }
        }

        impl $options {
            /// All of them.
            $sees const INFO: &[crate::strategies::OptionInfo] =
                &[$( crate::strategies::parts::options::option_info!(
                    $key = $value, $($info),+
                ) ),*];
        }
    };
}

/// One option, from what the macros above are told of it.
macro_rules! option_info {
    ($shared:ident) => {
        $shared
    };
    ($key:ident = $value:expr, $shared:ident) => {
        $shared
    };
    ($key:ident = $value:expr, $meaning:literal) => {
        crate::strategies::parts::options::option_info!($key, stringify!($value), $meaning)
    };
    ($key:ident = $value:expr, $default:literal, $meaning:literal) => {
        crate::strategies::parts::options::option_info!($key, $default, $meaning)
    };
    ($key:ident, $default:expr, $meaning:literal) => {
        crate::strategies::OptionInfo {
            name: stringify!($key),
            default: $default,
            meaning: $meaning,
        }
    };
}

pub(crate) use {option_info, option_list, option_struct};

/// Refuses a number that is 0.
pub(crate) fn at_least_one(key: &str, value: Option<usize>) -> Result<(), OptionError> {
    match value {
        Some(0) => Err(OptionError::key(key, "must be at least 1, not 0")),
        _ => Ok(()),
    }
}

shared_options! {
    /// Of strategies that send features in every epoch unless told otherwise.
    pub const CACHE_FEATURES = cache_features: "false", "Send the constant input features once, whole; the authors' code resends them compressed in every epoch.";

    /// Of strategies whose authors' layers multiply first where that makes rows narrower.
    pub const EXCHANGE_NARROWER = exchange: "narrower", "Where the exchange of a layer stands: input (before its product), product (after it) or narrower (whichever has fewer columns, as DGL's SAGEConv with SAR, for VARCO; gradients come back in the same columns). Features that are kept cross as they are.";

    /// Of strategies whose authors' layers gather their input.
    pub const EXCHANGE_INPUT = exchange: "input", "Where the exchange of a layer stands: input (before its product, as in the authors' code), product (after it) or narrower (whichever has fewer columns). Features that are kept cross as they are.";

    /// Of strategies whose rows and features can travel while the workers compute.
    pub const OVERLAP = overlap: "false", "Communicate while computing: gradients are summed by layer during the backward pass (as PyTorch DDP does by buckets of 25 MB, Li et al., VLDB 2020), and features that are resent travel during the epoch before, unless what is sent depends on the training. Losses are the same up to the order of sums.";

    /// Of strategies in which gradients alone can travel while the workers compute.
    pub const OVERLAP_GRADIENTS = overlap: "false", "Sum gradients by layer while the layers below go back (as PyTorch DDP does by buckets of 25 MB, Li et al., VLDB 2020). Losses are the same up to the order of sums.";

    /// Of strategies that always compress: through which codec.
    pub const CODEC = codec: "random_columns", "How rows are compressed: random_columns (the same columns for all rows of a layer and epoch, as in the authors' code); ours: random_entries, first_columns, top_k, quantise (codec = { kind = \"quantise\", bits = 4 }: bits are 1, 2, 4 or 8, else by the ratio; stochastic rounding as in QSGD, Alistarh et al., NeurIPS 2017), { kind = \"quantise_rows\", bits = 4 } (1, 2, 4, 8 or \"random\": AdaQP's), f16, bf16, identity, { kind = \"compose\", first = …, second = … }, { kind = \"difference\", of = … } (only the change since the last epoch, as in EF21, Richtárik et al., NeurIPS 2021).";

    /// Of strategies whose rows come late: when they do not.
    pub const FRESH_EVERY = fresh_every: "none", "Epochs from one to the next, the first among them, in which workers wait for the rows and gradients of the epoch itself, with `late` (Sylvie's bounded staleness); without it they never do.";

    /// Of strategies that use rows again: when they do not.
    pub const THRESHOLD = threshold: "none", "A worker sends its rows of a layer, or their gradients, anew before they are as old as `bound` allows when by the epoch before they had changed by so much, relative to what it sent last (SANCUS's measure of variation); 0 sends in every epoch. Without it all send together, when the bound asks for it.";

    /// Of strategies that compress: what becomes of the rows of the last layer.
    pub const COMPRESS_LAST = compress_last: "false", "Compress the rows of the last layer too, which VARCO's code sends whole.";

    /// Of strategies that compress: whether what is kept at random is scaled.
    pub const RESCALE = rescale: "false", "Multiply what was kept at random by n/k, which makes the decoded rows unbiased; the authors' code does not.";

    /// Of strategies that compress: whether the loss of it is measured.
    pub const MEASURE_ERROR = measure_error: "false", "Record what compression loses, by epoch, layer and message (ours). Each message is decoded once more, which is charged where compute is measured.";

    /// Of strategies that compress on request: through which codec.
    pub const ON_REQUEST_CODEC = codec: "none", "Compress the rows that travel, but for the last layer's and cached features, by any codec of `fixed` (see there). Ours: the authors send plain floats.";

    /// Of strategies that compress on request: how far.
    pub const RATIO = ratio: "8", "With a codec that follows one: how many times smaller than plain floats rows are (as `fixed`'s).";

    /// Of strategies that compress on request: how far in which epoch.
    pub const SCHEDULE = schedule: "none", "In place of ratio: one by epoch, any of `varco`'s (see there).";

    /// Of strategies that sum parameter gradients: how.
    pub const GRADIENTS = gradients: "all, whole, in every step", "How parameter gradients are summed: { codec = top_k, random_k, qsgd, sign, power_sgd, f16 or bf16; feedback; every = so many steps; average = gradients or models } (ours; what each is from: docs/gradients.md).";
}
