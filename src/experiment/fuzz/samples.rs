//! A small valid file, or folder of files, of everything that is read.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use ndarray::{Array1, Array2};
use ndarray_npy::{NpzWriter, WritableElement, WriteNpyExt};
use polars::prelude::{Column, DataFrame, ParquetWriter};

use crate::experiment::archive::{Address, Archive};
use crate::experiment::rows::{EpochRow, RunRow, TrafficRow};
use crate::experiment::tables::Tables;

/// How a file holds its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    /// As it is.
    Plain,
    /// Compressed as a whole.
    Gzip,
    /// As members of a zip, by name.
    Zip(Vec<(String, Vec<u8>)>),
}

/// One file of a sample.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// Its path in the folder.
    pub name: String,
    /// What is in it, before it is packed.
    pub content: Vec<u8>,
    /// How it is packed.
    pub(crate) packing: Packing,
}

impl Sample {
    fn plain(name: &str, content: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.to_owned(),
            content: content.into(),
            packing: Packing::Plain,
        }
    }

    fn gz(name: &str, content: impl Into<Vec<u8>>) -> Self {
        Self {
            packing: Packing::Gzip,
            ..Self::plain(name, content)
        }
    }

    /// The bytes of the file.
    pub(super) fn packed(&self) -> Vec<u8> {
        match &self.packing {
            Packing::Plain => self.content.clone(),
            Packing::Gzip => gzip(&self.content),
            Packing::Zip(members) => zip(members),
        }
    }
}

pub(super) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(content).unwrap();
    packed.finish().unwrap()
}

pub(super) fn zip(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, content) in members {
        zip.start_file(name, options).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The members of what `write` writes.
fn npz(name: &str, write: impl FnOnce(&mut NpzWriter<File>)) -> Vec<Sample> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let mut npz = NpzWriter::new(File::create(&path).unwrap());
    write(&mut npz);
    npz.finish().unwrap();
    let packing = members(std::fs::read(&path).unwrap());
    vec![Sample {
        packing,
        ..Sample::plain(name, "")
    }]
}

fn one<T: WritableElement + Clone>(npz: &mut NpzWriter<File>, name: &str, values: &[T]) {
    npz.add_array(name, &Array1::from_vec(values.to_vec()))
        .unwrap();
}

fn two<T: WritableElement + Clone>(
    npz: &mut NpzWriter<File>,
    name: &str,
    width: usize,
    values: &[T],
) {
    let shape = (values.len() / width, width);
    npz.add_array(
        name,
        &Array2::from_shape_vec(shape, values.to_vec()).unwrap(),
    )
    .unwrap();
}

pub(super) fn npz_csr() -> Vec<Sample> {
    npz("a.npz", |npz| {
        one(npz, "adj_shape", &[3_i64, 3]);
        one(npz, "adj_indptr", &[0_i32, 2, 3, 4]);
        one(npz, "adj_indices", &[1_i32, 2, 1, 1]);
        one(npz, "adj_data", &[1_f32, 0.0, 1.0, 1.0]);
        one(npz, "attr_shape", &[3_i64, 5]);
        one(npz, "attr_indptr", &[0_i32, 1, 1, 2]);
        one(npz, "attr_indices", &[4_i32, 0]);
        one(npz, "attr_data", &[2_f64, 3.0]);
        one(npz, "labels", &[2_i64, 1, 2]);
    })
}

