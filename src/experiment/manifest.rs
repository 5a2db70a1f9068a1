//! `manifest.json`: what was run, on what, with which version.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::claims::ClaimSpec;
use super::config::Experiment;
use super::part::Share;
use super::statistics::{Looks, Statistics};
use super::tables::Tables;
use crate::atomic;
use crate::graph::{DataSummary, DatasetSpec};
use crate::memory;
use crate::sim::{Engine, Setting};

/// Name of the file in a result folder.
pub(crate) const MANIFEST: &str = "manifest.json";

/// The key that is true where claims are not those that the experiment was run with.
pub(super) const ASKED_AGAIN: &str = "asked_again";

/// The key of which part of the runs a folder has; absent where it has all.
pub(crate) const PART: &str = "part";

/// The facts of a run of an experiment.
pub(super) struct Manifest {
    fixed: Value,
    started: String,
    devices: Vec<String>,
    /// Every data set that is trained on, by what the experiment says of it.
    data: Vec<(DatasetSpec, DataSummary)>,
}

impl Manifest {
    pub(super) fn new(
        program: &str,
        experiment: &Experiment,
        base: &Path,
        command: &[String],
        engine: &Engine,
        part: Option<Share>,
    ) -> Self {
        let resolved = experiment.resolved();
        let text = experiment.resolved_text();
        let hash = sha256(text.as_bytes());
        let mut fixed = json!({
            "name": experiment.name,
            "description": experiment.description,
            "version": env!("CARGO_PKG_VERSION"),
            "program": program,
            "config_hash": hash,
            "config": resolved,
            "config_toml": text,
            "figures": experiment.figures,
            "claims": experiment.claims,
            "statistics": experiment.statistics,
            "base": base,
            "command": command,
            "engine": engine.name(),
            "processes": engine.processes().unwrap_or(1),
            "machine": machine(),
        });
        if let Some(part) = part {
            fixed[PART] = json!(part);
        }
        Self {
            fixed,
            started: now(),
            devices: Vec::new(),
            data: Vec::new(),
        }
    }

    /// What stands in it whatever becomes of the runs.
    pub(super) const fn fixed(&self) -> &Value {
        &self.fixed
    }

    /// Adds what a setting says of data and devices.
    pub(super) fn describe(&mut self, data: &DatasetSpec, setting: &Setting) {
        for device in &setting.devices {
            if !self.devices.contains(&device.description) {
                self.devices.push(device.description.clone());
            }
        }
        if self.data.iter().all(|(known, _)| known != data) {
            let summary = match &setting.shards {
                Some(shards) => shards.meta().data.clone(),
                None => whole(setting),
            };
            self.data.push((data.clone(), summary));
        }
    }

    /// Every data set's name and number of test nodes.
    pub(super) fn test_sets(&self) -> impl Iterator<Item = (&str, usize)> {
        let sets = self.data.iter();
        sets.map(|(_, summary)| (summary.name.as_str(), summary.test))
    }

    /// What was read, a text for each data set.
    pub(super) fn data(&self) -> impl Iterator<Item = String> {
        self.data.iter().map(|(_, summary)| summary.text())
    }

    pub(super) fn write(
        &self,
        folder: &Path,
        elapsed: Duration,
        model: Duration,
        notes: &[String],
        complete: bool,
    ) -> io::Result<()> {
        let mut all = self.fixed.clone();
        let rest = json!({
            "devices": self.devices,
            "data": self.data.first().map(|(_, summary)| summary),
            "data_sets": self.data.iter().map(|(_, summary)| summary).collect::<Vec<_>>(),
            "notes": notes,
            "started": self.started,
            // Null while it runs, and for ever where it was stopped.
            "finished": complete.then(now),
            "elapsed_seconds": seconds(elapsed),
            "model_seconds": seconds(model),
            "tables": table_hashes(folder)?,
        });
        if let (Value::Object(all), Value::Object(rest)) = (&mut all, rest) {
            all.extend(rest);
        }
        write_manifest(folder, &all)
    }
}

