//! The step from averaged gradients to new parameters.

use burn::module::{Module, ModuleMapper, Param};
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{
    Adam, AdamConfig, DynOptimizer, DynState, Optimizer as Rule, Sgd, SgdConfig, StateSink,
    StateSource,
};
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::OptimizerConfig;

/// An optimiser with its state. Equal gradients give equal steps, so replicas stay equal.
pub struct Optimizer {
    kind: Kind,
    learning_rate: f64,
    /// What each parameter's steps left, in the order in which the module lists parameters; empty
    /// before the first step.
    // By place and not by burn's numbers, which are others in every process.
    states: Vec<Option<DynState>>,
}

enum Kind {
    Adam(Adam),
    Sgd(Sgd),
}

/// What the steps so far left of one parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParameterMemory {
    /// Whole numbers by name: how many steps there were.
    pub counts: Vec<(String, u64)>,
    /// Running means of gradients, and of what is made of them.
    pub moments: Vec<Moment>,
}

/// A tensor that an optimiser keeps beside a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Its name in burn.
    pub name: String,
    /// Its sizes, those of the parameter.
    pub shape: Vec<usize>,
    /// Its values, row by row.
    pub values: Vec<f32>,
}

impl Optimizer {
    /// A fresh optimiser.
    pub fn new(config: &OptimizerConfig) -> Self {
        let decay = |penalty: f64| {
            (penalty > 0.0).then_some(WeightDecayConfig {
                penalty: penalty as f32,
            })
        };
        let (kind, learning_rate) = match *config {
            OptimizerConfig::Adam {
                learning_rate,
                weight_decay,
                epsilon,
            } => {
                let adam = AdamConfig::new()
                    // Always said: burn's own default is 1e-5, that of other libraries 1e-8.
                    .with_epsilon(epsilon as f32)
                    .with_weight_decay(decay(weight_decay))
                    .build();
                (Kind::Adam(adam), learning_rate)
            }
            OptimizerConfig::Sgd {
                learning_rate,
                weight_decay,
                momentum,
            } => {
                let sgd = SgdConfig::new()
                    .with_weight_decay(decay(weight_decay))
                    .with_momentum((momentum > 0.0).then_some(MomentumConfig {
                        momentum,
                        // As PyTorch has it by default, and so the code of the papers; burn's
                        // default dampens by 0.1.
                        dampening: 0.0,
                        nesterov: false,
                    }))
                    .build();
                (Kind::Sgd(sgd), learning_rate)
            }
        };
        Self {
            kind,
            learning_rate,
            states: Vec::new(),
        }
    }

    /// The module after one step along the flat gradient.
    ///
    /// # Panics
    /// If there are fewer values than parameters.
    pub fn step<M: Module>(&mut self, module: M, gradient: &[f32]) -> M {
        self.scaled_step(module, gradient, 1.0)
    }

    /// As [`Self::step`], with the learning rate times a factor, for schedules of it.
    ///
    /// # Panics
    /// As [`Self::step`].
    pub(crate) fn scaled_step<M: Module>(&mut self, module: M, gradient: &[f32], factor: f64) -> M {
        module.map(&mut Step {
            kind: &self.kind,
            states: &mut self.states,
            place: 0,
            gradient,
            rate: self.learning_rate * factor,
        })
    }

    /// What its steps left, parameter by parameter, for [`Self::remember`].
    pub(crate) fn memory(&self) -> Vec<ParameterMemory> {
        let of = |state: &Option<DynState>| {
            let mut sink = StateSink::default();
            if let Some(state) = state {
                self.kind.rule().state_flatten(PREFIX, state, &mut sink);
            }
            let name = |name: String| name.trim_start_matches(PREFIX)[1..].to_owned();
            let moment = |(path, data): (String, TensorData)| Moment {
                name: name(path),
                shape: data.shape().to_vec(),
                // Moments are made of parameters, which are f32 on every backend.
                values: data.try_into_vec().expect("moments are f32"),
            };
            let counts = sink.scalars.into_iter();
            let count = |(path, value)| (name(path), u64::try_from(value).unwrap_or(0));
            ParameterMemory {
                counts: counts.map(count).collect(),
                moments: sink.tensors.into_iter().map(moment).collect(),
            }
        };
        self.states.iter().map(of).collect()
    }

    /// Goes on after the steps that left this.
    pub(crate) fn remember(&mut self, memory: Vec<ParameterMemory>, device: &Device) {
        let of = |memory: ParameterMemory| {
            let path = |name: &str| format!("{PREFIX}.{name}");
            let counts = memory.counts.iter();
            let counts = counts.map(|(name, value)| (path(name), (*value).into()));
            let mut source = StateSource::new(counts.collect());
            // Without moments there is nothing to remember.
            let rank = memory.moments.first()?.shape.len();
            for moment in memory.moments {
                let data = TensorData::new(moment.values, moment.shape);
                source.insert_tensor(path(&moment.name), data);
            }
            let rule = self.kind.rule();
            rule.state_unflatten(rank, PREFIX, &mut source, device)
        };
        self.states = memory.into_iter().map(of).collect();
    }
}

/// Before burn's names of what is kept, which it wants to be paths.
const PREFIX: &str = "state";

impl Kind {
    fn rule(&self) -> &dyn DynOptimizer {
        match self {
            Self::Adam(adam) => adam,
            Self::Sgd(sgd) => sgd,
        }
    }
}

/// One step of all parameters.
struct Step<'a> {
    kind: &'a Kind,
    states: &'a mut Vec<Option<DynState>>,
    /// Which parameter is next, and what is left of the gradient for it and those behind it.
    place: usize,
    gradient: &'a [f32],
    rate: f64,
}

