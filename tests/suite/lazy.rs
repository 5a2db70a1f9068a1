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
use grapevine::graph::Csr;
use grapevine::model::{Dropout, ModelKind, parameters};
use grapevine::sim::{Scores, Setting};
use grapevine::strategies::retexo;

/// Which of the two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Layers,
    Distributed,
}

/// What the next sub-model reads is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freezes {
    /// The parameters of best validation accuracy, without dropout: the paper's way.
    Best,
    /// Those of the last round, which is wrong.
    Last,
    /// The best, but with dropout, which is wrong.
    Dropped,
}

pub(crate) struct Trained {
    /// Of all rounds of all sub-models.
    pub losses: Vec<f64>,
    /// Of the rounds of the last sub-model.
    pub scores: Vec<Scores>,
}

/// Asserts that the losses would be others if dropout were on where features are frozen. Returns whether they would be if the last
/// parameters were kept in place of the best.
pub(crate) fn assert_tells_apart(
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

/// A first layer that gathers what its parameters make of the rows.
#[derive(Clone, Copy)]
struct Listening<'a> {
    graph: &'a Csr,
    kind: ModelKind,
    heads: usize,
    /// Heads are averaged, not side by side.
    averages: bool,
    /// Whether a node attends to itself, too.
    self_loops: bool,
}

impl<'a> Listening<'a> {
    /// That of a sub-model; none where what is gathered does not depend on parameters.
    fn of(setting: &'a Setting, form: Form, stage: usize) -> Option<Self> {
        let kind = match (form, setting.model.kind) {
            (Form::Distributed, _) if stage == 0 => return None,
            (Form::Layers, ModelKind::Gcn | ModelKind::Sage) | (_, ModelKind::Gcn) => return None,
            (Form::Distributed, ModelKind::Sage) => ModelKind::SagePool,
            (_, kind) => kind,
        };
        Some(Self {
            graph: &setting.dataset.graph,
            kind,
            heads: setting.model.heads,
            averages: form == Form::Layers,
            self_loops: form == Form::Distributed || setting.model.self_loops,
        })
    }

    fn attends(self) -> bool {
        self.kind == ModelKind::Gat
    }

    fn shapes(self, inputs: usize, outputs: usize, hidden: usize) -> Vec<(usize, usize)> {
        if self.kind == ModelKind::SagePool {
            let pool = [(inputs, hidden), (1, hidden)];
            let sums = [(inputs, outputs), (hidden, outputs), (1, outputs)];
            return [&pool[..], &sums[..]].concat();
        }
        let heads = self.heads;
        let width = if self.averages {
            outputs
        } else {
            outputs / heads
        };
        let scores = (heads, width);
        vec![(inputs, heads * width), scores, scores, (1, outputs)]
    }

    fn forward(self, rows: &Matrix, parameters: &[Matrix]) -> Matrix {
        match (self.kind, parameters) {
            (ModelKind::SagePool, [pool, pool_bias, own, others, bias]) => {
                let pooled = rows.times(pool).plus(pool_bias).relu();
                let largest = self.largest(&pooled).times(others);
                rows.times(own).plus(&largest).plus(bias)
            }
            (ModelKind::Gat, [weight, own, others, bias]) => {
                self.attended(&rows.times(weight), own, others).plus(bias)
            }
            _ => panic!("no reference for {:?}", self.kind),
        }
    }

    /// The largest of the neighbours' entries, none of which is negative (Hamilton, Ying and Leskovec, 2017, eq. 3).
    fn largest(self, rows: &Matrix) -> Matrix {
        let mut all = Matrix::zeros(rows.rows, rows.columns);
        for (v, largest) in all.values.chunks_exact_mut(rows.columns).enumerate() {
            for &u in self.graph.neighbours(v) {
                for (most, &value) in largest.iter_mut().zip(rows.row(u as usize)) {
                    *most = most.max(value);
                }
            }
        }
        all
    }

