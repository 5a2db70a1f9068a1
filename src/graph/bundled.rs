//! The data sets that are part of the program, so that a first experiment needs no download.

use std::io::BufReader;
use std::path::Path;

use flate2::read::GzDecoder;

use super::loaders::linqs;
use super::{GraphError, RawDataset};

/// The names that `dataset.name` may have.
pub const BUNDLED: &[&str] = &["cora", "amazon-photo"];

/// The published files, compressed; `data/README.md` says where they are from.
const CONTENT: &[u8] = include_bytes!("../../data/cora/cora.content.gz");
const CITES: &[u8] = include_bytes!("../../data/cora/cora.cites.gz");
const SPLIT: &[u8] = include_bytes!("../../data/cora/planetoid-split.csv.gz");

/// The published arrays, written as Cora is.
const PHOTO_CONTENT: &[u8] = include_bytes!("../../data/amazon-photo/amazon-photo.content.gz");
const PHOTO_CITES: &[u8] = include_bytes!("../../data/amazon-photo/amazon-photo.cites.gz");

/// A bundled data set by its name.
///
/// # Errors
/// If there is none of that name.
pub fn bundled(name: &str) -> Result<RawDataset, GraphError> {
    match name {
        "cora" => cora(),
        "amazon-photo" => amazon_photo(),
        _ => {
            let known = BUNDLED.join(", ");
            let what = format!(
                "there is no bundled data set `{name}` (there are: {known}); for others give `path` \
                 and `format`"
            );
            Err(GraphError::key("dataset.name", what))
        }
    }
}

/// Cora: 2,708 papers, 5,278 citations, 1,433 words, 7 classes, and the public split of Yang et al.
/// (2016): 140 training, 500 validation, 1,000 test nodes.
///
/// # Errors
/// None with the files as they are in the repository.
pub fn cora() -> Result<RawDataset, GraphError> {
    linqs::parse(
        "cora".to_owned(),
        file("data/cora/cora.content.gz", CONTENT),
        file("data/cora/cora.cites.gz", CITES),
        Some(file("data/cora/planetoid-split.csv.gz", SPLIT)),
    )
}

/// Amazon Photo (Shchur et al., 2018): 7,650 products, 119,081 pairs bought together, 745 words of
/// reviews, 8 categories. It has no published split.
///
/// # Errors
/// None with the files as they are in the repository.
pub fn amazon_photo() -> Result<RawDataset, GraphError> {
    linqs::parse(
        "amazon-photo".to_owned(),
        file("data/amazon-photo/amazon-photo.content.gz", PHOTO_CONTENT),
        file("data/amazon-photo/amazon-photo.cites.gz", PHOTO_CITES),
        None,
    )
}

fn file(path: &'static str, compressed: &'static [u8]) -> linqs::Source<'static> {
    (
        Path::new(path),
        Box::new(BufReader::new(GzDecoder::new(compressed))),
    )
}

#[cfg(test)]
mod tests {
    use std::io::Read;

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
            (
                PHOTO_CONTENT,
                "1ae549d636b0e59882a99eb93958de76c45c1a37b5a04cbe666d5d0ff7902db1",
            ),
            (
                PHOTO_CITES,
                "fbcb2ba58a1d94f3d80b1ea0af60b08ba667b672ab0be266f6bb92beb1f08922",
            ),
        ] {
            let mut text = Vec::new();
            GzDecoder::new(file).read_to_end(&mut text).unwrap();
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
    fn amazon_photo_has_the_size_that_everyone_reports() {
        let photo = amazon_photo().unwrap();
        assert_eq!(
            (photo.graph.nodes(), photo.graph.edges()),
            (7650, 2 * 119_081)
        );
        assert_eq!((photo.features.width(), photo.classes), (745, 8));
        assert_eq!(photo.features.values().len(), 1_979_909);
        let mut of_class = [0; 8];
        for class in photo.labels.iter().flatten() {
            of_class[*class as usize] += 1;
        }
        assert_eq!(of_class, [369, 1686, 703, 915, 882, 823, 1941, 331]);
        assert!(photo.splits.is_empty());
    }

    #[test]
    fn every_name_has_its_data() {
        for name in BUNDLED {
            assert_eq!(bundled(name).unwrap().name, *name);
        }
        let error = bundled("coral").err().unwrap().to_string();
        assert!(error.contains("cora, amazon-photo"), "{error}");
    }

    #[test]
    fn the_bundled_files_stay_small() {
        assert!(CONTENT.len() + CITES.len() + SPLIT.len() < 300_000);
        assert!(PHOTO_CONTENT.len() + PHOTO_CITES.len() < 1_300_000);
    }
}
