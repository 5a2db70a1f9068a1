//! Opening devices, and checking them against known results.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};

use super::{Backend, DeviceConfig, SimError, WorkerDevice, adapters, host};
use crate::model::{SparseMatrix, spmm};

/// Opens one device per worker and checks each kind against known results.
///
/// # Errors
/// If the backend is not part of this build, no adapter fits, or a device computes wrongly.
pub fn open_devices(config: &DeviceConfig, workers: usize) -> Result<Vec<WorkerDevice>, SimError> {
    let devices = match config.backend {
        Backend::Flex => vec![WorkerDevice::cpu(Device::flex(), "flex"); workers],
        Backend::Ndarray => vec![ndarray()?; workers],
        Backend::Wgpu => adapters::open(&config.adapters, workers)?,
    };
    if config.backend != Backend::Wgpu && !config.adapters.is_empty() {
        return Err(SimError::Input(
            "device.adapters is for backend = \"wgpu\" only; remove it".to_owned(),
        ));
    }
    let mut checked: Vec<&str> = Vec::new();
    for device in &devices {
        // Equal descriptions name the same adapter and driver, so that one test serves all of them.
        if !checked.contains(&device.description.as_str()) {
            self_test(device)?;
            checked.push(&device.description);
        }
    }
    Ok(devices)
}

#[cfg(feature = "ndarray")]
#[allow(deprecated)] // the backend is kept for those who name it
#[allow(clippy::unnecessary_wraps)] // the other build can fail
fn ndarray() -> Result<WorkerDevice, SimError> {
    Ok(WorkerDevice::cpu(Device::ndarray(), "ndarray"))
}

#[cfg(not(feature = "ndarray"))]
fn ndarray() -> Result<WorkerDevice, SimError> {
    Err(SimError::Device(
        "this build has no ndarray backend; build with `--features ndarray`, or use backend = \"flex\"".to_owned(),
    ))
}

/// A small product, a sparse product and its gradient against values computed here in double
/// precision.
fn self_test(device: &WorkerDevice) -> Result<(), SimError> {
    // No multiple of the sizes of tiles, so that a kernel's last, partial one is tried as well.
    const N: usize = 33;
    let a: Vec<f32> = (0..N * N)
        // Numbers without a pattern that an error could hide behind; primes keep rows from
        // repeating.
        .map(|i| ((i * 37) % 101) as f32 / 101.0 - 0.5)
        .collect();
    let b: Vec<f32> = (0..N * N)
        .map(|i| ((i * 53) % 89) as f32 / 89.0 - 0.5)
        .collect();
    let autodiff = device.place.device.clone().autodiff();
    let upload = |values: &[f32]| {
        Tensor::<2>::from_data(TensorData::new(values.to_vec(), [N, N]), &autodiff)
    };
    // Directed: row r reads columns r and 2r + 1 mod N, so a missing transpose shows.
    let offsets: Vec<usize> = (0..=N).map(|r| 2 * r).collect();
    let columns: Vec<u32> = (0..N)
        .flat_map(|r| [r, (2 * r + 1) % N])
        .map(|c| c as u32)
        .collect();
    let weights: Vec<f32> = (0..2 * N).map(|e| 0.25 + e as f32 / 64.0).collect();
    let sparse = Arc::new(SparseMatrix::new(
        N,
        &offsets,
        columns.clone(),
        weights.clone(),
    ));

    let x = upload(&a).require_grad();
    let y = spmm(&sparse, x.clone().matmul(upload(&b)));
    let mut gradients = y.clone().sum().backward();
    // Read before it is judged: some drivers fail only when data are fetched.
    let got_y = host(y.inner());
    let got_gradient = x.grad_remove(&mut gradients).map(host).unwrap_or_default();

    let mut product = vec![0.0_f64; N * N];
    for i in 0..N {
        for k in 0..N {
            for j in 0..N {
                product[i * N + j] += f64::from(a[i * N + k]) * f64::from(b[k * N + j]);
            }
        }
    }
    let mut expected = vec![0.0_f64; N * N];
    let mut column_sums = vec![0.0_f64; N];
    for (entry, &column) in columns.iter().enumerate() {
        column_sums[column as usize] += f64::from(weights[entry]);
        for j in 0..N {
            expected[entry / 2 * N + j] +=
                f64::from(weights[entry]) * product[column as usize * N + j];
        }
    }
    // d Σy / dx[i, k] = (Σ_r A[r, i]) · Σ_j b[k, j]
    let row_sums: Vec<f64> = b
        .chunks_exact(N)
        .map(|row| row.iter().map(|&v| f64::from(v)).sum())
        .collect();
    let gradient: Vec<f64> = (0..N * N)
        .map(|i| column_sums[i / N] * row_sums[i % N])
        .collect();

    for (what, got, expected) in [
        ("sparse product of a product", &got_y, &expected),
        ("gradient", &got_gradient, &gradient),
    ] {
        // `host` returns nothing of a device that failed. Rounding of some thirty products is near
        // 1e-6: the bound leaves a device free to add in any order. NaN is beyond no bound, and is
        // asked for by itself.
        let wrong = got.len() != expected.len()
            || got.iter().zip(expected.iter()).any(|(&g, &e)| {
                (f64::from(g) - e).abs() > 1e-3 * (1.0 + e.abs()) || !g.is_finite()
            });
        if wrong {
            return Err(SimError::Device(format!(
                "{} gives a wrong {what} for a {N} x {N} example; nothing it computes can be trusted. Update its driver, choose another with device.adapters, or use backend = \"flex\"",
                device.description
            )));
        }
    }
    Ok(())
}