pub(super) fn npz_edges() -> Vec<Sample> {
    npz("a.npz", |npz| {
        two(npz, "node_features", 2, &[1_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        one(npz, "node_labels", &[1_i64, 0, 1]);
        two(npz, "edges", 2, &[0_i64, 1, 2, 1]);
        for (node, mask) in ["train_masks", "val_masks", "test_masks"]
            .iter()
            .enumerate()
        {
            two(npz, mask, 3, &[0, 1, 2].map(|other| other == node));
        }
    })
}

pub(super) fn csv() -> Vec<Sample> {
    vec![
        Sample::plain("t_edges.csv", "a,b\n1,2\n2,30\n30,1\n"),
        Sample::plain(
            "t_target.csv",
            "id,name,age,target\n1,\"x, y\",3,0\n2,z,4,nan\n30,w,5,1\n",
        ),
        Sample::plain("x.csv", "id,x,y\n1,0.5,1\n2,-3,4e-1\n30,0,0\n"),
    ]
}

pub(super) fn csv_json() -> Vec<Sample> {
    let mut files = csv();
    files[2] = Sample::plain("t_features.json", "{\"1\": [0, 2], \"2\": [], \"30\": [1]}");
    files
}

pub(super) fn edge_list(packed: bool) -> Vec<Sample> {
    let text = "# from\tto\n900\t7\n7\t900 # again\n\n5 5\r\n7 5\n";
    vec![if packed {
        Sample::gz("t.txt.gz", text)
    } else {
        Sample::plain("t.txt", text)
    }]
}

pub(super) fn metis() -> Vec<Sample> {
    vec![Sample::plain(
        "t.graph",
        "% a path\n3 2 11 1\n7 2 9\n8 1 9 3 4\n8 2 4\n",
    )]
}

pub(super) fn given() -> Vec<Sample> {
    vec![Sample::plain("parts.txt", "0\n1\n0\n1\n0\n0\n1\n1\n")]
}

pub(super) fn given_array() -> Vec<Sample> {
    let mut bytes = Vec::new();
    let array = Array1::from(vec![0_i64, 1, 0, 1, 0, 0, 1, 1]);
    array.write_npy(&mut bytes).unwrap();
    vec![Sample::plain("node_map.npy", bytes)]
}

pub(super) fn given_ranges() -> Vec<Sample> {
    vec![Sample::plain(
        "parts.json",
        r#"{"num_parts": 2, "node_map": {"_N": [[0, 3], [3, 8]]}}"#,
    )]
}

pub(super) fn linqs() -> Vec<Sample> {
    vec![
        Sample::plain("t.content", "p9\t0\t1\tZ\np1\t1\t0.5\tA\np2\t0\t0\tZ\n"),
        Sample::plain("t.cites", "p9\tp1\np1\tp9\np2\tp1\n"),
        Sample::plain(
            "planetoid-split.csv",
            "paper_id,planetoid_index,split\np9,0,train\np1,1,val\np2,2,test\n",
        ),
    ]
}

pub(super) fn ogb() -> Vec<Sample> {
    vec![
        Sample::plain("raw/num-node-list.csv", "3\n"),
        Sample::plain("raw/num-edge-list.csv", "2\n"),
        Sample::gz("raw/edge.csv.gz", "0,1\n2,1\n"),
        Sample::plain("raw/node-label.csv", "1.0\n0.0\nnan\n"),
        Sample::plain("raw/node-feat.csv", "0.5,-1\n2,3\n4,5e-1\n"),
        Sample::plain("split/time/train.csv", "1\n"),
        Sample::plain("split/time/valid.csv", "0\n"),
        Sample::plain("split/time/test.csv", "2\n"),
    ]
}

/// The members of a zip.
fn members(bytes: Vec<u8>) -> Packing {
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
    let members = (0..archive.len()).map(|index| {
        let mut member = archive.by_index(index).unwrap();
        let mut content = Vec::new();
        member.read_to_end(&mut content).unwrap();
        (member.name().to_owned(), content)
    });
    Packing::Zip(members.collect())
}

/// A folder of `tests/layouts`, as other libraries wrote it.
pub(super) fn layout(name: &str) -> Vec<Sample> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/layouts")
        .join(name);
    let (mut files, mut left) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
            files.push(match path.extension().and_then(|ending| ending.to_str()) {
                Some("npz") => Sample {
                    packing: members(bytes),
                    ..Sample::plain(name, "")
                },
                Some("gz") => {
                    let mut content = Vec::new();
                    flate2::read::GzDecoder::new(&bytes[..])
                        .read_to_end(&mut content)
                        .unwrap();
                    Sample::gz(name, content)
                }
                _ => Sample::plain(name, bytes),
            });
        }
    }
    // File systems list in any order.
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files
}

pub(super) fn matrix_market() -> Vec<Sample> {
    let text =
        "%%MatrixMarket matrix coordinate real general\n% six\n5 5 3\n1 2 1\n2 3 0.5\n5 1 0\n";
    vec![Sample::plain("t.mtx", text)]
}

pub(super) fn wiki_cs() -> Vec<Sample> {
    let text = r#"{"features": [[0.5, 1], [2, -3], [0, 1]], "labels": [4, 1, 4], "links": [[1, 2], [], [0]],
        "train_masks": [[true, false, false]], "val_masks": [[false, true, false]], "test_mask": [0, 0, 1]}"#;
    vec![Sample::plain("data.json", text)]
}

/// Two tables with the usual names of columns.
pub(super) fn parquet() -> Vec<Sample> {
    let table = |mut frame: DataFrame| {
        let mut bytes = Vec::new();
        ParquetWriter::new(&mut bytes).finish(&mut frame).unwrap();
        bytes
    };
    let column = |name: &str, values: &[i64]| Column::new(name.into(), values);
    let nodes = [
        column("id", &[7, 8, 9]),
        column("label", &[0, 1, 0]),
        column("features", &[1, 2, 3]),
    ];
    let edges = [column("source", &[7, 8]), column("target", &[8, 9])];
    vec![
        Sample::plain(
            "nodes.parquet",
            table(DataFrame::new(3, nodes.to_vec()).unwrap()),
        ),
        Sample::plain(
            "edges.parquet",
            table(DataFrame::new(2, edges.to_vec()).unwrap()),
        ),
    ]
}

