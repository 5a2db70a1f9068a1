//! Settings that the tests share.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use grapevine::graph::{
    BatchSpec, Batches, BoundaryCounts, DatasetSpec, Division, Known, Metric, PartitionMethod,
    PartitionSpec,
};
use grapevine::model::{
    Activation, Biases, Init, ModelConfig, ModelKind, ModelSpec, NormKind, OptimizerConfig,
};
use grapevine::net::{AllReduceChoice, ExchangeKind, Ledger, NetworkSpec};
use grapevine::sim::{
    Backend, ComputeTiming, Course, DeviceConfig, DeviceProfile, Engine, Outcome, Planner,
    Repartitioner, Setting, SimError, TrainingConfig, Worker, WorkerDevice, WorkerTimes,
    open_devices, play,
};
use grapevine::strategies::{self, OptionError, Registry, Strategy, Training};

/// A cell in the making; every field has a small default.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub data: &'static str,
    pub workers: usize,
    pub method: PartitionMethod,
    pub kind: ModelKind,
    pub layers: usize,
    pub hidden: usize,
    pub heads: usize,
    pub dropout: f64,
    pub norm: NormKind,
    pub residual: bool,
    pub self_loops: Option<bool>,
    pub input_dropout: Option<f64>,
    pub attention_dropout: Option<f64>,
    pub activation: Option<Activation>,
    pub init: Init,
    pub gain: f64,
    pub biases: usize,
    pub head_biases: bool,
    pub epochs: usize,
    pub seed: u64,
    pub backend: Backend,
    /// Most rows of one tensor.
    pub stripe: usize,
    pub optimizer: OptimizerConfig,
    pub batch: Option<BatchSpec>,
    pub network: &'static str,
    /// What else the section of the network says.
    pub wiring: &'static str,
    pub profile: &'static str,
    /// The profile of worker 0, where it has another.
    pub first: Option<&'static str>,
    pub all_reduce: AllReduceChoice,
    pub exchange: ExchangeKind,
    pub metric: Option<Metric>,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            data: "synthetic = { kind = \"sbm\", nodes = 120, classes = 3, features = 10, degree_within = 4.0, degree_between = 2.0 }\nsplit = { train = 0.5, val = 0.2 }",
            workers: 4,
            method: PartitionMethod::Random,
            kind: ModelKind::Gcn,
            layers: 3,
            hidden: 8,
            heads: 2,
            dropout: 0.5,
            norm: NormKind::None,
            residual: false,
            self_loops: None,
            input_dropout: None,
            attention_dropout: None,
            activation: None,
            init: Init::Glorot,
            gain: 1.0,
            biases: 1,
            head_biases: false,
            epochs: 3,
            seed: 1,
            backend: Backend::Flex,
            stripe: usize::MAX,
            optimizer: OptimizerConfig::default(),
            batch: None,
            network: "ethernet-1g",
            wiring: "",
            profile: "cpu-core",
            first: None,
            all_reduce: AllReduceChoice::Ring,
            exchange: ExchangeKind::Direct,
            metric: None,
        }
    }
}

pub(crate) const KINDS: [ModelKind; 5] = [
    ModelKind::Gcn,
    ModelKind::Sage,
    ModelKind::SagePool,
    ModelKind::Gat,
    ModelKind::Gin,
];

/// Links on which messages are late and lost.
pub(crate) const UNCERTAIN: &str =
    "loss = 0.05\njitter = { kind = \"exponential\", mean = \"200us\" }";

pub(crate) const CORA: &str = "name = \"cora\"";

impl Case {
    pub(crate) fn strategy(kind: &str, options: &str) -> Box<dyn Strategy> {
        let options = options.parse().expect("options are TOML");
        let strategy = Registry::builtin().read(kind, &options);
        strategy.expect("options are valid")
    }

    /// In mini-batches of eight nodes.
    pub(crate) fn in_batches() -> Self {
        Self {
            batch: Some(BatchSpec {
                size: 8,
                fanouts: vec![3, 3, 3],
            }),
            ..Self::default()
        }
    }

    /// The key of options that are refused, and what is said about it.
    pub(crate) fn refused(&self, kind: &str, options: &str) -> (Option<String>, String) {
        match self.fit(&Registry::builtin(), kind, options) {
            Ok(_) => panic!("{kind} takes {options}"),
            Err(error) => (error.key, error.message),
        }
    }

    /// Test accuracy of 60 epochs on Cora in random parts, at the best validation accuracy.
    pub(crate) fn learnt(kind: &str, options: &str) -> f64 {
        let case = Self {
            data: CORA,
            layers: 2,
            hidden: 16,
            epochs: 60,
            ..Self::default()
        };
        let best = case.run(kind, options).best();
        best.and_then(|(_, scores)| scores.test).expect("a score")
    }