    /// Gradients of the parameters of pooling, from that of its output: what arrives at a maximum goes to the neighbour it came from.
    fn of_pooling(self, rows: &Matrix, parameters: &[Matrix], upstream: &Matrix) -> Vec<Matrix> {
        let pooled = rows.times(&parameters[0]).plus(&parameters[1]).relu();
        let largest = self.largest(&pooled);
        let below = upstream.times(&parameters[3].transposed());
        let mut back = Matrix::zeros(pooled.rows, pooled.columns);
        for v in 0..pooled.rows {
            for (column, &most) in largest.row(v).iter().enumerate() {
                let mut neighbours = self.graph.neighbours(v).iter().map(|&u| u as usize);
                if let Some(u) = neighbours.find(|&u| most > 0.0 && pooled.row(u)[column] == most) {
                    back.values[u * pooled.columns + column] += below.row(v)[column];
                }
            }
        }
        let mut all = of_linear(std::slice::from_ref(rows), &back);
        all.extend(of_linear(&[rows.clone(), largest], upstream));
        all
    }

    /// Attention over the neighbours and the node itself (Veličković et al., 2018, eq. 3 to 6).
    fn attended(self, rows: &Matrix, own: &Matrix, others: &Matrix) -> Matrix {
        let width = own.columns;
        let of_head = |node: usize, head: usize| &rows.row(node)[head * width..][..width];
        let score = |node, head, vectors: &Matrix| -> f64 {
            let pairs = of_head(node, head).iter().zip(vectors.row(head));
            pairs.map(|(x, a)| x * a).sum()
        };
        let columns = if self.averages { width } else { rows.columns };
        let mut all = Matrix::zeros(rows.rows, columns);
        for (v, sums) in all.values.chunks_exact_mut(columns).enumerate() {
            let neighbours = self.graph.neighbours(v).iter().map(|&u| u as usize);
            let heard: Vec<usize> = neighbours.chain(self.self_loops.then_some(v)).collect();
            for head in 0..self.heads {
                let powers = heard.iter().map(|&u| {
                    let score = score(v, head, own) + score(u, head, others);
                    (if score > 0.0 { score } else { 0.2 * score }).exp()
                });
                let powers: Vec<f64> = powers.collect();
                let (start, share) = if self.averages {
                    (0, 1.0 / self.heads as f64)
                } else {
                    (head * width, 1.0)
                };
                let share = share / powers.iter().sum::<f64>();
                for (&u, power) in heard.iter().zip(powers) {
                    for (sum, x) in sums[start..].iter_mut().zip(of_head(u, head)) {
                        *sum += share * power * x;
                    }
                }
            }
        }
        all
    }
}

/// A sub-model: parameters of its first layer (weights of each part of its input and a bias, or those of what listens), gain and
/// shift, weight and bias of a head.
#[derive(Clone)]
struct SubModel<'a> {
    listening: Option<Listening<'a>>,
    /// Matrices of the first layer.
    first: usize,
    has_norm: bool,
    has_head: bool,
    activation: fn(f64) -> f64,
    parameters: Vec<Matrix>,
}

/// What a forward pass leaves for the way back.
struct Pass {
    /// Normalised rows and, for each, what it was divided by.
    normalised: Option<(Matrix, Vec<f64>)>,
    representation: Matrix,
    logits: Matrix,
}

