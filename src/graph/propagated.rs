//! Labels that a graph neural network can learn: random projections of features, averaged over
//! neighbourhoods.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};

use rayon::prelude::*;

use super::larger::Room;
use super::normal::{narrow, standard_normal};
use super::{Csr, GraphError, RawDataset, Several};
use crate::rng::{Purpose, stream};

/// Bytes of a score.
const SIZE: usize = size_of::<f32>();

/// Products of the features, `[nodes, width]`, with a projection, `[width, columns]`, averaged
/// twice over neighbourhoods and standardised over nodes, `[nodes, columns]`.
pub(super) fn propagated(
    graph: &Csr,
    values: &[f32],
    width: usize,
    projection: &[f64],
) -> Vec<f32> {
    let columns = projection.len() / width;
    let mut scores = projected(values, width, projection);
    settle(graph, &mut scores, columns);
    scores
}

/// The products alone.
fn projected(values: &[f32], width: usize, projection: &[f64]) -> Vec<f32> {
    let columns = projection.len() / width;
    let mut scores = vec![0.0_f32; values.len() / width * columns];
    let rows = scores.par_chunks_mut(columns).zip(values.par_chunks(width));
    rows.for_each(|(scores, row)| {
        for (column, score) in scores.iter_mut().enumerate() {
            let weights = projection.iter().skip(column).step_by(columns);
            *score = narrow(
                row.iter()
                    .zip(weights)
                    .map(|(&x, w)| f64::from(x) * w)
                    .sum(),
            );
        }
    });
    scores
}

/// Averages rows over neighbourhoods, twice, and standardises their columns.
fn settle(graph: &Csr, scores: &mut Vec<f32>, columns: usize) {
    for _ in 0..2 {
        *scores = average(graph, scores, columns);
    }
    standardise(scores, columns);
}

/// The class of each node by [`propagated`] scores of features that are seen a piece at a time.
/// With room, scores are on disk and one column is held, so that memory grows with the nodes alone.
pub(super) struct Scores<'a> {
    projection: Vec<f64>,
    width: usize,
    held: Held<'a>,
}

enum Held<'a> {
    All(Vec<f32>),
    /// A file `[columns, nodes]`, and of how many nodes it has scores.
    File {
        file: File,
        nodes: usize,
        seen: usize,
        room: &'a Room,
    },
}

impl<'a> Scores<'a> {
    /// None so far.
    ///
    /// # Errors
    /// If there is no place for a file.
    pub(super) fn new(
        nodes: usize,
        projection: Vec<f64>,
        width: usize,
        room: Option<&'a Room>,
    ) -> Result<Self, GraphError> {
        let held = match room {
            None => Held::All(Vec::new()),
            Some(room) => Held::File {
                file: room.file()?,
                nodes,
                seen: 0,
                room,
            },
        };
        Ok(Self {
            projection,
            width,
            held,
        })
    }

    /// The next rows of features.
    ///
    /// # Errors
    /// If scores cannot be written.
    pub(super) fn see(&mut self, rows: &[f32]) -> Result<(), GraphError> {
        let scores = projected(rows, self.width, &self.projection);
        let (file, nodes, seen, room) = match &mut self.held {
            Held::All(all) => {
                // All of them at once.
                *all = scores;
                return Ok(());
            }
            Held::File {
                file,
                nodes,
                seen,
                room,
            } => (file, *nodes, seen, room),
        };
        let columns = self.projection.len() / self.width;
        for column in 0..columns {
            let values = scores.iter().skip(column).step_by(columns);
            let raw: Vec<u8> = values.flat_map(|value| value.to_le_bytes()).collect();
            let place = SeekFrom::Start(((column * nodes + *seen) * SIZE) as u64);
            let written = file.seek(place).and_then(|_| file.write_all(&raw));
            written.map_err(|error| room.unwritten(error))?;
        }
        *seen += scores.len() / columns;
        Ok(())
    }