    /// A strategy of a registry, fitted to this case.
    pub(crate) fn fit(
        &self,
        registry: &Registry,
        kind: &str,
        options: &str,
    ) -> Result<Box<dyn Training>, OptionError> {
        let table = options.parse().expect("options are TOML");
        let strategy = registry.read(kind, &table)?;
        let needs = strategy.needs(&self.asked())?;
        needs.check_batches(kind, self.batch.is_some())?;
        strategy.fit(&self.setting(strategy.as_ref()))
    }

    fn asked(&self) -> PartitionSpec {
        PartitionSpec {
            method: self.method,
            workers: self.workers,
            ..PartitionSpec::default()
        }
    }

    fn devices(&self) -> Vec<WorkerDevice> {
        let mut devices = devices(self.backend, self.workers);
        for device in &mut devices {
            device.place.stripe = self.stripe;
        }
        devices
    }

    fn model(&self) -> ModelConfig {
        ModelConfig {
            kind: self.kind,
            layers: self.layers,
            hidden: self.hidden,
            heads: self.heads,
            dropout: self.dropout,
            norm: self.norm,
            residual: self.residual,
            self_loops: self.self_loops,
            input_dropout: self.input_dropout,
            attention_dropout: self.attention_dropout,
            activation: self.activation,
            init: self.init,
            gain: self.gain,
            biases: Biases::Each(self.biases),
            head_biases: self.head_biases,
            weights: None,
        }
    }

    pub(crate) fn setting(&self, strategy: &dyn Strategy) -> Arc<Setting> {
        let base = Path::new(env!("CARGO_MANIFEST_DIR"));
        let spec: DatasetSpec = toml::from_str(self.data).expect("a data set");
        let dataset = spec.load(base, self.seed).expect("data");
        let dataset = Arc::new(
            dataset
                .measured_by(self.metric)
                .expect("a metric for the labels"),
        );
        let needs = strategy.needs(&self.asked()).expect("it can have that");
        let train = &dataset.split.train;
        let known = Known {
            train,
            labels: Some(&dataset.labels),
        };
        let division = needs
            .partition
            .divide(&dataset.graph, known, base, self.seed, self.workers);
        let Division {
            partition,
            boundary,
            chunks,
        } = division.expect("a partition");
        let boundary = boundary.with_training(train);
        let batches = self.batch.clone().map(|spec| {
            Arc::new(Batches {
                spec,
                graph: Arc::clone(&dataset.graph),
                train: train.clone(),
                seed: self.seed,
            })
        });
        let preset = format!("preset = \"{}\"\n{}", self.network, self.wiring);
        let network = NetworkSpec {
            all_reduce: self.all_reduce,
            ..toml::from_str(&preset).expect("a network")
        };
        let profile = |name| DeviceProfile::named(name).expect("known");
        let mut profiles = vec![profile(self.profile); self.workers];
        if let Some(first) = self.first {
            profiles[0] = profile(first);
        }
        let timing = ComputeTiming::Modelled(profiles.into());
        let mut topology = network.topology(self.workers).expect("a topology");
        if self.first.is_some() {
            topology = timing.between(topology);
        }
        Arc::new(Setting {
            weights: None,
            model: ModelSpec::new(&self.model(), dataset.features.width(), dataset.classes),
            dataset: Arc::clone(&dataset),
            unseen: None,
            partition: Arc::new(partition),
            counts: Arc::new(BoundaryCounts::new(&boundary, &dataset.features)),
            law: None,
            shards: None,
            boundary: Arc::new(boundary),
            chunks: chunks.map(|chunks| Arc::new(chunks.with_training(train))),
            repartitioner: Some(Arc::new(Repartitioner::new(
                needs.partition,
                base.to_owned(),
            ))),
            batches,
            partitioning: Duration::ZERO,
            optimizer: self.optimizer,
            training: TrainingConfig {
                epochs: self.epochs,
                evaluate_every: 1,
                target_accuracy: None,
                byte_budget: None,
                time_budget: None,
                checkpoint_every: None,
                batch: self.batch.clone(),
                score_isolated: true,
                inductive: false,
            },
            all_reduce: network.all_reduce_on(&topology),
            topology: Arc::new(topology),
            framing: network.framing(),
            exchange: self.exchange,
            timeline_epochs: 0,
            plans_work: true,
            timing,
            samples_beside: false,
            devices: self.devices(),
            engine: Engine::Simulated,
            seed: self.seed,
        })
    }

    /// Trains with a built-in strategy; see [`Self::train`].
    pub(crate) fn run(&self, kind: &str, options: &str) -> Outcome {
        self.train(kind, Self::strategy(kind, options).as_ref())
    }

