//! `grapevine net`: when flows over a network finish.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde_json::json;

use super::Verdict;
use super::output::{columns, print, print_json};
use crate::Error;
use crate::experiment::FlowFile;

/// Arguments of `net`.
#[derive(ClapArgs)]
pub(super) struct Args {
    /// File with a [network] and a list of [[flow]]; docs/network.md describes it
    file: PathBuf,
    /// Change a value of the file; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Print one JSON document, with times in seconds
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Verdict> {
    let file = FlowFile::read(&args.file, &args.sets).map_err(Error::from)?;
    let rows = file.run().map_err(Error::from)?;
    if args.json {
        print_json(&json!({ "flows": rows }))?;
        return Ok(Verdict::Good);
    }
    let header = [
        "flow",
        "from",
        "to",
        "payload_bytes",
        "wire_bytes",
        "start",
        "finish",
        "mean_rate_bps",
    ];
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|row| {
            let rate = row.mean_rate_bps;
            vec![
                row.flow.to_string(),
                row.from.to_string(),
                row.to.to_string(),
                row.payload_bytes.to_string(),
                row.wire_bytes.to_string(),
                format!("{:.9}", row.start),
                format!("{:.9}", row.finish),
                rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}")),
            ]
        })
        .collect();
    print(&columns(&header, &rows))?;
    Ok(Verdict::Good)
}