/// The claims of a manifest and how they are judged.
///
/// # Errors
/// A sentence, if they are not there or make no sense.
pub(crate) fn judged_by(manifest: &Value) -> Result<(Vec<ClaimSpec>, Statistics), String> {
    let claims = serde_json::from_value(manifest["claims"].clone())
        .map_err(|error| format!("claims: {error}"))?;
    let mut statistics: Statistics = match &manifest["statistics"] {
        Value::Null => Statistics::default(),
        given => {
            serde_json::from_value(given.clone()).map_err(|error| format!("statistics: {error}"))?
        }
    };
    statistics
        .check()
        .map_err(|(key, what)| format!("statistics: `{key}` {what}"))?;
    statistics.looks = looks(manifest)?;
    Ok((claims, statistics))
}

/// The looks at the claims while seeds were added, if they were.
fn looks(manifest: &Value) -> Result<Option<Looks>, String> {
    let seeds = &manifest["config"]["seeds"];
    if !seeds.is_object() {
        return Ok(None);
    }
    let looks: Looks =
        serde_json::from_value(seeds.clone()).map_err(|error| format!("seeds: {error}"))?;
    // Whatever the file's own minimum was.
    looks
        .check(0)
        .map_err(|(key, what)| format!("seeds: `{key}` {what}"))?;
    Ok(Some(looks))
}

/// A time in seconds, to the microsecond: so few digits are the same number again when they are
/// read, and a manifest that is written again is as it was.
pub(super) fn seconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e6
}

/// Writes the manifest of a result folder.
///
/// # Errors
/// The file system's.
pub(super) fn write_manifest(folder: &Path, manifest: &Value) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(manifest)?;
    text.push('\n');
    atomic::write_bytes(&folder.join(MANIFEST), text.as_bytes())
}

/// Writes the manifest of parts that were joined in a folder, with its tables' hashes.
pub(super) fn write_merged(folder: &Path, mut manifest: Value) -> io::Result<()> {
    manifest["finished"] = json!(now());
    manifest["tables"] = json!(table_hashes(folder)?);
    write_manifest(folder, &manifest)
}

/// SHA-256 of every table's file, by the file's name.
pub(super) fn table_hashes(folder: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut hashes = BTreeMap::new();
    for name in Tables::files(folder) {
        let hash = sha256(&fs::read(folder.join(&name))?);
        hashes.insert(name, hash);
    }
    Ok(hashes)
}

/// Hash of the program that is running: any change of its code changes it.
pub(super) fn program() -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut fs::File::open(std::env::current_exe()?)?, &mut hash)?;
    Ok(format!("{:x}", hash.finalize()))
}

/// The hash as 64 hexadecimal digits.
pub(super) fn sha256(content: &[u8]) -> String {
    format!("{:x}", Sha256::digest(content))
}

/// The manifest of a result folder.
///
/// # Errors
/// If it is not there, not JSON, or JSON that is no manifest.
pub fn read_manifest(folder: &Path) -> io::Result<Value> {
    let text = fs::read_to_string(folder.join(MANIFEST))?;
    let manifest: Value = serde_json::from_str(&text)?;
    let lacks = if !manifest["name"].is_string() {
        "the `name` of an experiment"
    } else if !manifest["config"].is_object() {
        "its `config`"
    } else {
        return Ok(manifest);
    };
    let what = format!("it is JSON, but no manifest: it has not {lacks}");
    Err(io::Error::new(io::ErrorKind::InvalidData, what))
}

/// The data that were read, and how much of them is trained on.
fn whole(setting: &Setting) -> DataSummary {
    let mut summary = setting.scored().summary();
    if setting.unseen.is_some() {
        let (nodes, edges) = (setting.counts.nodes, setting.counts.edges / 2);
        summary.notes.push(format!(
            "trained on {nodes} of {} nodes and {edges} of {} edges, those of training nodes (`inductive`)",
            summary.nodes, summary.edges
        ));
    }
    summary
}

/// Now, as in `2026-01-31T12:00:00Z`.
fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

fn machine() -> Value {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpus.lines().find(|line| line.starts_with("model name"));
    json!({
        "os": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
        "cpu": cpu.and_then(|line| Some(line.split_once(':')?.1.trim())),
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "threads": rayon::current_num_threads(),
        "memory_bytes": memory::of_machine(),
    })
}
