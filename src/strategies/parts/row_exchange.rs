//! Strategies that differ in what becomes of boundary rows alone: how they are encoded, which of
//! them cross, and when they are used.

use std::sync::Arc;

use super::plan::{ExchangePlanner, Sending};
use super::{
    BoundaryShare, ByChange, CodecChoice, CodecState, Compression, EpochExchange, Exchange,
    ExchangePoint, Feedback, RowWires, Schedule, When, partition_parallel,
};
use crate::digits::counted;
use crate::graph::{PartitionMethod, PartitionSpec};
use crate::sim::{Planner, Restoring, Saved, Saving, Setting, SimError, Worker};
use crate::strategies::{
    BatchUse, Needs, NeedsOfOthers, OptionError, PlansFrom, Strategy, Training,
};

/// What becomes of boundary rows.
#[derive(Clone)]
pub struct RowExchange {
    /// Whether any cross; if not, cut edges are dropped.
    pub crosses: bool,
    /// Through which codec they go, at which ratio by epoch.
    pub compression: Compression,
    /// The share of the boundary that crosses, if not all does.
    pub share: Option<BoundaryShare>,
    /// What is waited for, used again and summed when. What is known in advance of features travels
    /// an epoch ahead where this says so, and what is sent depends on neither draws nor training.
    pub when: When,
}

impl RowExchange {
    /// All rows, at once, and all gradients, as they are.
    pub fn new(compression: Compression) -> Self {
        Self {
            crosses: true,
            compression,
            share: None,
            when: When::default(),
        }
    }

    /// Whether what is sent depends on how much rows change.
    fn looks_at_change(&self) -> bool {
        let kept = self.when.kept;
        kept.is_some_and(|keeping| keeping.threshold.is_some())
    }

    /// All rows through a codec, by default random columns, at the ratio of a schedule; where they
    /// are narrower, and features in every epoch.
    pub fn compressed(schedule: Schedule) -> Self {
        let compression = Compression {
            codec: Some(CodecChoice::default()),
            schedule,
            ..Compression::none()
        };
        Self::new(compression.sending(false, ExchangePoint::Narrower))
    }
}

impl Strategy for RowExchange {
    fn needs(&self, asked: &PartitionSpec) -> Result<Needs, OptionError> {
        let When {
            staleness,
            kept,
            blocks,
            repartition,
            ..
        } = self.when;
        let moves = repartition.every.is_some();
        let late = staleness.is_some() || kept.is_some();
        let whole = late || moves || blocks || self.share.is_some();
        let stays = match asked.method {
            PartitionMethod::Given => "a file has one division of the nodes",
            PartitionMethod::Dirichlet => "its parts are clients, whose nodes stay with them",
            _ => "",
        };
        if moves && !stays.is_empty() {
            let method = asked.method.name();
            let what = format!(
                "deals out nodes anew, which does not go with `partition.method = \"{method}\"`: {stays}; choose another method, or \
                 leave this out"
            );
            return Err(OptionError::key("repartition_every", what));
        }
        let batches = if whole {
            BatchUse::Never
        } else {
            BatchUse::Possible
        };
        Ok(Needs::of(asked.clone(), batches))
    }

    fn plans_from(&self, batches: bool) -> PlansFrom {
        PlansFrom {
            counts: !self.looks_at_change() && self.when.repartition.every.is_none(),
            law: batches,
            others: match self.when.repartition.every {
                Some(_) => NeedsOfOthers::Graph,
                None => NeedsOfOthers::of_rows(batches),
            },
        }
    }

    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        Ok(Box::new(RowTraining {
            wires: self.compression.fit(setting, setting.training.epochs)?,
            exchange: self.clone(),
            setting: Arc::clone(setting),
        }))
    }
}

struct RowTraining {
    wires: RowWires,
    exchange: RowExchange,
    setting: Arc<Setting>,
}

impl RowTraining {
    /// Who sends by how much rows change, if they do.
    fn rule(&self) -> Option<ByChange> {
        let keeping = self.exchange.when.kept?;
        let threshold = keeping.threshold?;
        let by = (keeping.bound, threshold);
        Some(ByChange::new(
            by,
            self.wires.lanes(),
            self.setting.workers(),
        ))
    }

