//! `<name>.content` and `<name>.cites` (Sen et al., *Collective Classification in Network Data*,
//! 2008), tab-separated.
//!
//! `content`: paper id, words as zeros and ones (or weights), class name. `cites`: cited id, citing
//! id. Nodes are in the order of `content`, classes in the order of their names. Citations of
//! papers that have no line in `content` are left out, as is usual: the published `CiteSeer` has 17
//! of them, one in 278. Where they are more than one in ten the files do not belong together. A
//! `planetoid-split.csv` beside them (`id,number,set` in each line) gives the public split.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use super::ids::{doubtful, is_known, number_classes};
use super::text::{each_line, each_record, finite, open};
use super::{data_set_name, file_name, only_file};
use crate::graph::{EdgeCount, Features, GraphError, RawDataset, Reading, Split};

/// Of so many edges one may have an end without a line.
const DANGLING: usize = 10;

/// A file that is open for reading, with the path that errors shall name.
pub(crate) type Source<'a> = (&'a Path, Box<dyn BufRead + 'a>);

/// Reads a folder with the two files, and the split if it is there.
pub(crate) fn read(folder: &Path) -> Result<RawDataset, GraphError> {
    let content = only_file(folder, ".content")?;
    let cites = content.with_extension("cites");
    let split = content.with_file_name("planetoid-split.csv");
    let split = if split.is_file() {
        Some((split.as_path(), open(&split)?))
    } else {
        None
    };
    parse(
        data_set_name(&content),
        (&content, open(&content)?),
        (&cites, open(&cites)?),
        split,
    )
}

/// Reads the two or three files from wherever they are.
pub(crate) fn parse(
    name: String,
    content: Source,
    cites: Source,
    split: Option<Source>,
) -> Result<RawDataset, GraphError> {
    // Only looked up, never walked through: its order reaches no result.
    let mut nodes: HashMap<String, u32> = HashMap::new();
    let (mut rows, mut names) = (Vec::new(), Vec::new());
    let mut width = None;
    each_line(content.0, content.1, |line| {
        let mut fields = line.split('\t');
        let id = fields.next().unwrap_or_default();
        let class = fields.next_back().filter(|class| !class.is_empty());
        let class = class.ok_or("expected an id, features and a class name, separated by tabs")?;
        let mut row = Vec::new();
        let mut columns: u32 = 0;
        for field in fields {
            // Most words are absent, and need no parsing.
            if field != "0" {
                let value = finite(field, "a number for each feature")
                    .map_err(|what| format!("feature {}: {what}", columns + 1))?;
                row.push((columns, value));
            }
            columns += 1;
        }
        if *width.get_or_insert(columns) != columns {
            return Err(format!(
                "has {columns} features where the first line has {}",
                width.unwrap_or(0)
            ));
        }
        let node = u32::try_from(rows.len()).map_err(|_| "more than 2^32 nodes")?;
        if nodes.insert(id.to_owned(), node).is_some() {
            return Err(format!(
                "the node `{id}` is there a second time; remove one"
            ));
        }
        rows.push(row);
        names.push(is_known(class).then(|| class.to_owned()));
        Ok(())
    })?;

    let (mut edges, mut dangling, mut first) = (Vec::new(), 0_usize, None);
    let mut number = 0_usize;
    each_line(cites.0, cites.1, |line| {
        number += 1;
        let mut fields = line.split('\t');
        let (Some(to), Some(from), None) = (fields.next(), fields.next(), fields.next()) else {
            return Err(format!(
                "expected two ids separated by a tab, found `{line}`"
            ));
        };
        if let (Some(&to), Some(&from)) = (nodes.get(to), nodes.get(from)) {
            edges.push((to, from));
        } else {
            dangling += 1;
            let unknown = if nodes.contains_key(to) { from } else { to };
            first.get_or_insert_with(|| (number, unknown.to_owned()));
        }
        Ok(())
    })?;
    let papers = file_name(content.0);
    if let Some((line, unknown)) = first
        && dangling * DANGLING > dangling + edges.len()
    {
        let what = format!(
            "the node `{unknown}` has no line in `{papers}`, and {dangling} of {} edges are so; a few are left out, but \
             these files do not belong together",
            dangling + edges.len()
        );
        return Err(GraphError::line(cites.0, line, what));
    }

    let mut files = vec![content.0.to_owned(), cites.0.to_owned()];
    files.extend(split.as_ref().map(|(path, _)| path.to_path_buf()));
    let splits = match split {
        Some(source) => vec![parse_split(source, &nodes)?],
        None => vec![],
    };
    let (labels, classes) = number_classes(&names);
    let (graph, count) = EdgeCount::undirected(labels.len(), edges);
    let mut reading = Reading::of(count, files);
    reading.notes.extend(doubtful(&names, classes));
    if dangling > 0 {
        let edges = if dangling == 1 { "edge" } else { "edges" };
        reading = reading.with_note(format!(
            "{dangling} {edges} of nodes without a line in `{papers}` left out"
        ));
    }
    let features = Features::from_rows(width.unwrap_or(0) as usize, rows.into_iter());
    Ok(RawDataset::new(name, graph, features, labels, classes, splits).read_as(reading))
}

