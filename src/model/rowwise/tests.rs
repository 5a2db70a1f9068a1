//! The kernels of processors against the same passes as tensor operations, and all gradients
//! against finite differences.

use burn::backend::Flex;
use burn::backend::tensor::FloatTensor as Float;
use burn::tensor::{Device, Tensor, TensorData};
use proptest::prelude::*;

use super::*;
use crate::model::host::Host;
use crate::model::{Dropout, Loss};

/// Rows of a few columns, or enough of them to be shared between threads.
#[derive(Clone, Debug)]
struct Shape {
    rows: usize,
    width: usize,
    seed: u64,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let shape = prop_oneof![(1_usize..20, 1_usize..40), (2000_usize..2600, 30_usize..40)];
    (shape, any::<u64>()).prop_map(|((rows, width), seed)| Shape { rows, width, seed })
}

impl Shape {
    fn draw(&self, purpose: u64, count: usize) -> Vec<f32> {
        let draw = |at: usize| crate::rng::mix(self.seed ^ purpose, at as u64) % 4001;
        (0..count)
            .map(|at| draw(at) as f32 / 1000.0 - 2.0)
            .collect()
    }

    fn matrix(&self, purpose: u64) -> Float<Flex> {
        let values = self.draw(purpose, self.rows * self.width);
        <Flex as Host>::tensor(values, [self.rows, self.width])
    }

    fn row(&self, purpose: u64) -> Float<Flex> {
        <Flex as Host>::tensor(self.draw(purpose, self.width), [1, self.width])
    }

    /// Weights of classes as a loss has them: a third of the rows have none.
    fn targets(&self, loss: Loss) -> Float<Flex> {
        let mut values = vec![0.0; self.rows * self.width];
        for row in (0..self.rows).filter(|row| row % 3 != 1) {
            let weight = 0.5 + (row % 2) as f32;
            if loss == Loss::BinaryCrossEntropy {
                for column in 0..self.width {
                    let has = (row + 5 * column) % 3 == 0;
                    values[row * self.width + column] = if has { weight } else { -weight };
                }
            } else {
                values[row * self.width + (row * 7) % self.width] = weight;
            }
        }
        <Flex as Host>::tensor(values, [self.rows, self.width])
    }
}

fn near(found: Float<Flex>, expected: Float<Flex>) -> Result<(), TestCaseError> {
    let (found, expected) = (
        <Flex as Host>::values(found),
        <Flex as Host>::values(expected),
    );
    prop_assert_eq!(found.len(), expected.len());
    for (f, e) in found.iter().zip(&*expected) {
        prop_assert!(
            // The two add up in different orders, in single precision.
            (f - e).abs() <= 2e-4 * (1.0 + e.abs()),
            "{} is not {}",
            f,
            e
        );
    }
    Ok(())
}

const LOSSES: [Loss; 2] = [Loss::CrossEntropy, Loss::BinaryCrossEntropy];

