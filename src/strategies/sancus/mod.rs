//! `sancus`: whole blocks of rows, broadcast only when those that the others keep have become too
//! old, as in SANCUS (Peng, Chen, Shao, Shen, Chen and Cao, *SANCUS: Staleness-Aware
//! Communication-Avoiding Full-Graph Decentralized Training in Large-Scale Graph Neural Networks*,
//! VLDB 2022).
//!
//! Workers own blocks of rows as in `cagnet`. In epoch 0 all send theirs to all others, in every
//! layer, and the gradients of all of them back, and every worker keeps what it received. As long
//! as that is at most `bound` epochs old, nobody sends, and rows and gradients are used again;
//! after that everybody sends anew. So nothing is ever used that is older than `bound` epochs (the
//! paper's bounded staleness, with epochs for its measure), and `bound = 0` is exact training.
//! Parameter gradients are those of the epoch, summed by all; evaluation is exact.
//!
//! With a `threshold` each worker goes by itself, in each layer and way: it sends its block when
//! its rows have changed by that, `‖H − H'‖ / ‖H'‖` with the `H'` that it sent last, and its
//! gradients when they have; or when what the others keep would be older than `bound`. Workers must
//! know when an epoch begins whom they will hear, so it is the change of the epoch before that
//! counts, which all tell each other at its end: an all-reduce (`control`) of a number for each
//! worker, layer and way, `2(L − 1)P` of them. So no block is sent in two epochs in a row, unless
//! `bound` is 0, or the threshold, which is exact training. Who sent what when is in the table of
//! decisions.
//!
//! With `n` nodes, `P` workers and `L` layers, an epoch with broadcasts moves
//! `V = 8(P − 1) n Σ_{1≤l<L} d_l` bytes, the others nothing: on average `(1 − s) V` with a share
//! `s = bound/(bound + 1)` of broadcasts skipped. Features do not change: they come once,
//! `4(P − 1) n d_0`. Biased: by how much rows change in `bound` epochs.
//!
//! Evidence, in the authors' code (`chenzhao/light-dist-gnn`): whole blocks before the product with
//! W, features kept from the first broadcast on, hidden rows kept and used in every other epoch,
//! which is `bound = 1`, after 50 epochs without, where caching is switched on, which it is not by
//! default; gradients are broadcast in every epoch there, of each layer's outputs: `Σ_{1≤l≤L} d_l`
//! columns back, here of the inputs of all layers but the first, `d_L` fewer. That they are kept
//! too, and that skipping may go by how much rows change, is from the paper; that rule is not in
//! the code. Derived here: what is kept of gradients are the sums over a worker's own nodes, which
//! the owner adds up; how change is measured, and told; and that a worker's own rows are always
//! those of the epoch, where theirs reads its own block as old as all others do. Their code thus
//! keeps less (hidden rows alone, in half of the epochs after the 50th) of what is more stale.

use super::parts::options::{EXCHANGE_INPUT, GRADIENTS, OVERLAP_GRADIENTS, THRESHOLD, option_list};
use super::parts::{Bound, Compression, ExchangePoint, Keeping, RowExchange, When};
use super::{OptionError, Registration, Strategy, StrategyInfo};

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "sancus",
        paper: "Peng et al., SANCUS: Staleness-Aware Communication-Avoiding Full-Graph Decentralized Training in Large-Scale Graph Neural Networks (VLDB 2022)",
        sends: "all rows of every layer to all workers and their gradients back, in epochs in which those that came last would be too old; all features once; parameter gradients",
        options: option_list! {
            bound: "1", "Epochs that rows and gradients may be old that are used (1 in the authors' code, for hidden rows); 0 is exact.";
            THRESHOLD; EXCHANGE_INPUT; OVERLAP_GRADIENTS; GRADIENTS;
        },
    },
    read,
};

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let exchange = RowExchange {
        when: When {
            blocks: true,
            kept: Some(Keeping {
                bound: Bound(1),
                threshold: None,
            }),
            ..When::default()
        },
        ..RowExchange::new(Compression::none().sending(true, ExchangePoint::Input))
    };
    Ok(Box::new(exchange.read(table, REGISTRATION.info.options)?))
}
