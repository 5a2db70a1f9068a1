//! What a `[partition]` section may say, whatever the graph.

use super::dirichlet::CONCENTRATIONS;
use crate::graph::{PartitionMethod, PartitionSpec};

/// Most workers: what is kept for each pair of neighbours must have room.
pub(crate) const MOST_WORKERS: usize = 1 << 20;

impl PartitionSpec {
    /// Whether its keys make sense, and go with each other.
    ///
    /// # Errors
    /// The first key that does not, and what is wrong with it.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        let [given, metis, dirichlet] = [
            PartitionMethod::Given,
            PartitionMethod::Metis,
            PartitionMethod::Dirichlet,
        ]
        .map(|method| self.method == method);
        let twice = |(at, balance)| self.balance[..at].contains(balance);
        let (key, other) = match self.concentration {
            Some(_) => ("concentration", "and `method = \"dirichlet\"`"),
            None => ("method", "\"dirichlet\" and `concentration`"),
        };
        let concentration = self.concentration.unwrap_or(1.0);
        let rules = [
            (
                self.workers >= 1,
                "workers",
                "must be at least 1, not 0".to_owned(),
            ),
            (
                self.workers <= MOST_WORKERS,
                "workers",
                format!("must be at most {MOST_WORKERS}, not {}", self.workers),
            ),
            (
                !given || self.file.is_some(),
                "method",
                "\"given\" needs `file` beside it: one worker number per node and line".to_owned(),
            ),
            (
                given || self.file.is_none(),
                "file",
                "goes with `method = \"given\"` only".to_owned(),
            ),
            (
                metis || self.balance.is_empty(),
                "balance",
                "goes with `method = \"metis\"` only: the other methods know nodes alone; leave it out"
                    .to_owned(),
            ),
            (
                metis || self.objective.is_none(),
                "objective",
                "goes with `method = \"metis\"` only: the other methods have one of their own; leave it out"
                    .to_owned(),
            ),
            (
                dirichlet == self.concentration.is_some(),
                key,
                format!(
                    "{other} need each other: a number, like 1; the smaller, the more workers differ in their classes"
                ),
            ),
            (
                CONCENTRATIONS.contains(&concentration),
                "concentration",
                format!("must be from 1e-9 to 1e9, not {concentration}"),
            ),
            (
                !self.balance.iter().enumerate().any(twice),
                "balance",
                "has an entry twice; say each of \"nodes\", \"training\" and \"edges\" once at most"
                    .to_owned(),
            ),
            (
                !given || self.seed.is_none(),
                "seed",
                "does nothing with `method = \"given\"`, which draws nothing: leave it out".to_owned(),
            ),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            Some((_, key, what)) => Err((key, what)),
            None => Ok(()),
        }
    }
}