impl<'a> SubModel<'a> {
    fn new(setting: &'a Setting, form: Form, stage: usize, parts: usize) -> Self {
        let (spec, device) = (
            &setting.model,
            setting.devices[0].place.device.clone().autodiff(),
        );
        let classes = spec.classes();
        let (values, inputs, outputs) = match form {
            Form::Layers => {
                let spec = retexo::own_spec(spec);
                let drawn = retexo::SubModel::new(&spec, stage, setting.seed, &device);
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
        let listening = Listening::of(setting, form, stage);
        let mut shapes = match listening {
            Some(listening) => listening.shapes(inputs, outputs, spec.hidden()),
            None => [vec![(inputs, outputs); parts], vec![(1, outputs)]].concat(),
        };
        let first = shapes.len();
        if has_norm {
            shapes.extend([(1, outputs); 2]);
        }
        if has_head {
            shapes.extend([(outputs, classes), (1, classes)]);
        }
        let attends = listening.is_some_and(Listening::attends);
        Self {
            listening,
            first,
            has_norm,
            has_head,
            activation: match form {
                Form::Distributed if attends => |x| if x > 0.0 { x } else { x.exp_m1() },
                _ => |x| x.max(0.0),
            },
            parameters: cut(&values, &shapes),
        }
    }

    fn forward(&self, parts: &[Matrix]) -> Pass {
        let (first, rest) = self.parameters.split_at(self.first);
        let output = match self.listening {
            Some(listening) => listening.forward(&parts[0], first),
            None => linear(parts, first),
        };
        if !self.has_head {
            return Pass {
                normalised: None,
                representation: output.clone(),
                logits: output,
            };
        }
        let normalised = self.has_norm.then(|| normalise(&output));
        let representation = match &normalised {
            Some((rows, _)) => rows.scaled(&rest[0]).plus(&rest[1]).relu(),
            None => output.map(self.activation),
        };
        let head = &rest[rest.len() - 2..];
        Pass {
            logits: linear(std::slice::from_ref(&representation), head),
            normalised,
            representation,
        }
    }

    /// Gradients of all parameters, from that of the logits.
    fn backward(&self, parts: &[Matrix], pass: &Pass, logits: &Matrix) -> Vec<Matrix> {
        if self.listening.is_some_and(Listening::attends) {
            return self.differences(parts, logits);
        }
        let of_first = |upstream: &Matrix| match self.listening {
            Some(first) => first.of_pooling(&parts[0], &self.parameters, upstream),
            None => of_linear(parts, upstream),
        };
        if !self.has_head {
            return of_first(logits);
        }
        let weight = &self.parameters[self.parameters.len() - 2];
        let below = logits.times(&weight.transposed());
        let mut upstream = below.through_relu(&pass.representation);
        let mut norm = Vec::new();
        if let Some((rows, roots)) = &pass.normalised {
            norm = vec![upstream.scaled(rows).column_sums(), upstream.column_sums()];
            let gain = &self.parameters[self.first];
            upstream = of_normalised(&upstream.scaled(gain), rows, roots);
        }
        let mut all = of_first(&upstream);
        all.append(&mut norm);
        let representation = std::slice::from_ref(&pass.representation);
        all.extend(of_linear(representation, logits));
        all
    }

    /// The same as central differences, from the forward pass alone.
    fn differences(&self, parts: &[Matrix], upstream: &Matrix) -> Vec<Matrix> {
        const STEP: f64 = 1e-7;
        let mut moved = self.clone();
        let mut all = Vec::new();
        for (at, matrix) in self.parameters.iter().enumerate() {
            let differences = matrix.values.iter().enumerate().map(|(entry, &value)| {
                let [above, below] = [value + STEP, value - STEP].map(|value| {
                    moved.parameters[at].values[entry] = value;
                    let along = moved.forward(parts).logits.scaled(upstream);
                    along.values.iter().sum::<f64>()
                });
                moved.parameters[at].values[entry] = value;
                (above - below) / (2.0 * STEP)
            });
            all.push(Matrix::new(matrix.columns, differences.collect()));
        }
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
/// among them, `1 / d_v` otherwise, or `1 / (d_v + 1)` with the node itself. Those that listen have weights of their own.
fn gathering(setting: &Setting, form: Form) -> Matrix {
    let (graph, kind) = (&setting.dataset.graph, setting.model.kind);
    let degree = degrees(graph);
    let weight = |v: usize, u: usize| match (form, kind) {
        (Form::Layers, ModelKind::Gcn) => {
            let more = usize::from(setting.model.self_loops);
            1.0 / (((degree[v] + more) * (degree[u] + more)) as f64).sqrt()
        }
        (Form::Layers, ModelKind::Sage) => {
            1.0 / (degree[v] + usize::from(setting.model.self_loops)) as f64
        }
        _ => 1.0 / degree[v] as f64,
    };
    let mut gather = Matrix::gathering(graph, weight);
    let has_choice = matches!(kind, ModelKind::Gcn | ModelKind::Sage);
    if form == Form::Layers && has_choice && setting.model.self_loops {
        for v in 0..graph.nodes() {
            gather.values[v * graph.nodes() + v] = weight(v, v);
        }
    }
    gather
}

/// Trains the sub-models one after another for `rounds` rounds each, with the optimiser of the setting.
pub(crate) fn train(setting: &Setting, form: Form, rounds: usize, freezes: Freezes) -> Trained {
    let dataset = &setting.dataset;
    let gather = gathering(setting, form);
    // What the weights of a sub-model are multiplied with.
    let parts = |stage: usize, rows: &Matrix| match (form, setting.model.kind) {
        _ if Listening::of(setting, form, stage).is_some() => vec![rows.clone()],
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
