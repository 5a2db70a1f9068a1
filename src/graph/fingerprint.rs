//! What tells one data set from another: a hash of everything in it.

use sha2::{Digest, Sha256};

use super::coded::CodedRows;
use super::{Dataset, Features, Labels};

/// Numbers that are handed to the hash together.
// The hash does not depend on it.
const BATCH: usize = 4096;

/// SHA-256 over numbers as little-endian bytes, each list after its length, so that no two
/// sequences of lists look the same.
struct Hasher(Sha256);

impl Hasher {
    fn list<const N: usize>(&mut self, items: impl ExactSizeIterator<Item = [u8; N]>) {
        self.0.update((items.len() as u64).to_le_bytes());
        let mut bytes = Vec::with_capacity(BATCH * N);
        for item in items {
            bytes.extend(item);
            if bytes.len() == BATCH * N {
                self.0.update(&bytes);
                bytes.clear();
            }
        }
        self.0.update(&bytes);
    }

    fn places(&mut self, places: &[usize]) {
        // 64 bits on every machine: a hash must not depend on the width of its addresses.
        self.list(places.iter().map(|&place| (place as u64).to_le_bytes()));
    }

    fn ids(&mut self, ids: &[u32]) {
        self.list(ids.iter().map(|id| id.to_le_bytes()));
    }

    fn rows(&mut self, rows: &CodedRows) {
        self.0
            .update(((rows.rows() * rows.width()) as u64).to_le_bytes());
        for row in 0..rows.rows() {
            for value in rows.decoded(std::iter::once(row)) {
                self.0.update(value.to_le_bytes());
            }
        }
    }

    fn values(&mut self, values: &[f32]) {
        self.list(values.iter().map(|value| value.to_le_bytes()));
    }
}

impl Dataset {
    /// SHA-256 of the graph, features, labels and split. The name is no part of it. O(size of the
    /// data).
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        let mut hasher = Hasher(Sha256::new());
        hasher.places(&[
            self.graph.columns(),
            self.classes,
            self.features.width(),
            usize::from(matches!(*self.features, Features::Sparse(_))),
        ]);
        hasher.places(self.graph.offsets());
        hasher.ids(self.graph.indices());
        match &*self.features {
            Features::Dense { values, .. } => hasher.values(values),
            // As the dense form: where values lie is no part of what they are.
            Features::Coded(rows) => hasher.rows(rows),
            Features::Sparse(rows) => {
                hasher.places(&rows.offsets);
                hasher.ids(&rows.columns);
                hasher.values(&rows.values);
            }
        }
        // No class is as large, so this stands for none.
        let class = |label: &Option<u32>| label.map_or(u64::MAX, u64::from).to_le_bytes();
        match &self.labels {
            Labels::Classes(classes) => hasher.list(classes.iter().map(class)),
            Labels::Several(several) => hasher.ids(several.words()),
        }
        for nodes in [&self.split.train, &self.split.validation, &self.split.test] {
            hasher.ids(nodes);
        }
        hasher.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::graph::DatasetSpec;

    fn cora() -> Dataset {
        let spec = DatasetSpec {
            name: Some("cora".to_owned()),
            ..DatasetSpec::default()
        };
        spec.load(Path::new(""), 0).unwrap()
    }

    #[test]
    fn whatever_changes_in_the_data_changes_the_hash() {
        let data = cora();
        let hash = data.fingerprint();
        assert_eq!(hash, cora().fingerprint());
        let mut split = data.clone();
        let moved = split.split.test.pop().unwrap();
        split.split.train.push(moved);
        let mut labels = data.clone();
        let mut classes = labels.labels.classes().to_vec();
        classes[7] = None;
        labels.labels = classes.into();
        let mut features = data.clone();
        if let Features::Sparse(rows) = Arc::make_mut(&mut features.features) {
            rows.values[100] += 1e-6;
        }
        let mut named = data.clone();
        named.name = "another".to_owned();
        for other in [&split, &labels, &features] {
            assert_ne!(other.fingerprint(), hash);
        }
        assert_eq!(named.fingerprint(), hash);
    }
}
