//! Wiki-CS (Mernyei and Cangea, 2020): one JSON object with `features`, `labels`, `links` (of each
//! node those that it links to), twenty `train_masks` and `val_masks`, and one `test_mask`. The
//! twenty `stopping_masks`, for stopping early, are not used.

use std::path::Path;

use serde::Deserialize;

use super::arrays::{known, split};
use super::finite;
use super::ids::{in_range, number_classes};
use super::{EdgeCount, Reading, only_file};
use crate::graph::{Features, GraphError, RawDataset, Split};
use crate::memory;

#[derive(Deserialize)]
struct File {
    features: Vec<Vec<f32>>,
    labels: Vec<i64>,
    links: Vec<Vec<u64>>,
    train_masks: Vec<Vec<Truth>>,
    val_masks: Vec<Vec<Truth>>,
    test_mask: Vec<Truth>,
}

/// `true` or `1`.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Truth {
    Word(bool),
    Number(u8),
}

impl Truth {
    const fn holds(self) -> bool {
        matches!(self, Self::Word(true) | Self::Number(1..))
    }
}

/// Reads the file, or the only `.json` file of the folder.
pub(super) fn read(path: &Path) -> Result<RawDataset, GraphError> {
    let path = only_file(path, ".json")?;
    let text = std::fs::read(&path).map_err(|source| GraphError::read(&path, source))?;
    memory::need(
        || format!("the numbers of {}", path.display()),
        2 * text.len() as u64,
    )?;
    let file: File = serde_json::from_slice(&text)
        .map_err(|error| GraphError::file(&path, format!("is not what Wiki-CS writes: {error}")))?;
    drop(text);
    parse(&path, file)
}

fn parse(path: &Path, file: File) -> Result<RawDataset, GraphError> {
    let wrong = |what: String| GraphError::file(path, what);
    let nodes = file.labels.len();
    let width = file.features.first().map_or(0, Vec::len);
    let ragged = file.features.iter().position(|row| row.len() != width);
    if let Some(row) = ragged {
        let found = file.features[row].len();
        return Err(wrong(format!(
            "`features`, row {row}: {found} values where the first has {width}"
        )));
    }
    if file.features.len() != nodes || file.links.len() != nodes || width == 0 {
        return Err(wrong(format!(
            "has `labels` of {nodes} nodes, `features` of {}, {width} each, and `links` of {}",
            file.features.len(),
            file.links.len()
        )));
    }
    let mut edges = Vec::new();
    for (from, links) in (0_u32..).zip(&file.links) {
        for &to in links {
            let to = in_range(to, nodes);
            edges.push((
                from,
                to.map_err(|what| wrong(format!("`links`, {from}: {what}")))?,
            ));
        }
    }
    let of = |mask: &[Truth]| -> Vec<u32> {
        (0_u32..)
            .zip(mask)
            .filter(|(_, truth)| truth.holds())
            .map(|(node, _)| node)
            .collect()
    };
    let (training, validation) = (&file.train_masks, &file.val_masks);
    if training.len() != validation.len() {
        let (training, validation) = (training.len(), validation.len());
        return Err(wrong(format!(
            "has {training} `train_masks` and {validation} `val_masks`, and each split is one of each"
        )));
    }
    let mut masks = training.iter().chain(validation).chain([&file.test_mask]);
    if masks.any(|mask| mask.len() != nodes) {
        return Err(wrong(format!("has masks that are not of {nodes} nodes")));
    }
    let test = of(&file.test_mask);
    let one = |(train, validation): (&Vec<Truth>, &Vec<Truth>)| {
        split(of(train), of(validation), test.clone(), nodes).map_err(wrong)
    };
    let splits: Vec<Split> = training
        .iter()
        .zip(validation)
        .map(one)
        .collect::<Result<_, _>>()?;
    let (labels, classes) = number_classes(&known(&file.labels));
    let (graph, count) = EdgeCount::undirected(nodes, edges);
    let values = file.features.into_iter().flatten().collect();
    let features = finite(path, "`features`", Features::Dense { width, values })?.compact();
    let reading = Reading::of(count, [path.to_owned()])
        .with_note("`val_masks` validate; `stopping_masks` are not used");
    let name = "wiki-cs".to_owned();
    Ok(RawDataset::new(name, graph, features, labels, classes, splits).read_as(reading))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"features": [[0.5, 1], [2, -3], [0, 1e-1]], "labels": [4, 1, 4],
        "links": [[1, 2], [], [0]], "train_masks": [[true, false, false], [false, true, false]],
        "val_masks": [[false, true, false], [true, false, false]],
        "stopping_masks": [[false, false, false]], "test_mask": [0, 0, 1]}"#;

    fn of(text: &str) -> Result<RawDataset, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("data.json"), text).unwrap();
        read(folder.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn links_masks_and_features_are_read() {
        let data = of(WHOLE).unwrap();
        assert_eq!(
            (data.graph.nodes(), data.graph.edges(), data.classes),
            (3, 4, 2)
        );
        assert_eq!(data.labels.classes()[..], [Some(1), Some(0), Some(1)]);
        let values = vec![0.5, 1.0, 2.0, -3.0, 0.0, 0.1];
        assert_eq!(*data.features, Features::Dense { width: 2, values });
        let second = Split::new(vec![1], vec![0], vec![2]);
        assert_eq!((data.splits.len(), &data.splits[1]), (2, &second));
    }

    #[test]
    fn what_does_not_fit_together_is_named() {
        for (from, to, message) in [
            (
                "[[1, 2]",
                "[[1, 3]",
                "`links`, 0: node 3 is not one of the 3 nodes",
            ),
            (
                "[2, -3]",
                "[2]",
                "`features`, row 1: 1 values where the first has 2",
            ),
            (
                "\"labels\": [4, 1, 4]",
                "\"labels\": [4, 1]",
                "has `labels` of 2 nodes",
            ),
            ("[0, 0, 1]", "[0, 1]", "masks that are not of 3 nodes"),
            ("[0, 0, 1]", "[1, 0, 1]", "node 0 is in two"),
            (
                "\"val_masks\": [[false, true, false], ",
                "\"val_masks\": [",
                "has 2 `train_masks` and 1 `val_masks`",
            ),
            (
                "\"links\"",
                "\"edges\"",
                "is not what Wiki-CS writes: missing field `links`",
            ),
            ("[0, 0, 1]}", "[0, 0, 1]", "is not what Wiki-CS writes: EOF"),
        ] {
            let error = of(&WHOLE.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
        // A test mask is looked at also where there is no split.
        let short = WHOLE
            .replace("[[true, false, false], [false, true, false]]", "[]")
            .replace("[[false, true, false], [true, false, false]]", "[]")
            .replace("[0, 0, 1]", "[0, 1]");
        let error = of(&short).unwrap_err();
        assert!(error.contains("masks that are not of 3 nodes"), "{error}");
    }
}
