//! `retexo`: lazy message passing (Kolluri, Choudhary, Hooi and Saxena, arXiv 2302.13053), in the
//! two forms of the authors' code.
//!
//! # `form = "layers"`, between workers that hold parts of the graph
//!
//! The layers are trained one after another. Sub-model `k` reads frozen representations of layer
//! `k`: their boundary rows are exchanged *once*, before its `R` rounds of full-batch training
//! begin; within the rounds only its parameter gradients travel. The parameters with the best
//! validation accuracy of the rounds that are evaluated (`training.evaluate_every`; in the authors'
//! code all) are restored, the representations for the next sub-model computed, a fresh optimiser
//! taken. Gradients never cross sub-models. With `B` boundary rows over ordered pairs the whole
//! training moves `4B Σ_{k<K} d_k` bytes of node data, whatever `R` is, and
//! `2(P − 1)·4 Σ_k R |θ_k|` bytes of gradients.
//!
//! The layers are the paper's whatever `[model]` says of `norm` and `residual`: layer normalisation
//! in each but the last, no residual connections. GAT averages its heads in every layer; each has
//! `hidden / heads` columns, and so have the representations, `d_k` above (the authors'
//! configuration of GAT). Its attention weights are not dropped. The authors' GCN and GAT leave a
//! node's own row out, `model.self_loops = false`, their GAT has a bias a head,
//! `model.head_biases`, and they do not score nodes without neighbours,
//! `training.score_isolated = false`.
//!
//! Degrees are those of the whole graph, so the result does not depend on the partition. Every
//! sub-model trains `R` epochs of the result tables: `K·R` in all. Accuracies are reported from the
//! last sub-model's epochs only, since before them there is no model of `K` layers.
//!
//! With a `codec` the rows that are exchanged are compressed, but for those that the last sub-model
//! reads; with a `schedule`, at the ratio of the epoch in which their sub-model begins.
//!
//! In mini-batches each sub-model draws neighbours one hop away, `fanouts[k]` in sub-model `k`,
//! among its frozen inputs: nothing but parameter gradients moves for it.
//!
//! # `form = "distributed"`, between clients that hold a node each
//!
//! `K + 1` sub-models, the first of which reads raw features, that never leave their client, and
//! the others the class logits of the one before; see [`clients`].
//!
//! # Where it is in the authors' code
//!
//! `layers` is `aashishkolluri/retexo-distributed`, read and run at `05a04d7`. In
//! `trainers/trainer.py`: one exchange a layer, the best parameters (`best_val_model`), a fresh
//! optimiser. In `models/gnn.py`: layer normalisation (`use_layer_norm`), no residual connections,
//! the mean of heads. In `conf/`: `num_rounds`, `hidden_dim`, for GAT `hidden_dim // heads` columns
//! and DGL's `GATConv` with its biases, and `add_self_loop`, which is false. In
//! `trainers/worker_trainer.py` (`relevant_nodes`): which nodes are scored.
//!
//! `distributed` is `aashishkolluri/retexognn-prototype`, read at `e6ff379`: [`clients`] has the
//! files.

pub mod clients;
mod clients_plan;
mod one_hop;
mod perceptron;
mod rounds;
mod sub_model;
mod workers;
mod workers_plan;

use std::sync::Arc;

use burn::module::Module;
use serde::Deserialize;

use super::parts::options::{
    GRADIENTS, MEASURE_ERROR, ON_REQUEST_CODEC, RATIO, RESCALE, SCHEDULE, option_list,
};
use super::parts::{CodecState, Compression, Gradients, RowWires, Wire};
use super::{
    BatchUse, Needs, NeedsOfOthers, OptionError, PlansFrom, Registration, Strategy, StrategyInfo,
    Training, options,
};
use crate::graph::PartitionSpec;
use crate::model::{Activation, LayerSpec, ModelSpec, NamedParameter, NormKind, named_parameters};
use crate::sim::Setting;
use rounds::Rounds;

pub use perceptron::Perceptron;
pub use sub_model::{SubModel, own_spec};

/// How experiments name and make it.
pub const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "retexo",
        paper: "Kolluri, Choudhary, Hooi and Saxena, RETEXO: Scalable Neural Network Training over Distributed Graphs (arXiv 2302.13053)",
        sends: "boundary rows of each layer once in the whole training; parameter gradients of one layer at a time; between clients, class logits in place of representations",
        options: option_list! {
            rounds_per_layer: "training.epochs", "Rounds R for which each sub-model is trained, or a list of R_k with one for each (the authors' code: 200).";
            form: "\"layers\"", "layers: a sub-model per layer on parts of the graph (the authors' v3); distributed: K + 1 sub-models on class logits, for one client per node (their v1; `partition.workers` = nodes).";
            ON_REQUEST_CODEC; RATIO; SCHEDULE; RESCALE; MEASURE_ERROR; GRADIENTS;
        },
    },
    read,
};

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    #[default]
    Layers,
    Distributed,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    rounds_per_layer: Option<Rounds>,
    #[serde(default)]
    form: Form,
    #[serde(default)]
    gradients: Gradients,
}

