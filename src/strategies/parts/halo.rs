//! Boundary rows across the cut: forward to those who need them, gradients back to those who own them.

use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData};

use crate::model::{Input, Work};
use crate::net::{Codec, CodecKey, Message, NetError, Outbox, Pending, Rows, TrafficKind, Way};
use crate::sim::{Activity, Shard, SimError, Worker, host};

/// How the rows of one layer travel in one epoch.
#[derive(Clone)]
pub struct Wire {
    /// Encodes rows, and on the way back the gradient of the same entries.
    pub codec: Arc<dyn Codec>,
    /// From which both ends derive what the codec draws.
    pub key: CodecKey,
}

impl Wire {
    /// This wire for the message that takes rows of `owner` to `reader`, or their gradient back.
    fn between(&self, owner: usize, reader: usize, way: Way) -> Self {
        Self {
            codec: Arc::clone(&self.codec),
            key: self.key.between(owner, reader, way),
        }
    }
}

/// The halo exchange of one worker.
pub struct HaloExchange {
    /// Features with the halo's, as received last.
    features: Option<Input>,
    /// Feature rows that travel, dense, for each receiver; made when they are first sent.
    outgoing_features: Option<Vec<Vec<f32>>>,
    /// Owned rows that travel, for all receivers one after another, on the device.
    outgoing: Tensor<1, Int>,
}

impl HaloExchange {
    /// The exchange of a worker's shard.
    #[must_use]
    pub fn new(worker: &Worker) -> Self {
        let rows: Vec<i32> = worker
            .shard()
            .sends
            .iter()
            .flat_map(|(_, rows)| rows)
            .map(|&row| index(row))
            .collect();
        let count = rows.len();
        let outgoing = Tensor::from_data(TensorData::new(rows, [count]), worker.plain_device());
        Self {
            features: None,
            outgoing_features: None,
            outgoing,
        }
    }

    /// The features of owned rows for who needs them, encoded; what comes back is for [`Self::finish_features`].
    pub fn outgoing_features(&mut self, worker: &mut Worker, wire: &Wire) -> Outbox {
        let width = worker.shard().features.width();
        let (shard, work) = (worker.shard(), Work::pass(worker.shard().halo() * width));
        let mut outbox = outbox(shard, TrafficKind::Feature, 0, Shard::sources);
        let rows = &mut self.outgoing_features;
        outbox.messages = worker.compute(Activity::Exchange, work, |worker| {
            let shard = worker.shard();
            let peers = shard.destinations();
            let rows = rows.get_or_insert_with(|| {
                let sent = peers.iter().map(|&peer| &shard.sends[peer]);
                sent.map(|rows| shard.features.dense_rows(rows)).collect()
            });
            peers
                .into_iter()
                .zip(rows)
                .map(|(peer, rows)| Message {
                    peer,
                    payload: encode(
                        rows,
                        width,
                        &wire.between(worker.rank(), peer, Way::Forward),
                    ),
                })
                .collect()
        });
        outbox
    }

    /// Waits for the features of the halo rows, and keeps them.
    ///
    /// # Errors
    /// If communication fails.
    pub fn finish_features(
        &mut self,
        worker: &mut Worker,
        wire: &Wire,
        started: Pending,
    ) -> Result<(), SimError> {
        let width = worker.shard().features.width();
        let work = Work::pass(worker.shard().halo() * width);
        let inbox = worker.finish_exchange(started)?;
        let input = worker.compute(Activity::Exchange, work, |worker| {
            // Halo rows are grouped by owner, and messages arrive in that order.
            let mut features = worker.shard().features.clone();
            for message in &inbox {
                features.append(&decode(worker, message, width, wire)?);
            }
            Ok::<_, SimError>(Input::from_features(features, worker.plain_device()))
        })?;
        self.features = Some(input);
        Ok(())
    }

    /// The features of owned and halo rows, as fetched last.
    ///
    /// # Errors
    /// If nothing was ever fetched.
    pub fn kept_features(&self) -> Result<Input, SimError> {
        self.features.clone().ok_or_else(|| {
            SimError::Strategy("features of the halo are used before they were sent".to_owned())
        })
    }

