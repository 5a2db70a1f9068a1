//! Which algorithm carries out an all-reduce.

use serde::{Deserialize, Serialize};

use super::super::{NetworkSpec, Topology};
use super::{Hierarchy, Tried};
use crate::names::rows;

/// What an experiment file may say of all-reduce, and how much each choice costs on equal links of
/// latency α and β seconds a byte, for S bytes and P workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllReduceChoice {
    /// Reduce-scatter and all-gather around a ring: 2(P−1)α + 2(P−1)/P·Sβ.
    Ring,
    /// Recursive halving and doubling: 2 log₂P·α + 2(P−1)/P·Sβ for powers of two; others fold the
    /// workers beyond into the rest first, 2(α + Sβ) more.
    HalvingDoubling,
    /// Binomial reduction to worker 0 and broadcast: 2⌈log₂P⌉(α + Sβ).
    Tree,
    /// Everybody sends to worker 0, which sends back: 2α + 2(P−1)Sβ.
    ParameterServer,
    /// First inside machines (or racks, regions, edge switches of a fat tree, groups of a
    /// dragonfly), each worker summing a share, then around a ring between them: of G workers each,
    /// 2α + 2(G−1)/G·Sβ inside and the ring's time for S/G bytes between P/G.
    Hierarchical,
    /// The same with halving and doubling between machines.
    HierarchicalHalvingDoubling,
    /// For each all-reduce the one of the above that takes the least time on the network: each is
    /// played once for each number of values; the last two where machines have several workers.
    #[default]
    Auto,
}

/// How an all-reduce is carried out.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AllReduceKind {
    /// Around a ring: each chunk is summed on its way round, then handed round; 2(P−1) steps.
    #[default]
    Ring,
    /// Halves of what is left are exchanged and summed, then gathered in doubling pieces; 2 log₂P
    /// steps.
    HalvingDoubling,
    /// All of it up a binomial tree to worker 0, and back.
    Tree,
    /// All of it to worker 0, which sums it and sends everybody the result.
    ParameterServer,
    /// See [`Hierarchy`].
    Hierarchical(Hierarchy),
    /// The fastest of them on a network; see `Tried::best`.
    Auto(Tried),
}

impl NetworkSpec {
    /// How all-reduce is carried out on the topology of this network.
    pub fn all_reduce_on(&self, topology: &Topology) -> AllReduceKind {
        match self.all_reduce {
            AllReduceChoice::Ring => AllReduceKind::Ring,
            AllReduceChoice::HalvingDoubling => AllReduceKind::HalvingDoubling,
            AllReduceChoice::Tree => AllReduceKind::Tree,
            AllReduceChoice::ParameterServer => AllReduceKind::ParameterServer,
            AllReduceChoice::Hierarchical => topology.hierarchical(false),
            AllReduceChoice::HierarchicalHalvingDoubling => topology.hierarchical(true),
            AllReduceChoice::Auto => AllReduceKind::Auto(Tried::on(topology, self.framing())),
        }
    }
}

impl Topology {
    /// All-reduce in the groups of this network, with halving and doubling or a ring between them.
    pub(super) fn hierarchical(&self, halving: bool) -> AllReduceKind {
        let alone = || vec![1; self.workers()];
        let sizes = self.groups().unwrap_or_else(alone);
        AllReduceKind::Hierarchical(Hierarchy::new(&sizes, halving))
    }
}

/// What `grapevine list networks` prints of all-reduce: name in experiment files, and what it is.
pub(crate) const ALL_REDUCE_CHOICES: [(&str, &str); 7] = rows! {
    "ring": "reduce-scatter and all-gather around a ring: 2(P-1) a + 2(P-1)/P S b (Patarasuk and Yuan, JPDC 2009)",
    "halving-doubling": "recursive halving and doubling: 2 log2(P) a + 2(P-1)/P S b; workers beyond a power of two fold in first (Thakur, Rabenseifner and Gropp, IJHPCA 2005)",
    "tree": "binomial reduction to worker 0 and broadcast: 2 ceil(log2 P) (a + S b)",
    "parameter-server": "everybody sends to worker 0, which sends back: 2 a + 2(P-1) S b",
    "hierarchical": "inside machines (or racks, regions, switches, groups) of G workers first, 2 a + 2(G-1)/G S b, then a ring of S/G bytes between them (as Horovod)",
    "hierarchical-halving-doubling": "the same with halving and doubling between machines",
    "auto": "the default: for each all-reduce the fastest of these on the network, found by playing each once; the last two where workers stand in machines, racks or other groups",
};

impl AllReduceKind {
    /// The algorithm for so many elements: itself, or what `auto` comes to.
    pub(crate) fn chosen(&self, len: usize) -> Self {
        match self {
            Self::Auto(tried) => tried.best(len),
            other => other.clone(),
        }
    }

    /// The algorithm for an all-gather of so many elements of each worker.
    pub(crate) fn chosen_to_gather(&self, lens: &[usize]) -> Self {
        match self {
            Self::Auto(tried) => tried.best_to_gather(lens),
            other => other.clone(),
        }
    }
}