const ACTIVATIONS: [Activation; 3] = [Activation::Identity, Activation::Relu, Activation::Elu];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_pass_has_the_bits_of_its_activation_value_by_value(shape in shapes(), kind in 0_usize..3) {
        let activation = ACTIVATIONS[kind];
        let odd = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        let drawn = |purpose| {
            let values = shape.draw(purpose, shape.rows * shape.width);
            let odd = (0..).zip(values).map(|(at, value)| match at % 11 {
                3 => odd[at / 11 % odd.len()],
                _ => value,
            });
            odd.collect::<Vec<f32>>()
        };
        let bits = |values: &[f32]| -> Vec<u32> {
            // What is not a number stays so; which of them it is depends on the instruction.
            let kept = values.iter().map(|value| if value.is_nan() { f32::NAN } else { *value });
            kept.map(f32::to_bits).collect()
        };
        let tensor = |values: &[f32]| <Flex as Host>::tensor(values.to_vec(), [shape.rows, shape.width]);
        let (x, g, bias) = (drawn(1), drawn(2), shape.draw(3, shape.width));
        let row = <Flex as Host>::tensor(bias.clone(), [1, shape.width]);
        let plain = x.iter().zip(bias.iter().cycle()).map(|(x, bias)| activation.at(x + bias));
        let y: Vec<f32> = plain.collect();
        let found = <Flex as Host>::values(Flex::activate(tensor(&x), row, activation));
        prop_assert_eq!(bits(&found), bits(&y));
        let slope = |(g, y): (&f32, &f32)| match activation {
            Activation::Identity => *g,
            _ => g * activation.slope(*y),
        };
        let plain: Vec<f32> = g.iter().zip(&y).map(slope).collect();
        let found = <Flex as Host>::values(Flex::slope(tensor(&g), tensor(&y), activation));
        prop_assert_eq!(bits(&found), bits(&plain));
    }

    #[test]
    fn kernels_do_what_tensor_operations_do(shape in shapes(), kind in 0_usize..3) {
        let activation = ACTIVATIONS[kind];
        let [x, g] = [1, 2].map(|purpose| shape.matrix(purpose));
        let [a, b] = [3, 4].map(|purpose| shape.row(purpose));
        let y = plain::activate::<Flex>(x.clone(), a.clone(), activation);
        near(Flex::activate(x.clone(), a.clone(), activation), y.clone())?;
        let sloped = plain::slope::<Flex>(g.clone(), y.clone(), activation);
        near(Flex::slope(g.clone(), y, activation), sloped)?;
        near(
            Flex::column_sums(g.clone()),
            plain::column_sums::<Flex>(g.clone()),
        )?;
        let normal = plain::normalise::<Flex>(x.clone(), a.clone(), b.clone(), activation);
        near(Flex::normalise(x.clone(), a.clone(), b, activation), normal)?;
        // Rows of one or two columns are constants once normalised: their gradients are all
        // rounding.
        if shape.width > 2 {
            let expected = plain::normalise_gradients::<Flex>(g.clone(), x.clone(), a.clone());
            let found = Flex::normalise_gradients(g, x.clone(), a);
            for (found, expected) in found.into_iter().zip(expected) {
                near(found, expected)?;
            }
        }
        let nodes: Vec<u32> = (0..shape.rows as u32).map(|node| node * 3).collect();
        let mask = Mask::new(&Dropout::new(0.4, shape.seed), 5, 1, &nodes);
        near(Flex::mask(x.clone(), &mask), plain::mask::<Flex>(x.clone(), &mask))?;
        for kind in LOSSES {
            let targets = shape.targets(kind);
            near(
                Flex::loss(x.clone(), targets.clone(), kind),
                plain::loss::<Flex>(x.clone(), targets.clone(), kind),
            )?;
            let scale = <Flex as Host>::tensor(vec![1.5], [1, 1]);
            near(
                Flex::loss_gradient(scale.clone(), x.clone(), targets.clone(), kind),
                plain::loss_gradient::<Flex>(scale, x.clone(), targets, kind),
            )?;
        }
    }

    #[test]
    fn gradients_are_those_of_finite_differences(
        rows in 1_usize..5,
        width in 3_usize..7,
        seed in any::<u64>(),
        kind in 0_usize..3,
        of in 0_usize..2,
    ) {
        let of = LOSSES[of];
        let shape = Shape { rows, width, seed };
        let activation = ACTIVATIONS[kind];
        let nodes: Vec<u32> = (0..rows as u32).collect();
        let mask = Mask::new(&Dropout::new(0.3, seed), 2, 0, &nodes);
        let targets = Tensor::<2>::from_data(
            TensorData::new(<Flex as Host>::values(shape.targets(of)).to_vec(), [rows, width]),
            &Device::flex(),
        );
        // Everything at once: x, bias, gain and shift in one vector.
        let values = shape.draw(9, rows * width + 3 * width);
        let device = Device::flex().autodiff();
        let n = rows * width;
        let x = TensorData::new(values[..n].to_vec(), [rows, width]);
        let x = Tensor::<2>::from_data(x, &device).require_grad();
        let [bias, gain, shift] = [0, 1, 2].map(|at| {
            let data = TensorData::new(values[n + at * width..n + (at + 1) * width].to_vec(), [width]);
            Tensor::<1>::from_data(data, &device).require_grad()
        });
        let y = activate(x.clone(), bias.clone(), Activation::Elu);
        let y = layer_norm(y, gain.clone(), shift.clone(), activation);
        let reached = loss(dropped(y, mask.clone()), targets.clone(), of);
        let mut gradients = reached.backward();
        let to_vec = |tensor: Tensor<1>| tensor.into_data().try_into_vec::<f32>().unwrap();
        let mut found = to_vec(x.grad_remove(&mut gradients).unwrap().reshape([n]));
        for other in [bias, gain, shift] {
            found.extend(to_vec(other.grad_remove(&mut gradients).unwrap()));
        }

        let (kept, targets) = (mask.values(width), to_vec(targets.reshape([n])));
        let exact = |values: &[f64]| exact_loss(values, width, activation, &kept, &targets, of);
        let mut values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let (reached, expected) = (f64::from(reached.inner().into_scalar::<f32>()), exact(&values));
        prop_assert!((reached - expected).abs() <= 1e-4 * (1.0 + expected), "{reached} is not {expected}");
        let step = 1e-5;
        for (place, found) in found.into_iter().enumerate() {
            let [before, after] = [-step, step].map(|change| {
                let kept = values[place];
                values[place] += change;
                let loss = exact(&values);
                values[place] = kept;
                loss
            });
            // At a kink the derivative is one of the two, or between them.
            let sided = [(expected - before) / step, (after - expected) / step];
            let (low, high) = (sided[0].min(sided[1]), sided[0].max(sided[1]));
            let found = f64::from(found);
            let slack = 1e-3 * (1.0 + found.abs());
            prop_assert!(
                low - slack <= found && found <= high + slack,
                "{place}: {found} is not between {low} and {high}"
            );
        }
    }
}

