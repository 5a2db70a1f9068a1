//! Evaluation, on worker 0's device: exact, with full neighbourhoods, neither timed nor counted.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use burn::module::Module;

use super::Worker;
use crate::graph::{Dataset, Features};
use crate::model::{Aggregation, Block, Gnn, Input, Matrix, Place, is_finite, mean_loss, score};
use crate::sim::{Scores, Setting, SimError};

/// The whole graph on worker 0's device, for evaluation only: exact, with full neighbourhoods,
/// neither timed nor counted.
pub struct WholeGraph {
    dataset: Arc<Dataset>,
    place: Place,
    // Made when first asked for: every worker has this field, and worker 0 alone evaluates.
    features: OnceLock<Input>,
    blocks: Mutex<Vec<(Aggregation, Block)>>,
}

impl WholeGraph {
    pub(super) fn new(setting: &Setting, rank: usize, place: &Place) -> Result<Self, SimError> {
        let dataset = if rank == 0 {
            setting.whole()?
        } else {
            Arc::clone(&setting.dataset)
        };
        Ok(Self {
            dataset,
            place: place.clone(),
            features: OnceLock::new(),
            blocks: Mutex::new(Vec::new()),
        })
    }

    /// Features of all nodes.
    pub fn features(&self) -> &Input {
        self.features.get_or_init(|| {
            Input::from_features(Features::clone(&self.dataset.features), &self.place)
        })
    }

    /// The whole graph with one kind of aggregation.
    pub fn block(&self, aggregation: Aggregation) -> Block {
        // Worker 0 alone evaluates, so that nobody waits for it; a lock, as `&self` is all there is
        // here.
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, block)) = blocks.iter().find(|(kind, _)| *kind == aggregation) {
            // A handle: the matrix is behind an `Arc`.
            return block.clone();
        }
        let graph = &self.dataset.graph;
        let degrees: Vec<usize> = (0..graph.nodes()).map(|v| graph.degree(v)).collect();
        let block = Block::new(graph, &degrees, aggregation);
        blocks.push((aggregation, block.clone()));
        block
    }
}

impl Worker {
    /// Computes something for evaluation on the whole graph, which takes no virtual time.
    pub fn evaluation<T>(&self, action: impl FnOnce(&WholeGraph) -> T) -> T {
        let start = Instant::now();
        let result = action(&self.whole);
        self.recorder().add_evaluation_time(start.elapsed());
        result
    }

    /// Scores on the whole graph, by the metric of the data, of the logits that `infer` computes,
    /// on worker 0 alone. Takes no virtual time and no bytes. Logits that are not finite are a
    /// divergence, as gradients are in [`Self::update`].
    ///
    /// # Errors
    /// If another worker failed.
    pub fn evaluate(
        &mut self,
        infer: impl FnOnce(&WholeGraph) -> Matrix,
    ) -> Result<Option<Scores>, SimError> {
        let scores = (self.rank() == 0).then(|| {
            self.evaluation(|graph| {
                let dataset = &graph.dataset;
                let logits = infer(graph).into_values();
                let sound = is_finite(&logits);
                let counted = |nodes: &[u32]| -> Vec<u32> {
                    let counts = |node: &u32| {
                        self.setting.training.score_isolated
                            || dataset.graph.degree(*node as usize) > 0
                    };
                    nodes.iter().copied().filter(counts).collect()
                };
                let (metric, labels, outputs) = (dataset.metric, &dataset.labels, dataset.classes);
                let of = |nodes: &[u32]| score(metric, &logits, outputs, labels, &counted(nodes));
                let split = &dataset.split;
                let scores = Scores {
                    train: of(&split.train),
                    validation: of(&split.validation),
                    test: of(&split.test),
                    validation_loss: mean_loss(
                        &logits,
                        outputs,
                        labels,
                        &counted(&split.validation),
                    ),
                };
                (scores, sound)
            })
        });
        // What is not a number has no largest entry: it would be class 0, and so many right.
        self.lost |= scores.is_some_and(|(_, sound)| !sound);
        // On real processes the others wait here, uncounted. Else they would wait for worker 0 in
        // their next exchange, and that time would count as communication.
        self.communicator.stand_by()?;
        Ok(scores.map(|(scores, _)| scores))
    }

    /// The scores that worker 0 has, on all workers, for strategies whose training depends on them.
    /// Takes no bytes; who comes before worker 0 waits for it.
    ///
    /// # Errors
    /// If another worker failed.
    pub fn share_scores(&mut self, scores: Option<Scores>) -> Result<Scores, SimError> {
        self.following.share()?;
        let mine = scores.map(Scores::to_bytes);
        Ok(Scores::from_bytes(&self.communicator.share(mine)?))
    }

    /// Scores of the experiment's own model on worker 0, if this epoch is one of those
    /// evaluated.
    ///
    /// # Errors
    /// If another worker failed.
    pub fn evaluate_model(
        &mut self,
        epoch: usize,
        model: &Gnn,
    ) -> Result<Option<Scores>, SimError> {
        if !self.evaluates(epoch) {
            return Ok(None);
        }
        let aggregation = self.setting.model.aggregation();
        self.evaluate(|graph| {
            // `valid` leaves out automatic differentiation, which would keep every intermediate
            // value.
            model
                .valid()
                .infer(&graph.block(aggregation), graph.features())
        })
    }
}
