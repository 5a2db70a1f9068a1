//! `cagnet`: exact training in which workers broadcast whole blocks of rows, as in CAGNET
//! (Tripathy, Yelick and Buluç, *Reducing Communication in Graph Neural Network Training*, SC
//! 2020), algorithms 1D, 1.5D and 2D.
//!
//! With `n` nodes and `P` workers, a product with the adjacency matrix over rows of `d` columns
//! moves, counted in bytes over all workers, whatever the cut:
//!
//! | `algorithm` | bytes |
//! |---|---|
//! | `"1d"` | `4(P − 1) n d` |
//! | `"1.5d"`, `replication = c` | `4(P/c − 1 + 2(c − 1)) n d` |
//! | `"2d"` | `8(√P − 1) n d` |
//!
//! A worker hears of these, in words, `n d (P − 1)/P`; `n d/c + 2 n d (c − 1)/P`, less its own
//! `n d c/P` where its column reads them; and `2 n d/√P`, less its own `2 n d/P`.
//!
//! Messages go to each receiver by itself: a tree would send as many bytes in other messages.
//!
//! **1D.** Nodes are dealt to workers, and with them rows of the adjacency matrix and of all
//! layers. In each epoch and layer a worker sends the rows of *all* its nodes to all others,
//! whether they have neighbours there or not. On the way back it sends to each owner the gradient
//! of all the owner's rows, zeros among them: of the products of its own block with the others' it
//! keeps none but the owners' sums (the paper's outer product with a reduce-scatter, §IV-A). Sums
//! are those of `full` in the same order, and so are results, to the bit. With `L` layers an epoch
//! moves `4(P − 1) n Σ_{l<L} d_l` bytes forward, of which `d_0` are the features' (`feature`), and
//! `4(P − 1) n Σ_{1≤l<L} d_l` back.
//!
//! **1.5D.** Workers stand in a grid of `P/c` rows and `c` columns. All workers of a row have the
//! rows of all its nodes; a column has the edges that begin in the nodes of a `c`-th of the rows.
//! For a product these rows go down their column, every worker multiplies, and the workers of a row
//! add up what came out: each a share of the rows, which it sends to the others (a reduce-scatter
//! and an all-gather, as a ring would have them in bytes).
//!
//! **2D.** The grid is a square. Column `j` of workers has the `j`-th part of the columns of all
//! layers. Slices of rows go down their column, every worker multiplies with the edges into the
//! nodes of its row, and the slices of the results go along the row, where the product with W reads
//! all of them (SUMMA twice). The last worker of a row computes as much of the product with W as
//! the first: all of a row do all of it, where the authors give each its columns.
//!
//! In both an epoch has a product in each layer forward (of features too, as dropout left them:
//! `feature`, then `activation`) and one in each layer above the first back, with the graph's
//! transpose (`activation_gradient`). The gradient of a row is at all workers of its row; each adds
//! its share of it to that of the parameters, which all workers sum. They work for models that
//! begin a layer with a weighted sum, `gcn`, `sage` and `gin`, and are exact up to the order of
//! sums.
//!
//! Evidence, in the authors' code: a broadcast of each worker's block in turn, before the product
//! with W, of features in every epoch too; the grids of 1.5D, what each column broadcasts, the
//! all-reduce along rows, the same product both ways; of 2D the two broadcasts a layer. Theirs goes
//! one block after the other, here all send at once, as where several broadcasts are under way.
//! Their 2D broadcasts the blocks of the adjacency matrix along rows in every product, three words
//! an entry; they do not change, and here each worker has those of its row from the beginning. Its
//! gradient of the parameters takes a third product along the grid, which is not needed here. In
//! theirs parameter gradients are summed within a column of workers, which all have the same sum.
//! In 1D and 1.5D theirs broadcast the gradient of every layer's output, `Σ_{1≤l≤L} d_l` columns,
//! `d_L` more than here, where that of an input goes back; and their 2D transposes inputs besides.
//! With that and the third product it moves, by its code, three quarters more than here on Cora
//! with two layers of 16 columns, without the adjacency: more than their 1D on four workers. The
//! variant of 1D that sends what is needed alone is `full`. Not here: 3D.

mod grid;
mod gridded;
mod product;

use serde::Deserialize;

use super::parts::options::{EXCHANGE_INPUT, GRADIENTS, OVERLAP, option_list};
use super::parts::{Compression, Gradients, RowExchange, When};
use super::{OptionError, Registration, Strategy, StrategyInfo, options};
use gridded::Gridded;

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "cagnet",
        paper: "Tripathy, Yelick and Buluç, Reducing Communication in Graph Neural Network Training (CAGNET, SC 2020), 1D, 1.5D and 2D algorithms",
        sends: "all rows of every layer to all workers, gradients of all of them back, every epoch; in a grid of workers, rows down columns and sums or slices along rows; parameter gradients",
        options: option_list! {
            algorithm: "\"1d\"", "1d, 1.5d or 2d: the last two stand workers in a grid and divide the edges among those of a row (1.5d), or the columns of all layers (2d, for a square number of workers).";
            replication: "2", "The c of 1.5d: workers that have the same rows. A divisor of the workers, whose square is no more than they are.";
            cache_features: "false", "Of 1d: send the constant input features in the first epoch only; the authors' code sends them in every epoch.";
            EXCHANGE_INPUT; OVERLAP; GRADIENTS;
        },
    },
    read,
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum Algorithm {
    #[default]
    #[serde(rename = "1d")]
    OneD,
    #[serde(rename = "1.5d")]
    OneAndAHalfD,
    #[serde(rename = "2d")]
    TwoD,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Options {
    algorithm: Algorithm,
    replication: Option<usize>,
    gradients: Gradients,
}

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let read: Options = options(table)?;
    let mut rows = table.clone();
    rows.retain(|key, _| !["algorithm", "replication"].contains(&key));
    if read.replication.is_some() && read.algorithm != Algorithm::OneAndAHalfD {
        return Err(OptionError::key(
            "replication",
            "is of the 1.5D algorithm: leave it out, or take algorithm = \"1.5d\"",
        ));
    }
    // Those of the 1D algorithm are checked in any case: what is unknown is so everywhere.
    let exchange = RowExchange {
        when: When {
            blocks: true,
            ..When::default()
        },
        ..RowExchange::new(Compression::none())
    };
    let exchange = exchange.read(&rows, REGISTRATION.info.options)?;
    let replication = match read.algorithm {
        Algorithm::OneD => return Ok(Box::new(exchange)),
        Algorithm::OneAndAHalfD => Some(read.replication.unwrap_or(2)),
        Algorithm::TwoD => None,
    };
    let of_rows = ["cache_features", "exchange", "overlap"];
    if let Some(key) = of_rows.into_iter().find(|key| rows.contains_key(*key)) {
        return Err(OptionError::key(
            key,
            "is of the 1D algorithm: a grid of workers sends rows as dropout left them, before the product, and waits for them; \
             leave it out, or take algorithm = \"1d\"",
        ));
    }
    Ok(Box::new(Gridded {
        replication,
        gradients: read.gradients,
    }))
}
