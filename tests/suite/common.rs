//! Settings that the tests share.

use std::path::Path;
use std::sync::Arc;

use grapevine::graph::{BoundaryPlan, DatasetSpec, PartitionMethod, PartitionSpec};
use grapevine::model::{ModelConfig, ModelKind, ModelSpec, NormKind, OptimizerConfig};
use grapevine::net::{AllReduceKind, NetworkSpec};
use grapevine::sim::{
    Backend, ComputeTiming, DeviceConfig, DeviceProfile, Observer, Outcome, Setting,
    TrainingConfig, open_devices, simulate,
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
    pub dropout: f64,
    pub norm: NormKind,
    pub epochs: usize,
    pub seed: u64,
    pub backend: Backend,
    pub optimizer: OptimizerConfig,
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
            dropout: 0.5,
            norm: NormKind::None,
            epochs: 3,
            seed: 1,
            backend: Backend::Flex,
            optimizer: OptimizerConfig::default(),
        }
    }
}

pub const CORA: &str = "name = \"cora\"";

impl Case {
    pub fn context(&self) -> Context {
        Context {
            epochs: self.epochs,
            layers: self.layers,
            workers: self.workers,
            all_reduce: AllReduceKind::Ring,
        }
    }

    pub fn strategy(&self, kind: &str, options: &str) -> Box<dyn Strategy> {
        let options = options.parse().expect("options are TOML");
        Registry::builtin()
            .build(kind, &options, &self.context())
            .expect("options are valid")
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
        let partition = strategy
            .partition(&asked)
            .partition(&dataset.graph, base, self.seed)
            .expect("a partition");
        let boundary = BoundaryPlan::new(&dataset.graph, &partition);
        let config = ModelConfig {
            kind: self.kind,
            layers: self.layers,
            hidden: self.hidden,
            dropout: self.dropout,
            norm: self.norm,
        };
        let network: NetworkSpec = toml::from_str("preset = \"ethernet-1g\"").expect("a network");
        let devices = DeviceConfig {
            backend: self.backend,
            adapters: Vec::new(),
        };
        Arc::new(Setting {
            model: ModelSpec::new(&config, dataset.features.width(), dataset.classes),
            dataset,
            partition: Arc::new(partition),
            boundary: Arc::new(boundary),
            optimizer: self.optimizer,
            training: TrainingConfig {
                epochs: self.epochs,
                evaluate_every: 1,
                target_accuracy: None,
            },
            epochs: strategy.epochs(&self.context()),
            topology: Arc::new(network.topology(self.workers).expect("a topology")),
            framing: network.framing(),
            all_reduce: AllReduceKind::Ring,
            timing: ComputeTiming::Modelled(DeviceProfile::named("cpu-core").expect("known")),
            devices: open_devices(&devices, self.workers).expect("devices"),
            seed: self.seed,
        })
    }

    /// Trains with a strategy and checks that the ledger is what the strategy had planned.
    pub fn run(&self, kind: &str, options: &str) -> Outcome {
        let strategy = self.strategy(kind, options);
        let setting = self.setting(strategy.as_ref());
        let outcome = simulate(&setting, silent(), |worker| strategy.train(worker))
            .unwrap_or_else(|error| panic!("{kind}: {error}"));
        for epoch in 0..setting.epochs {
            let plan = strategy.plan(&setting.boundary, &setting.model, epoch);
            let ledger = outcome.ledger.epoch(epoch).cloned().unwrap_or_default();
            assert_eq!(
                plan.first_difference(&ledger),
                None,
                "{kind} {options}, epoch {epoch}"
            );
            assert_eq!(plan, ledger, "{kind} {options}, epoch {epoch}");
        }
        outcome
    }
}

pub fn silent() -> Observer {
    Arc::new(|_| {})
}

pub fn losses(outcome: &Outcome) -> Vec<f64> {
    outcome.epochs.iter().map(|record| record.loss).collect()
}
