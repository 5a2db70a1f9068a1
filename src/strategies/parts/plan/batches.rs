//! What a [`BatchTrainer`](super::super::BatchTrainer) does.

use std::sync::Arc;

use super::expected_batches::ExpectedBatches;
use super::{
    Asks, Crosses, CrossingPlan, LayerPlan, PassPlan, arrived, ask_owners, exchange_features,
    stored,
};
use crate::graph::{BatchForm, LayerDraw, Rehearsal, SampledLayer, StepDraws};
use crate::model::{BlockShape, InputShape, Work};
use crate::sim::{Setting, Track};
use crate::strategies::parts::{EpochExchange, Wire};

/// The steps of mini-batches, whose rows of others come from their owners or, alone, not at all.
pub(super) struct BatchPlan {
    setting: Arc<Setting>,
    form: BatchForm,
    by_layer: bool,
    drawing: Drawing,
    at: (usize, usize),
    draws: Arc<StepDraws>,
    /// How many rows of others' features each worker has kept so far.
    kept: Vec<usize>,
}

/// How it is known what is drawn.
enum Drawing {
    /// By drawing it.
    Rehearsed(Rehearsal),
    /// In expectation, of a graph that is known by its law.
    Expected(ExpectedBatches),
}

impl BatchPlan {
    /// None without mini-batches.
    pub(super) fn new(setting: &Arc<Setting>, form: BatchForm, by_layer: bool) -> Option<Self> {
        let batches = Arc::clone(setting.batches.as_ref()?);
        let drawing = if let Some(law) = &setting.law {
            let of = (setting.steps(), setting.workers());
            Drawing::Expected(ExpectedBatches::new(Arc::clone(law), batches, of, form))
        } else {
            let rehearsal = Rehearsal::new(Arc::clone(&setting.boundary), batches, form);
            Drawing::Rehearsed(if setting.plans_work {
                rehearsal
            } else {
                rehearsal.of_messages()
            })
        };
        Some(Self {
            drawing,
            setting: Arc::clone(setting),
            form,
            by_layer,
            at: (0, 0),
            draws: Arc::default(),
            kept: vec![0; setting.workers()],
        })
    }

    /// Number of steps of an epoch.
    pub(super) const fn steps(&self) -> usize {
        match &self.drawing {
            Drawing::Rehearsed(rehearsal) => rehearsal.steps(),
            Drawing::Expected(expected) => expected.steps(),
        }
    }

    /// Draws for all workers in a step. Whether it is like the step before, and that known: the
    /// first of an epoch, in which nodes are shuffled, is like no other.
    pub(super) fn begin(&mut self, epoch: usize, step: usize) -> bool {
        self.at = (epoch, step);
        let draws = match &mut self.drawing {
            Drawing::Rehearsed(rehearsal) => Arc::new(rehearsal.play(epoch, step)),
            Drawing::Expected(expected) => expected.play(step),
        };
        let again = step > 1 && Arc::ptr_eq(&draws, &self.draws);
        self.draws = draws;
        if self.form == BatchForm::KeepingFeatures {
            let came = self.draws.layers[0].iter().map(|draw| draw.asks.iter());
            for (kept, came) in self.kept.iter_mut().zip(came) {
                *kept += came.map(|(_, rows)| rows).sum::<usize>();
            }
        }
        again
    }

    /// Bytes of the features of others that a worker has kept so far, as they lie in memory.
    pub(super) fn kept_bytes(&self, rank: usize) -> u64 {
        let rows = self.kept[rank];
        let features = &self.setting.dataset.features;
        if rows == 0 || self.setting.law.is_some() || features.is_dense() {
            return 4 * (rows * self.setting.model.features()) as u64;
        }
        // Which rows came is not counted: as many values as rows of its halo have on average.
        let halo = &self.setting.boundary.parts[rank].halo;
        let all = stored(InputShape::of(features, halo.iter().copied()));
        (all as f64 * rows as f64 / halo.len() as f64) as u64
    }

    /// Whether it is of a graph that is known by its law.
    pub(super) const fn in_numbers(&self) -> bool {
        matches!(self.drawing, Drawing::Expected(_))
    }

    /// Whether all workers do the same, each turned to its own place.
    pub(super) const fn are_equal(&self) -> bool {
        matches!(&self.drawing, Drawing::Expected(expected) if expected.are_equal())
    }

