//! Trainings through random columns against one in a single process, in which a row that is read across the cut has those columns
//! alone, and in double precision from dense matrices.

use crate::common::{Case, assert_close, losses};
use crate::dense::{Adam, Matrix, cross_entropy, cut};
use crate::reference::degrees;
use grapevine::model::{Dropout, Gnn, ModelKind, OptimizerConfig, parameters};
use grapevine::net::{CodecKey, RandomColumns};
use grapevine::sim::Setting;

/// What the gradient of a row that was read across the cut is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Back {
    /// The columns that were sent: VARCO's way.
    SameColumns,
    /// All columns, which is wrong.
    All,
    /// Nothing, which is wrong.
    Nothing,
}

/// Whether the rows of a layer cross after its product: where that makes them narrower, as DGL's `SAGEConv` does.
fn crosses_after_product(setting: &Setting, layer: usize) -> bool {
    setting.model.widths[layer + 1] < setting.model.widths[layer]
}

/// Factors of the columns of a row that crosses the cut, `[1, width]`: 0 where one is not sent.
fn factors(setting: &Setting, ratio: f64, rescale: bool, (layer, epoch): (usize, usize)) -> Matrix {
    let widths = &setting.model.widths;
    let width = widths[layer].min(widths[layer + 1]);
    if layer + 1 == setting.model.layers() {
        return Matrix::new(width, vec![1.0; width]);
    }
    let key = CodecKey::new(setting.seed, layer as u32, epoch as u64);
    let columns = RandomColumns { ratio, rescale }.columns(width, key);
    let kept = ((width as f64 / ratio).floor() as usize).max(1);
    assert_eq!(columns.len(), kept, "{width} at {ratio}");
    let mut factors = Matrix::zeros(1, width);
    for column in columns {
        factors.values[column as usize] = if rescale {
            width as f64 / kept as f64
        } else {
            1.0
        };
    }
    assert_eq!(factors.values.iter().filter(|f| **f > 0.0).count(), kept);
    factors
}

/// Weights of neighbours, of those that the same worker owns and of others: `Â` with the node itself, or `1 / d_v`.
fn gathering(setting: &Setting) -> [Matrix; 2] {
    let (graph, owner) = (&setting.dataset.graph, &setting.partition.assignment);
    let (degree, kind) = (degrees(graph), setting.model.kind);
    let weight = |v: usize, u: usize| match kind {
        ModelKind::Gcn => 1.0 / (((degree[v] + 1) * (degree[u] + 1)) as f64).sqrt(),
        ModelKind::Sage => 1.0 / degree[v] as f64,
        other => panic!("no reference for {other:?}"),
    };
    let of = |cut: bool| {
        Matrix::gathering(graph, |v, u| {
            let counts = (owner[v] != owner[u]) == cut;
            if counts { weight(v, u) } else { 0.0 }
        })
    };
    let mut local = of(false);
    if kind == ModelKind::Gcn {
        for v in 0..graph.nodes() {
            local.values[v * graph.nodes() + v] = weight(v, v);
        }
    }
    [local, of(true)]
}

/// Losses of all epochs. `ratio` is that of an epoch.
fn reference(
    setting: &Setting,
    ratio: impl Fn(usize) -> f64,
    rescale: bool,
    back: Back,
) -> Vec<f64> {
    let (spec, dataset) = (&setting.model, &setting.dataset);
    let has_own = spec.kind == ModelKind::Sage;
    let [local, crossing] = gathering(setting);
    let [local_back, crossing_back] = [&local, &crossing].map(Matrix::transposed);

    let device = setting.devices[0].place.device.clone().autodiff();
    let values = parameters(&Gnn::new(spec, setting.seed, &device));
    let weights = if has_own { 2 } else { 1 };
    let mut shapes = Vec::new();
    for width in spec.widths.windows(2) {
        shapes.extend(vec![(width[0], width[1]); weights]);
        shapes.push((1, width[1]));
    }
    let mut model = cut(&values, &shapes);
    let of_layer = |layer: usize| layer * (weights + 1)..(layer + 1) * (weights + 1);

    let mut optimizer = Adam::new(&setting.optimizer, &model);
    let mut all = Vec::new();
    // Of its owner and of all readers alike, however a row crosses.
    let dropout = Dropout::new(spec.dropout, setting.seed);
    let nodes: Vec<u32> = (0..).take(dataset.graph.nodes()).collect();
    for epoch in 0..setting.training.epochs {
        let sent: Vec<Matrix> = (0..spec.layers())
            .map(|layer| factors(setting, ratio(epoch), rescale, (layer, epoch)))
            .collect();
        let masks: Vec<Matrix> = (0..spec.layers())
            .map(|layer| {
                let width = spec.widths[layer];
                let mask = dropout.mask(epoch as u64, layer, &nodes, width);
                Matrix::from_floats(width, &mask)
            })
            .collect();
        let mut input = Matrix::features(dataset);
        let mut inputs = Vec::new();
        for layer in 0..spec.layers() {
            input = input.scaled(&masks[layer]);
            let mine = &model[of_layer(layer)];
            let neighbours = &mine[weights - 1];
            let gathered = if crosses_after_product(setting, layer) {
                let product = input.times(neighbours);
                let others = crossing.times(&product.scaled(&sent[layer]));
                local.times(&product).plus(&others)
            } else {
                let others = crossing.times(&input.scaled(&sent[layer]));
                local.times(&input).plus(&others).times(neighbours)
            };
            let mut output = gathered.plus(&mine[weights]);
            if has_own {
                output = output.plus(&input.times(&mine[0]));
            }
            let next = if layer + 1 == spec.layers() {
                output
            } else {
                output.relu()
            };
            inputs.push(std::mem::replace(&mut input, next));
        }
        let (loss, mut upstream) = cross_entropy(&input, dataset);
        all.push(loss);
        let mut gradients = Vec::new();
        for layer in (0..spec.layers()).rev() {
            let mine = &model[of_layer(layer)];
            let (input, neighbours) = (&inputs[layer], &mine[weights - 1]);
            // Of rows as they cross, from that of what is gathered of them.
            let returned = |gathered: &Matrix| {
                let others = crossing_back.times(gathered);
                let others = match back {
                    Back::SameColumns => others.scaled(&sent[layer]),
                    Back::All => others,
                    Back::Nothing => others.map(|_| 0.0),
                };
                local_back.times(gathered).plus(&others)
            };
            let (of_weight, mut below) = if crosses_after_product(setting, layer) {
                let product = returned(&upstream);
                let below = product.times(&neighbours.transposed());
                (input.transposed().times(&product), below)
            } else {
                let others = crossing.times(&input.scaled(&sent[layer]));
                let gathered = local.times(input).plus(&others);
                let below = returned(&upstream.times(&neighbours.transposed()));
                (gathered.transposed().times(&upstream), below)
            };
            let mut of_layer = vec![of_weight, upstream.column_sums()];
            if has_own {
                of_layer.insert(0, input.transposed().times(&upstream));
                below = below.plus(&upstream.times(&mine[0].transposed()));
            }
            gradients.push(of_layer);
            upstream = below.scaled(&masks[layer]).through_relu(input);
        }
        let gradients: Vec<Matrix> = gradients.into_iter().rev().flatten().collect();
        optimizer.step(&mut model, &gradients, 1.0);
    }
    all
}