    /// The largest score of each node.
    ///
    /// # Errors
    /// If scores cannot be read.
    pub(super) fn largest(self, graph: &Csr) -> Result<Vec<Option<u32>>, GraphError> {
        let columns = self.projection.len() / self.width;
        let (mut file, nodes, room) = match self.held {
            Held::All(mut scores) => {
                settle(graph, &mut scores, columns);
                let class = |row: &[f32]| {
                    let largest = (0_u32..).zip(row).max_by(|a, b| a.1.total_cmp(b.1));
                    largest.map(|(class, _)| class)
                };
                return Ok(scores.chunks_exact(columns).map(class).collect());
            }
            Held::File {
                file, nodes, room, ..
            } => (file, nodes, room),
        };
        let mut best: Vec<(f32, u32)> = vec![(f32::NAN, 0); nodes];
        let mut scores = vec![0.0; nodes];
        let mut from = file
            .rewind()
            .map(|()| BufReader::new(file))
            .map_err(|error| room.unwritten(error))?;
        for (column, _) in (0_u32..).zip(0..columns) {
            for score in &mut scores {
                let mut raw = [0; SIZE];
                let read = from.read_exact(&mut raw);
                read.map_err(|error| room.unwritten(error))?;
                *score = f32::from_le_bytes(raw);
            }
            settle(graph, &mut scores, 1);
            for (best, &score) in best.iter_mut().zip(&scores) {
                // Of equal ones the last, as above.
                if column == 0 || score.total_cmp(&best.0).is_ge() {
                    *best = (score, column);
                }
            }
        }
        Ok(best.into_iter().map(|(_, class)| Some(class)).collect())
    }
}

/// The same data with so many labels in place of the class: a node has a label where its own random
/// projection of the features, averaged as above, is half a standard deviation above the
/// mean. So about three in ten nodes have each, independently of the others.
pub(super) fn with_labels(data: RawDataset, labels: usize, seed: u64) -> RawDataset {
    /// In place of the number of a class, of which none is as large.
    const LABELS: u64 = u64::MAX;
    const ABOVE: f32 = 0.5;
    let width = data.features.width();
    let mut random = stream(seed, Purpose::Features, 0, LABELS);
    let projection: Vec<f64> = (0..width * labels)
        .map(|_| standard_normal(&mut random))
        .collect();
    let scores = propagated(&data.graph, data.features.values(), width, &projection);
    let mut several = Several::new(labels);
    for scores in scores.chunks_exact(labels) {
        let has: Vec<bool> = scores.iter().map(|&score| score > ABOVE).collect();
        several.push(Some(&has));
    }
    RawDataset {
        labels: several.into(),
        classes: labels,
        ..data
    }
}

/// Mean of the rows of a node and its neighbours.
fn average(graph: &Csr, rows: &[f32], width: usize) -> Vec<f32> {
    let mut means = rows.to_vec();
    means
        .par_chunks_mut(width)
        .enumerate()
        .for_each(|(v, mean)| {
            for &u in graph.neighbours(v) {
                for (sum, value) in mean.iter_mut().zip(&rows[u as usize * width..][..width]) {
                    *sum += value;
                }
            }
            let count = graph.degree(v) as f32 + 1.0;
            for sum in mean {
                *sum /= count;
            }
        });
    means
}

/// Gives every column mean 0 and standard deviation 1.
fn standardise(rows: &mut [f32], width: usize) {
    let count = (rows.len() / width) as f64;
    for column in 0..width {
        let values = || {
            rows.iter()
                .skip(column)
                .step_by(width)
                .map(|&value| f64::from(value))
        };
        // On one thread, from the first node to the last: the sum must not depend on how many there
        // are.
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        // A column of equal values becomes zeros: there is nothing to divide by.
        let scale = 1.0 / variance.sqrt().max(f64::MIN_POSITIVE);
        for value in rows.iter_mut().skip(column).step_by(width) {
            *value = narrow((f64::from(*value) - mean) * scale);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::{SyntheticSpec, synthetic};

    #[test]
    fn each_label_is_that_of_about_three_in_ten_and_neighbours_tend_to_agree() {
        let spec = "kind = 'sbm'\nnodes = 3000\nclasses = 3\nfeatures = 8\ndegree_within = 6\n\
            degree_between = 2\nlabels = 40";
        let spec: SyntheticSpec = toml::from_str(spec).unwrap();
        let data = synthetic::generate(&spec, true, None).unwrap();
        let several = data.labels.several().unwrap();
        assert_eq!(
            (data.classes, several.labels(), several.nodes()),
            (40, 40, 3000)
        );
        let mut sum = 0.0;
        for label in 0..40 {
            let share = (0..3000).filter(|&v| several.has(v, label)).count() as f64 / 3000.0;
            // Were scores normal, 31 % would lie half a standard deviation above the mean.
            assert!((0.2..0.42).contains(&share), "{share}");
            let agree = |&(a, b): &(u32, u32)| {
                several.has(a as usize, label) == several.has(b as usize, label)
            };
            let agree = data.graph.iter_edges().filter(agree).count() as f64;
            let chance = share * share + (1.0 - share) * (1.0 - share);
            let above = agree / data.graph.edges() as f64 - chance;
            assert!(above > 0.0, "{above}");
            sum += above;
        }
        assert!(sum / 40.0 > 0.03, "{sum}");
    }
}
