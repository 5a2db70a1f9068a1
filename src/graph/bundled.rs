//! The data set that is part of the program, so that a first experiment needs no download.

use std::io::{BufReader, Read};
use std::path::Path;

use flate2::read::GzDecoder;

use super::loaders::linqs;
use super::{GraphError, RawDataset};

/// The names that `dataset.name` may have.
pub const BUNDLED: &[&str] = &["cora"];

/// The published files, compressed; `data/README.md` says where they are from.
const CONTENT: &[u8] = include_bytes!("../../data/cora/cora.content.gz");
const CITES: &[u8] = include_bytes!("../../data/cora/cora.cites.gz");
const SPLIT: &[u8] = include_bytes!("../../data/cora/planetoid-split.csv.gz");

/// Cora: 2,708 papers, 5,278 citations, 1,433 words, 7 classes, and the public split of Yang et al.
/// (2016): 140 training, 500 validation, 1,000 test nodes.
///
/// # Errors
/// None with the files as they are in the repository.
pub fn cora() -> Result<RawDataset, GraphError> {
    linqs::parse(
        "cora".to_owned(),
        (
            Path::new("data/cora/cora.content.gz"),
            Box::new(BufReader::new(unpack(CONTENT))),
        ),
        (
            Path::new("data/cora/cora.cites.gz"),
            Box::new(BufReader::new(unpack(CITES))),
        ),
        Some((
            Path::new("data/cora/planetoid-split.csv.gz"),
            Box::new(BufReader::new(unpack(SPLIT))),
        )),
    )
}

fn unpack(compressed: &'static [u8]) -> impl Read {
    GzDecoder::new(compressed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    #[test]
    fn the_bundled_files_are_the_published_ones() {
        for (file, checksum) in [
            (
                CONTENT,
                "b8ebed0fd45e53995abafd1b70cf6a9fcc8f86abc5826d69b97fe6ca46e9c8ee",
            ),
            (
                CITES,
                "ec1a372391b7f0f60a6aff0084e8abd8f19f0faa7e1f2441a41c492042d5945e",
            ),
            (
                SPLIT,
                "0b1fa6423dc53819a671a97d953304e6089bdbd57cf2d222efa17cc8eab5704d",
            ),
        ] {
            let mut text = Vec::new();
            unpack(file).read_to_end(&mut text).unwrap();
            let found = format!("{:x}", Sha256::digest(&text));
            assert_eq!(found, checksum);
        }
    }

    #[test]
    fn cora_has_the_size_that_everyone_reports() {
        let cora = cora().unwrap();
        assert_eq!((cora.graph.nodes(), cora.graph.edges()), (2708, 2 * 5278));
        assert_eq!((cora.features.width(), cora.classes), (1433, 7));
        assert!(cora.labels.iter().all(Option::is_some));
        let split = &cora.splits[0];
        let sizes = [&split.train, &split.validation, &split.test].map(Vec::len);
        assert_eq!(sizes, [140, 500, 1000]);
        for class in 0..7 {
            let of_class = |&&node: &&u32| cora.labels[node as usize] == Some(class);
            assert_eq!(split.train.iter().filter(of_class).count(), 20);
        }
    }

    #[test]
    fn the_bundled_files_stay_small() {
        assert!(CONTENT.len() + CITES.len() + SPLIT.len() < 300_000);
    }
}
