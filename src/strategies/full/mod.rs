//! `full`: exact partition-parallel training, the baseline of all others.
//!
//! Every epoch and layer, each worker sends the rows of its boundary nodes to the workers that need
//! them, and receives the gradients of those rows back; parameter gradients are summed by
//! all-reduce. The result is that of one device. Rows of a layer cross with
//! `w_l = min(d_l, d_{l+1})` columns, for widths `d_l`: after its product where that makes them
//! narrower, as DGL's `SAGEConv` does, or with the `d_l` of its input (`exchange = "input"`). With
//! `B` boundary rows over ordered pairs of workers and `L` layers, an epoch moves `4B Σ_{l<L} w_l`
//! bytes forward and `4B Σ_{1≤l<L} w_l` back. Features never change, so by default they are sent as
//! they are in the first epoch only (as DGCL, SAR and the code of BNS-GCN and `PipeGCN` do): that
//! costs less than any product of them, which is another one in every epoch. If they are not kept
//! and their product is narrower, it crosses in every epoch, and its gradient comes back.
//!
//! In mini-batches the workers sample together. For each layer, from the last down, a worker draws
//! neighbours for the rows that it has to compute and asks the owners of those it lacks for them,
//! with 4 bytes a row (`sample`); these compute them, draw for them in turn, and send them forward
//! and get their gradients back as boundary rows otherwise. By default a feature row that came once
//! is kept. A step with `r_l` rows asked for at layer `l` moves `4 Σ_l r_l` bytes of ids,
//! `4 Σ_{l<L} r_l w_l` forward and `4 Σ_{1≤l<L} r_l w_l` back, and one sum of parameter gradients.

use super::parts::options::{EXCHANGE_NARROWER, GRADIENTS, OVERLAP, option_list};
use super::parts::{Compression, ExchangePoint, RowExchange};
use super::{OptionError, Registration, Strategy, StrategyInfo};

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "full",
        paper: "exact partition-parallel training (as in CAGNET, SC'20; DGCL, EuroSys'21; SAR, MLSys'22)",
        sends: "boundary rows of every layer forward, their gradients back, every epoch; parameter gradients; in mini-batches the sampled rows in place of all, and their ids",
        options: option_list! {
            cache_features: "true", "Send the constant input features in the first epoch only, as the code of BNS-GCN and PipeGCN does; in mini-batches, when a row is first needed.";
            EXCHANGE_NARROWER; OVERLAP; GRADIENTS;
        },
    },
    read,
};

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let whole = Compression::none().sending(true, ExchangePoint::Narrower);
    let exchange = RowExchange::new(whole).read(table, REGISTRATION.info.options)?;
    Ok(Box::new(exchange))
}