fn parse_split(source: Source, nodes: &HashMap<String, u32>) -> Result<Split, GraphError> {
    let mut split = Split::default();
    let mut listed = vec![false; nodes.len()];
    each_record(
        source.0,
        source.1,
        |record| match record.first().filter(|first| nodes.contains_key(*first)) {
            // The first line would be passed over, and its node be in no set.
            Some(first) => Err(format!(
                "has no header: its first line is of `{first}`; begin with a header, such as id,number,set"
            )),
            None => Ok(true),
        },
        |record| {
            let [id, .., kind] = record else {
                return Err("expected id,number,set".to_owned());
            };
            let node = *nodes
                .get(id)
                .ok_or_else(|| format!("there is no node `{id}`"))?;
            if std::mem::replace(&mut listed[node as usize], true) {
                return Err(format!(
                    "lists `{id}` for the second time; a node is in one set"
                ));
            }
            match kind.as_str() {
                "train" => split.train.push(node),
                "val" | "validation" => split.validation.push(node),
                "test" => split.test.push(node),
                "none" => {}
                other => {
                    return Err(format!(
                        "expected train, val, test or none, found `{other}`"
                    ));
                }
            }
            Ok(())
        },
    )?;
    Ok(split.sorted())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny(content: &str, cites: &str) -> Result<RawDataset, GraphError> {
        let content: Source = (Path::new("a.content"), Box::new(content.as_bytes()));
        parse(
            "a".to_owned(),
            content,
            (Path::new("a.cites"), Box::new(cites.as_bytes())),
            None,
        )
    }

    #[test]
    fn papers_without_content_are_left_out_of_the_graph() {
        let data = tiny(
            "p9\t0\t1\tZ\np1\t1\t0\tA\n",
            &("p9\tp1\np1\tp9\np1\tp1\np1\tgone\n".to_owned() + &"p1\tp1\n".repeat(6)),
        )
        .unwrap();
        assert!(
            data.reading
                .notes
                .iter()
                .any(|note| note == "1 edge of nodes without a line in `a.content` left out"),
            "{:?}",
            data.reading.notes
        );
        assert_eq!(
            data.graph.iter_edges().collect::<Vec<_>>(),
            [(1, 0), (0, 1)]
        );
        assert_eq!(data.labels.classes()[..], [Some(1), Some(0)]);
        assert_eq!(data.features.select(&[0]).values(), [1.0]);
        assert_eq!(data.features.width(), 2);
    }

    #[test]
    fn edges_of_another_graph_are_refused() {
        let cites = "p\tq\n".repeat(8) + "p\tgone\n";
        let error = tiny("p\t1\tA\nq\t1\tA\n", &cites).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.cites:9: the node `gone` has no line in `a.content`, and 1 of 9 edges are so; a few are left out, but \
             these files do not belong together"
        );
    }

    #[test]
    fn mistakes_are_named_by_file_and_line() {
        for (content, cites, message) in [
            (
                "p\t1\tA\nq\t1\t0\tA\n",
                "",
                "a.content:2: has 2 features where the first line has 1",
            ),
            (
                "p\tx\tA\n",
                "",
                "a.content:1: feature 1: expected a number for each feature, found `x`",
            ),
            (
                "p\t1\tA\np\t1\tA\n",
                "",
                "a.content:2: the node `p` is there a second time; remove one",
            ),
            (
                "p\t1\tA\n",
                "p p\n",
                "a.cites:1: expected two ids separated by a tab, found `p p`",
            ),
        ] {
            assert_eq!(tiny(content, cites).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_byte_order_mark_before_the_first_node_of_linqs_is_no_part_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("a.content", "\u{feff}p\t1\tA\nq\t1\tB\n");
        write("a.cites", "\u{feff}p\tq\n");
        let data = read(folder.path()).unwrap();
        assert_eq!((data.graph.edges(), data.reading.notes.len()), (2, 0));
    }

    #[test]
    fn a_split_has_a_header_and_each_node_once() {
        for (split, message) in [
            (
                "p,1,train\n",
                Some("has no header: its first line is of `p`"),
            ),
            (
                "id,number,set\np,1,train\np,2,test\n",
                Some("s.csv:3: lists `p` for the second time"),
            ),
            ("id,number,set\nq,1,val\np,2,train\n", None),
        ] {
            let content: Source = (Path::new("a.content"), Box::new(&b"p\t1\tA\nq\t1\tB\n"[..]));
            let split: Source = (Path::new("s.csv"), Box::new(split.as_bytes()));
            let cites: Source = (Path::new("a.cites"), Box::new(&b"p\tq\n"[..]));
            match (parse("a".to_owned(), content, cites, Some(split)), message) {
                (Ok(data), None) => assert_eq!(data.splits[0].train, [0]),
                (Err(error), Some(message)) => {
                    assert!(error.to_string().contains(message), "{error}");
                }
                (read, _) => panic!("{message:?}: {read:?}"),
            }
        }
    }
}