/// The loss of rows that are activated, normalised, activated, dropped as `kept` says and compared
/// with `targets`, in double precision and value by value; `values` are the rows, a bias, a gain
/// and a shift.
///
/// The steps that single precision needs can have a kink on each side, and the derivative between
/// them is that of neither. Values are multiples of a thousandth; steps in double precision are a
/// hundredth of that.
fn exact_loss(
    values: &[f64],
    width: usize,
    activation: Activation,
    kept: &[f32],
    targets: &[f32],
    of: Loss,
) -> f64 {
    let at = |x: f64, activation| match activation {
        Activation::Relu => x.max(0.0),
        Activation::Elu if x < 0.0 => x.exp_m1(),
        Activation::Identity | Activation::Elu => x,
    };
    let (rows, parameters) = values.split_at(values.len() - 3 * width);
    let (bias, parameters) = parameters.split_at(width);
    let (gain, shift) = parameters.split_at(width);
    let rows = rows.chunks(width);
    let others = kept.chunks(width).zip(targets.chunks(width));
    let of_row = |(row, (kept, targets)): (&[f64], (&[f32], &[f32]))| {
        let y: Vec<f64> = (row.iter().zip(bias))
            .map(|(x, bias)| at(x + bias, Activation::Elu))
            .collect();
        let mean = y.iter().sum::<f64>() / width as f64;
        let variance = y.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / width as f64;
        let root = (variance + f64::from(EPSILON)).sqrt();
        let logits: Vec<f64> = (0..width)
            .map(|column| {
                let standard = (y[column] - mean) / root;
                at(gain[column] * standard + shift[column], activation) * f64::from(kept[column])
            })
            .collect();
        let sum: f64 = logits.iter().map(|logit| logit.exp()).sum();
        let terms = logits.iter().zip(targets).map(|(logit, &target)| {
            let target = f64::from(target);
            match of {
                Loss::CrossEntropy => target * (sum.ln() - logit),
                // Of a row that does not count the target is 0, whose sign does not matter.
                Loss::BinaryCrossEntropy => target.abs() * (-target.signum() * logit).exp().ln_1p(),
            }
        });
        terms.sum::<f64>()
    };
    rows.zip(others).map(of_row).sum()
}

#[test]
fn a_carrier_hands_on_what_it_is_given() {
    let device = Device::flex().autodiff();
    let data = |values: Vec<f32>| TensorData::new(values, [2, 2]);
    let x = Tensor::<2>::from_data(data(vec![1.0, -2.0, 3.0, 4.0]), &device).require_grad();
    let upstream = Tensor::<2>::from_data(data(vec![0.5, 1.0, -1.0, 2.0]), &Device::flex());
    let mut gradients = carrier(x.clone() * 3.0, upstream).backward();
    let found = x.grad_remove(&mut gradients).unwrap().into_data();
    assert_eq!(found.try_into_vec::<f32>().unwrap(), [1.5, 3.0, -3.0, 6.0]);
}

#[test]
fn the_loss_of_a_row_is_that_of_its_class() {
    let data = TensorData::new(vec![0.0_f32, 2.0_f32.ln(), 7.0, 7.0], [2, 2]);
    let logits = Tensor::<2>::from_data(data, &Device::flex());
    let targets = TensorData::new(vec![1.0_f32, 0.0, 0.0, 0.0], [2, 2]);
    let targets = Tensor::<2>::from_data(targets, &Device::flex());
    // The class of the first row has probability e⁰ / (e⁰ + e^ln 2) = 1/3; the second row has none.
    let loss = loss(logits, targets, Loss::CrossEntropy).into_scalar::<f32>();
    assert!((loss - 3.0_f32.ln()).abs() < 1e-6, "{loss}");
}

#[test]
fn the_loss_of_labels_is_that_of_each_by_itself_however_large_the_logits() {
    let data = TensorData::new(vec![0.0_f32, 3.0_f32.ln(), 1000.0, -1000.0], [2, 2]);
    let logits = Tensor::<2>::from_data(data, &Device::flex());
    let targets = TensorData::new(vec![1.0_f32, -1.0, -0.5, -0.5], [2, 2]);
    let targets = Tensor::<2>::from_data(targets, &Device::flex());
    // ln 2 + ln(1 + 3), and half of 1000 and of nothing.
    let loss = loss(logits, targets, Loss::BinaryCrossEntropy).into_scalar::<f32>();
    assert!((loss - (8.0_f32.ln() + 500.0)).abs() < 1e-3, "{loss}");
}
