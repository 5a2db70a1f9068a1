//! From logits to scores: each piece counts its own nodes, and worker 0 puts them together.

use serde::{Deserialize, Serialize};

use super::Aside;
use crate::graph::{Dataset, Labels};
use crate::model::{PartScore, is_finite, losses, mean_of_losses};
use crate::net::Message;
use crate::sim::{Scores, SimError};

/// What an evaluation comes to.
pub(crate) struct Verdict {
    pub scores: Scores,
    /// Whether all logits are finite.
    pub sound: bool,
}

/// What the logits of some nodes say.
#[derive(Serialize, Deserialize)]
pub(super) struct Tally {
    sound: bool,
    /// Of training, validation and test nodes.
    splits: [PartScore; 3],
    /// Number and loss of each validation node that has a label.
    losses: Vec<(u32, f64)>,
}

impl Tally {
    /// Of the rows of each split that count.
    pub(super) fn new(
        dataset: &Dataset,
        logits: &[f32],
        labels: &Labels,
        splits: [Vec<u32>; 3],
    ) -> Self {
        let outputs = dataset.classes;
        Self {
            sound: is_finite(logits),
            losses: losses(logits, outputs, labels, &splits[1]).collect(),
            splits: splits
                .map(|rows| PartScore::new(dataset.metric, logits, outputs, labels, &rows)),
        }
    }

    /// With the global numbers of its nodes in place of rows.
    pub(super) fn numbered(mut self, nodes: &[u32]) -> Self {
        for (node, _) in &mut self.losses {
            *node = nodes[*node as usize];
        }
        self
    }

    fn plus(mut self, other: Self) -> Self {
        self.sound &= other.sound;
        self.losses.extend(other.losses);
        let mut theirs = other.splits.into_iter();
        self.splits = self.splits.map(|own| match theirs.next() {
            Some(other) => own.plus(other),
            None => own,
        });
        self
    }
}

/// The scores of all nodes; nothing of no piece.
pub(super) fn verdict(tallies: Vec<Tally>) -> Option<Verdict> {
    let mut all = tallies.into_iter().reduce(Tally::plus)?;
    // In the order of nodes, whoever has them: the sum would differ in its last bit.
    all.losses.sort_unstable_by_key(|(node, _)| *node);
    let [train, validation, test] = all.splits.map(|split| split.score());
    let scores = Scores {
        train,
        validation,
        test,
        validation_loss: mean_of_losses(all.losses.iter().map(|(_, loss)| *loss)),
    };
    Some(Verdict {
        scores,
        sound: all.sound,
    })
}

/// The scores of all nodes on worker 0, of the `size` workers that have a part each.
pub(super) fn gathered(
    mut tallies: Vec<Tally>,
    (rank, size): (usize, usize),
    aside: Aside<'_>,
) -> Result<Option<Verdict>, SimError> {
    let broken = || SimError::Strategy("what a worker says of its scores makes no sense".into());
    if rank > 0 {
        let mut payload = Vec::new();
        ciborium::into_writer(&tallies, &mut payload).map_err(|_| broken())?;
        aside(vec![Message { peer: 0, payload }], &[])?;
        return Ok(None);
    }
    let others: Vec<usize> = (1..size).collect();
    for message in aside(Vec::new(), &others)? {
        let theirs: Vec<Tally> =
            ciborium::from_reader(&message.payload[..]).map_err(|_| broken())?;
        tallies.extend(theirs);
    }
    Ok(verdict(tallies))
}
