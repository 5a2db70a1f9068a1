//! Runs that have finished, kept one by one, so that an experiment can go on where it was stopped.
//!
//! Each run is one file, `finished/<address>.cbor.gz` in the result folder, with its rows of all
//! tables. The address is a hash of all that the rows depend on: the cell with its settings and
//! options, the seed, the content of the data and of given weights, the partition, the devices, the
//! engine, and the program itself. A run with another address is another run; a file that is cut
//! short or altered is none.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use toml::{Table, Value};

use super::Tables;
use super::config::Cell;
use super::rows::Text;
use crate::atomic;
use crate::graph::Dataset;
use crate::sim::Setting;

/// Name of the folder in a result folder.
pub(super) const FOLDER: &str = "finished";

/// Name of the folder beside it with the checkpoints of runs that have not finished.
pub(super) const CHECKPOINTS: &str = "checkpoints";

/// How the names of its files end.
pub(super) const EXTENSION: &str = ".cbor.gz";

/// What a run is found by: 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address(String);

#[cfg(test)]
impl Address {
    /// One of a test's own.
    pub(super) fn of_text(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// Works out addresses.
pub(super) struct Addresser {
    /// Hash of what all runs of an experiment have in common.
    common: Sha256,
    /// Data that have been hashed before: several cells train on the same. Not held here.
    data: Vec<(Weak<Dataset>, [u8; 32])>,
}

impl Addresser {
    /// Addresses of the runs of an experiment by a program with this hash. `traced` is the number
    /// of epochs of which a timeline is kept.
    pub(super) fn new(program: &str, experiment: &str, traced: usize) -> Self {
        let mut common = Sha256::new();
        absorb(&mut common, program.as_bytes());
        absorb(&mut common, experiment.as_bytes());
        common.update((traced as u64).to_le_bytes());
        Self {
            common,
            data: Vec::new(),
        }
    }

    /// The address of one run.
    pub(super) fn of(&mut self, cell: &Cell, setting: &Setting, epochs: usize) -> Address {
        let mut hash = self.common.clone();
        let entry = &cell.strategy;
        // How often a checkpoint is written changes nothing of the rows.
        let mut settings = cell.settings.clone();
        settings.training.checkpoint_every = None;
        // Settings came out of TOML and can be written as TOML: the empty table is never hashed.
        let settings = Value::try_from(&settings).unwrap_or(Value::Table(Table::new()));
        // Names as well, for they stand in the rows.
        let texts = [
            cell.name.clone(),
            entry.label.clone(),
            entry.kind.clone(),
            entry.options.to_string(),
            settings.to_string(),
            setting.engine.name().to_owned(),
        ];
        // Two devices agree to rounding only.
        let devices = setting.devices.iter().map(|device| &device.description);
        for text in texts.iter().chain(devices) {
            absorb(&mut hash, text.as_bytes());
        }
        hash.update(setting.seed.to_le_bytes());
        hash.update((epochs as u64).to_le_bytes());
        if setting.shards.is_none() {
            hash.update(self.fingerprint(setting.scored()));
        }
        absorb_what_files_say(&mut hash, setting);
        Address(format!("{:x}", hash.finalize()))
    }

    fn fingerprint(&mut self, data: &Arc<Dataset>) -> [u8; 32] {
        // By place: cells on the same data share them, and a comparison of contents would cost what
        // the memo saves.
        let same = |(seen, _): &&(Weak<Dataset>, _)| std::ptr::eq(seen.as_ptr(), Arc::as_ptr(data));
        if let Some((_, known)) = self.data.iter().find(same) {
            return *known;
        }
        let fingerprint = data.fingerprint();
        self.data.push((Arc::downgrade(data), fingerprint));
        fingerprint
    }
}

/// What is drawn, or stands in files that settings only name: the weights that a run starts from,
/// how links change, and who has which node, and in which chunk, or of shards what is in them.
pub(super) fn absorb_what_files_say(hash: &mut Sha256, setting: &Setting) {
    if let Some(given) = &setting.weights {
        absorb(hash, b"weights");
        hash.update(given.hash());
    }
    for switch in setting.topology.switches() {
        absorb(hash, format!("{switch:?}").as_bytes());
    }
    if let Some(shards) = &setting.shards {
        hash.update(shards.hash());
        return;
    }
    for part in &setting.partition.assignment {
        hash.update(part.to_le_bytes());
    }
    let chunks = setting.chunks.iter();
    for part in chunks.flat_map(|chunks| &chunks.plan.parts) {
        hash.update((part.owned.len() as u64).to_le_bytes());
        for node in &part.owned {
            hash.update(node.to_le_bytes());
        }
    }
}

/// A text after its length.
fn absorb(hash: &mut Sha256, text: &[u8]) {
    // Without the length `ab`, `c` and `a`, `bc` would be hashed alike.
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}

/// The finished runs in a result folder.
pub(super) struct Archive {
    folder: PathBuf,
}

impl Archive {
    /// Those in the result folder `out`.
    pub(super) fn of(out: &Path) -> Self {
        Self {
            folder: out.join(FOLDER),
        }
    }

    /// Where a run is, or would be.
    pub(super) fn path(&self, address: &Address) -> PathBuf {
        self.folder.join(format!("{}{EXTENSION}", address.0))
    }

    /// Where the checkpoints of a run are, or would be.
    pub(super) fn checkpoints(&self, address: &Address) -> PathBuf {
        self.folder.with_file_name(CHECKPOINTS).join(&address.0)
    }

    /// The rows of the run of a cell with a seed; nothing if it has not finished, or its file is
    /// not whole or of another run.
    pub(super) fn get(&self, address: &Address, cell: &str, seed: u64) -> Option<Tables> {
        let file = fs::read(self.path(address)).ok()?;
        // Read to the end, where the checksum is.
        let mut content = Vec::new();
        GzDecoder::new(&file[..]).read_to_end(&mut content).ok()?;
        let mut rows: Tables = ciborium::from_reader(&content[..]).ok()?;
        let of_this = matches!(&rows.runs[..], [run] if run.cell == cell && run.seed == seed);
        if !of_this {
            return None;
        }
        let mut words: Vec<Text> = Vec::new();
        for row in &mut rows.traffic {
            share(&mut row.cell, &mut words);
        }
        Some(rows)
    }

    /// Keeps the rows of a run that has finished.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn put(&self, address: &Address, rows: &Tables) -> io::Result<()> {
        atomic::write(&self.path(address), |file| {
            let mut packed = GzEncoder::new(file, Compression::fast());
            // JSON has neither infinity nor NaN, which are losses of runs that diverged.
            ciborium::into_writer(rows, &mut packed).map_err(io::Error::other)?;
            packed.finish().map(drop)
        })
    }

    /// Removes all runs but these.
    ///
    /// # Errors
    /// The file system's.
    pub(super) fn keep_only(&self, addresses: &[Address]) -> io::Result<()> {
        let wanted: BTreeSet<PathBuf> =
            addresses.iter().map(|address| self.path(address)).collect();
        let entries = match fs::read_dir(&self.folder) {
            // No run has finished.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            let ours = path.to_string_lossy().ends_with(EXTENSION);
            if ours && !wanted.contains(&path) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

/// Lets equal words be one in memory: there are few, and each stands in thousands of rows.
fn share(word: &mut Text, words: &mut Vec<Text>) {
    match words.iter().find(|known| *known == word) {
        Some(known) => *word = known.clone(),
        None => words.push(word.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::{EpochRow, Measured, RunRow, Sweep, TrafficRow};
    use crate::net::TrafficKind;

    fn rows() -> Tables {
        let traffic = TrafficRow {
            kind: TrafficKind::Activation,
            compression_error: Some(0.1 + 0.2),
            ..TrafficRow::default()
        };
        Tables {
            runs: vec![RunRow {
                cell: "full".into(),
                seed: u64::MAX,
                sweep: Sweep::default().with("workers", 4.into()),
                ..RunRow::finished(Measured {
                    simulated_seconds: 1.0 / 3.0,
                    ..Measured::default()
                })
            }],
            epochs: vec![EpochRow {
                train_loss: Some(f64::INFINITY),
                ..EpochRow::default()
            }],
            traffic: vec![traffic; 500],
            ..Tables::default()
        }
    }

    #[test]
    fn a_run_comes_back_to_the_last_bit_and_a_broken_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::of(folder.path());
        let address = Address("0123".to_owned());
        assert_eq!(archive.get(&address, "full", u64::MAX), None);
        archive.put(&address, &rows()).unwrap();
        assert_eq!(archive.get(&address, "full", u64::MAX), Some(rows()));
        assert_eq!(
            archive.get(&address, "full", 0),
            None,
            "it is another run's"
        );
        assert_eq!(archive.get(&address, "varco", u64::MAX), None);

        let path = archive.path(&address);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert_eq!(archive.get(&address, "full", u64::MAX), None);
        for place in (10..whole.len()).step_by(7) {
            let mut altered = whole.clone();
            altered[place] ^= 1;
            fs::write(&path, &altered).unwrap();
            assert_eq!(
                archive.get(&address, "full", u64::MAX),
                None,
                "byte {place}"
            );
        }
    }

    #[test]
    fn runs_of_other_experiments_go() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::of(folder.path());
        let [old, new] = ["0a", "0b"].map(|name| Address(name.to_owned()));
        archive.put(&old, &rows()).unwrap();
        archive.put(&new, &rows()).unwrap();
        archive.keep_only(std::slice::from_ref(&new)).unwrap();
        assert_eq!(archive.get(&old, "full", u64::MAX), None);
        assert_eq!(archive.get(&new, "full", u64::MAX), Some(rows()));
    }
}
