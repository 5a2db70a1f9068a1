//! The step from averaged gradients to new parameters.

use burn::module::Module;
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamConfig, ModuleOptimizer, SgdConfig};

use super::{OptimizerConfig, gradients_for};

/// An optimiser with its state. Equal gradients give equal steps, so replicas stay equal.
pub struct Optimizer {
    inner: ModuleOptimizer,
    learning_rate: f64,
}

impl Optimizer {
    /// A fresh optimiser.
    pub fn new(config: &OptimizerConfig) -> Self {
        let decay = |penalty: f64| {
            (penalty > 0.0).then_some(WeightDecayConfig {
                penalty: penalty as f32,
            })
        };
        match *config {
            OptimizerConfig::Adam {
                learning_rate,
                weight_decay,
                epsilon,
            } => Self {
                inner: AdamConfig::new()
                    // Always said: burn's own default is 1e-5, that of other libraries 1e-8.
                    .with_epsilon(epsilon as f32)
                    .with_weight_decay(decay(weight_decay))
                    .init(),
                learning_rate,
            },
            OptimizerConfig::Sgd {
                learning_rate,
                weight_decay,
                momentum,
            } => Self {
                inner: SgdConfig::new()
                    .with_weight_decay(decay(weight_decay))
                    .with_momentum((momentum > 0.0).then_some(MomentumConfig {
                        momentum,
                        // As PyTorch has it by default, and so the code of the papers; burn's
                        // default dampens by 0.1.
                        dampening: 0.0,
                        nesterov: false,
                    }))
                    .init(),
                learning_rate,
            },
        }
    }

    /// The module after one step along the flat gradient.
    pub fn step<M: Module>(&mut self, module: M, gradient: &[f32]) -> M {
        self.scaled_step(module, gradient, 1.0)
    }

    /// As [`Self::step`], with the learning rate times a factor, for schedules of it.
    pub(crate) fn scaled_step<M: Module>(&mut self, module: M, gradient: &[f32], factor: f64) -> M {
        let gradients = gradients_for(&module, gradient);
        self.inner
            .step(self.learning_rate * factor, module, gradients)
    }
}
