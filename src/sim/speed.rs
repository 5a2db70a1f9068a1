//! What a device needs for the operations that an epoch is made of.

use std::sync::Arc;
use std::time::Instant;

use burn::tensor::{Distribution, Int, Tensor, TensorData};
use serde::Serialize;

use super::{WorkerDevice, drain};
use crate::graph::Csr;
use crate::model::{Matrix, SparseMatrix, copied, product, spmm};
use crate::net::median;

/// Columns of the dense products, and of rows that are copied and gathered.
const WIDTH: usize = 256;

/// Columns of the rows that are aggregated.
const AGGREGATED: [usize; 3] = [16, 128, 256];

/// A reading of the clock spans at least this long, so that handing over work and waiting for it
/// weigh little.
const LONG_ENOUGH: f64 = 0.02;

/// Most calls of an operation between two readings.
const MOST_CALLS: usize = 100;

/// An operation as it was timed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct OperationTime {
    /// What is computed.
    pub operation: &'static str,
    /// Columns of its rows.
    pub width: usize,
    /// Bytes that must move at least: all that is read and written, once for each use.
    pub bytes: f64,
    /// Additions and multiplications.
    pub operations: f64,
    /// Seconds of one call, ascending, one of each reading.
    pub seconds: Vec<f64>,
}

impl OperationTime {
    /// The median of the readings, seconds.
    pub(crate) fn median(&self) -> f64 {
        median(self.seconds.clone())
    }

    /// Bytes per second.
    pub(crate) fn bandwidth(&self) -> f64 {
        self.bytes / self.median()
    }

    /// Operations per second.
    pub(crate) fn rate(&self) -> f64 {
        self.operations / self.median()
    }
}

/// Most nodes whose rows a device holds, in one piece and in the loops of its kernels.
pub(crate) fn most_nodes(device: &WorkerDevice) -> usize {
    let row = (WIDTH * size_of::<f32>()) as u64;
    let held = device.largest_tensor.map(|bytes| bytes / row);
    let held = held.map_or(usize::MAX, |rows| {
        usize::try_from(rows).unwrap_or(usize::MAX)
    });
    held.min(device.longest_loop.unwrap_or(usize::MAX))
}

