//! Settings next to the one that was asked for.

use serde::Serialize;

use crate::graph::{FitEnd, PartitionMethod, PartitionSpec};
use crate::names::named;

named! {
    /// Settings next to the one that was asked for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub(crate) enum Other {
        /// Ten times the bandwidth on every link.
        FasterNetwork = "ten times the bandwidth",
        /// A tenth of it.
        SlowerNetwork = "a tenth of the bandwidth",
        /// Half as many workers.
        HalfTheWorkers = "half the workers",
        /// Twice as many.
        TwiceTheWorkers = "twice the workers",
        /// The end at which the fewest rows cross, of a cut by a fit or a published graph by its
        /// size.
        FewestRows = "the fewest rows that may cross",
        /// The end at which the most cross.
        MostRows = "the most rows that may cross",
        /// Parts by METIS, where they are random.
        MetisParts = "parts by METIS",
        /// Random parts, where they are cut along the graph.
        RandomParts = "random parts",
    }
}

impl Other {
    pub(super) const fn network(self) -> f64 {
        match self {
            Self::FasterNetwork => 10.0,
            Self::SlowerNetwork => 0.1,
            _ => 1.0,
        }
    }

    /// Which end of what is known of the graph it is.
    pub(super) const fn end(self) -> Option<FitEnd> {
        match self {
            Self::FewestRows => Some(FitEnd::Low),
            Self::MostRows => Some(FitEnd::High),
            _ => None,
        }
    }

    /// Whether the graph is cut in another way.
    pub(super) const fn cuts(self) -> bool {
        matches!(self, Self::MetisParts | Self::RandomParts)
    }

    /// Why workers cannot be so many, whatever the strategy.
    pub(super) const fn hindered(self, now: &PartitionSpec) -> Option<&'static str> {
        match (self, now.method) {
            (Self::HalfTheWorkers | Self::TwiceTheWorkers, PartitionMethod::Given) => {
                Some("a file has parts for as many workers as it was made for")
            }
            (Self::HalfTheWorkers, _) if now.workers < 2 => Some("there is one worker"),
            _ => None,
        }
    }

    /// The partition in place of this one, where that is a different one and nothing
    /// [hinders](Self::hindered) it.
    pub(super) fn partition(self, now: &PartitionSpec) -> Option<PartitionSpec> {
        let of = |workers| PartitionSpec {
            workers,
            ..now.clone()
        };
        let by = |method| PartitionSpec {
            method,
            workers: now.workers,
            seed: now.seed,
            ..PartitionSpec::default()
        };
        match (self, now.method) {
            (Self::HalfTheWorkers, _) => Some(of(now.workers / 2)),
            (Self::TwiceTheWorkers, _) => Some(of(2 * now.workers)),
            (Self::MetisParts, PartitionMethod::Random) => Some(by(PartitionMethod::Metis)),
            (Self::MetisParts, _) | (Self::RandomParts, PartitionMethod::Random) => None,
            (Self::RandomParts, _) => Some(by(PartitionMethod::Random)),
            _ => Some(now.clone()),
        }
    }
}
