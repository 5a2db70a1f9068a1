//! `PipeGCN`: what is used is one epoch old, and nothing else changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::common::{CORA, Case, KINDS, losses};
use grapevine::graph::BoundaryPlan;
use grapevine::model::{ModelKind, ModelSpec, OptimizerConfig};
use grapevine::net::{
    AllReduceKind, Bytes, Codec, CodecKey, Identity, NetError, Reduce, RelativeError, Rows,
    Traffic, TrafficKind, Way,
};
use grapevine::sim::{EpochReport, SimError, Worker};
use grapevine::strategies::full::plain_wire;
use grapevine::strategies::parts::{
    EpochExchange, HaloExchange, Late, LayerwiseTrainer, LocalGraph, Overlap, Wire,
    exchange_traffic, partition_parallel,
};
use grapevine::strategies::{Context, Registry, Strategy};

/// Parameters that rest, and no dropout: an epoch computes what the one before did.
const RESTING: OptimizerConfig = OptimizerConfig::Sgd {
    learning_rate: 0.0,
    weight_decay: 0.0,
    momentum: 0.0,
};

/// What each worker sees of the clock of epochs, and how old the messages are that it reads.
#[derive(Default)]
struct Watch {
    now: Mutex<BTreeMap<u32, u64>>,
    ages: Mutex<BTreeMap<(u32, Way, u64), Vec<u64>>>,
}

/// Rows as they are, after the number of the epoch in which they were sent.
struct Stamped(Arc<Watch>);

impl Codec for Stamped {
    fn name(&self) -> String {
        "stamped".into()
    }

    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
        Bytes(8 + 4 * (rows * width) as u64)
    }

    fn encode(&self, rows: &Rows<'_>, key: CodecKey) -> Vec<u8> {
        let mut bytes = key.round.to_le_bytes().to_vec();
        bytes.extend(Identity.encode(rows, key));
        bytes
    }

    fn decode(
        &self,
        bytes: &[u8],
        rows: usize,
        width: usize,
        key: CodecKey,
    ) -> Result<Vec<f32>, NetError> {
        let (stamp, values) = bytes.split_at(8);
        let stamp = u64::from_le_bytes(stamp.try_into().expect("eight bytes"));
        assert_eq!(
            stamp, key.round,
            "it is read through the wire it was sent on"
        );
        let lane = key.lane.expect("a message has two ends");
        let reader = match lane.way {
            Way::Forward => lane.reader,
            Way::Back => lane.owner,
        };
        let now = self.0.now.lock().unwrap()[&reader];
        let mut ages = self.0.ages.lock().unwrap();
        let message = ages.entry((key.layer, lane.way, now)).or_default();
        message.push(now - stamp);
        Identity.decode(values, rows, width, key)
    }

    fn is_lossless(&self) -> bool {
        true
    }

    fn is_biased(&self) -> bool {
        false
    }

    fn expected_error(&self, _width: usize) -> RelativeError {
        RelativeError::Exact(0.0)
    }
}

/// The loop of `pipe` with stamps on its messages.
struct Stamping {
    watch: Arc<Watch>,
    layers: u32,
}

impl Stamping {
    fn exchange(&self, epoch: usize) -> EpochExchange {
        let wire = |layer: u32| match layer {
            0 => (epoch == 0).then(plain_wire),
            _ => Some(Wire {
                codec: Arc::new(Stamped(Arc::clone(&self.watch))),
                key: CodecKey::new(0, layer, epoch as u64),
            }),
        };
        EpochExchange {
            wires: (0..self.layers).map(wire).collect(),
            ..EpochExchange::default()
        }
    }
}

impl Strategy for Stamping {
    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, epoch: usize) -> Traffic {
        let (kind, sent) = (AllReduceKind::Ring, self.exchange(epoch));
        exchange_traffic(kind, boundary, model, epoch, &sent, false)
    }

    #[allow(clippy::cast_possible_truncation)] // ranks are few
    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let rank = worker.rank() as u32;
        let exchange = |epoch: usize, _: &[_]| {
            let mut now = self.watch.now.lock().expect("nobody panics with it");
            now.insert(rank, epoch as u64);
            self.exchange(epoch)
        };
        let overlap = Overlap {
            late: Some(Late::default()),
            ..Overlap::default()
        };
        partition_parallel(worker, Some(&exchange), overlap)
    }
}