/// Times copying, dense products, gathering and aggregation over `graph` on an open device; each
/// operation is `told` when it is done. The first is copying, to which the bandwidth of the others
/// is held.
///
/// # Panics
/// If `graph` has no nodes.
pub(crate) fn time_operations(
    device: &WorkerDevice,
    graph: &Csr,
    readings: usize,
    mut told: impl FnMut(&OperationTime),
) -> Vec<OperationTime> {
    let nodes = graph.nodes();
    assert!(nodes > 0, "a graph without nodes has nothing to time");
    let place = &device.place.device;
    let random =
        |rows, width| Tensor::<2>::random([rows, width], Distribution::Uniform(-1.0, 1.0), place);
    let float = size_of::<f32>() as f64;
    let rows = random(nodes, WIDTH);
    let size = (nodes * WIDTH) as f64;
    let mut times = Vec::new();
    let mut time = |operation, width, bytes, operations, call: &dyn Fn() -> Tensor<2>| {
        let seconds = readings_of(readings, call);
        let time = OperationTime {
            operation,
            width,
            bytes,
            operations,
            seconds,
        };
        told(&time);
        times.push(time);
    };
    // On processors by all threads, as the other operations here: the tensor library takes one.
    let on_host = Matrix::from(rows.clone()).is_on_host();
    let values = on_host.then(|| Matrix::from(rows.clone()).into_values());
    time("copy", WIDTH, 2.0 * float * size, size, &|| match &values {
        Some(values) => Tensor::from_data(
            TensorData::new(copied(values, nodes * WIDTH), [nodes, WIDTH]),
            place,
        ),
        None => rows.clone().add_scalar(1.0),
    });
    let weight = random(WIDTH, WIDTH);
    let products = 2.0 * size * WIDTH as f64;
    time("x·W", WIDTH, 2.0 * float * size, products, &|| {
        product(rows.clone(), weight.clone())
    });
    // Read: x and g twice each, and W; written: y and both gradients.
    time(
        "x·W and back",
        WIDTH,
        6.0 * float * size,
        3.0 * products,
        &|| {
            let x = Tensor::from_inner(rows.clone()).require_grad();
            let w = Tensor::from_inner(weight.clone()).require_grad();
            let mut gradients = product(x, w.clone()).sum().backward();
            w.grad_remove(&mut gradients)
                .unwrap_or_else(|| weight.clone())
        },
    );
    // Every second row in an order without pattern: what a worker sends.
    let half: Vec<i64> = (0..nodes as i64 / 2)
        .map(|i| i * 7919 % nodes as i64)
        .collect();
    let sent = half.len();
    let half = Tensor::<1, Int>::from_data(TensorData::new(half, [sent]), place);
    if sent > 0 {
        let bytes = 2.0 * float * (sent * WIDTH) as f64;
        time("gather rows", WIDTH, bytes, 0.0, &|| {
            rows.clone().select(0, half.clone())
        });
    }
    let entries = graph.indices().len();
    let weights = vec![0.5; entries];
    let columns = graph.indices().to_vec();
    let matrix = SparseMatrix::new(nodes, graph.offsets(), columns, weights);
    let matrix = Arc::new(matrix);
    for width in AGGREGATED {
        let x = random(nodes, width);
        // An index, a weight and a row of x for each entry, a row of the result.
        let bytes = (entries * (8 + 4 * width) + nodes * 4 * width) as f64;
        let operations = (2 * entries * width) as f64;
        time("aggregate", width, bytes, operations, &|| {
            spmm(&matrix, x.clone())
        });
    }
    times
}

/// Seconds of one call, ascending.
fn readings_of(readings: usize, call: &dyn Fn() -> Tensor<2>) -> Vec<f64> {
    let timed = |calls: usize| {
        let begun = Instant::now();
        for _ in 1..calls {
            std::hint::black_box(call());
        }
        drain(&call());
        begun.elapsed().as_secs_f64() / calls as f64
    };
    // The first compiles kernels and takes memory.
    timed(1);
    let calls = (LONG_ENOUGH / timed(1).max(f64::MIN_POSITIVE)).ceil();
    let calls = (calls as usize).clamp(1, MOST_CALLS);
    let mut seconds: Vec<f64> = (0..readings).map(|_| timed(calls)).collect();
    seconds.sort_by(f64::total_cmp);
    seconds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{DeviceConfig, open_devices};

    #[test]
    fn every_operation_is_timed_and_counts_what_moves() {
        let graph = Csr::undirected(4, [(0, 1), (1, 2), (2, 3)].into_iter());
        let device = &open_devices(&DeviceConfig::default(), 1).unwrap()[0];
        let mut told = Vec::new();
        let times = time_operations(device, &graph, 3, |time| told.push(time.clone()));
        assert_eq!(times, told);
        let of = |operation, width| {
            let mut found = times.iter().filter(|time| time.operation == operation);
            found.find(|time| time.width == width).unwrap()
        };
        assert_eq!(of("copy", 256).bytes, 2.0 * 4.0 * 4.0 * 256.0);
        assert_eq!(of("x·W", 256).operations, 2.0 * 4.0 * 256.0 * 256.0);
        // Two of four rows, read and written.
        assert_eq!(of("gather rows", 256).bytes, 2.0 * 2.0 * 4.0 * 256.0);
        // Six entries of three edges.
        let sums = of("aggregate", 16);
        assert_eq!(sums.bytes, 6.0 * (8.0 + 64.0) + 4.0 * 64.0);
        assert_eq!(sums.operations, 2.0 * 6.0 * 16.0);
        for time in &times {
            assert_eq!(time.seconds.len(), 3);
            assert!(time.seconds.is_sorted() && time.median() > 0.0);
        }
    }
}
