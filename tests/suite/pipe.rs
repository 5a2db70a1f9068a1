//! `PipeGCN`: what is used is one epoch old, and nothing else changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::common::{Case, KINDS, Plan, Program, losses};
use grapevine::model::{ModelKind, OptimizerConfig};
use grapevine::net::{
    Bytes, Codec, CodecKey, Identity, NetError, RandomColumns, Reduce, RelativeError, Rows,
    TrafficKind, Way,
};
use grapevine::sim::{EpochReport, SimError, Worker};
use grapevine::strategies::parts::plan::{ExchangePlanner, Sending};
use grapevine::strategies::parts::{
    EpochExchange, Gradients, HaloExchange, LayerwiseTrainer, LocalGraph, Repartition, Staleness,
    When, Wire, partition_parallel,
};

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
    /// Every so many epochs nothing is late.
    fresh_every: Option<usize>,
}

/// Rows as they are, after the number of the epoch in which they were sent and the round of the
/// wire they went through.
struct Stamped(Arc<Watch>);

impl Codec for Stamped {
    fn name(&self) -> String {
        "stamped".into()
    }

    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
        Bytes(16 + 4 * (rows * width) as u64)
    }

    fn encode(&self, rows: &Rows<'_>, key: CodecKey) -> Vec<u8> {
        let lane = key.lane.expect("a message has two ends");
        let sender = match lane.way {
            Way::Forward => lane.owner,
            Way::Back => lane.reader,
        };
        let sent = self.0.now.lock().unwrap()[&sender];
        let mut bytes = [sent, key.round].map(u64::to_le_bytes).concat();
        bytes.extend(Identity.encode(rows, key));
        bytes
    }

    fn decode(&self, bytes: &[u8], shape: [usize; 2], key: CodecKey) -> Result<Vec<f32>, NetError> {
        let (stamps, values) = bytes.split_at(16);
        let (stamps, _) = stamps.as_chunks();
        let [sent, round] = [stamps[0], stamps[1]].map(u64::from_le_bytes);
        assert_eq!(
            round, key.round,
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
        message.push(now - sent);
        // A gradient goes back through the wire that its rows came through: an epoch before, if
        // they were late.
        let is_fresh = (self.0.fresh_every).is_some_and(|every| sent.is_multiple_of(every as u64));
        let rows_of = match lane.way {
            Way::Back if !is_fresh => sent.saturating_sub(1),
            Way::Forward | Way::Back => sent,
        };
        assert_eq!(round, rows_of, "the same entries both ways");
        Identity.decode(values, shape, key)
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

/// What travels in an epoch of `pipe` with stamps on its messages.
fn stamped(watch: &Arc<Watch>, epoch: usize) -> EpochExchange {
    let wire = |layer: u32| match layer {
        0 => (epoch == 0).then(Wire::plain),
        _ => Some(Wire {
            codec: Arc::new(Stamped(Arc::clone(watch))),
            key: CodecKey::new(0, layer, epoch as u64),
            ..Wire::plain()
        }),
    };
    EpochExchange {
        wires: (0..3).map(wire).collect(),
        ..EpochExchange::default()
    }
}

/// Late but for every so many epochs.
fn late(fresh_every: Option<usize>) -> When {
    When {
        staleness: LATE.staleness.map(|late| Staleness {
            fresh_every,
            ..late
        }),
        ..LATE
    }
}

const LATE: When = When {
    gradients_overlap: false,
    features_ahead: false,
    staleness: Some(Staleness {
        rows: None,
        gradients: None,
        features: false,
        fresh_every: None,
    }),
    kept: None,
    blocks: false,
    gradients: Gradients::PLAIN,
    repartition: Repartition { every: None },
};

/// A plan in which travels what `exchange` says of an epoch.
fn plan(
    exchange: impl Fn(usize) -> EpochExchange + Clone + Send + Sync + 'static,
    overlap: When,
) -> Arc<Plan> {
    Arc::new(move |setting| {
        let exchange = exchange.clone();
        let sending = Sending {
            keeps_features: false,
            exchange: Box::new(move |epoch, _| exchange(epoch)),
        };
        Box::new(ExchangePlanner::new(setting, Some(sending), overlap))
    })
}

/// The loop of `pipe` with stamps on its messages.
fn stamping(watch: &Arc<Watch>) -> Program {
    let (plans, trains) = (Arc::clone(watch), Arc::clone(watch));
    let when = late(watch.fresh_every);
    Program {
        plan: plan(move |epoch| stamped(&plans, epoch), when),
        train: Arc::new(move |worker| {
            #[allow(clippy::cast_possible_truncation)] // ranks are few
            let rank = worker.rank() as u32;
            let mut exchange = |epoch: usize, _: &[_]| {
                let mut now = trains.now.lock().expect("nobody panics with it");
                now.insert(rank, epoch as u64);
                stamped(&trains, epoch)
            };
            partition_parallel(worker, Some(&mut exchange), late(trains.fresh_every))
        }),
    }
}

#[test]
fn every_third_epoch_reads_what_it_sends_and_the_others_what_the_one_before_sent() {
    let case = Case {
        epochs: 8,
        ..Case::default()
    };
    let watch = Arc::new(Watch {
        fresh_every: Some(3),
        ..Watch::default()
    });
    let outcome = case.train("stamping", &stamping(&watch));
    let ages = watch.ages.lock().unwrap();
    for layer in [1, 2] {
        for way in [Way::Forward, Way::Back] {
            for epoch in 0..8 {
                let age = u64::from(epoch % 3 != 0);
                let found = &ages[&(layer, way, epoch)];
                assert!(!found.is_empty(), "{way:?}, {epoch}");
                assert!(
                    found.iter().all(|it| *it == age),
                    "{way:?}, {epoch}: {found:?}"
                );
            }
        }
    }
    let options = "late = true\nfresh_every = 3\nexchange = \"input\"";
    assert_eq!(losses(&outcome), losses(&case.run("train", options)));
}

#[test]
fn every_message_is_used_once_and_exactly_one_epoch_after_it_was_sent() {
    let case = Case {
        epochs: 6,
        ..Case::default()
    };
    let watch = Arc::default();
    let outcome = case.train("stamping", &stamping(&watch));
    let pairs = outcome.ledger.epoch(0).unwrap().iter();
    let features = pairs.filter(|(lane, ..)| lane.kind == TrafficKind::Feature);
    let pairs: u64 = features.map(|(_, _, count)| count).sum();
    let ages = watch.ages.lock().unwrap();
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

/// Gradients of `full`, or of `pipe`, with parameters that rest; with the loop written once more.
fn resting(late: Option<Staleness>, gradients: &Arc<Mutex<Vec<Vec<f32>>>>) -> Program {
    let gradients = Arc::clone(gradients);
    let overlap = When {
        staleness: late,
        ..When::default()
    };
    Program {
        plan: Arc::new(move |setting| {
            let layers = setting.model.layers();
            let resent = late.is_some_and(|late| late.features);
            let exchange = move |epoch| EpochExchange {
                wires: (0..layers)
                    .map(|layer| (layer > 0 || epoch == 0 || resent).then(Wire::plain))
                    .collect(),
                ..EpochExchange::default()
            };
            plan(exchange, overlap)(setting)
        }),
        train: Arc::new(move |worker| rest(worker, late, &gradients)),
    }
}

fn rest(
    worker: &mut Worker,
    late: Option<Staleness>,
    gradients: &Mutex<Vec<Vec<f32>>>,
) -> Result<(), SimError> {
    let resent = late.is_some_and(|late| late.features);
    let wires: Vec<Option<Wire>> = (0..worker.setting().model.layers())
        .map(|_| Some(Wire::plain()))
        .collect();
    let mut model = worker.new_model();
    let mut optimizer = worker.new_optimizer();
    let when = When {
        staleness: late,
        ..When::default()
    };
    let mut halo = HaloExchange::by(worker, when);
    let trainer = LayerwiseTrainer::new(worker, LocalGraph::with_halo(worker));
    let epochs = worker.epochs();
    for epoch in 0..epochs {
        worker.begin_epoch(epoch)?;
        let features = if resent {
            halo.late_features(worker, &Wire::plain())?
        } else {
            halo.features(worker, (epoch == 0).then(Wire::plain).as_ref())?
        };
        let mut step = trainer.step(worker, &model, &features, &halo, &wires, epoch)?;
        let kind = TrafficKind::ParameterGradient;
        worker.all_reduce(&mut step.gradient, Reduce::Sum, kind)?;
        model = worker.update(&mut optimizer, model, &step.gradient);
        if worker.rank() == 0 {
            gradients.lock().unwrap().push(step.gradient);
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
            epochs: 2 * layers + 1,
            optimizer: RESTING,
            ..Case::default()
        };
        let of = |late| {
            let gradients = Arc::default();
            let resting = resting(late, &gradients);
            let outcome = case.train("resting", &resting);
            let model = case.setting(&resting).model.clone();
            let gradients = gradients.lock().unwrap().clone();
            (losses(&outcome), gradients, model)
        };
        let (exact, expected, model) = of(None);
        // Late features, too, are late by an epoch, and all that follows from them.
        for resent in [false, true] {
            let late = usize::from(resent);
            let (stale, found, _) = of(Some(Staleness {
                features: resent,
                ..Staleness::default()
            }));
            let options = format!("cache_features = {}", !resent);
            assert_eq!(losses(&case.run("pipe", &options)), stale);
            let last = layers - 1;
            for epoch in 0..case.epochs {
                // The last layer reads zeros in epoch 0, and a layer below is a layer nearer to the
                // features.
                let equal = stale[epoch].to_bits() == exact[epoch].to_bits();
                assert_eq!(equal, epoch >= last + late, "{kind:?}, epoch {epoch}");
                for layer in 0..layers {
                    let [weights, _] = model.parameter_ranges(layer);
                    let equal = found[epoch][weights.clone()] == expected[epoch][weights];
                    let due = epoch >= 2 * last - layer + late;
                    assert!(!due || equal, "{kind:?}, layer {layer}, epoch {epoch}");
                }
            }
            let due = 2 * last + late;
            assert_ne!(found[last], expected[last], "gradients are not there yet");
            assert_eq!(found[due], expected[due]);
        }
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
            let input = format!("exchange = \"input\"\n{cached}");
            let (full, pipe) = (case.run("full", &input), case.run("pipe", cached));
            assert_eq!(full.ledger, pipe.ledger, "{kind:?} {cached}");
            let exposed = pipe.mean_time(|times| times.exposed).0;
            assert!(exposed < full.mean_time(|times| times.exposed).0);
            assert!(pipe.simulated() < full.simulated(), "{kind:?} {cached}");
        }
    }
}

#[test]
fn late_gradients_come_back_in_the_columns_that_their_rows_had() {
    /// Entries that are not zero, of each message.
    type Columns = BTreeMap<(u32, u32, u32, u64, bool), Vec<usize>>;
    /// Random columns, whose messages are noted.
    struct Noting(RandomColumns, Arc<Mutex<Columns>>);
    impl Codec for Noting {
        fn name(&self) -> String {
            self.0.name()
        }
        fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
            self.0.encoded_bytes(rows, width)
        }
        fn encode(&self, rows: &Rows<'_>, key: CodecKey) -> Vec<u8> {
            // What of a row of ones arrives says which columns travel.
            let ones = vec![1.0; rows.width()];
            let bytes = self.0.encode(&Rows::new(&ones, rows.width()), key);
            let arrived = self
                .0
                .decode(&bytes, [1, rows.width()], key)
                .expect("its own bytes");
            let columns = (0..rows.width()).filter(|&column| arrived[column] != 0.0);
            let lane = key.lane.expect("a message has two ends");
            let place = (
                key.layer,
                lane.owner,
                lane.reader,
                key.round,
                lane.way == Way::Back,
            );
            let mut noted = self.1.lock().unwrap();
            noted.insert(place, columns.collect());
            self.0.encode(rows, key)
        }
        fn decode(
            &self,
            bytes: &[u8],
            shape: [usize; 2],
            key: CodecKey,
        ) -> Result<Vec<f32>, NetError> {
            self.0.decode(bytes, shape, key)
        }
        fn is_biased(&self) -> bool {
            self.0.is_biased()
        }
        fn expected_error(&self, width: usize) -> RelativeError {
            self.0.expected_error(width)
        }
    }
    let noted: Arc<Mutex<Columns>> = Arc::default();
    let exchange = {
        let noted = Arc::clone(&noted);
        move |epoch: usize| {
            let columns = RandomColumns {
                ratio: 3.0,
                rescale: false,
            };
            let codec = Arc::new(Noting(columns, Arc::clone(&noted)));
            let wire = |layer: u32| match layer {
                0 => (epoch == 0).then(Wire::plain),
                _ => Some(Wire {
                    codec: Arc::<Noting>::clone(&codec),
                    key: CodecKey::new(0, layer, epoch as u64),
                    ..Wire::plain()
                }),
            };
            EpochExchange {
                wires: (0..3).map(wire).collect(),
                ..EpochExchange::default()
            }
        }
    };
    let trains = exchange.clone();
    let program = Program {
        plan: plan(exchange, LATE),
        train: Arc::new(move |worker| {
            partition_parallel(worker, Some(&mut |epoch, _: &[_]| trains(epoch)), LATE)
        }),
    };
    let case = Case {
        epochs: 6,
        ..Case::default()
    };
    case.train("noting", &program);
    let noted = noted.lock().unwrap();
    let forward = |place: &(u32, u32, u32, u64, bool)| (place.0, place.1, place.2, place.3, false);
    let back: Vec<_> = noted.iter().filter(|(place, _)| place.4).collect();
    assert!(back.len() > 10);
    for (place, columns) in back {
        assert_eq!(columns, &noted[&forward(place)], "{place:?}");
    }
    let rounds: Vec<u64> = noted
        .keys()
        .filter(|place| place.4)
        .map(|place| place.3)
        .collect();
    assert_eq!(
        rounds.iter().max(),
        Some(&4),
        "nobody sends gradients of rows of the last epoch"
    );
}

#[test]
fn a_model_of_one_layer_reads_features_that_were_sent_or_zeros() {
    let one = Case {
        layers: 1,
        optimizer: RESTING,
        ..Case::default()
    };
    let full = losses(&one.run("full", ""));
    assert_eq!(losses(&one.run("pipe", "")), full);
    let late = losses(&one.run("pipe", "cache_features = false"));
    assert_ne!(late[0], full[0]);
    assert_eq!(late[1..], full[1..], "features do not change");
    // With a mean, what is read in epoch t is the share 1 − γᵗ of them.
    let smoothed = |gamma: f64| {
        let options = format!("cache_features = false\nsmoothing = \"features\"\ngamma = {gamma}");
        losses(&one.run("pipe", &options))
    };
    assert_eq!(smoothed(0.0), late);
    let half = smoothed(0.5);
    assert_eq!(half[0], late[0]);
    assert!(half[1] != full[1] && half[2] != full[2] && half[1] != half[2]);
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
    let [full, pipe] = ["full", "pipe"].map(|kind| Case::learnt(kind, ""));
    assert!((pipe - full).abs() < 0.03, "{pipe} and {full}");
}

#[test]
fn options_without_effect_or_sense_are_refused() {
    let case = Case::default();
    let key = |text: &str| case.refused("pipe", text).0;
    for wrong in ["1", "-0.1", "nan", "\"x\""] {
        let text = format!("smoothing = \"both\"\ngamma = {wrong}");
        assert_eq!(key(&text).as_deref(), Some("gamma"), "{wrong}");
    }
    assert_eq!(key("gamma = 0.9").as_deref(), Some("gamma"));
    assert_eq!(key("smoothing = \"all\"").as_deref(), Some("smoothing"));
    let unplannable =
        "smoothing = \"both\"\ncache_features = false\ncodec = \"quantise\"\nratio = 8";
    assert_eq!(key(unplannable).as_deref(), Some("cache_features"));
    let batches = Case::in_batches();
    assert!(batches.refused("pipe", "").1.contains("training.batch"));
}