#[test]
fn every_message_is_used_once_and_exactly_one_epoch_after_it_was_sent() {
    let case = Case {
        epochs: 6,
        ..Case::default()
    };
    let stamping = Stamping {
        watch: Arc::default(),
        layers: 3,
    };
    let outcome = case.train("stamping", &stamping);
    let pairs = outcome.ledger.epoch(0).unwrap().iter();
    let features = pairs.filter(|(lane, ..)| lane.kind == TrafficKind::Feature);
    let pairs: u64 = features.map(|(_, _, count)| count).sum();
    let ages = stamping.watch.ages.lock().unwrap();
    for layer in [1, 2] {
        for way in [Way::Forward, Way::Back] {
            assert!(!ages.contains_key(&(layer, way, 0)), "zeros at first");
            for epoch in 1..6 {
                let expected = vec![1; usize::try_from(pairs).unwrap()];
                assert_eq!(ages[&(layer, way, epoch)], expected, "{way:?}, {epoch}");
            }
        }
    }
    // The stamps change nothing.
    assert_eq!(losses(&outcome), losses(&case.run("pipe", "")));
}

/// Gradients of `full`, or of `pipe`, with parameters that rest.
struct Resting {
    late: Option<Late>,
    gradients: Mutex<Vec<Vec<f32>>>,
}

impl Strategy for Resting {
    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, epoch: usize) -> Traffic {
        let sent = EpochExchange {
            wires: (0..model.layers())
                .map(|layer| (layer > 0 || epoch == 0).then(plain_wire))
                .collect(),
            ..EpochExchange::default()
        };
        exchange_traffic(AllReduceKind::Ring, boundary, model, epoch, &sent, false)
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let wires: Vec<Option<Wire>> = (0..worker.setting().model.layers())
            .map(|_| Some(plain_wire()))
            .collect();
        let model = worker.new_model();
        let mut halo = HaloExchange::new(worker);
        if let Some(late) = self.late {
            halo = halo.late(late);
        }
        let trainer = LayerwiseTrainer::new(worker, LocalGraph::with_halo(worker));
        let epochs = worker.setting().epochs;
        for epoch in 0..epochs {
            worker.begin_epoch(epoch);
            let features = halo.features(worker, (epoch == 0).then(plain_wire).as_ref())?;
            let mut step = trainer.step(worker, &model, &features, &halo, &wires, epoch)?;
            let kind = TrafficKind::ParameterGradient;
            worker.all_reduce(&mut step.gradient, Reduce::Sum, kind)?;
            if worker.rank() == 0 {
                self.gradients.lock().unwrap().push(step.gradient);
            }
            if epoch + 1 == epochs {
                halo.crossing().finish(worker)?;
            }
            let scores = worker.evaluate_model(epoch, &model)?;
            let report = EpochReport {
                loss: step.loss,
                scores,
                ..EpochReport::default()
            };
            worker.end_epoch(epoch, report);
        }
        Ok(())
    }
}

#[test]
fn while_parameters_rest_losses_and_gradients_become_those_of_full_layer_by_layer() {
    for (kind, layers) in [
        (ModelKind::Gcn, 2),
        (ModelKind::Sage, 3),
        (ModelKind::Gat, 3),
        (ModelKind::Gin, 4),
    ] {
        let case = Case {
            kind,
            layers,
            dropout: 0.0,
            epochs: 2 * layers,
            optimizer: RESTING,
            ..Case::default()
        };
        let of = |late| {
            let resting = Resting {
                late,
                gradients: Mutex::default(),
            };
            let outcome = case.train("resting", &resting);
            let model = case.setting(&resting).model.clone();
            (
                losses(&outcome),
                resting.gradients.into_inner().unwrap(),
                model,
            )
        };
        let (exact, expected, model) = of(None);
        let (stale, found, _) = of(Some(Late::default()));
        assert_eq!(losses(&case.run("pipe", "")), stale);
        let last = layers - 1;
        for epoch in 0..case.epochs {
            // The last layer reads zeros in epoch 0, and a layer below is a layer nearer to the features.
            let equal = stale[epoch].to_bits() == exact[epoch].to_bits();
            assert_eq!(equal, epoch >= last, "{kind:?}, epoch {epoch}");
            for layer in 0..layers {
                let [weights, _] = model.parameter_ranges(layer);
                let equal = found[epoch][weights.clone()] == expected[epoch][weights];
                let due = epoch >= 2 * last - layer;
                assert!(!due || equal, "{kind:?}, layer {layer}, epoch {epoch}");
            }
        }
        assert_ne!(found[last], expected[last], "gradients are not there yet");
        assert_eq!(found[2 * last], expected[2 * last]);
    }
}

