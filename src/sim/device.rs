//! Devices that workers compute on: how much they hold, and what is cut so that it fits.

use burn::tensor::{Device, Tensor};

use crate::graph::{Dataset, Features};
use crate::model::{LayerSpec, Place};

/// An open device and what it is.
#[derive(Clone, Debug)]
pub struct WorkerDevice {
    /// Where its matrices lie.
    pub place: Place,
    /// Backend, adapter and driver, for tables and the manifest.
    pub description: String,
    /// Whether work is queued, so that a clock must not be read before the queue is drained.
    pub(crate) queued: bool,
    /// Most bytes that one tensor may take, where there is a bound. Beyond it some drivers compute
    /// nothing, without a word.
    pub(crate) largest_tensor: Option<u64>,
    /// Most turns of a loop in a kernel, where there is a bound. Software drivers leave a loop
    /// after that, without a word, and a sum over more rows is wrong.
    pub(crate) longest_loop: Option<usize>,
}

/// What bounds the matrices of a device.
type Bounds = (Option<u64>, Option<usize>);

impl WorkerDevice {
    /// A processor.
    pub(super) fn cpu(device: Device, name: &str) -> Self {
        // Without the number of threads, which changes no result: the manifest has it.
        Self {
            place: Place::unbounded(device),
            description: format!("{name} (CPU)"),
            queued: false,
            largest_tensor: None,
            longest_loop: None,
        }
    }

    fn bounds(&self) -> Bounds {
        (self.largest_tensor, self.longest_loop)
    }

    /// Most rows of a tensor, for layers like these on the whole of `dataset`, and so on any part
    /// of it.
    fn stripe(&self, layers: &[LayerSpec], dataset: &Dataset) -> Result<usize, String> {
        let (bytes, turns) = match self.bounds() {
            (None, None) => return Ok(usize::MAX),
            (bytes, turns) => (bytes.unwrap_or(u64::MAX), turns.unwrap_or(usize::MAX)),
        };
        // A buffer is a little larger than what is in it.
        let floats = usize::try_from(bytes.saturating_sub(256) / 4).unwrap_or(usize::MAX);
        let refuse = |what: String, size: usize| {
            Err(format!(
                "{} holds {} MB in one piece, and {what} takes {}; use narrower layers, fewer attention heads or backend = \"flex\"",
                self.description,
                bytes / 1_000_000,
                4 * size as u64 / 1_000_000
            ))
        };
        let (graph, nodes) = (&dataset.graph, dataset.graph.nodes());
        // One entry more than neighbours, for the node's own row.
        let mut entries: Vec<usize> = (0..nodes).map(|v| graph.degree(v) + 1).collect();
        let heads = layers.iter().map(LayerSpec::attention_heads).max();
        let heads = heads.unwrap_or(0);
        // Attention has two scores for each head and node, which are not cut.
        if 2 * nodes * heads > floats {
            let what = format!("the attention of {heads} heads of {nodes} nodes");
            return refuse(what, 2 * nodes * heads);
        }
        // What attention weighs of a node is not cut, and it goes through a node's neighbours three
        // times.
        let longest = entries.iter().copied().max().unwrap_or(0);
        if heads > 0 && longest > turns / 3 {
            return Err(format!(
                "{} can weigh {} neighbours of a node, and one has {}; use a model without attention or backend = \"flex\"",
                self.description,
                (turns / 3).saturating_sub(1),
                longest - 1,
            ));
        }
        let mut widest = 1;
        for layer in layers {
            let (inputs, made) = (layer.inputs, layer.transformed().max(layer.outputs));
            if inputs * made > floats {
                let what = format!("a weight of {inputs} rows and {made} columns");
                return refuse(what, inputs * made);
            }
            widest = widest.max(made);
        }
        // The edges of a stripe fit, too, and the words of sparse features, whichever nodes it has.
        let mut stripe = fitting(&mut entries, floats / heads.max(1));
        let summed = match &*dataset.features {
            dense @ (Features::Dense { .. } | Features::Coded(_)) => {
                widest = widest.max(dense.width());
                widest
            }
            Features::Sparse(rows) => {
                let mut words: Vec<usize> = rows.lengths().collect();
                stripe = stripe.min(fitting(&mut words, floats));
                words.into_iter().max().unwrap_or(0).max(widest)
            }
        };
        // Products add up the columns of a row, which are not cut.
        if summed > turns {
            return Err(format!(
                "{} can add up {turns} values of a row, and one has {summed}; use narrower layers, fewer features or backend = \"flex\"",
                self.description,
            ));
        }
        let stripe = stripe.min(floats / widest).min(turns);
        if stripe == 0 {
            return refuse("a row".to_owned(), widest.max(longest * heads.max(1)));
        }
        Ok(stripe)
    }
}

