//! Settings that the tests share.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use grapevine::graph::{BatchSpec, DatasetSpec, PartitionMethod, PartitionSpec};
use grapevine::model::{ModelConfig, ModelKind, ModelSpec, NormKind, OptimizerConfig};
use grapevine::net::{AllReduceKind, ExchangeKind, NetworkSpec};
use grapevine::sim::{
    Backend, ComputeTiming, DeviceConfig, DeviceProfile, Engine, Outcome, Setting, TrainingConfig,
    WorkerDevice, open_devices,
};
use grapevine::strategies::{Context, Registry, Strategy};

/// A cell in the making; every field has a small default.
#[derive(Clone)]
pub struct Case {
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
    pub self_loops: bool,
    pub epochs: usize,
    pub seed: u64,
    pub backend: Backend,
    /// Most rows of one tensor.
    pub stripe: usize,
    pub optimizer: OptimizerConfig,
    pub batch: Option<BatchSpec>,
    pub network: &'static str,
    pub profile: &'static str,
    pub all_reduce: AllReduceKind,
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
            self_loops: true,
            epochs: 3,
            seed: 1,
            backend: Backend::Flex,
            stripe: usize::MAX,
            optimizer: OptimizerConfig::default(),
            batch: None,
            network: "ethernet-1g",
            profile: "cpu-core",
            all_reduce: AllReduceKind::Ring,
        }
    }
}

pub const KINDS: [ModelKind; 5] = [
    ModelKind::Gcn,
    ModelKind::Sage,
    ModelKind::SagePool,
    ModelKind::Gat,
    ModelKind::Gin,
];

pub const CORA: &str = "name = \"cora\"";

impl Case {
    pub fn context(&self) -> Context {
        Context {
            epochs: self.epochs,
            layers: self.layers,
            workers: self.workers,
            all_reduce: self.all_reduce,
            mini_batch: self.batch.is_some(),
        }
    }

    pub fn strategy(&self, kind: &str, options: &str) -> Box<dyn Strategy> {
        let options = options.parse().expect("options are TOML");
        Registry::builtin()
            .build(kind, &options, &self.context())
            .expect("options are valid")
    }

    /// The key of options that are refused, and what is said about it.
    pub fn refused(&self, kind: &str, options: &str) -> (Option<String>, String) {
        let table = options.parse().expect("options are TOML");
        match Registry::builtin().build(kind, &table, &self.context()) {
            Ok(_) => panic!("{kind} takes {options}"),
            Err(error) => (error.key, error.message),
        }
    }

    fn devices(&self) -> Vec<WorkerDevice> {
        let mut devices = devices(self.backend, self.workers);
        for device in &mut devices {
            device.place.stripe = self.stripe;
        }
        devices
    }

    pub fn setting(&self, strategy: &dyn Strategy) -> Arc<Setting> {
        let base = Path::new(env!("CARGO_MANIFEST_DIR"));
        let spec: DatasetSpec = toml::from_str(self.data).expect("a data set");
        let dataset = Arc::new(spec.load(base, self.seed).expect("data"));
        let asked = PartitionSpec {
            method: self.method,
            workers: self.workers,
            file: None,
            seed: None,
        };
        let (partition, boundary) = strategy
            .partition(&asked)
            .divide(&dataset.graph, base, self.seed, self.workers)
            .expect("a partition");
        let train = &dataset.split.train;
        let boundary = match self.batch.clone() {
            None => boundary.with_training(train),
            Some(batch) => {
                boundary.with_batches(batch, Arc::clone(&dataset.graph), train, self.seed)
            }
        };
        let config = ModelConfig {
            kind: self.kind,
            layers: self.layers,
            hidden: self.hidden,
            heads: self.heads,
            dropout: self.dropout,
            norm: self.norm,
            residual: self.residual,
            self_loops: self.self_loops,
        };
        let preset = format!("preset = \"{}\"", self.network);
        let network: NetworkSpec = toml::from_str(&preset).expect("a network");
        Arc::new(Setting {
            model: ModelSpec::new(&config, dataset.features.width(), dataset.classes),
            dataset,
            partition: Arc::new(partition),
            boundary: Arc::new(boundary),
            partitioning: Duration::ZERO,
            optimizer: self.optimizer,
            training: TrainingConfig {
                epochs: self.epochs,
                evaluate_every: 1,
                target_accuracy: None,
                byte_budget: None,
                time_budget: None,
                batch: self.batch.clone(),
            },
            epochs: strategy.epochs(&self.context()),
            topology: Arc::new(network.topology(self.workers).expect("a topology")),
            framing: network.framing(),
            all_reduce: self.all_reduce,
            exchange: ExchangeKind::Direct,
            timeline_epochs: 0,
            timing: ComputeTiming::Modelled(DeviceProfile::named(self.profile).expect("known")),
            devices: self.devices(),
            engine: Engine::Simulated,
            seed: self.seed,
        })
    }

    /// Trains with a built-in strategy and checks that the ledger is what the strategy had planned.
    pub fn run(&self, kind: &str, options: &str) -> Outcome {
        self.train(kind, self.strategy(kind, options).as_ref())
    }

    /// Trains with any strategy and checks that the ledger is what the strategy had planned.
    pub fn train(&self, name: &str, strategy: &dyn Strategy) -> Outcome {
        let setting = self.setting(strategy);
        let outcome = strategy
            .run(&setting, Arc::new(|_| {}))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        for record in &outcome.epochs {
            let epoch = record.epoch;
            let plan = strategy.plan_after(&setting.boundary, &setting.model, record);
            let ledger = outcome.ledger.epoch(epoch).cloned().unwrap_or_default();
            assert_eq!(
                plan.first_difference(&ledger),
                None,
                "{name}, epoch {epoch}"
            );
            assert_eq!(plan, ledger, "{name}, epoch {epoch}");
        }
        outcome
    }
}

/// Devices for a run. Logical graphics devices are slow to make: two serve all tests of the process.
pub fn devices(backend: Backend, workers: usize) -> Vec<WorkerDevice> {
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
pub fn graphics(test: &str) -> Option<MutexGuard<'static, ()>> {
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
pub fn other_backends(test: &str) -> (Vec<Backend>, Option<MutexGuard<'static, ()>>) {
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

pub fn losses(outcome: &Outcome) -> Vec<f64> {
    outcome.epochs.iter().map(|record| record.loss).collect()
}

/// `‖a − b‖ / ‖b‖`.
pub fn distance(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
    let difference = norm(&mut a.iter().zip(b).map(|(a, b)| f64::from(*a) - f64::from(*b)));
    difference / norm(&mut b.iter().map(|&b| f64::from(b))).max(f64::MIN_POSITIVE)
}

/// Asserts that two sequences agree, entry by entry, to a relative tolerance.
pub fn assert_close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (place, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!(
            (f - e).abs() <= tolerance * e.abs().max(1e-3),
            "{what}: entry {place} is {f}, not {e}\nfound    {found:?}\nexpected {expected:?}"
        );
    }
}
