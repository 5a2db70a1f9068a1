//! `cagnet`: exact training in which every worker broadcasts its whole block of rows, as in the 1D
//! algorithm of CAGNET (Tripathy, Yelick and Buluç, *Reducing Communication in Graph Neural Network
//! Training*, SC 2020).
//!
//! Nodes are dealt to workers, and with them rows of the adjacency matrix and of all layers. In
//! each epoch and layer a worker sends the rows of *all* its nodes to all others, whether they have
//! neighbours there or not. On the way back it sends to each owner the gradient of all the owner's
//! rows, zeros among them: of the products of its own block with the others' it keeps none but the
//! owners' sums (the paper's outer product with a reduce-scatter, §IV-A). Sums are those of `full`
//! in the same order, and so are results, to the bit.
//!
//! A product with the adjacency matrix of `n` nodes over rows of `d` columns moves `4(P − 1) n d`
//! bytes over all `P` workers, whatever the cut. With `L` layers an epoch moves `4(P − 1) n Σ_{l<L}
//! d_l` bytes forward, of which `d_0` are the features' (`feature`), and `4(P − 1) n Σ_{1≤l<L} d_l`
//! back. Rows go in one message to each other worker: a tree would send as many bytes in other
//! messages.
//!
//! Evidence, in the authors' code: a broadcast of each worker's block in turn, before the product
//! with W, of features in every epoch too. Theirs goes one worker after the other, here all send at
//! once, as where several broadcasts are under way. The variant that sends what is needed alone is
//! `full`. Not here: 1.5D, 2D and 3D, which divide the graph's edges too.

use super::parts::options::{EXCHANGE_INPUT, GRADIENTS, OVERLAP};
use super::parts::{Compression, RowExchange};
use super::{OptionError, OptionInfo, Registration, Strategy, StrategyInfo};

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "cagnet",
        paper: "Tripathy, Yelick and Buluç, Reducing Communication in Graph Neural Network Training (CAGNET, SC 2020), 1D algorithm",
        sends: "all rows of every layer to all workers, gradients of all of them back, every epoch; parameter gradients",
        options: &[
            OptionInfo {
                name: "cache_features",
                default: "false",
                meaning: "Send the constant input features in the first epoch only; the authors' code sends them in every epoch.",
            },
            EXCHANGE_INPUT,
            OVERLAP,
            GRADIENTS,
        ],
    },
    read,
};

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let exchange = RowExchange {
        blocks: true,
        ..RowExchange::new(Compression::none())
    };
    Ok(Box::new(exchange.read(table, REGISTRATION.info.options)?))
}