struct Retexo {
    rounds: Option<Rounds>,
    form: Form,
    compression: Compression,
    gradients: Gradients,
}

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let (compression, table) = Compression::on_request(table)?;
    let Options {
        rounds_per_layer: rounds,
        form,
        gradients,
    } = options(&table)?;
    rounds.as_ref().map_or(Ok(()), Rounds::check)?;
    if compression.codec.is_some() && matches!(form, Form::Distributed) {
        let what = "is of rows between workers: clients send class logits, a few floats each; leave it out, or take form = \"layers\"";
        return Err(OptionError::key("codec", what));
    }
    if !gradients.are_plain() && matches!(form, Form::Distributed) {
        let what = "is of workers that sum gradients: here clients send theirs to a server, in every round; leave it out, or take form = \"layers\"";
        return Err(OptionError::key("gradients", what));
    }
    if compression.remembers() {
        let what = "takes the difference from what was sent before, and every row is sent once: choose another";
        return Err(OptionError::key("codec", what));
    }
    if compression.is_adaptive() {
        let what = "looks at how the training goes, and every row is sent once: choose one that goes by the epoch";
        return Err(OptionError::key("schedule", what));
    }
    Ok(Box::new(Retexo {
        rounds,
        form,
        compression,
        gradients,
    }))
}

impl Strategy for Retexo {
    fn needs(&self, asked: &PartitionSpec) -> Result<Needs, OptionError> {
        Ok(Needs {
            together: matches!(self.form, Form::Distributed),
            ..Needs::of(asked.clone(), BatchUse::Possible)
        })
    }

    fn plans_from(&self, batches: bool) -> PlansFrom {
        PlansFrom {
            counts: matches!(self.form, Form::Layers),
            law: batches,
            others: match self.form {
                Form::Layers => NeedsOfOthers::of_rows(batches),
                Form::Distributed => NeedsOfOthers::Graph,
            },
        }
    }

    fn layer(&self, model: &ModelSpec, layer: usize) -> LayerSpec {
        match self.form {
            Form::Layers => sub_model::layer_spec(&own_spec(model), layer),
            Form::Distributed => model.layer(layer),
        }
    }

    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        let rounds = self.rounds.clone();
        let rounds = rounds.unwrap_or(Rounds::Same(setting.training.epochs));
        let layers = setting.model.layers();
        let setting = Arc::clone(setting);
        match self.form {
            Form::Layers => {
                rounds.suit(layers)?;
                let wires = self.compression.fit(&setting, rounds.first(layers))?;
                Ok(Box::new(Workers {
                    rounds,
                    spec: own_spec(&setting.model),
                    wires,
                    gradients: self.gradients,
                    setting,
                }))
            }
            Form::Distributed => {
                rounds.suit(layers + 1)?;
                perceptron::suits(&setting.model)?;
                if setting.unseen.is_some() {
                    let what = "\"distributed\" has a client for each node, who are scored as they train; with \
                                `training.inductive` take form = \"layers\"";
                    return Err(OptionError::key("form", what));
                }
                Ok(Box::new(Clients { rounds, setting }))
            }
        }
    }
}

/// What to know where `[model]` asks for layers of another kind than the sub-models have, which are
/// normalised so and end so.
fn note_on_model(model: &ModelSpec, norm: NormKind, activation: Activation) -> Option<String> {
    let another = [model.kind.activation(), activation];
    let asked = [
        ("residual", model.residual),
        ("norm", ![NormKind::None, norm].contains(&model.norm)),
        ("activation", !another.contains(&model.activation)),
    ];
    let asked: Vec<String> = (asked.iter().filter(|(_, asked)| *asked))
        .map(|(key, _)| format!("model.{key}"))
        .collect();
    (!asked.is_empty()).then(|| {
        let verb = if asked.len() == 1 { "is" } else { "are" };
        format!(
            "its sub-models are the paper's: {} {verb} for others alone",
            asked.join(" and ")
        )
    })
}

/// The parameters of the sub-models, with the number of its sub-model before the name of each.
fn initial<M: Module>(sub_models: impl IntoIterator<Item = M>) -> Vec<NamedParameter> {
    let numbered = |(k, model): (usize, M)| {
        let parameters = named_parameters(&model).into_iter();
        parameters.map(move |parameter| NamedParameter {
            name: format!("{k}.{}", parameter.name),
            ..parameter
        })
    };
    sub_models
        .into_iter()
        .enumerate()
        .flat_map(numbered)
        .collect()
}

/// RETEXO between workers, in its setting.
#[derive(Clone)]
struct Workers {
    rounds: Rounds,
    /// The model in whose sub-models it trains.
    spec: ModelSpec,
    wires: RowWires,
    gradients: Gradients,
    setting: Arc<Setting>,
}

impl Workers {
    /// The compression ratio of the rows that sub-model `layer` reads.
    fn ratio(&self, layer: usize) -> f64 {
        self.wires.ratio_at(self.rounds.first(layer), &[])
    }

    /// How they travel.
    fn wire(&self, layer: usize, state: &CodecState) -> Wire {
        let round = self.rounds.first(layer) as u64;
        self.wires.wire(layer, self.ratio(layer), round, state)
    }
}

/// RETEXO between clients, in its setting.
#[derive(Clone)]
struct Clients {
    rounds: Rounds,
    setting: Arc<Setting>,
}