    /// What worker `rank` does in it, until gradients are summed.
    pub(super) fn write(&self, track: &mut Track, rank: usize, sent: &EpochExchange) {
        let (model, step, steps) = (&self.setting.model, self.at.1, self.steps());
        let wires = sent.wires.iter();
        let wires: Vec<Option<Wire>> = wires
            .map(|wire| Some(wire.as_ref()?.at_step(steps, step)))
            .collect();
        let together = self.form != BatchForm::Alone;
        let (crossings, features) = track.work_of_others(self.setting.samples_beside, |track| {
            self.prepare(track, rank, &wires, sent.crosses_after_product(0))
        });
        let aggregation = model.aggregation();
        let layer = |(layer, crossing): (usize, _)| {
            let draw: &LayerDraw = &self.draws.layers[layer][rank];
            let wire = wires.get(layer).and_then(Option::as_ref);
            LayerPlan {
                block: BlockShape::sampled(draw.outputs, draw.inputs, draw.edges, aggregation),
                crosses: wire
                    .filter(|wire| together && (layer > 0 || wire.takes_product()))
                    .map(|wire| Crosses {
                        plan: crossing,
                        forward: wire,
                        back: wire,
                    }),
            }
        };
        let pass = PassPlan {
            model,
            layers: crossings.iter().enumerate().map(layer).collect(),
            features,
            by_layer: self.by_layer,
        };
        pass.write(track, rank);
    }

    /// It draws the layers of the step and gathers its features: how rows of each layer cross, and
    /// the features.
    fn prepare(
        &self,
        track: &mut Track,
        rank: usize,
        wires: &[Option<Wire>],
        product_crosses: bool,
    ) -> (Vec<CrossingPlan>, Option<InputShape>) {
        let (model, step) = (&self.setting.model, self.at.1);
        if step == 0 {
            track.compute(Work::pass(self.setting.counts.parts[rank].training));
        }
        let asks = |layer| Asks::of(&self.draws, layer, rank);
        let mut features = None;
        let mut crossings = vec![CrossingPlan::default(); model.layers()];
        for layer in (0..model.layers()).rev() {
            let draw = &self.draws.layers[layer][rank];
            track.compute(Work::pass(draw.looked_at));
            if self.form != BatchForm::Alone {
                let asks = asks(layer);
                ask_owners(track, layer, &asks);
                if layer > 0 || product_crosses {
                    crossings[layer] = CrossingPlan {
                        made: draw.made,
                        own: draw.own,
                        sends: asks.of_me,
                        receives: asks.by_me,
                        ..CrossingPlan::default()
                    };
                } else if let Some(Some(wire)) = wires.first() {
                    track.set_up(self.form == BatchForm::KeepingFeatures, |track| {
                        exchange_features(track, rank, &asks, model.features(), wire);
                    });
                }
            }
            if layer == 0 && product_crosses {
                features = self.made_features(track, rank, draw);
            } else if layer == 0 && draw.inputs > 0 {
                track.compute(Work::pass(draw.inputs * model.features()));
                features = Some(self.features(rank, draw, wires.first().and_then(Option::as_ref)));
            }
            track.compute(Work::pass(draw.edges));
        }
        (crossings, features)
    }

    /// The features of own rows of which the product crosses; none for no rows.
    fn made_features(
        &self,
        track: &mut Track,
        rank: usize,
        draw: &LayerDraw,
    ) -> Option<InputShape> {
        if draw.made == 0 {
            return None;
        }
        let width = self.setting.model.features();
        track.compute(Work::pass(draw.made * width));
        if self.setting.law.is_some() {
            return Some(InputShape::dense(draw.made, width));
        }
        let owned = &self.setting.boundary.parts[rank].owned;
        let nodes = draw.made_rows.iter().map(|&row| owned[row as usize]);
        Some(InputShape::of(&self.setting.dataset.features, nodes))
    }

    /// The features of a step as they lie in memory.
    fn features(&self, rank: usize, draw: &LayerDraw, wire: Option<&Wire>) -> InputShape {
        if self.setting.law.is_some() {
            return InputShape::dense(draw.inputs, self.setting.model.features());
        }
        let part = &self.setting.boundary.parts[rank];
        let features = &self.setting.dataset.features;
        let own = part.owned.len();
        let (mine, others) = draw.rows.split_at(draw.own);
        let mine = mine.iter().map(|&row| part.owned[row as usize]);
        let halo = others.iter().map(|&row| part.halo[row as usize - own]);
        match wire {
            // Of features that are kept, those that came before went through the same wire.
            Some(wire) if self.form == BatchForm::Together => {
                let halo: Vec<u32> = halo.collect();
                let mine = InputShape::of(features, mine).stored;
                let by_owner = SampledLayer::by_owner(others, own, &part.receives);
                let rows = by_owner.iter();
                let rows = rows.map(|(owner, range)| (owner, &halo[range.clone()]));
                arrived(&self.setting, rank, mine, rows, wire)
            }
            _ => InputShape::of(features, mine.chain(halo)),
        }
    }
}