    fn when(&self) -> When {
        let when = self.exchange.when;
        // A share of the boundary is drawn by the epoch.
        let drawn = self.exchange.share.is_some() || when.staleness.is_some();
        let features_ahead = when.features_ahead && !drawn && self.plans_exactly();
        When {
            features_ahead,
            ..when
        }
    }
}

impl Training for RowTraining {
    fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    fn planner(&self) -> Box<dyn Planner> {
        let RowExchange { share, when, .. } = self.exchange;
        let When {
            kept, repartition, ..
        } = when;
        let wires = self.wires.clone();
        let state = wires.state();
        let (epochs, workers) = (self.setting.training.epochs, self.setting.workers());
        let sending = Sending {
            keeps_features: wires.compression.cache_features,
            exchange: Box::new(move |epoch, decided| {
                let ratio = wires.planned_ratio(epoch, decided);
                let begins = repartition.since(epoch) == 0;
                let mut sent = wires.exchange(ratio, epoch, begins, &state);
                sent.share = share;
                if let Some(keeping) = kept {
                    sent.senders = keeping.senders(repartition.since(epoch), decided);
                    if keeping.threshold.is_some() && !repartition.ends(epoch, epochs) {
                        sent.tally = ByChange::tally(wires.lanes().count(), workers);
                    }
                }
                sent
            }),
        };
        let sending = self.exchange.crosses.then_some(sending);
        Box::new(ExchangePlanner::new(&self.setting, sending, self.when()))
    }

    fn plans_exactly(&self) -> bool {
        !self.wires.compression.is_adaptive() && !self.exchange.looks_at_change()
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let mut rows = Rows {
            training: self,
            codecs: self.wires.state(),
            rule: self.rule(),
        };
        let rows: Option<&mut dyn Exchange> = if self.exchange.crosses {
            Some(&mut rows)
        } else {
            None
        };
        partition_parallel(worker, rows, self.when())
    }

    fn notes(&self) -> Vec<String> {
        let epochs = self.epochs();
        let every = self
            .exchange
            .when
            .repartition
            .every
            .filter(|&every| every >= epochs);
        let stay = every.map(|every| {
            let epochs = counted(epochs as u64, "epoch");
            format!(
                "no node changes workers: repartition_every = {every}, and it trains for {epochs}"
            )
        });
        let crosses = self.exchange.crosses && self.setting.workers() > 1;
        let ratio = crosses
            .then(|| self.wires.note(&self.setting.model))
            .flatten();
        let steps = epochs * self.setting.steps().count();
        let late = self.exchange.when.gradients.note(&self.setting, steps);
        ratio.into_iter().chain(stay).chain(late).collect()
    }

    fn saves(&self) -> Result<(), String> {
        Ok(())
    }
}

/// What travels, by what a worker remembers.
struct Rows<'a> {
    training: &'a RowTraining,
    codecs: CodecState,
    rule: Option<ByChange>,
}

impl Exchange for Rows<'_> {
    fn at(&mut self, epoch: usize, seen: &[Feedback]) -> EpochExchange {
        let RowTraining {
            wires,
            exchange: options,
            setting,
        } = self.training;
        let When {
            kept, repartition, ..
        } = options.when;
        if repartition.begins(epoch) {
            // What is known of rows is of those that crossed until now.
            self.codecs.forget();
            self.rule = self.training.rule();
        }
        let ratio = wires.ratio_at(epoch, seen);
        let begins = repartition.since(epoch) == 0;
        let mut sent = wires.exchange(ratio, epoch, begins, &self.codecs);
        sent.share = options.share;
        if let Some(rule) = &mut self.rule {
            rule.decide(&mut sent, !repartition.ends(epoch, setting.training.epochs));
        } else if let Some(keeping) = kept {
            sent.senders = keeping.senders(repartition.since(epoch), None);
        }
        sent
    }

    fn save(&self, into: &mut Saving) {
        self.codecs.save(into);
        if let Some(rule) = &self.rule {
            rule.save(into);
        }
    }

    fn restore(&mut self, from: &mut Restoring<'_>) -> Result<(), SimError> {
        self.codecs.restore(from)?;
        self.rule.as_mut().map_or(Ok(()), |rule| rule.restore(from))
    }
}
