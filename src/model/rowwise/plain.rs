//! The passes as tensor operations: for graphics devices, and what the kernels of processors are
//! tested against.

use burn::backend::Backend;
use burn::backend::tensor::FloatTensor as Float;
use burn::backend::{FloatDType, TensorMetadata};
use burn::tensor::{Shape, TensorData};

use super::{Activation, EPSILON};
use crate::model::Loss;
use crate::model::dropout::Mask;

pub(super) fn zero<B: Backend>(like: &Float<B>) -> Float<B> {
    B::float_zeros(Shape::new([1, 1]), &like.device(), FloatDType::F32)
}

fn apply<B: Backend>(x: Float<B>, activation: Activation) -> Float<B> {
    match activation {
        Activation::Identity => x,
        Activation::Relu => B::relu(x),
        Activation::Elu => {
            // The exponential of large values would be infinite, and is not wanted.
            let below = B::float_exp(B::float_clamp_max(x.clone(), 0.0_f32.into()));
            // Above zero the exponential is that of 0, and the 1 it adds is taken away again.
            B::float_sub_scalar(B::float_add(B::relu(x), below), 1.0_f32.into())
        }
    }
}

pub(super) fn activate<B: Backend>(
    x: Float<B>,
    bias: Float<B>,
    activation: Activation,
) -> Float<B> {
    apply::<B>(B::float_add(x, bias), activation)
}

pub(super) fn slope<B: Backend>(g: Float<B>, y: Float<B>, activation: Activation) -> Float<B> {
    match activation {
        Activation::Identity => g,
        Activation::Relu => B::relu_backward(y, g),
        Activation::Elu => {
            let below = B::float_clamp_max(y, 0.0_f32.into());
            B::float_mul(g, B::float_add_scalar(below, 1.0_f32.into()))
        }
    }
}

pub(super) fn column_sums<B: Backend>(g: Float<B>) -> Float<B> {
    B::float_sum_dim(g, 0)
}

/// `(x − mean) / √(variance + ε)` and `1 / √(variance + ε)` of each row.
fn standardise<B: Backend>(x: Float<B>) -> (Float<B>, Float<B>) {
    let mean = B::float_mean_dim(x.clone(), 1);
    let centred = B::float_sub(x, mean);
    let variance = B::float_mean_dim(B::float_mul(centred.clone(), centred.clone()), 1);
    let root = B::float_sqrt(B::float_add_scalar(variance, EPSILON.into()));
    let scale = B::float_recip(root);
    (B::float_mul(centred, scale.clone()), scale)
}

pub(super) fn normalise<B: Backend>(
    x: Float<B>,
    gain: Float<B>,
    shift: Float<B>,
    activation: Activation,
) -> Float<B> {
    let (standard, _) = standardise::<B>(x);
    apply::<B>(
        B::float_add(B::float_mul(standard, gain), shift),
        activation,
    )
}

pub(super) fn normalise_gradients<B: Backend>(
    g: Float<B>,
    x: Float<B>,
    gain: Float<B>,
) -> [Float<B>; 3] {
    let (standard, scale) = standardise::<B>(x);
    let of_shift = B::float_sum_dim(g.clone(), 0);
    let of_gain = B::float_sum_dim(B::float_mul(g.clone(), standard.clone()), 0);
    let inner = B::float_mul(g, gain);
    let mean = B::float_mean_dim(inner.clone(), 1);
    let along = B::float_mean_dim(B::float_mul(inner.clone(), standard.clone()), 1);
    let across = B::float_sub(B::float_sub(inner, mean), B::float_mul(standard, along));
    [B::float_mul(across, scale), of_gain, of_shift]
}

pub(super) fn mask<B: Backend>(x: Float<B>, mask: &Mask) -> Float<B> {
    let [rows, width] = [x.shape()[0], x.shape()[1]];
    let values = TensorData::new(mask.values(width), [rows, width]);
    let values = B::float_from_data(values, &x.device());
    B::float_mul(x, values)
}

/// `−sign(targets) ⊙ logits`: how far each logit is on the wrong side.
fn wrong<B: Backend>(logits: Float<B>, targets: Float<B>) -> Float<B> {
    // Of a row that does not count the sign is 0, and its targets make 0 of whatever follows.
    B::float_neg(B::float_mul(logits, B::float_sign(targets)))
}

pub(super) fn loss<B: Backend>(logits: Float<B>, targets: Float<B>, loss: Loss) -> Float<B> {
    let sum = match loss {
        Loss::CrossEntropy => {
            let sum = B::float_sum(B::float_mul(B::log_softmax(logits, 1), targets));
            B::float_neg(sum)
        }
        Loss::BinaryCrossEntropy => {
            let z = wrong::<B>(logits, targets.clone());
            let small = B::float_exp(B::float_neg(B::float_abs(z.clone())));
            // log(1 + exp(z)) without an exponential of anything above 0, which could overflow.
            let soft = B::float_add(B::relu(z), B::float_log1p(small));
            B::float_sum(B::float_mul(soft, B::float_abs(targets)))
        }
    };
    B::float_reshape(sum, Shape::new([1, 1]))
}

pub(super) fn loss_gradient<B: Backend>(
    g: Float<B>,
    logits: Float<B>,
    targets: Float<B>,
    loss: Loss,
) -> Float<B> {
    let of_logits = match loss {
        Loss::CrossEntropy => {
            let weights = B::float_sum_dim(targets.clone(), 1);
            let pulled = B::float_mul(B::softmax(logits, 1), weights);
            B::float_sub(pulled, targets)
        }
        Loss::BinaryCrossEntropy => {
            let chance = B::sigmoid(wrong::<B>(logits, targets.clone()));
            B::float_neg(B::float_mul(chance, targets))
        }
    };
    B::float_mul(of_logits, g)
}
