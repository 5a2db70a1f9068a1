//! `mpirun -n P grapevine calibrate`: the network between real processes, as a section of an
//! experiment file.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Verdict;
use super::engine::EngineChoice;
use super::output::{BadArgument, columns, print, print_json, tell};
use crate::Error;
use crate::atomic;
use crate::net::{
    Bytes, Framing, Ledger, LineFit, MessageCost, NetworkSpec, Seconds, fit_line, fit_message_cost,
    fit_star,
};
use crate::report::format;
use crate::sim::{
    Calibration, CalibrationPlan, Engine, Load, Pattern, SimError, calibrate, calibrate_emulated,
};

/// Arguments of `calibrate`.
#[derive(ClapArgs)]
pub(super) struct Args {
    /// File for the section [default: standard output]
    #[arg(long, value_name = "FILE", conflicts_with = "only")]
    out: Option<PathBuf>,
    /// Compare with the emulation of the [network] section of this file instead of the measured one
    #[arg(long, value_name = "FILE")]
    network: Option<PathBuf>,
    /// Measure this load alone, for comparison
    #[arg(long, value_enum, requires = "network")]
    only: Option<Pattern>,
    /// Bytes of each message of the load, or of the values that are all-reduced
    #[arg(long, value_name = "SIZE", default_value = "4MB", requires = "only")]
    bytes: Bytes,
    /// Print one JSON document with all measurements
    #[arg(long)]
    json: bool,
}

/// What the file holds, written and read.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    network: NetworkSpec,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Verdict> {
    EngineChoice::Mpi.run(|engine| run_on(args, engine))
}

/// What is to be measured, and the network to compare with, if it is given.
fn planned(args: &Args, workers: usize) -> Result<(CalibrationPlan, Option<NetworkSpec>), Error> {
    if workers < 2 {
        let what = "calibration needs two processes or more; start it with `mpirun -n 4 grapevine calibrate`";
        return Err(SimError::Input(what.to_owned()).into());
    }
    let given = args.network.as_deref().map(read_section).transpose()?;
    if let Some(spec) = &given {
        spec.topology(workers)?.check_all_routes()?;
        if spec.background.is_some() {
            let what = "network.background is not for calibration, which compares a network with nobody else on it; \
                        leave it out";
            return Err(SimError::Input(what.to_owned()).into());
        }
    }
    let mut plan = CalibrationPlan::new(workers);
    if let Some(pattern) = args.only {
        plan.pairs.clear();
        plan.loads = vec![Load {
            pattern,
            bytes: args.bytes.0,
        }];
    }
    Ok((plan, given))
}

fn read_section(file: &Path) -> Result<NetworkSpec, SimError> {
    let refused = |what: String| {
        SimError::Input(format!(
            "--network: {}: {what}; give a file with a [network] section and nothing else",
            file.display()
        ))
    };
    let text = std::fs::read_to_string(file).map_err(|error| refused(error.to_string()))?;
    let section: Section =
        toml::from_str(&text).map_err(|error| refused(error.to_string().trim_end().to_owned()))?;
    Ok(section.network)
}

fn run_on(args: &Args, engine: &Engine) -> anyhow::Result<Verdict> {
    let workers = engine.processes().unwrap_or(1);
    let (plan, given) = engine.agree(
        planned(args, workers).and_then(|planned| {
            // Before minutes of measuring, and by the process that will write.
            let file = args.out.as_deref().filter(|_| engine.leads());
            match file.map(|file| (file, atomic::check(file))) {
                Some((file, Err(error))) => {
                    let what = format!("--out: cannot write {}: {error}", file.display());
                    Err(SimError::Input(what).into())
                }
                _ => Ok(planned),
            }
        }),
        // Processes with different plans would wait for each other's messages for ever.
        |(plan, _)| format!("{plan:?}").into_bytes(),
        Error::is_input,
    )?;
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
    let costs = fits.iter().zip(&measured.bursts);
    let costs: Vec<MessageCost> = costs
        .map(|((.., line), bursts)| fit_message_cost(&bursts.times, bursts.busy, line))
        .collect();
    // A load alone measures no pairs, and there is nothing to fit a star to.
    let fitted = if args.only.is_some() {
        None
    } else {
        Some(fit_star(workers, &fits, &costs).map_err(Error::from)?)
    };
    // One of the two is there: --only needs --network.
    let spec = given.or_else(|| fitted.clone()).unwrap_or_default();
    let only_loads = CalibrationPlan {
        pairs: Vec::new(),
        ..plan.clone()
    };
    let (emulated, ledger) =
        calibrate_emulated(&spec, workers, &only_loads).map_err(Error::from)?;
    let found = Found {
        plan,
        measured,
        fits,
        costs,
        emulated,
    };
    let section = fitted
        .map(|network| section(network, workers))
        .transpose()?;
    if let (Some(file), Some(section)) = (&args.out, &section) {
        atomic::write_bytes(file, section.as_bytes()).map_err(|error| BadArgument {
            flag: "--out",
            what: format!("cannot write {}: {error}", file.display()),
        })?;
    }
    if args.json {
        print_json(&found.document(section.as_deref(), &ledger))?;
        return Ok(Verdict::Good);
    }
    tell(&found.tables());
    match (&args.out, section) {
        (Some(file), _) => print(&format!("{}\n", file.display()))?,
        (None, Some(section)) => print(&section)?,
        (None, None) => {}
    }
    Ok(Verdict::Good)
}