/// How many of these sizes add up to no more than `most`, whichever they are; any number if all do.
fn fitting(sizes: &mut [usize], most: usize) -> usize {
    // The largest first: if so many of these fit, any other so many do.
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0;
    let fits = |&&size: &&usize| {
        sum += size;
        sum <= most
    };
    match sizes.iter().take_while(fits).count() {
        all if all == sizes.len() => usize::MAX,
        some => some,
    }
}

/// Cuts the matrices of these devices into as many stripes as they need to hold those of `layers`
/// on any part of `dataset`.
///
/// # Errors
/// What cannot be cut and is too large, and what to do.
pub fn divide(
    devices: &mut [WorkerDevice],
    layers: &[LayerSpec],
    dataset: &Dataset,
) -> Result<(), String> {
    // Many workers share one adapter, and to find its stripe is to go through all nodes.
    let mut known: Vec<(Bounds, usize)> = Vec::new();
    for device in devices {
        let bounds = device.bounds();
        if let Some(&(_, stripe)) = known.iter().find(|(of, _)| *of == bounds) {
            device.place.stripe = stripe;
            continue;
        }
        device.place.stripe = device.stripe(layers, dataset)?;
        known.push((bounds, device.place.stripe));
    }
    Ok(())
}

/// Reads one element back, which waits for everything queued before it. `sync` alone returns too
/// early on some drivers.
pub(crate) fn drain<const D: usize>(tensor: &Tensor<D>) {
    // One element is enough: the queue is worked off in order.
    let element = tensor
        .clone()
        .inner()
        .flatten::<1>(0, D - 1)
        .narrow(0, 0, 1)
        .into_data();
    // Data are fetched when they are looked at.
    std::hint::black_box(
        element
            .as_slice::<f32>()
            .map(<[f32]>::len)
            .unwrap_or_default(),
    );
}

