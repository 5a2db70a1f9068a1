//! The data sets that are part of the program, so that a first experiment needs no download.

use std::io::BufReader;
use std::path::Path;

use flate2::read::GzDecoder;

use super::loaders::linqs;
use super::{GraphError, Metric, RawDataset};

/// The names of what is part of the program.
pub(crate) const BUNDLED: &[&str] = &["cora", "minesweeper"];

/// The published files, compressed; `data/README.md` says where they are from.
const CONTENT: &[u8] = include_bytes!("../../data/cora/cora.content.gz");
const CITES: &[u8] = include_bytes!("../../data/cora/cora.cites.gz");
const SPLIT: &[u8] = include_bytes!("../../data/cora/planetoid-split.csv.gz");

/// The published arrays, written as Cora is.
const MINES_CONTENT: &[u8] = include_bytes!("../../data/minesweeper/minesweeper.content.gz");
const MINES_CITES: &[u8] = include_bytes!("../../data/minesweeper/minesweeper.cites.gz");
const MINES_SPLIT: &[u8] = include_bytes!("../../data/minesweeper/split.csv.gz");

/// A bundled data set by its name.
///
/// # Errors
/// If there is none of that name.
pub(super) fn bundled(name: &str) -> Result<RawDataset, GraphError> {
    match name {
        "cora" => cora(),
        "minesweeper" => minesweeper(),
        _ => {
            let known = BUNDLED.join(" and ");
            let what = format!(
                "there is no data set `{name}`: {known} are part of the program, and `grapevine list \
                 datasets` has those that can be fetched; for others give `path` and `format`"
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

/// Minesweeper (Platonov et al., 2023): 10,000 cells of a board, 39,402 pairs of neighbours, 7
/// features, 2 classes (80 % have no mine), and the first of the ten published splits: 5,000
/// training, 2,500 validation, 2,500 test nodes.
///
/// # Errors
/// None with the files as they are in the repository.
pub(super) fn minesweeper() -> Result<RawDataset, GraphError> {
    let data = linqs::parse(
        "minesweeper".to_owned(),
        file("data/minesweeper/minesweeper.content.gz", MINES_CONTENT),
        file("data/minesweeper/minesweeper.cites.gz", MINES_CITES),
        Some(file("data/minesweeper/split.csv.gz", MINES_SPLIT)),
    )?;
    Ok(RawDataset {
        // What its authors report: four in five cells have no mine, so that accuracy says little.
        metric: Some(Metric::RocAuc),
        ..data
    })
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
                MINES_CONTENT,
                "a80f9efecbded8c0631a867cbc1c63880c7f08ba63a1b072fa26664e4f8f8c1e",
            ),
            (
                MINES_CITES,
                "ad2722d007feda5d8f62f5552c338611399aee5a569c312597c92ca639708240",
            ),
            (
                MINES_SPLIT,
                "55b300c8a8e89482d4b77577b6b69b9aebe29e76eb064b779d3728e2cbf3fff1",
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
        assert!(cora.labels.classes().iter().all(Option::is_some));
        let split = &cora.splits[0];
        let sizes = [&split.train, &split.validation, &split.test].map(Vec::len);
        assert_eq!(sizes, [140, 500, 1000]);
        for class in 0..7 {
            let of_class = |&&node: &&u32| cora.labels.classes()[node as usize] == Some(class);
            assert_eq!(split.train.iter().filter(of_class).count(), 20);
        }
    }

    #[test]
    fn minesweeper_has_the_size_that_everyone_reports() {
        let board = minesweeper().unwrap();
        assert_eq!(
            (board.graph.nodes(), board.graph.edges()),
            (10_000, 2 * 39_402)
        );
        assert_eq!((board.features.width(), board.classes), (7, 2));
        let mines = board
            .labels
            .classes()
            .iter()
            .filter(|label| **label == Some(1));
        assert_eq!(mines.count(), 2_000);
        let split = &board.splits[0];
        let sizes = [&split.train, &split.validation, &split.test].map(Vec::len);
        assert_eq!(sizes, [5_000, 2_500, 2_500]);
        // A cell inside the board has eight neighbours.
        assert_eq!((0..10_000).map(|v| board.graph.degree(v)).max(), Some(8));
    }

    #[test]
    fn every_name_has_its_data() {
        for name in BUNDLED {
            assert_eq!(bundled(name).unwrap().name, *name);
        }
        let error = bundled("coral").err().unwrap().to_string();
        assert!(error.contains("cora and minesweeper"), "{error}");
    }

    #[test]
    fn the_bundled_files_stay_small() {
        // They are part of every binary.
        assert!(CONTENT.len() + CITES.len() + SPLIT.len() < 300_000);
        assert!(MINES_CONTENT.len() + MINES_CITES.len() + MINES_SPLIT.len() < 200_000);
    }
}
