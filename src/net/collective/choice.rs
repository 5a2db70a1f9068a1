//! Which algorithm carries out an all-reduce, and how `auto` decides.

use serde::{Deserialize, Serialize};

use super::super::{Bytes, NetworkSpec, Topology};

/// What an experiment file may say of all-reduce, and how much each choice costs on equal links of
/// latency α and β seconds a byte, for S bytes and P workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllReduceChoice {
    /// Reduce-scatter and all-gather around a ring: 2(P−1)α + 2(P−1)/P·Sβ.
    #[default]
    Ring,
    /// Recursive halving and doubling: 2 log₂P·α + 2(P−1)/P·Sβ for powers of two; others fold the
    /// workers beyond into the rest first, 2(α + Sβ) more.
    HalvingDoubling,
    /// Binomial reduction to worker 0 and broadcast: 2⌈log₂P⌉(α + Sβ).
    Tree,
    /// Everybody sends to worker 0, which sends back: 2α + 2(P−1)Sβ.
    ParameterServer,
    /// For each all-reduce the one of the above that takes the least time by these formulas.
    Auto,
}

/// How an all-reduce is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllReduceKind {
    /// See [`ring_all_reduce`](super::ring_all_reduce).
    #[default]
    Ring,
    /// See [`halving_doubling_all_reduce`](super::halving_doubling_all_reduce).
    HalvingDoubling,
    /// See [`tree_all_reduce`](super::tree_all_reduce).
    Tree,
    /// See [`parameter_server_all_reduce`](super::parameter_server_all_reduce).
    ParameterServer,
    /// The fastest of them; see [`AllReduceKind::chosen`].
    Auto {
        /// α/β: what a link carries in the time of its latency. The formulas depend on nothing
        /// else.
        latency_bytes: Bytes,
    },
}

/// The algorithms, in the order in which `auto` prefers them among equals.
const ALGORITHMS: [AllReduceKind; 4] = [
    AllReduceKind::Ring,
    AllReduceKind::HalvingDoubling,
    AllReduceKind::Tree,
    AllReduceKind::ParameterServer,
];

impl NetworkSpec {
    /// How all-reduce is carried out among so many workers. A network that cannot be built is
    /// refused where it is built.
    #[must_use]
    pub fn all_reduce_among(&self, workers: usize) -> AllReduceKind {
        match self.all_reduce {
            AllReduceChoice::Ring => AllReduceKind::Ring,
            AllReduceChoice::HalvingDoubling => AllReduceKind::HalvingDoubling,
            AllReduceChoice::Tree => AllReduceKind::Tree,
            AllReduceChoice::ParameterServer => AllReduceKind::ParameterServer,
            AllReduceChoice::Auto => self
                .topology(workers)
                .map_or(AllReduceKind::Ring, |topology| {
                    AllReduceKind::auto_on(&topology)
                }),
        }
    }
}

/// What `grapevine list networks` prints of all-reduce: name in experiment files, and what it is.
pub const ALL_REDUCE_CHOICES: [(&str, &str); 5] = [
    (
        "ring",
        "reduce-scatter and all-gather around a ring: 2(P-1) a + 2(P-1)/P S b (Patarasuk and Yuan, JPDC 2009)",
    ),
    (
        "halving-doubling",
        "recursive halving and doubling: 2 log2(P) a + 2(P-1)/P S b; workers beyond a power of two fold in first (Thakur, Rabenseifner and Gropp, IJHPCA 2005)",
    ),
    (
        "tree",
        "binomial reduction to worker 0 and broadcast: 2 ceil(log2 P) (a + S b)",
    ),
    (
        "parameter-server",
        "everybody sends to worker 0, which sends back: 2 a + 2(P-1) S b",
    ),
    (
        "auto",
        "for each all-reduce the fastest of these by its formula, under the network's slowest latency a and bandwidth 1/b",
    ),
];

impl AllReduceKind {
    /// What `auto` is on a network. It looks at the way from each worker to the next: its α is the
    /// largest latency and its β that of the slowest link among them.
    #[must_use]
    pub fn auto_on(topology: &Topology) -> Self {
        let workers = topology.workers();
        let (mut latency, mut slowest) = (0.0_f64, f64::INFINITY);
        for rank in 0..workers {
            let route = topology.route(rank, (rank + 1) % workers);
            latency = latency.max(route.latency.0);
            for link in route.links {
                slowest = slowest.min(topology.links()[link.0].bandwidth.bytes_per_second());
            }
        }
        // One worker has no way to another, and nothing to choose.
        let bytes = if slowest.is_finite() {
            latency * slowest
        } else {
            0.0
        };
        Self::Auto {
            latency_bytes: Bytes(bytes.round() as u64),
        }
    }

    /// The algorithm for `payload` bytes among `size` workers: itself, or for `auto` the one with
    /// the least time by its closed form, the first in the order ring, halving-doubling, tree,
    /// parameter-server among equals.
    ///
    /// Thakur, Rabenseifner and Gropp (IJHPCA 19(1), 2005) choose among algorithms by the same
    /// α–β model: few steps where messages are short, few bytes where they are long, and other
    /// rules for numbers of workers that are no power of two. Their thresholds were measured on
    /// machines of their time; the formulas take the place of them.
    #[must_use]
    pub fn chosen(self, size: usize, payload: Bytes) -> Self {
        let Self::Auto { latency_bytes } = self else {
            return self;
        };
        let cost = |kind: Self| kind.cost(size, payload.0 as f64, latency_bytes.0 as f64);
        let mut best = ALGORITHMS[0];
        for kind in ALGORITHMS {
            if cost(kind) < cost(best) {
                best = kind;
            }
        }
        best
    }

    /// Time by the closed form on equal links, in bytes: that over β. `latency` is α/β.
    fn cost(self, size: usize, payload: f64, latency: f64) -> f64 {
        if size < 2 {
            return 0.0;
        }
        let workers = size as f64;
        let spread = |workers: f64| 2.0 * (workers - 1.0) / workers * payload;
        match self {
            Self::Ring => 2.0 * (workers - 1.0) * latency + spread(workers),
            Self::HalvingDoubling => {
                let levels = size.ilog2();
                let core = (1_u64 << levels) as f64;
                let fold = if core < workers {
                    2.0 * (latency + payload)
                } else {
                    0.0
                };
                fold + 2.0 * f64::from(levels) * latency + spread(core)
            }
            Self::Tree => {
                let levels = f64::from((size - 1).ilog2() + 1);
                2.0 * levels * (latency + payload)
            }
            Self::ParameterServer => 2.0 * latency + 2.0 * (workers - 1.0) * payload,
            // It decides, and is none of those it chooses among.
            Self::Auto { .. } => f64::INFINITY,
        }
    }
}