fn section(network: NetworkSpec, workers: usize) -> anyhow::Result<String> {
    let header = format!(
        "# Measured between {workers} processes by `grapevine calibrate`; sizes are those of messages, so no framing is added.\n"
    );
    Ok(header + &toml::to_string(&Section { network })?)
}

/// Everything that was found.
struct Found {
    plan: CalibrationPlan,
    measured: Calibration,
    fits: Vec<(usize, usize, LineFit)>,
    costs: Vec<MessageCost>,
    emulated: Calibration,
}

impl Found {
    /// Loads with their measured and emulated times.
    fn loads(&self) -> impl Iterator<Item = (Load, Seconds, Seconds)> + '_ {
        let times = self.measured.loads.iter().zip(&self.emulated.loads);
        let loads = self.plan.loads.iter().zip(times);
        loads.map(|(&load, (&measured, &emulated))| (load, measured, emulated))
    }

    /// Pairs and loads for a person.
    fn tables(&self) -> String {
        let mut text = String::new();
        if !self.fits.is_empty() {
            let rows: Vec<Vec<String>> = self
                .fits
                .iter()
                .zip(&self.costs)
                .map(|((a, b, fit), cost)| {
                    vec![
                        format!("{a} and {b}"),
                        fit.latency.to_string(),
                        fit.bandwidth.to_string(),
                        cost.overhead.to_string(),
                        cost.gap.to_string(),
                        format::percent(fit.median_error),
                        format::percent(fit.worst_error),
                    ]
                })
                .collect();
            let header = [
                "workers",
                "latency",
                "bandwidth",
                "overhead",
                "gap",
                "median error",
                "worst error",
            ];
            text = columns(&header, &rows) + "\n";
        }
        let rows: Vec<Vec<String>> = self
            .loads()
            .map(|(load, measured, emulated)| {
                vec![
                    load.pattern.name().to_owned(),
                    format::bytes(load.bytes as f64),
                    measured.to_string(),
                    emulated.to_string(),
                    format!("{:.2}", emulated.0 / measured.0),
                ]
            })
            .collect();
        text + &columns(&["load", "bytes", "measured", "emulated", "ratio"], &rows) + "\n"
    }

    fn document(&self, section: Option<&str>, ledger: &Ledger) -> serde_json::Value {
        let pairs = self
            .fits
            .iter()
            .zip(&self.costs)
            .zip(self.measured.pairs.iter().zip(&self.measured.bursts))
            .map(|(((a, b, fit), cost), (times, bursts))| {
                let times: Vec<[f64; 2]> = times
                    .iter()
                    .map(|(size, time)| [size.0 as f64, time.0])
                    .collect();
                let burst_times = bursts.times.iter().map(|(count, time)| (count, time.0));
                let burst_times: Vec<(&usize, f64)> = burst_times.collect();
                json!({
                    "from": a,
                    "to": b,
                    "latency_seconds": fit.latency.0,
                    "bandwidth_bps": fit.bandwidth.bps(),
                    "overhead_seconds": cost.overhead.0,
                    "gap_seconds": cost.gap.0,
                    "median_error": fit.median_error,
                    "worst_error": fit.worst_error,
                    "bytes_and_seconds": times,
                    "messages_and_seconds": burst_times,
                })
            });
        let loads = self.loads().map(|(load, measured, emulated)| {
            json!({
                "load": load.pattern,
                "bytes": load.bytes,
                "measured_seconds": measured.0,
                "emulated_seconds": emulated.0,
            })
        });
        // With their repetitions.
        let sent = ledger.total(&Framing::ethernet());
        json!({
            "section": section,
            "pairs": pairs.collect::<Vec<_>>(),
            "loads": loads.collect::<Vec<_>>(),
            "sent_by_loads": {
                "messages": sent.messages,
                "payload_bytes": sent.payload.0,
                "wire_bytes": sent.wire.0,
            },
        })
    }
}
