//! `mpirun -n P grapevine calibrate`: the network between real processes, as a section of an experiment file.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use serde::Serialize;
use serde_json::json;

use super::Verdict;
use super::engine::EngineChoice;
use super::output::{BadArgument, columns, print, print_json, tell};
use crate::Error;
use crate::experiment::atomic;
use crate::net::{Bytes, LineFit, NetworkSpec, Seconds, fit_line, fit_star};
use crate::report::format::percent;
use crate::sim::{Calibration, CalibrationPlan, Engine, SimError, calibrate, calibrate_emulated};

/// Arguments of `calibrate`.
#[derive(ClapArgs)]
pub struct Args {
    /// File for the section [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON document with all measurements
    #[arg(long)]
    json: bool,
}

/// What the file holds.
#[derive(Serialize)]
struct Section<'a> {
    network: &'a NetworkSpec,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Verdict> {
    EngineChoice::Mpi.run(|engine| run_on(args, engine))
}

fn run_on(args: &Args, engine: &Engine) -> anyhow::Result<Verdict> {
    let workers = engine.processes().unwrap_or(1);
    let enough = if workers < 2 {
        let what =
            "one process has nobody to talk to; start it with `mpirun -n 4 grapevine calibrate`";
        Err(Error::from(SimError::Input(what.to_owned())))
    } else {
        Ok(())
    };
    engine.agree(enough, |()| Vec::new(), Error::is_input)?;
    let plan = CalibrationPlan::new(workers);
    let mut measured = Calibration::default();
    engine
        .on_processes(|mut communicator| {
            measured = calibrate(communicator.as_mut(), &plan)?;
            Ok(())
        })
        .map_err(Error::from)?;
    if !engine.leads() {
        return Ok(Verdict::Good);
    }
    let fits = plan
        .pairs
        .iter()
        .zip(&measured.pairs)
        .map(|(&(a, b), times)| Ok((a, b, fit_line(times)?)))
        .collect::<Result<Vec<_>, Error>>()?;
    let spec = fit_star(workers, &fits).map_err(Error::from)?;
    let only_collectives = CalibrationPlan {
        pairs: Vec::new(),
        ..plan.clone()
    };
    let emulated = calibrate_emulated(&spec, workers, &only_collectives).map_err(Error::from)?;

    let header = format!(
        "# Measured between {workers} processes by `grapevine calibrate`; sizes are those of messages, so no framing is added.\n"
    );
    let section = header + &toml::to_string(&Section { network: &spec })?;
    if let Some(file) = &args.out {
        atomic::write_bytes(file, section.as_bytes()).map_err(|error| BadArgument {
            flag: "--out",
            what: format!("cannot write {}: {error}", file.display()),
        })?;
    }
    if args.json {
        print_json(&document(&spec, &plan, &measured, &fits, &emulated))?;
        return Ok(Verdict::Good);
    }
    tell(&tables(&plan, &measured, &fits, &emulated));
    if let Some(file) = &args.out {
        print(&format!("{}\n", file.display()));
    } else {
        print(&section);
    }
    Ok(Verdict::Good)
}

type Fit = (usize, usize, LineFit);

/// Pairs and all-reduces for a person.
fn tables(
    plan: &CalibrationPlan,
    measured: &Calibration,
    fits: &[Fit],
    emulated: &Calibration,
) -> String {
    let rows: Vec<Vec<String>> = fits
        .iter()
        .map(|(a, b, fit)| {
            vec![
                format!("{a} and {b}"),
                fit.latency.to_string(),
                fit.bandwidth.to_string(),
                percent(fit.median_error),
                percent(fit.worst_error),
            ]
        })
        .collect();
    let header = [
        "workers",
        "latency",
        "bandwidth",
        "median error",
        "worst error",
    ];
    let mut text = columns(&header, &rows);
    let times = measured.all_reduce.iter().zip(&emulated.all_reduce);
    let rows: Vec<Vec<String>> = plan
        .all_reduce
        .iter()
        .zip(times)
        .map(|(&floats, (measured, emulated))| {
            vec![
                Bytes(floats as u64 * 4).to_string(),
                measured.to_string(),
                emulated.to_string(),
                format!("{:.2}", emulated.0 / measured.0),
            ]
        })
        .collect();
    text.push('\n');
    text.push_str(&columns(
        &["all-reduce", "measured", "emulated", "ratio"],
        &rows,
    ));
    text.push('\n');
    text
}

fn document(
    spec: &NetworkSpec,
    plan: &CalibrationPlan,
    measured: &Calibration,
    fits: &[Fit],
    emulated: &Calibration,
) -> serde_json::Value {
    let pairs = fits
        .iter()
        .zip(&measured.pairs)
        .map(|((a, b, fit), times)| {
            let times = times
                .iter()
                .map(|(size, time): &(Bytes, Seconds)| [size.0 as f64, time.0]);
            json!({
                "from": a,
                "to": b,
                "latency_seconds": fit.latency.0,
                "bandwidth_bps": fit.bandwidth.bps(),
                "median_error": fit.median_error,
                "worst_error": fit.worst_error,
                "bytes_and_seconds": times.collect::<Vec<_>>(),
            })
        });
    let times = measured.all_reduce.iter().zip(&emulated.all_reduce);
    let all_reduce = plan
        .all_reduce
        .iter()
        .zip(times)
        .map(|(floats, (measured, emulated))| {
            json!({
                "payload_bytes": floats * 4,
                "measured_seconds": measured.0,
                "emulated_seconds": emulated.0,
            })
        });
    json!({
        "network": spec,
        "pairs": pairs.collect::<Vec<_>>(),
        "all_reduce": all_reduce.collect::<Vec<_>>(),
    })
}
