//! Matrices in several tensors, where a device does not hold them in one: the same training, and the same bytes.

use burn::tensor::{Tensor, TensorData};
use grapevine::graph::BatchSpec;
use grapevine::model::{
    Activation, LayerSpec, Matrix, ModelKind, NormKind, Place, activate, carrier,
};
use grapevine::rng::mix;
use grapevine::sim::{Backend, divide, host};

use crate::common::{CORA, Case, KINDS, assert_close, devices, distance, losses, other_backends};
use crate::probe::{Probe, assert_same_steps, steady};

const WHOLE: usize = usize::MAX;

/// The case in stripes beside the same on a processor in one piece.
fn assert_same_in_stripes(case: &Case, stripe: usize) {
    let what = format!("{:?}, {:?}, stripes of {stripe}", case.kind, case.norm);
    let whole = Case {
        stripe: WHOLE,
        backend: Backend::Flex,
        ..case.clone()
    };
    let striped = Case {
        stripe,
        ..case.clone()
    };
    assert_same_steps(&striped, &whole, &what);
}

fn case(kind: ModelKind, norm: NormKind) -> Case {
    Case {
        residual: true,
        ..steady(kind, norm)
    }
}

#[test]
fn a_step_has_the_same_loss_and_gradient_in_stripes_of_any_height() {
    for kind in KINDS {
        for (norm, stripe) in [
            (NormKind::None, 1),
            (NormKind::Layer, 7),
            (NormKind::None, 60), // as many as a worker owns, so that the halo begins a stripe
            (NormKind::Layer, 100),
        ] {
            assert_same_in_stripes(&case(kind, norm), stripe);
        }
    }
}

#[test]
fn sparse_features_are_multiplied_to_stripes() {
    for kind in [ModelKind::Gcn, ModelKind::Gat] {
        let case = Case {
            data: CORA,
            layers: 2,
            ..case(kind, NormKind::None)
        };
        assert_same_in_stripes(&case, 500);
    }
}

#[test]
fn graphics_devices_train_in_stripes_too() {
    let (backends, _turn) = other_backends("stripes");
    for backend in backends {
        for kind in KINDS {
            let case = Case {
                backend,
                ..case(kind, NormKind::Layer)
            };
            assert_same_in_stripes(&case, 32);
        }
    }
}

#[test]
fn a_sum_over_many_rows_counts_each_on_graphics_devices() {
    // More than the turns that software drivers take in a loop.
    const ROWS: usize = 70_000;
    let (backends, _turn) = other_backends("sums over many rows");
    let large = Case {
        data: "synthetic = { kind = \"sbm\", nodes = 70000, classes = 2, features = 3, degree_within = 1.0, degree_between = 1.0 }\nsplit = { train = 0.5, val = 0.2 }",
        workers: 1,
        ..Case::default()
    };
    let setting = large.setting(&Probe::default());
    for backend in backends {
        let mut device = devices(backend, 1);
        let layers: Vec<LayerSpec> = (0..3).map(|layer| setting.model.layer(layer)).collect();
        divide(&mut device, &layers, &setting.dataset).expect("it fits");
        let place = device.remove(0).place;
        let ones = || Matrix::from_values(vec![1.0; 3 * ROWS], 3, &place);
        let bias = TensorData::new(vec![0.5_f32; 3], [3]);
        let bias: Tensor<1> = Tensor::from_data(bias, &place.device.clone().autodiff());
        let bias = bias.require_grad();
        let rows = ones().leaf();
        let output = rows.map(|rows| activate(rows, bias.clone(), Activation::Relu));
        let mut gradients = output.zip_sum(ones(), carrier).backward();
        let gradient = host(bias.grad_remove(&mut gradients).expect("a leaf"));
        assert_eq!(gradient, [ROWS as f32; 3], "{backend:?}");

        let plain = Place::unbounded(burn::tensor::Device::flex());
        for (inputs, outputs) in [(16, 40), (500, 8), (64, 256)] {
            let [expected, found] =
                [&plain, &place].map(|place| weight_gradient(place, ROWS, inputs, outputs));
            let apart = distance(&found, &expected);
            assert!(
                apart <= 1e-4,
                "{backend:?}, {inputs} × {outputs}: {apart:e}"
            );
        }
    }
}

/// The gradient of a weight that so many rows are multiplied by.
fn weight_gradient(place: &Place, rows: usize, inputs: usize, outputs: usize) -> Vec<f32> {
    let drawn = |count: usize, salt: u64| -> Vec<f32> {
        let draw = |at: usize| mix(salt, at as u64) % 2001;
        (0..count)
            .map(|at| draw(at) as f32 / 1000.0 - 1.0)
            .collect()
    };
    let weight = TensorData::new(drawn(inputs * outputs, 1), [inputs, outputs]);
    let weight: Tensor<2> = Tensor::from_data(weight, &place.device.clone().autodiff());
    let weight = weight.require_grad();
    let matrix = |width, salt| Matrix::from_values(drawn(rows * width, salt), width, place);
    let product = matrix(inputs, 2).leaf();
    let product = product.map(|rows| rows.matmul(weight.clone()));
    let mut gradients = product.zip_sum(matrix(outputs, 3), carrier).backward();
    host(weight.grad_remove(&mut gradients).expect("a leaf"))
}

#[test]
fn attention_over_large_tiles_has_every_gradient_on_graphics_devices() {
    let (backends, _turn) = other_backends("large tiles");
    for backend in backends {
        // About a hundred thousand entries in a tile of the largest.
        let case = Case {
            backend,
            data: "synthetic = { kind = \"sbm\", nodes = 70000, classes = 2, features = 3, degree_within = 5.0, degree_between = 1.0 }\nsplit = { train = 0.5, val = 0.2 }",
            workers: 1,
            layers: 2,
            dropout: 0.0,
            ..case(ModelKind::Gat, NormKind::None)
        };
        assert_same_in_stripes(&case, 1 << 15);
    }
}

#[test]
fn every_strategy_learns_the_same_and_sends_the_same_in_stripes() {
    let batches = BatchSpec {
        size: 10,
        fanouts: vec![3, 2],
    };
    for (kind, options, workers, batched) in [
        ("full", "", 3, false),
        ("full", "", 3, true),
        (
            "full",
            "exchange = \"product\"\ncache_features = false",
            3,
            false,
        ),
        ("isolated", "", 3, false),
        ("fixed", "", 3, false),
        ("varco", "", 3, false),
        ("bns", "", 3, false),
        ("pipe", "", 3, false),
        ("adaqp", "", 3, false),
        ("grappa", "", 3, false),
        ("grappa", "weight = \"batch_gram\"", 3, false),
        ("retexo", "", 3, false),
        ("retexo", "", 3, true),
        ("retexo", "form = \"distributed\"", 120, false),
        ("distdgl", "", 3, true),
        ("llcg", "", 3, false),
        ("cluster", "", 3, false),
    ] {
        let run = |stripe| {
            let case = Case {
                stripe,
                workers,
                layers: 2,
                epochs: 2,
                batch: batched.then(|| batches.clone()),
                ..Case::default()
            };
            case.run(kind, options)
        };
        let (expected, found) = (run(WHOLE), run(9));
        let what = format!("{kind} {options}, mini-batches: {batched}");
        assert_close(&losses(&found), &losses(&expected), 1e-4, &what);
        assert_eq!(found.ledger.traffic(), expected.ledger.traffic(), "{what}");
    }
}
