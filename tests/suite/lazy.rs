//! RETEXO's training once more, from the paper's description and dense matrices alone. It shares the initial parameters and the
//! draws of dropout with the library.
//!
//! ```text
//!   rows x ──dropout──▶ u = Σ gathered x · W + b ──norm──▶ ReLU ──▶ head ──▶ logits     one sub-model, whose x are constants
//!                                                            │ without dropout, at the best parameters
//!                                                            ▼
//!                                             x of the next sub-model (of clients: the logits)
//! ```

use crate::dense::{Adam, Matrix, cross_entropy, cut, linear, of_linear, scores};
use crate::reference::degrees;
use grapevine::model::{Dropout, ModelKind, parameters};
use grapevine::sim::{Scores, Setting};
use grapevine::strategies::retexo;

/// Which of the two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Layers,
    Distributed,
}

/// What the next sub-model reads is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freezes {
    /// The parameters of best validation accuracy, without dropout: the paper's way.
    Best,
    /// Those of the last round, which is wrong.
    Last,
    /// The best, but with dropout, which is wrong.
    Dropped,
}

pub struct Trained {
    /// Of all rounds of all sub-models.
    pub losses: Vec<f64>,
    /// Of the rounds of the last sub-model.
    pub scores: Vec<Scores>,
}

/// Asserts that the losses would be others if dropout were on where features are frozen. Returns whether they would be if the last
/// parameters were kept in place of the best.
pub fn assert_tells_apart(
    reference: impl Fn(Freezes) -> Trained,
    dropout: f64,
    what: &str,
) -> bool {
    let expected = reference(Freezes::Best).losses;
    let apart = |freezes| {
        let other = reference(freezes).losses;
        let mut both = other.iter().zip(&expected);
        both.any(|(a, b)| (a / b - 1.0).abs() > 1e-3)
    };
    assert_eq!(apart(Freezes::Dropped), dropout > 0.0, "{what}");
    apart(Freezes::Last)
}

/// A sub-model: weights of each part of its input and a bias, gain and shift, weight and bias of a head.
struct SubModel {
    has_norm: bool,
    has_head: bool,
    parameters: Vec<Matrix>,
}

/// What a forward pass leaves for the way back.
struct Pass {
    /// Normalised rows and, for each, what it was divided by.
    normalised: Option<(Matrix, Vec<f64>)>,
    representation: Matrix,
    logits: Matrix,
}

impl SubModel {
    fn new(setting: &Setting, form: Form, stage: usize, parts: usize) -> Self {
        let (spec, device) = (
            &setting.model,
            setting.devices[0].place.device.clone().autodiff(),
        );
        let classes = spec.classes();
        let (values, inputs, outputs) = match form {
            Form::Layers => {
                let drawn = retexo::SubModel::new(spec, stage, setting.seed, &device);
                let widths = &spec.widths;
                (parameters(&drawn), widths[stage], widths[stage + 1])
            }
            Form::Distributed => {
                let drawn = retexo::Perceptron::new(spec, stage, setting.seed, &device);
                let inputs = [spec.features(), classes][stage.min(1)];
                (parameters(&drawn), inputs, spec.hidden())
            }
        };
        let has_norm = form == Form::Layers && stage + 1 < spec.layers();
        let has_head = has_norm || form == Form::Distributed;
        let mut shapes = vec![(inputs, outputs); parts];
        shapes.push((1, outputs));
        if has_norm {
            shapes.extend([(1, outputs); 2]);
        }
        if has_head {
            shapes.extend([(outputs, classes), (1, classes)]);
        }
        Self {
            has_norm,
            has_head,
            parameters: cut(&values, &shapes),
        }
    }

    fn forward(&self, parts: &[Matrix]) -> Pass {
        let output = linear(parts, &self.parameters);
        if !self.has_head {
            return Pass {
                normalised: None,
                representation: output.clone(),
                logits: output,
            };
        }
        let normalised = self.has_norm.then(|| normalise(&output));
        let representation = match &normalised {
            Some((rows, _)) => {
                let [gain, shift] = [1, 2].map(|at| &self.parameters[parts.len() + at]);
                rows.scaled(gain).plus(shift).relu()
            }
            None => output.relu(),
        };
        let head = &self.parameters[self.parameters.len() - 2..];
        Pass {
            logits: linear(std::slice::from_ref(&representation), head),
            normalised,
            representation,
        }
    }

    /// Gradients of all parameters, from that of the logits.
    fn backward(&self, parts: &[Matrix], pass: &Pass, logits: &Matrix) -> Vec<Matrix> {
        if !self.has_head {
            return of_linear(parts, logits);
        }
        let weight = &self.parameters[self.parameters.len() - 2];
        let below = logits.times(&weight.transposed());
        let mut upstream = below.through_relu(&pass.representation);
        let mut norm = Vec::new();
        if let Some((rows, roots)) = &pass.normalised {
            norm = vec![upstream.scaled(rows).column_sums(), upstream.column_sums()];
            let gain = &self.parameters[parts.len() + 1];
            upstream = of_normalised(&upstream.scaled(gain), rows, roots);
        }
        let mut all = of_linear(parts, &upstream);
        all.append(&mut norm);
        let representation = std::slice::from_ref(&pass.representation);
        all.extend(of_linear(representation, logits));
        all
    }
}