impl ModuleMapper for Step<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|old| {
            // Without automatic differentiation: a step is nothing that gradients go through.
            let old = old.inner();
            let shape = old.shape();
            let (mine, rest) = self.gradient.split_at(shape.num_elements());
            self.gradient = rest;
            let gradient = TensorData::new(mine.to_vec(), shape);
            let gradient = Tensor::from_data(gradient, &old.device());
            if self.states.len() == self.place {
                self.states.push(None);
            }
            let state = &mut self.states[self.place];
            self.place += 1;
            let new = match self.kind {
                Kind::Adam(adam) => taken(adam, self.rate, old, gradient, state),
                Kind::Sgd(sgd) => taken(sgd, self.rate, old, gradient, state),
            };
            Tensor::from_inner(new).require_grad()
        })
    }
}

/// A parameter after a step, of which what is kept replaces what was.
fn taken<O: Rule, const D: usize>(
    rule: &O,
    rate: f64,
    old: Tensor<D>,
    gradient: Tensor<D>,
    state: &mut Option<DynState>,
) -> Tensor<D> {
    let before = state.take().map(DynState::downcast::<O::State<D>>);
    let (new, after) = rule.step(rate, old, gradient, before);
    *state = after.map(|after| DynState::create(after, D));
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Gnn, ModelConfig, ModelSpec, parameter_count, parameters};

    fn trained(config: &OptimizerConfig, stops: bool) -> Vec<f32> {
        let device = Device::flex().autodiff();
        let spec: ModelConfig = toml::from_str("kind = \"sage\"\nhidden = 4").unwrap();
        let mut model = Gnn::new(&ModelSpec::new(&spec, 5, 3), 1, &device);
        let mut optimizer = Optimizer::new(config);
        for step in 0..6_u8 {
            if stops && step == 3 {
                let memory = optimizer.memory();
                optimizer = Optimizer::new(config);
                optimizer.remember(memory, &Device::flex());
            }
            let value = |i: usize| ((i * 7 + usize::from(step)) as f32 * 0.37).sin();
            let gradient: Vec<f32> = (0..parameter_count(&model)).map(value).collect();
            model = optimizer.step(model, &gradient);
        }
        parameters(&model)
    }

    /// Parameters after some steps along made-up gradients, and what the definition makes of them,
    /// `step(number, value, gradient, moments)` giving the change of a value.
    fn trained_and_defined(
        text: &str,
        step: impl Fn(i32, f64, f64, &mut [f64; 2]) -> f64,
    ) -> (Vec<f32>, Vec<f64>) {
        let device = Device::flex().autodiff();
        let spec: ModelConfig = toml::from_str("kind = \"sage\"\nhidden = 4").unwrap();
        let mut model = Gnn::new(&ModelSpec::new(&spec, 5, 3), 1, &device);
        let mut optimizer = Optimizer::new(&toml::from_str(text).unwrap());
        let mut values: Vec<f64> = parameters(&model).iter().map(|&v| f64::from(v)).collect();
        let mut moments = vec![[0.0; 2]; values.len()];
        for number in 1..=5 {
            let gradient = |i: usize| ((i as f64 + 3.0 * f64::from(number)) * 0.37).sin();
            let gradients: Vec<f32> = (0..values.len()).map(|i| gradient(i) as f32).collect();
            model = optimizer.step(model, &gradients);
            for (i, value) in values.iter_mut().enumerate() {
                *value += step(number, *value, f64::from(gradients[i]), &mut moments[i]);
            }
        }
        (parameters(&model), values)
    }

    #[test]
    fn steps_are_those_of_the_definitions() {
        // PyTorch's: v ← μ v + (g + λ θ), θ ← θ − η v, from v = 0 on.
        let text = "kind = \"sgd\"\nlearning_rate = 0.1\nmomentum = 0.9\nweight_decay = 0.05";
        let sgd = trained_and_defined(text, |_, value, gradient, [velocity, _]| {
            *velocity = 0.9 * *velocity + gradient + 0.05 * value;
            -0.1 * *velocity
        });
        // Kingma and Ba (2015), algorithm 1, with λ θ added to the gradient.
        let text = "kind = \"adam\"\nlearning_rate = 0.1\nweight_decay = 0.05\nepsilon = 1e-3";
        let adam = trained_and_defined(text, |number, value, gradient, [first, second]| {
            let gradient = gradient + 0.05 * value;
            *first = 0.9 * *first + 0.1 * gradient;
            *second = 0.999 * *second + 0.001 * gradient * gradient;
            let [mean, square] = [(*first, 0.9_f64), (*second, 0.999)]
                .map(|(moment, rate)| moment / (1.0 - rate.powi(number)));
            -0.1 * mean / (square.sqrt() + 1e-3)
        });
        for (found, expected) in [sgd, adam] {
            for (found, expected) in found.iter().zip(expected) {
                assert!(
                    (f64::from(*found) - expected).abs() < 1e-5,
                    "{found}, {expected}"
                );
            }
        }
    }

    #[test]
    fn an_optimiser_that_remembers_takes_the_steps_that_it_would_have_taken() {
        for text in [
            "kind = \"adam\"\nlearning_rate = 0.01\nweight_decay = 5e-4",
            "kind = \"sgd\"\nlearning_rate = 0.1\nmomentum = 0.9",
            "kind = \"sgd\"\nlearning_rate = 0.1",
        ] {
            let config: OptimizerConfig = toml::from_str(text).unwrap();
            assert_eq!(trained(&config, true), trained(&config, false), "{text}");
        }
    }
}
