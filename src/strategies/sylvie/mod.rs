//! `sylvie`: boundary rows in one bit an entry, an epoch late, and now and then not late, as in
//! Sylvie (Zhang, Hu, Sun, Wen and Zhang, *Boosting Distributed Full-graph GNN Training with
//! Asynchronous One-bit Communication*, arXiv 2303.01277).
//!
//! Rows of every layer travel quantised, and their gradients back (the Low-bit Module). Of each row
//! go its zero point and step, two bytes each, and one bit an entry, rounded up or down at random,
//! so that what is decoded is right on average ([`QuantiseRows`](crate::net::QuantiseRows)). As in
//! `pipe`, what is used was sent in the epoch before, and travelled while the workers computed. In
//! every `fresh_every`-th epoch, the first among them, they wait for the rows and gradients of the
//! epoch itself (the Bounded Staleness Adaptor); what was under way nobody reads, and the epoch
//! after reads once more what the fresh one did. So nothing is ever used that is older than an
//! epoch, and errors of late rows do not add up beyond `fresh_every` epochs. `late = false` is
//! Sylvie-S, in which all epochs are fresh; otherwise it is Sylvie-A.
//!
//! With `B` boundary rows over ordered pairs of workers and `b` bits, an epoch moves
//! `4B + B d_l b/8` bytes forward in each layer `1 ≤ l < L`, rounded up by message, and as many
//! back: for wide rows `b/32` of `V = 8B Σ_{1≤l<L} d_l`, that of `full` with the same `exchange`.
//! Features do not change: they come once, whole, `4B d_0`; if they are not cached, in every epoch,
//! as the rows of the layers above. Gradients of the parameters are summed as they are.
//!
//! Evidence, in the authors' code (`zxmeng98/Sylvie`): one bit both ways, stochastic rounding, a
//! zero point and a scale of two bytes a row, features once and whole (`--use-pp`), and that the
//! epoch after a fresh one reads once more what that did. Theirs differs in which epochs are fresh:
//! those before every k-th, with a k that its scripts sweep from 2 to 100 (`--fixed-synchro`, which
//! only the first commits act on), none without it, as in its main runs, and not the first, which
//! reads zeros; here the first is fresh. Its default is a later method, which chooses bits, and is
//! not here.

use super::parts::options::{
    EXCHANGE_INPUT, GRADIENTS, MEASURE_ERROR, OVERLAP_GRADIENTS, RATIO, RESCALE, SCHEDULE,
    option_list,
};
use super::parts::{CodecChoice, Compression, ExchangePoint, RowExchange, Staleness, When};
use super::{OptionError, Registration, Strategy, StrategyInfo};
use crate::net::{Bits, RowBits};

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "sylvie",
        paper: "Zhang et al., Boosting Distributed Full-graph GNN Training with Asynchronous One-bit Communication (Sylvie, arXiv 2303.01277)",
        sends: "boundary rows of every layer and their gradients in one bit an entry, to be used an epoch later; parameter gradients",
        options: option_list! {
            late: "true", "Use rows and their gradients an epoch after they were sent (Sylvie-A); without it, in the same epoch (Sylvie-S).";
            fresh_every: "10", "Epochs from one to the next, the first among them, in which workers wait for the rows and gradients of the epoch itself (the Bounded Staleness Adaptor; the default is ours).";
            cache_features: "true", "Send the constant input features in the first epoch only, whole; without it they travel in every epoch, as the rows of the layers above.";
            compress_last: "true", "Compress the rows of the last layer too.";
            EXCHANGE_INPUT;
            codec: "{ kind = \"quantise_rows\", bits = 1 }", "How rows are compressed, and their gradients: any codec of `fixed` (see there); the paper's is one bit.";
            RATIO; SCHEDULE; RESCALE; MEASURE_ERROR; OVERLAP_GRADIENTS; GRADIENTS;
        },
    },
    read,
};

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let one_bit = Compression {
        codec: Some(CodecChoice::quantise_rows(RowBits::Uniform(Bits::One))),
        compress_last: true,
        ..Compression::if_asked().sending(true, ExchangePoint::Input)
    };
    let exchange = RowExchange {
        when: When {
            staleness: Some(Staleness {
                fresh_every: Some(10),
                ..Staleness::default()
            }),
            ..When::default()
        },
        ..RowExchange::new(one_bit)
    };
    Ok(Box::new(exchange.read(table, REGISTRATION.info.options)?))
}