/// A tensor's values on the host, row by row; empty when the device failed.
pub fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::graph::{Csr, Metric, SparseRows, Split};
    use crate::model::{Biases, Init, ModelConfig, ModelKind, ModelSpec, NormKind};

    fn bounded(bytes: u64) -> WorkerDevice {
        WorkerDevice {
            largest_tensor: Some(bytes),
            ..WorkerDevice::cpu(Device::flex(), "some adapter")
        }
    }

    fn model(kind: ModelKind) -> ModelSpec {
        let config = ModelConfig {
            kind,
            layers: 2,
            hidden: 16,
            heads: 4,
            dropout: 0.0,
            input_dropout: None,
            attention_dropout: None,
            activation: None,
            norm: NormKind::None,
            residual: false,
            self_loops: None,
            init: Init::Glorot,
            gain: 1.0,
            biases: Biases::default(),
            head_biases: false,
            weights: None,
        };
        ModelSpec::new(&config, 10, 3)
    }

    /// A path of 100 nodes, with dense features.
    fn path() -> Dataset {
        let labels = vec![Some(0); 100];
        let values = vec![0.5; 1000];
        let edges = (0..99).flat_map(|v| [(v, v + 1), (v + 1, v)]);
        Dataset {
            name: "path".to_owned(),
            graph: Arc::new(Csr::from_edges(100, edges)),
            features: Arc::new(Features::Dense { width: 10, values }),
            labels: labels.into(),
            classes: 3,
            metric: Metric::Accuracy,
            split: Split::default(),
            reading: Arc::default(),
        }
    }

    fn stripe(device: &WorkerDevice, kind: ModelKind, data: &Dataset) -> Result<usize, String> {
        let model = model(kind);
        let layers: Vec<LayerSpec> = (0..2).map(|layer| model.layer(layer)).collect();
        let mut devices = [device.clone(), device.clone()];
        divide(&mut devices, &layers, data)?;
        assert_eq!(devices[0].place.stripe, devices[1].place.stripe);
        Ok(devices[1].place.stripe)
    }

    fn short(turns: usize) -> WorkerDevice {
        WorkerDevice {
            longest_loop: Some(turns),
            ..WorkerDevice::cpu(Device::flex(), "some adapter")
        }
    }

    #[test]
    fn stripes_are_as_high_as_a_device_holds_of_the_widest_rows_the_edges_and_the_words() {
        let of = |floats: u64, kind| stripe(&bounded(4 * floats + 256), kind, &path()).unwrap();
        assert_eq!(of(160, ModelKind::Gcn), 10, "16 columns");
        assert_eq!(of(1700, ModelKind::Gcn), 106, "more than there are nodes");
        // Four heads side by side, and then four of three columns: 16 columns; two scores of a head
        // and node.
        assert_eq!(of(800, ModelKind::Gat), 50);
        // What a loop goes through bounds them, too.
        assert_eq!(stripe(&short(40), ModelKind::Gcn, &path()), Ok(40));
        let free = WorkerDevice::cpu(Device::flex(), "flex");
        assert_eq!(stripe(&free, ModelKind::Gcn, &path()), Ok(usize::MAX));
        // Rows of 3 words, but one of 145: with it 5 others fit.
        let offset = |v: usize| 3 * v + if v > 50 { 142 } else { 0 };
        let offsets: Vec<usize> = (0..=100).map(offset).collect();
        let words = offsets[100];
        let sparse = Dataset {
            features: Arc::new(Features::Sparse(SparseRows {
                width: 10,
                offsets,
                columns: vec![0; words],
                values: vec![1.0; words],
            })),
            ..path()
        };
        let device = bounded(4 * 160 + 256);
        assert_eq!(stripe(&device, ModelKind::Gcn, &sparse), Ok(6));
        assert_eq!(fitting(&mut [3, 103, 3, 3], 110), 3);
        assert_eq!(fitting(&mut [3, 103, 3, 3], 112), usize::MAX);
    }

    #[test]
    fn what_has_no_stripes_and_does_not_fit_is_refused_with_what_to_do() {
        let refused = |device: &WorkerDevice, kind| stripe(device, kind, &path()).unwrap_err();
        let what = refused(&bounded(159 * 4 + 256), ModelKind::Gcn);
        assert!(
            what.starts_with("some adapter (CPU) holds 0 MB in one piece, and a weight of 10 rows and 16 columns takes"),
            "{what}"
        );
        assert!(
            what.ends_with("use narrower layers, fewer attention heads or backend = \"flex\""),
            "{what}"
        );
        let what = refused(&bounded(799 * 4 + 256), ModelKind::Gat);
        assert!(
            what.contains("the attention of 4 heads of 100 nodes"),
            "{what}"
        );
        assert_eq!(
            refused(&short(8), ModelKind::Gat),
            "some adapter (CPU) can weigh 1 neighbours of a node, and one has 2; use a model without attention or backend = \"flex\""
        );
        assert_eq!(stripe(&short(16), ModelKind::Gcn, &path()), Ok(16));
        assert_eq!(
            refused(&short(15), ModelKind::Gcn),
            "some adapter (CPU) can add up 15 values of a row, and one has 16; use narrower layers, fewer features or backend = \"flex\""
        );
        let wordy = Dataset {
            features: Arc::new(Features::Sparse(SparseRows {
                width: 50,
                offsets: (0..=100).map(|v| 17 * v).collect(),
                columns: (0..1700).map(|word| word % 17).collect(),
                values: vec![1.0; 1700],
            })),
            ..path()
        };
        let what = stripe(&short(16), ModelKind::Gcn, &wordy).unwrap_err();
        assert!(
            what.contains("can add up 16 values of a row, and one has 17"),
            "{what}"
        );
    }
}