    /// Trains with any strategy. What it sent has been compared with its plan then, and its times are
    /// those of the plan played by itself.
    pub(crate) fn train(&self, name: &str, strategy: &dyn Strategy) -> Outcome {
        let setting = self.setting(strategy);
        let together = strategy.needs(&self.asked()).expect("it can").together;
        let training = strategy.fit(&setting);
        let training = training.unwrap_or_else(|error| panic!("{name}: {error}"));
        let outcome = strategies::run(&*training, together, Arc::new(|_| {}))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let decisions = &outcome.decisions;
        let course = Course {
            together,
            ..Course::whole(training.epochs())
        };
        let mut planner = training.planner();
        let (cluster, timing) = (setting.cluster(), &setting.timing);
        let planner = planner.as_mut();
        let played = play(&cluster, timing, planner, course, decisions, |_| ());
        let played = played.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(played.ledger, outcome.ledger, "{name}: every message");
        for (rank, (played, found)) in played.times.iter().zip(&outcome.times).enumerate() {
            let found = WorkerTimes {
                set_up: played.set_up, // which a program does not tell apart
                ..found.clone()
            };
            assert_eq!(*played, found, "{name}: times of worker {rank}");
        }
        for (record, played) in outcome.epochs.iter().zip(&played.epochs) {
            assert_eq!(record.simulated, *played, "{name}: epoch {}", record.epoch);
        }
        outcome
    }
}

/// What a strategy plans for each epoch before anything is decided on the way.
pub(crate) fn planned(strategy: &dyn Strategy, setting: &Arc<Setting>) -> Ledger {
    let training = strategy.fit(setting).expect("it fits");
    let mut planner = training.planner();
    let mut plans = Ledger::new();
    for _ in 0..training.epochs() {
        planner.next(None).traffic(&setting.all_reduce, &mut plans);
    }
    plans
}

/// Makes the plan of a program in its setting.
pub(crate) type Plan = dyn Fn(&Arc<Setting>) -> Box<dyn Planner> + Send + Sync;

/// What one worker does.
pub(crate) type Deeds = dyn Fn(&mut Worker) -> Result<(), SimError> + Send + Sync;

/// A strategy of a test: a plan, and a program that follows it.
#[derive(Clone)]
pub(crate) struct Program {
    pub plan: Arc<Plan>,
    pub train: Arc<Deeds>,
}

impl Strategy for Program {
    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        Ok(Box::new(FittedProgram {
            program: self.clone(),
            setting: Arc::clone(setting),
        }))
    }
}

struct FittedProgram {
    program: Program,
    setting: Arc<Setting>,
}

impl Training for FittedProgram {
    fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    fn planner(&self) -> Box<dyn Planner> {
        (self.program.plan)(&self.setting)
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        (self.program.train)(worker)
    }
}

/// Devices for a run. Logical graphics devices are slow to make: two serve all tests of the process.
pub(crate) fn devices(backend: Backend, workers: usize) -> Vec<WorkerDevice> {
    static GRAPHICS: OnceLock<Vec<WorkerDevice>> = OnceLock::new();
    let open = |workers| {
        let adapters = Vec::new();
        open_devices(&DeviceConfig { backend, adapters }, workers).expect("devices")
    };
    if backend == Backend::Wgpu {
        return GRAPHICS.get_or_init(|| open(2))[..workers].to_vec();
    }
    open(workers)
}

/// The right to use the graphics devices, one test at a time; none without an adapter, which is then said.
pub(crate) fn graphics(test: &str) -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    #[cfg(feature = "wgpu")]
    let adapter = grapevine::sim::adapter_names().into_iter().next();
    #[cfg(not(feature = "wgpu"))]
    let adapter: Option<String> = None;
    let Some(adapter) = adapter else {
        println!("{test}: the wgpu part was skipped, because no graphics adapter was found");
        return None;
    };
    println!("{test}: on {adapter}");
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The backends of this build that are compared with flex.
pub(crate) fn other_backends(test: &str) -> (Vec<Backend>, Option<MutexGuard<'static, ()>>) {
    let graphics = graphics(test);
    let mut backends = Vec::new();
    if graphics.is_some() {
        backends.push(Backend::Wgpu);
    }
    if cfg!(feature = "ndarray") {
        backends.push(Backend::Ndarray);
    }
    (backends, graphics)
}

pub(crate) fn losses(outcome: &Outcome) -> Vec<f64> {
    outcome.epochs.iter().map(|record| record.loss).collect()
}

/// Its losses to the bit.
pub(crate) fn bits(outcome: &Outcome) -> Vec<u64> {
    losses(outcome).into_iter().map(f64::to_bits).collect()
}

/// Parameters rest, so that rows change by dropout alone.
pub(crate) const RESTING: OptimizerConfig = OptimizerConfig::Sgd {
    learning_rate: 0.0,
    weight_decay: 0.0,
    momentum: 0.0,
};

/// `‖a − b‖ / ‖b‖`.
pub(crate) fn distance(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
    let difference = norm(&mut a.iter().zip(b).map(|(a, b)| f64::from(*a) - f64::from(*b)));
    difference / norm(&mut b.iter().map(|&b| f64::from(b))).max(f64::MIN_POSITIVE)
}

/// Asserts that two sequences agree, entry by entry, to a relative tolerance.
pub(crate) fn assert_close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (place, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!(
            (f - e).abs() <= tolerance * e.abs().max(1e-3),
            "{what}: entry {place} is {f}, not {e}\nfound    {found:?}\nexpected {expected:?}"
        );
    }
}