/// A pickled array of `i4`, as Python 2 writes it.
fn array(shape: &[u8], values: &[i32]) -> Vec<u8> {
    let mut bytes =
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01"
            .to_vec();
    for extent in shape {
        bytes.extend([b'K', *extent]);
    }
    bytes.push(0x84 + shape.len() as u8);
    bytes.extend(b"cnumpy\ndtype\nU\x02i4K\x00K\x01\x87R(K\x03U\x01<NNNtb\x89U");
    bytes.push(4 * values.len() as u8);
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes.extend(b"tb");
    bytes
}

fn pickled(object: &[u8]) -> Vec<u8> {
    [b"\x80\x02", object, b"."].concat()
}

/// A pickled sparse matrix.
fn matrix(shape: [u8; 2], offsets: &[i32], columns: &[i32], values: &[i32]) -> Vec<u8> {
    let mut bytes = b"cscipy.sparse.csr\ncsr_matrix\nq\x01)\x81q\x02}q\x03(U\x06_shapeK".to_vec();
    bytes.extend([shape[0], b'K', shape[1], 0x86]);
    for (name, values) in [("indptr", offsets), ("indices", columns), ("data", values)] {
        bytes.extend([b'U', name.len() as u8]);
        bytes.extend(name.bytes());
        bytes.extend(array(&[values.len() as u8], values));
    }
    bytes.extend(b"ub");
    bytes
}

pub(super) fn planetoid() -> Vec<Sample> {
    let graph = b"ccollections\ndefaultdict\nq\x01c__builtin__\nlist\nq\x02\x85Rq\x03(K\x00]q\x04(K\x01K\x02eK\x01]K\x00aK\x02]K\x00au";
    vec![
        Sample::plain("ind.t.graph", pickled(graph)),
        Sample::plain("ind.t.test.index", "2\n"),
        Sample::plain(
            "ind.t.allx",
            pickled(&matrix([2, 4], &[0, 1, 3], &[3, 0, 2], &[1, 1, 1])),
        ),
        Sample::plain("ind.t.tx", pickled(&matrix([1, 4], &[0, 1], &[1], &[1]))),
        Sample::plain("ind.t.ally", pickled(&array(&[2, 2], &[1, 0, 0, 1]))),
        Sample::plain("ind.t.ty", pickled(&array(&[1, 2], &[1, 0]))),
        Sample::plain("ind.t.y", pickled(&array(&[1, 2], &[1, 0]))),
    ]
}

pub(super) fn experiment() -> Vec<Sample> {
    let text = include_str!("../../../experiments/quickstart.toml");
    vec![Sample::plain("x.toml", text)]
}

pub(super) fn flows() -> Vec<Sample> {
    let text = include_str!("../../../experiments/net/incast.toml");
    vec![Sample::plain("x.toml", text)]
}

fn tables() -> Tables {
    let run = RunRow {
        cell: "full".into(),
        strategy: "full".into(),
        seed: 7,
        status: RunRow::OK.into(),
        ..RunRow::default()
    };
    Tables {
        runs: vec![run],
        epochs: vec![EpochRow::default(); 3],
        traffic: vec![TrafficRow::default(); 2],
        ..Tables::default()
    }
}

/// What stands at this place in a folder that was just written.
fn files_of(folder: &Path, names: &[&str]) -> Vec<Sample> {
    let read = |name: &&str| Sample::plain(name, std::fs::read(folder.join(name)).unwrap());
    names.iter().map(read).collect()
}

pub(super) fn result_folder() -> Vec<Sample> {
    let folder = tempfile::tempdir().unwrap();
    tables().write(folder.path()).unwrap();
    let names = ["runs", "epochs", "traffic", "claims"].map(|name| format!("{name}.parquet"));
    let mut files = files_of(folder.path(), &names.each_ref().map(String::as_str));
    let manifest =
        "{\"name\": \"t\", \"config\": {}, \"claims\": [], \"statistics\": {\"level\": 0.95}}\n";
    files.push(Sample::plain("manifest.json", manifest));
    files
}

/// The table of runs as CSV, which is what reference results have.
pub(super) fn reference() -> Vec<Sample> {
    let folder = tempfile::tempdir().unwrap();
    tables().write(folder.path()).unwrap();
    files_of(folder.path(), &["runs.csv"])
}

/// One finished run, and where it is kept.
pub(super) fn finished() -> Vec<Sample> {
    let folder = tempfile::tempdir().unwrap();
    let (archive, address) = (Archive::of(folder.path()), Address::of_text("0123"));
    archive.put(&address, &tables()).unwrap();
    let mut content = Vec::new();
    let file = File::open(archive.path(&address)).unwrap();
    flate2::read::GzDecoder::new(file)
        .read_to_end(&mut content)
        .unwrap();
    vec![Sample::gz("finished/0123.cbor.gz", content)]
}