    /// The features of owned and halo rows; the halo's are fetched when `wire` is given, and kept otherwise.
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
        self.kept_features()
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
        owned: Tensor<2>,
        wire: &Wire,
    ) -> Result<Tensor<2>, SimError> {
        let width = owned.dims()[1];
        let rows = self.outgoing.dims()[0];
        let mut outbox = outbox(
            worker.shard(),
            TrafficKind::Activation,
            layer,
            Shard::sources,
        );
        if rows > 0 {
            let selection = (owned.clone(), self.outgoing.clone());
            outbox.messages =
                worker.compute(Activity::Exchange, Work::pass(rows * width), |worker| {
                    let gathered = host(selection.0.select(0, selection.1));
                    encode_outgoing(worker, &gathered, width, wire)
                });
        }
        let inbox = worker.exchange(outbox)?;
        let halo = worker.shard().halo();
        if halo == 0 {
            return Ok(owned);
        }
        worker.compute(Activity::Exchange, Work::pass(halo * width), |worker| {
            let rows = decode_halo(worker, &inbox, width, wire)?;
            let rows =
                Tensor::from_data(TensorData::new(rows, [halo, width]), worker.plain_device());
            Ok(Tensor::cat(vec![owned, rows], 0))
        })
    }

    /// Sends the gradient of halo rows to their owners, and adds what arrives for the owned rows.
    ///
    /// # Shapes
    /// - gradient: `[owned + halo, width]`
    /// - result: `[owned, width]`
    ///
    /// # Errors
    /// If communication fails.
    pub fn backward(
        &self,
        worker: &mut Worker,
        layer: usize,
        gradient: Tensor<2>,
        wire: &Wire,
    ) -> Result<Tensor<2>, SimError> {
        let width = gradient.dims()[1];
        let (owned, halo) = (worker.shard().owned, worker.shard().halo());
        let mut outbox = outbox(
            worker.shard(),
            TrafficKind::ActivationGradient,
            layer,
            Shard::destinations,
        );
        let mut mine = gradient;
        if halo > 0 {
            let (all, work) = (mine, Work::pass(halo * width));
            (mine, outbox.messages) = worker.compute(Activity::Exchange, work, |worker| {
                let rows = host(all.clone().narrow(0, owned, halo));
                let messages = worker
                    .shard()
                    .receives
                    .iter()
                    .map(|(peer, range)| {
                        let values = &rows[range.start * width..range.end * width];
                        Message {
                            peer,
                            payload: encode(
                                values,
                                width,
                                &wire.between(peer, worker.rank(), Way::Back),
                            ),
                        }
                    })
                    .collect();
                (all.narrow(0, 0, owned), messages)
            });
        }
        let inbox = worker.exchange(outbox)?;
        if inbox.is_empty() {
            return Ok(mine);
        }
        let incoming = self.outgoing.dims()[0];
        worker.compute(Activity::Exchange, Work::pass(incoming * width), |worker| {
            let shard = worker.shard();
            let mut sum = vec![0.0_f32; owned * width];
            for message in &inbox {
                let rows = &shard.sends[message.peer];
                let wire = wire.between(worker.rank(), message.peer, Way::Back);
                let values = wire
                    .codec
                    .decode(&message.payload, rows.len(), width, wire.key)?;
                for (&row, values) in rows.iter().zip(values.chunks_exact(width)) {
                    let target = &mut sum[row as usize * width..][..width];
                    for (total, value) in target.iter_mut().zip(values) {
                        *total += value;
                    }
                }
            }
            let sum = TensorData::new(sum, [owned, width]);
            Ok(mine + Tensor::from_data(sum, worker.plain_device()))
        })
    }
}

impl Shard {
    /// Workers from which halo rows come.
    fn sources(&self) -> Vec<usize> {
        self.receives.ranks().collect()
    }

    /// Workers to which owned rows go.
    fn destinations(&self) -> Vec<usize> {
        self.sends.ranks().collect()
    }
}

#[allow(clippy::cast_possible_truncation)] // layers are few
fn outbox(
    shard: &Shard,
    kind: TrafficKind,
    layer: usize,
    expect: impl Fn(&Shard) -> Vec<usize>,
) -> Outbox {
    Outbox {
        expect: expect(shard),
        ..Outbox::new(kind, layer as u32)
    }
}

#[allow(clippy::cast_possible_wrap)] // rows of a shard are far below 2³¹
const fn index(row: u32) -> i32 {
    row as i32
}

fn encode(values: &[f32], width: usize, wire: &Wire) -> Vec<u8> {
    wire.codec.encode(&Rows::new(values, width), wire.key)
}

fn encode_outgoing(worker: &Worker, gathered: &[f32], width: usize, wire: &Wire) -> Vec<Message> {
    let shard = worker.shard();
    let mut start = 0;
    shard
        .destinations()
        .into_iter()
        .map(|peer| {
            let rows = shard.sends[peer].len();
            let values = &gathered[start * width..(start + rows) * width];
            start += rows;
            Message {
                peer,
                payload: encode(
                    values,
                    width,
                    &wire.between(worker.rank(), peer, Way::Forward),
                ),
            }
        })
        .collect()
}

/// Rows of the halo, `[halo, width]`, in its order.
fn decode_halo(
    worker: &Worker,
    inbox: &[Message],
    width: usize,
    wire: &Wire,
) -> Result<Vec<f32>, NetError> {
    let mut halo = Vec::with_capacity(worker.shard().halo() * width);
    for message in inbox {
        halo.extend(decode(worker, message, width, wire)?);
    }
    Ok(halo)
}

/// The halo rows of one message.
fn decode(
    worker: &Worker,
    message: &Message,
    width: usize,
    wire: &Wire,
) -> Result<Vec<f32>, NetError> {
    let rows = worker.shard().receives[message.peer].len();
    let wire = wire.between(message.peer, worker.rank(), Way::Forward);
    let payload = &message.payload;
    wire.codec.decode(payload, rows, width, wire.key)
}
