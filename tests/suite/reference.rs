//! Plain training on one device: the whole graph as one block, automatic differentiation through all layers at once. It shares
//! the layers with the library and nothing of the way in which strategies drive them.

use burn::module::Module;
use burn::tensor::Tensor;

use grapevine::graph::Csr;
use grapevine::model::{
    Aggregation, Block, Dropout, Gnn, Input, ModelKind, Optimizer, add_gradients, cross_entropy,
    losses, mean_of_losses, parameter_count, parameters, score, targets,
};
use grapevine::sim::{Scores, Setting};

/// What a training leaves, epoch by epoch.
pub(crate) struct Trained {
    pub losses: Vec<f64>,
    pub scores: Vec<Scores>,
    pub gradients: Vec<Vec<f32>>,
    /// Of the trained model.
    pub parameters: Vec<f32>,
}

/// One term of the loss: a graph over all nodes, and what the loss of each of them counts.
pub(crate) struct Term {
    /// In-neighbours of all nodes.
    pub graph: Csr,
    /// Those that each layer reads, where it does not read all.
    pub drawn: Vec<Csr>,
    /// What the aggregation divides by.
    pub degrees: Vec<usize>,
    /// `(node, weight)` of the training nodes.
    pub weights: Vec<(u32, f64)>,
    /// What the message to `v` from `u` is multiplied by: `scale(layer, v, u)`.
    pub scale: Scale,
}

type Scale = Box<dyn Fn(usize, u32, u32) -> f32>;

impl Term {
    /// A term whose messages are as the model has them.
    pub(crate) fn plain(graph: Csr, degrees: Vec<usize>, weights: Vec<(u32, f64)>) -> Self {
        Self {
            graph,
            drawn: Vec::new(),
            degrees,
            weights,
            scale: Box::new(|_, _, _| 1.0),
        }
    }

    /// What layers aggregate by.
    pub(crate) fn block(&self, aggregation: Aggregation, layer: usize) -> Block {
        let graph = self.drawn.get(layer).unwrap_or(&self.graph);
        Block::new(graph, &self.degrees, aggregation).scaled(|v, u| (self.scale)(layer, v, u))
    }
}

/// The one term of centralised training: all edges, the mean over all training nodes.
pub(crate) fn whole(setting: &Setting) -> Term {
    let dataset = &setting.dataset;
    let nodes = dataset.split.train.len() as f64;
    let weights = dataset.split.train.iter().map(|&v| (v, 1.0 / nodes));
    Term::plain(
        dataset.graph.as_ref().clone(),
        degrees(&dataset.graph),
        weights.collect(),
    )
}

pub(crate) fn degrees(graph: &Csr) -> Vec<usize> {
    (0..graph.nodes()).map(|v| graph.degree(v)).collect()
}

/// Trains on one device in the ordinary way.
pub(crate) fn single_device(setting: &Setting) -> Trained {
    let term = whole(setting);
    train(setting, |_| std::slice::from_ref(&term))
}

/// Trains on one device with the sum of the terms of each epoch as the loss.
pub(crate) fn train<'a>(setting: &Setting, terms: impl Fn(usize) -> &'a [Term]) -> Trained {
    let place = setting.devices[0].place.clone();
    let dataset = &setting.dataset;
    let aggregation = match (setting.model.kind, setting.model.self_loops) {
        (ModelKind::Gcn, false) => Aggregation::Symmetric,
        (ModelKind::Sage, true) => Aggregation::MeanWithSelf,
        (kind, _) => Aggregation::from(kind),
    };
    let features = Input::from_features((*dataset.features).clone(), &place);
    let nodes: Vec<u32> = (0..).take(dataset.graph.nodes()).collect();
    let dropout = Dropout::new(setting.model.dropout, setting.seed)
        .with_features(setting.model.input_dropout)
        .with_attention(setting.model.attention_dropout);
    let everything = whole(setting);
    let complete = Block::new(&everything.graph, &everything.degrees, aggregation);

    let mut model = Gnn::new(
        &setting.model,
        setting.seed,
        &place.device.clone().autodiff(),
    );
    let mut optimizer = Optimizer::new(&setting.optimizer);
    let mut trained = Trained {
        losses: Vec::new(),
        scores: Vec::new(),
        gradients: Vec::new(),
        parameters: Vec::new(),
    };
    for epoch in 0..setting.training.epochs {
        let each = terms(epoch).iter().map(|term| {
            let mut input = features.clone();
            for layer in 0..model.layers() {
                let dropped = input.dropped(&dropout, epoch as u64, layer, &nodes);
                let heads = setting.model.attention_heads();
                let block = term.block(aggregation, layer);
                let block = block.dropped(&dropout, epoch as u64, layer, &nodes, heads, &place);
                input = Input::Dense(model.layer(layer, &block, &dropped));
            }
            let Input::Dense(logits) = input else {
                panic!("a model has layers")
            };
            #[allow(clippy::cast_possible_truncation)] // the loss is single precision
            let weighted = term.weights.iter().map(|&(v, weight)| {
                let label = dataset
                    .labels
                    .of(v as usize)
                    .expect("training nodes have labels");
                (v as usize, label, weight as f32)
            });
            let constant = targets(nodes.len(), dataset.task(), weighted, &place);
            cross_entropy(logits, constant)
        });
        let loss: Tensor<1> = each.reduce(Tensor::add).expect("there are terms");
        let mut gradients = loss.backward();
        let mut flat = vec![0.0_f32; parameter_count(&model)];
        add_gradients(&model, &mut gradients, &mut flat);
        trained
            .losses
            .push(f64::from(loss.inner().into_scalar::<f32>()));
        model = optimizer.step(model, &flat);
        trained.gradients.push(flat);
        let logits = model.valid().infer(&complete, &features).into_values();
        let (metric, labels, outputs) = (dataset.metric, &dataset.labels, dataset.classes);
        let of = |nodes: &[u32]| score(metric, &logits, outputs, labels, nodes);
        let known = losses(&logits, outputs, labels, &dataset.split.validation);
        trained.scores.push(Scores {
            train: of(&dataset.split.train),
            validation: of(&dataset.split.validation),
            test: of(&dataset.split.test),
            validation_loss: mean_of_losses(known.map(|(_, loss)| loss)),
        });
    }
    trained.parameters = parameters(&model);
    trained
}