#[test]
fn an_epoch_sends_what_one_of_full_does_and_waits_less_for_it() {
    for kind in KINDS {
        let case = Case {
            kind,
            epochs: 6,
            hidden: 64,
            ..Case::default()
        };
        for cached in ["", "cache_features = false"] {
            let (full, pipe) = (case.run("full", cached), case.run("pipe", cached));
            assert_eq!(full.ledger, pipe.ledger, "{kind:?} {cached}");
            let exposed = pipe.mean_time(|times| times.exposed).0;
            assert!(exposed < full.mean_time(|times| times.exposed).0);
            assert!(pipe.simulated() < full.simulated(), "{kind:?} {cached}");
        }
    }
}

#[test]
fn features_that_are_resent_are_exact_too() {
    let case = Case::default();
    let cached = losses(&case.run("pipe", ""));
    assert_eq!(losses(&case.run("pipe", "cache_features = false")), cached);
    // A model of one layer reads nothing but features.
    let one = Case { layers: 1, ..case };
    assert_eq!(losses(&one.run("pipe", "")), losses(&one.run("full", "")));
}

#[test]
fn pairwise_sums_by_layer_train_alike_and_smoothing_trains_otherwise() {
    let case = Case {
        workers: 2,
        epochs: 5,
        ..Case::default()
    };
    let plain = losses(&case.run("pipe", ""));
    assert_eq!(losses(&case.run("pipe", "overlap = true")), plain);
    let smoothed = |what: &str, gamma: &str| {
        losses(&case.run("pipe", &format!("smoothing = \"{what}\"\ngamma = {gamma}")))
    };
    let mut all = vec![plain.clone()];
    for what in ["features", "gradients", "both"] {
        assert_eq!(smoothed(what, "0"), plain, "nothing of the mean so far");
        all.push(smoothed(what, "0.5"));
    }
    for (at, one) in all.iter().enumerate() {
        assert!(!all[..at].contains(one), "{at}");
    }
    let default = losses(&case.run("pipe", "smoothing = \"both\""));
    assert_eq!(default, smoothed("both", "0.95"));
}

#[test]
fn stale_rows_learn_cora_as_well_as_fresh_ones() {
    let case = Case {
        data: CORA,
        layers: 2,
        hidden: 16,
        epochs: 60,
        ..Case::default()
    };
    let best = |kind| {
        let best = case.run(kind, "").best();
        best.and_then(|(_, scores)| scores.test).unwrap()
    };
    let (full, pipe) = (best("full"), best("pipe"));
    assert!((pipe - full).abs() < 0.03, "{pipe} and {full}");
}

#[test]
fn options_without_effect_or_sense_are_refused() {
    let context = Case::default().context();
    let error = |text: &str, context: &Context| {
        let table = text.parse().unwrap();
        let built = Registry::builtin().build("pipe", &table, context);
        built.err().expect("it is wrong")
    };
    let key = |text: &str| error(text, &context).key;
    for wrong in ["1", "-0.1", "nan", "\"x\""] {
        let text = format!("smoothing = \"both\"\ngamma = {wrong}");
        assert_eq!(key(&text).as_deref(), Some("gamma"), "{wrong}");
    }
    assert_eq!(key("gamma = 0.9").as_deref(), Some("gamma"));
    assert_eq!(key("smoothing = \"all\"").as_deref(), Some("smoothing"));
    let batches = Context {
        mini_batch: true,
        ..context
    };
    assert!(error("", &batches).message.contains("training.batch"));
}
