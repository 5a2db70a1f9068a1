//! What a program asks of evaluation.

use burn::module::Module;

use super::Worker;
use crate::model::{Gnn, Matrix, parameters, with_parameters};
use crate::sim::evaluation::{Aside, Evaluation, Inference, NodeRows};
use crate::sim::{Scores, SimError};

impl Worker {
    /// Does something that is no part of the training, which takes no virtual time.
    pub(super) fn uncounted<T>(&self, action: impl FnOnce() -> T) -> T {
        self.recorder().enter_evaluation();
        let result = action();
        self.recorder().leave_evaluation();
        result
    }

    /// Prepares something beside the training, as it was before the first epoch: it takes no
    /// virtual time, and none that is measured. All workers call it.
    ///
    /// # Errors
    /// That of the action, or if another worker failed.
    pub(crate) fn aside<T>(
        &mut self,
        action: impl FnOnce() -> Result<T, SimError>,
    ) -> Result<T, SimError> {
        self.communicator.meet()?;
        let prepared = self.uncounted(action)?;
        self.communicator.stand_by()?;
        Ok(prepared)
    }

    fn evaluating<T>(
        &mut self,
        action: impl FnOnce(&mut Evaluation, Aside<'_>) -> Result<T, SimError>,
    ) -> Result<T, SimError> {
        // Who comes early waits for the others here, in training's time, and not within.
        self.communicator.meet()?;
        self.recorder().enter_evaluation();
        let communicator = &mut self.communicator;
        let result = action(&mut self.evaluation, &mut |messages, expect| {
            communicator.exchange_aside(messages, expect)
        });
        self.recorder().leave_evaluation();
        result
    }

    /// What a model makes of all nodes, for later evaluations. All workers call it. Takes no
    /// virtual time and no bytes.
    ///
    /// # Errors
    /// If another worker failed.
    pub fn infer(&mut self, inference: &Inference<'_>) -> Result<NodeRows, SimError> {
        self.evaluating(|evaluation, aside| evaluation.infer(inference, aside))
    }

    /// Scores of all nodes, by the metric of the data, of the logits of a model that is the same on
    /// all workers; on worker 0 alone. All workers call it. Takes no virtual time and no bytes.
    /// Logits that are not finite are a divergence, as gradients are in [`Self::update`].
    ///
    /// # Errors
    /// If another worker failed.
    pub fn evaluate(&mut self, inference: &Inference<'_>) -> Result<Option<Scores>, SimError> {
        let verdict = self.evaluating(|evaluation, aside| evaluation.verdict(inference, aside))?;
        // What is not a number has no largest entry: it would be class 0, and so many right.
        self.lost |= verdict.as_ref().is_some_and(|verdict| !verdict.sound);
        // On real processes the others wait here, uncounted. Else they would wait for worker 0 in
        // their next exchange, and that time would count as communication.
        self.communicator.stand_by()?;
        Ok(verdict.map(|verdict| verdict.scores))
    }

    /// As [`Self::evaluate`], for a program that plays all workers and has the logits of all nodes,
    /// `[nodes, outputs]`: it needs the whole graph.
    ///
    /// # Errors
    /// If another worker failed.
    pub fn evaluate_whole(
        &mut self,
        logits: impl FnOnce() -> Matrix,
    ) -> Result<Option<Scores>, SimError> {
        let verdict =
            self.evaluating(|evaluation, aside| evaluation.judge(vec![logits()], aside))?;
        self.lost |= verdict.as_ref().is_some_and(|verdict| !verdict.sound);
        Ok(verdict.map(|verdict| verdict.scores))
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
        // `valid` leaves out automatic differentiation, which would keep every intermediate value.
        let model = model.valid();
        self.evaluate(&Inference {
            aggregation: self.setting.model.aggregation(),
            from: None,
            layers: model.layers(),
            layer: &|layer, block, input| model.layer(layer, block, input),
        })
    }

    /// As [`Self::evaluate_model`], of the model that worker 0 has, where others have their own.
    ///
    /// # Errors
    /// If another worker failed.
    pub(crate) fn evaluate_first_model(
        &mut self,
        epoch: usize,
        model: &Gnn,
    ) -> Result<Option<Scores>, SimError> {
        if !self.evaluates(epoch) {
            return Ok(None);
        }
        let own = || parameters(model);
        match self.evaluating(|evaluation, aside| evaluation.of_first(own, aside))? {
            None => self.evaluate_model(epoch, model),
            Some(values) => self.evaluate_model(epoch, &with_parameters(model.clone(), &values)),
        }
    }
}