/// `(x − mean) / √(variance + 1e-5)` of each row, and the root.
fn normalise(rows: &Matrix) -> (Matrix, Vec<f64>) {
    let width = rows.columns as f64;
    let (mut values, mut roots) = (Vec::new(), Vec::new());
    for row in rows.values.chunks_exact(rows.columns) {
        let mean = row.iter().sum::<f64>() / width;
        let squares = row.iter().map(|x| (x - mean) * (x - mean));
        let root = (squares.sum::<f64>() / width + 1e-5).sqrt();
        values.extend(row.iter().map(|x| (x - mean) / root));
        roots.push(root);
    }
    (Matrix::new(rows.columns, values), roots)
}

/// The gradient of what was normalised: `(g − mean(g) − n · mean(g · n)) / root`.
fn of_normalised(upstream: &Matrix, rows: &Matrix, roots: &[f64]) -> Matrix {
    let width = upstream.columns as f64;
    let mut values = Vec::new();
    for (row, root) in roots.iter().enumerate() {
        let (g, n) = (upstream.row(row), rows.row(row));
        let pull = g.iter().sum::<f64>() / width;
        let along = g.iter().zip(n).map(|(g, n)| g * n).sum::<f64>() / width;
        values.extend(g.iter().zip(n).map(|(g, n)| (g - pull - n * along) / root));
    }
    Matrix::new(upstream.columns, values)
}

/// Weights of the neighbours: `1 / √(d_v d_u)` of graph convolution between workers, `1 / √((d_v + 1)(d_u + 1))` with the node itself
/// among them, `1 / d_v` otherwise.
fn gathering(setting: &Setting, form: Form) -> Matrix {
    let (graph, kind) = (&setting.dataset.graph, setting.model.kind);
    let degree = degrees(graph);
    let weight = |v: usize, u: usize| match (form, kind) {
        (Form::Layers, ModelKind::Gcn) => {
            let more = usize::from(setting.model.self_loops);
            1.0 / (((degree[v] + more) * (degree[u] + more)) as f64).sqrt()
        }
        (Form::Layers, ModelKind::Sage) | (Form::Distributed, ModelKind::Gcn) => {
            1.0 / degree[v] as f64
        }
        other => panic!("no reference for {other:?}"),
    };
    let mut gather = Matrix::gathering(graph, weight);
    if (form, kind) == (Form::Layers, ModelKind::Gcn) && setting.model.self_loops {
        for v in 0..graph.nodes() {
            gather.values[v * graph.nodes() + v] = weight(v, v);
        }
    }
    gather
}

/// Trains the sub-models one after another for `rounds` rounds each, with the optimiser of the setting.
pub fn train(setting: &Setting, form: Form, rounds: usize, freezes: Freezes) -> Trained {
    let dataset = &setting.dataset;
    let gather = gathering(setting, form);
    // What the weights of a sub-model are multiplied with.
    let parts = |stage: usize, rows: &Matrix| match (form, setting.model.kind) {
        (Form::Distributed, _) if stage == 0 => vec![rows.clone()],
        (Form::Layers, ModelKind::Gcn) => vec![gather.times(rows)],
        _ => vec![rows.clone(), gather.times(rows)],
    };
    let dropout = Dropout::new(setting.model.dropout, setting.seed);
    let nodes: Vec<u32> = (0..).take(dataset.graph.nodes()).collect();
    let dropped = |epoch: usize, stage: usize, rows: &Matrix| {
        let mask = dropout.mask(epoch as u64, stage, &nodes, rows.columns);
        rows.scaled(&Matrix::from_floats(rows.columns, &mask))
    };
    let stages = match form {
        Form::Layers => setting.model.layers(),
        Form::Distributed => setting.model.layers() + 1,
    };
    let (mut losses, mut accuracies) = (Vec::new(), Vec::new());
    let mut input = Matrix::features(dataset);
    for stage in 0..stages {
        let whole = parts(stage, &input);
        let mut model = SubModel::new(setting, form, stage, whole.len());
        let mut optimizer = Adam::new(&setting.optimizer, &model.parameters);
        let mut best: Option<(f64, Vec<Matrix>)> = None;
        for round in 0..rounds {
            let seen = parts(stage, &dropped(stage * rounds + round, stage, &input));
            let pass = model.forward(&seen);
            let (loss, upstream) = cross_entropy(&pass.logits, dataset);
            losses.push(loss);
            let gradients = model.backward(&seen, &pass, &upstream);
            // Clients lower their learning rate linearly to zero.
            let factor = match form {
                Form::Layers => 1.0,
                Form::Distributed => 1.0 - round as f64 / rounds as f64,
            };
            optimizer.step(&mut model.parameters, &gradients, factor);
            let found = scores(&model.forward(&whole).logits, dataset);
            let validation = found.validation.expect("there are validation nodes");
            if freezes == Freezes::Last || best.as_ref().is_none_or(|(most, _)| validation > *most)
            {
                best = Some((validation, model.parameters.clone()));
            }
            if stage + 1 == stages {
                accuracies.push(found);
            }
        }
        (_, model.parameters) = best.expect("there are rounds");
        let pass = match freezes {
            Freezes::Dropped => {
                let last = (stage + 1) * rounds - 1;
                model.forward(&parts(stage, &dropped(last, stage, &input)))
            }
            Freezes::Best | Freezes::Last => model.forward(&whole),
        };
        input = match form {
            Form::Layers => pass.representation,
            Form::Distributed => pass.logits,
        };
    }
    Trained {
        losses,
        scores: accuracies,
    }
}