/// Steps that grow with the gradient, so that what is missing of one is seen, and what rounding adds is not.
const SMOOTH: OptimizerConfig = OptimizerConfig::Adam {
    learning_rate: 0.03,
    weight_decay: 0.0,
    epsilon: 1e-3,
};

/// Of ten features, of which the product is wider or narrower.
fn cases() -> impl Iterator<Item = Case> {
    [
        (ModelKind::Gcn, 12, 0.0),
        (ModelKind::Sage, 12, 0.3),
        (ModelKind::Gcn, 6, 0.3),
        (ModelKind::Sage, 6, 0.0),
        (ModelKind::Sage, 6, 0.3),
    ]
    .into_iter()
    .map(|(kind, hidden, dropout)| Case {
        kind,
        layers: 3,
        hidden,
        workers: 2,
        dropout,
        epochs: 10,
        optimizer: SMOOTH,
        ..Case::default()
    })
}

/// The largest relative difference.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    let each = a.iter().zip(b).map(|(a, b)| (a / b - 1.0).abs());
    each.fold(0.0, f64::max)
}

#[test]
fn training_is_that_of_one_process_in_which_rows_across_the_cut_have_the_drawn_columns_alone() {
    // max(5 − t · (5 − 1) / (T − 2), 1) for T = 10.
    let falling: fn(usize) -> f64 = |epoch| (5.0 - epoch as f64 / 2.0).max(1.0);
    let constant: fn(usize) -> f64 = |_| 3.0;
    let ways = [
        ("fixed", "ratio = 3", constant),
        (
            "varco",
            "schedule = { kind = \"linear\", from = 3, to = 3 }",
            constant,
        ),
        (
            "varco",
            "schedule = { kind = \"linear\", from = 5, to = 1, slope = 1 }",
            falling,
        ),
    ];
    for case in cases() {
        for (kind, options, ratio) in ways {
            for rescale in [false, true] {
                let options = format!("{options}\nrescale = {rescale}");
                let (of, dropout) = (case.kind, case.dropout);
                let what = format!("{of:?} of {}, {dropout}, {kind} {options}", case.hidden);
                let setting = case.setting(Case::strategy(kind, &options).as_ref());
                let expected = reference(&setting, ratio, rescale, Back::SameColumns);
                let found = losses(&case.run(kind, &options));
                assert_close(&found, &expected, 1e-4, &what);
                // What the comparison would see.
                for back in [Back::All, Back::Nothing] {
                    let wrong = reference(&setting, ratio, rescale, back);
                    assert_eq!(wrong[0], expected[0], "{what}");
                    assert!(apart(&wrong, &expected) > 1e-3, "{what}: {back:?}");
                }
                let other = reference(&setting, ratio, !rescale, Back::SameColumns);
                assert!(apart(&other, &expected) > 1e-3, "{what}");
            }
        }
    }
}

#[test]
fn the_reference_at_ratio_one_is_training_that_loses_nothing() {
    for case in cases() {
        let setting = case.setting(Case::strategy("full", "").as_ref());
        let expected = reference(&setting, |_| 1.0, false, Back::SameColumns);
        let what = format!("{:?}", case.kind);
        assert_close(&losses(&case.run("full", "")), &expected, 1e-4, &what);
    }
}
