//! Boundary rows across the cut: forward to those who need them, gradients back to those who own
//! them.

use super::crossing::{encode, outbox};
use super::wire::WireAt;
use super::{Crossing, When, Wire};
use crate::model::{Input, Matrix};
use crate::net::{Message, Outbox, TrafficKind, Way};
use crate::sim::{Activity, PendingExchange, Restoring, Saving, SimError, Worker};

/// The halo exchange of one worker.
pub struct HaloExchange {
    /// Features with the halo's, as received last.
    features: Option<Input>,
    /// Feature rows that travel, dense, for each receiver; made when they are first sent.
    outgoing_features: Option<Vec<Vec<f32>>>,
    crossing: Crossing,
}

impl HaloExchange {
    /// The exchange of a worker's shard.
    pub fn new(worker: &Worker) -> Self {
        Self::by(worker, When::default())
    }

    /// The same with rows that travel as `when` says; features are late only where
    /// [`Self::late_features`] is asked for them.
    pub fn by(worker: &Worker, when: When) -> Self {
        Self::of(Crossing::by(worker, when))
    }

    /// The exchange of other rows than all that the shard sends and reads.
    pub const fn of(crossing: Crossing) -> Self {
        Self {
            features: None,
            outgoing_features: None,
            crossing,
        }
    }

    /// The rows that cross.
    pub const fn crossing(&self) -> &Crossing {
        &self.crossing
    }

    /// Saves what came and is used again.
    pub fn save(&self, worker: &Worker, into: &mut Saving) {
        self.crossing.save(into);
        into.put(&self.features.is_some());
        if let Some(features) = &self.features {
            into.floats(&features.values_from(worker.shard().owned));
        }
    }

    /// Takes back what was saved; `wire_at` says how rows of a layer travelled in an epoch, where
    /// late ones, or old ones, are used.
    ///
    /// # Errors
    /// If something else was saved.
    pub fn restore(
        &mut self,
        from: &mut Restoring<'_>,
        wire_at: WireAt<'_>,
    ) -> Result<(), SimError> {
        self.crossing.restore(from, wire_at)?;
        if from.saved().take()? {
            let rows = from.saved().floats()?;
            let worker = from.worker();
            let mut features = worker.shard().features.clone();
            features.append(&rows);
            self.features = Some(Input::from_features(features, worker.place()));
        }
        Ok(())
    }

    /// The features of owned rows for who needs them, encoded; what comes back is for
    /// [`Self::finish_features`].
    pub fn outgoing_features(&mut self, worker: &mut Worker, wire: &Wire) -> Outbox {
        let width = worker.shard().features.width();
        let mut outbox = outbox(TrafficKind::Feature, 0, self.crossing.receives.ranks());
        let rows = &mut self.outgoing_features;
        let sends = &self.crossing.sends;
        outbox.messages = worker.compute(Activity::Exchange, |worker| {
            let features = &worker.shard().features;
            // Features never change: they are gathered once, and encoded anew each time.
            let rows = rows.get_or_insert_with(|| {
                let sent = sends.iter();
                sent.map(|(_, rows)| features.dense_rows(rows)).collect()
            });
            sends
                .ranks()
                .zip(rows)
                .map(|(peer, rows)| {
                    let wire = wire.between(worker.rank(), peer, Way::Forward);
                    let payload = encode(rows, width, &wire);
                    Message { peer, payload }
                })
                .collect()
        });
        outbox
    }

    /// Features are sent no more: what was gathered of them is let go.
    pub(crate) fn end_features(&mut self) {
        self.outgoing_features = None;
    }

    /// Waits for the features of the halo rows, and keeps them.
    ///
    /// # Errors
    /// If communication fails.
    pub fn finish_features(
        &mut self,
        worker: &mut Worker,
        wire: &Wire,
        started: PendingExchange,
    ) -> Result<(), SimError> {
        let width = worker.shard().features.width();
        let inbox = worker.finish_exchange(started)?;
        let crossing = &self.crossing;
        // Those that come once are read in every epoch; those that come anew are read once.
        let lasting = self.features.is_none();
        let input = worker.compute(Activity::Exchange, |worker| {
            // Halo rows are grouped by owner, and messages arrive in that order.
            // A copy of the shard's: the next time the halo's rows come anew, perhaps through
            // another codec.
            let mut features = worker.shard().features.clone();
            for message in &inbox {
                features.append(&crossing.decode(worker, message, width, wire)?);
            }
            let input = Input::from_features(features, worker.place());
            Ok::<_, SimError>(if lasting { input.lasting() } else { input })
        })?;
        self.features = Some(input);
        Ok(())
    }

    /// The features of owned and halo rows, of which the halo's were sent in the exchange before;
    /// zeros in the first.
    ///
    /// # Errors
    /// If communication fails.
    pub fn late_features(&mut self, worker: &mut Worker, wire: &Wire) -> Result<Input, SimError> {
        let width = worker.shard().features.width();
        let outbox = self.outgoing_features(worker, wire);
        let crossing = &self.crossing;
        let (inbox, wire) = crossing.exchange(worker, outbox, wire)?;
        worker.compute(Activity::Exchange, |worker| {
            let mut arrived = Vec::with_capacity(crossing.halo() * width);
            for message in &inbox {
                arrived.extend(crossing.decode(worker, message, width, &wire)?);
            }
            let mut features = worker.shard().features.clone();
            features.append(&crossing.late_features(arrived, width));
            Ok(Input::from_features(features, worker.place()))
        })
    }

    /// The features of owned and halo rows; the halo's are fetched when `wire` is given, and kept
    /// otherwise.
    ///
    /// # Errors
    /// If communication fails, or nothing was ever fetched.
    pub fn features(
        &mut self,
        worker: &mut Worker,
        wire: Option<&Wire>,
    ) -> Result<Input, SimError> {
        if let Some(wire) = wire {
            let outbox = self.outgoing_features(worker, wire);
            let started = worker.start_exchange(outbox)?;
            self.finish_features(worker, wire, started)?;
        }
        self.features.clone().ok_or_else(|| {
            SimError::Strategy("features of the halo are used before they were sent".to_owned())
        })
    }

    /// Owned rows of a layer's input, with the halo's rows below them.
    ///
    /// # Shapes
    /// - owned: `[owned, width]`
    /// - result: `[owned + halo, width]`
    ///
    /// # Errors
    /// If communication fails.
    pub fn forward(
        &self,
        worker: &mut Worker,
        layer: usize,
        owned: Matrix,
        wire: &Wire,
    ) -> Result<Matrix, SimError> {
        let width = owned.width();
        let all = self
            .crossing
            .forward(worker, layer, Some(owned.clone()), width, wire)?;
        Ok(all.unwrap_or(owned))
    }
}
