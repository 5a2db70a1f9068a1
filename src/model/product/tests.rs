//! Products and their gradients against burn's matrix product and what it differentiates to.

use burn::tensor::{Device, Gradients, Tensor, TensorData};
use proptest::prelude::*;

use super::{product, product_onto};
use crate::model::sparse::drawn;

/// Values `[rows, columns]` of a tensor whose gradient is wanted.
fn drawn_tensor([rows, columns]: [usize; 2], seed: u64) -> Tensor<2> {
    let data = TensorData::new(drawn::values(rows * columns, seed), [rows, columns]);
    Tensor::from_data(data, &Device::flex().autodiff()).require_grad()
}

fn values(tensor: Tensor<2>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

/// The gradients of `Σ upstream ⊙ result` with respect to three tensors.
fn gradients(result: &Tensor<2>, upstream: &Tensor<2>, of: [&Tensor<2>; 3]) -> [Vec<f32>; 3] {
    let sum = (result.clone() * upstream.clone()).sum();
    let mut found: Gradients = sum.backward();
    of.map(|tensor| values(tensor.grad_remove(&mut found).unwrap()))
}

fn near(found: &[f32], expected: &[f32], terms: usize) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        // Values are within ±2: rounding of so many products of up to 4.
        let most = 1e-6 * 4.0 * (terms as f32 + 8.0);
        prop_assert!((found - expected).abs() <= most, "{found} for {expected}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_product_and_its_gradients_are_those_of_burn(
        rows in prop_oneof![1_usize..40, 3_000_usize..5_000],
        inputs in 1_usize..20,
        outputs in 1_usize..20,
        seed in any::<u32>().prop_map(u64::from),
    ) {
        let x = drawn_tensor([rows, inputs], seed);
        let weight = drawn_tensor([inputs, outputs], seed + 1);
        let base = drawn_tensor([rows, outputs], seed + 2);
        let upstream = drawn_tensor([rows, outputs], seed + 3).inner();
        let upstream = Tensor::from_inner(upstream);
        let expected = base.clone() + x.clone().matmul(weight.clone());
        let found = product_onto(base.clone(), x.clone(), weight.clone());
        near(&values(found.clone().inner()), &values(expected.clone().inner()), inputs)?;
        let all = [&base, &x, &weight];
        let (found, expected) =
            (gradients(&found, &upstream, all), gradients(&expected, &upstream, all));
        for (found, expected) in found.iter().zip(&expected) {
            near(found, expected, rows.max(outputs))?;
        }
        // What it was added to is as it was: others may hold it.
        prop_assert_eq!(values(base.clone().inner()), drawn::values(rows * outputs, seed + 2));

        let alone = product(x.clone(), weight.clone());
        let plain = x.clone().matmul(weight.clone());
        near(&values(alone.clone().inner()), &values(plain.inner()), inputs)?;
        let of = gradients(&(alone + base.clone()), &upstream, all);
        for (found, expected) in of.iter().zip(&expected) {
            near(found, expected, rows.max(outputs))?;
        }
    }
}

#[test]
fn a_product_of_nothing_is_nothing_and_over_no_columns_zero() {
    let shape = |rows: usize, inputs: usize, outputs: usize| {
        let x = drawn_tensor([rows, inputs], 1).inner();
        let weight = drawn_tensor([inputs, outputs], 2).inner();
        values(product(x, weight))
    };
    assert!(shape(0, 3, 2).is_empty());
    assert!(shape(3, 2, 0).is_empty());
    assert_eq!(shape(2, 0, 2), [0.0; 4]);
}
