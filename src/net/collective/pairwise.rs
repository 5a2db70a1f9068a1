//! Exchanges in rounds.

use serde::{Deserialize, Serialize};

/// How the messages of an exchange travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExchangeKind {
    /// All at once, sharing the links.
    #[default]
    Direct,
    /// In P − 1 rounds, in each of which a worker sends to one other and receives from one; see
    /// `pairwise_rounds`.
    Pairwise,
    /// In two stages: each worker of a machine (or rack, region, edge switch, group) sends those
    /// of its machine what it has for the workers in their place, there and elsewhere; these pass
    /// it on, one message to each other machine. As DeepSpeed-MoE's (Rajbhandari et al., ICML
    /// 2022) and Tutel's (Hwang et al., `MLSys` 2023). With M machines of G workers and m bytes
    /// for each: α + (G − 1)·M·mβ inside and α + (M − 1)·G·mβ between, for the messages of a stage
    /// leave at once; M + G − 2 of a worker in place of M·G − 1.
    Hierarchical,
}

/// Receiver and sender of worker `rank` of `size` in each of the P − 1 rounds of a pairwise
/// all-to-all: in round s it sends to r + s and receives from r − s, modulo P (Thakur, Rabenseifner
/// and Gropp, IJHPCA 19(1), 2005, for any P).
///
/// A round of a worker ends when what it sends has been delivered and what it expects has come, so
/// that no two of its messages share its link. With equal links and equal messages of m bytes:
/// (P − 1)(α + mβ) seconds. Rounds in which it neither sends nor expects anything take no time.
pub(crate) fn pairwise_rounds(rank: usize, size: usize) -> impl Iterator<Item = (usize, usize)> {
    (1..size).map(move |s| ((rank + s) % size, (rank + size - s) % size))
}
