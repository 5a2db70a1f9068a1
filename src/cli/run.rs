//! `grapevine run`: from an experiment file to a folder of results.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args as ClapArgs;
use serde_json::json;

use super::engine::EngineChoice;
use super::output::{columns, print, print_json};
use super::progress::Terminal;
use super::{ExperimentArgs, Verdict, read_experiment};
use crate::experiment::rows::{ClaimRow, Measured, distinct, metric_title};
use crate::experiment::statistics::{self, POWER};
use crate::experiment::{
    Error, Experiment, Progress, Runner, Share, Summary, Tables, base_of, default_out,
    read_manifest,
};
use crate::report;
use crate::report::format::{bytes, percent, percent_summary, seconds, with_repartition};
use crate::sim::{Engine, SimError};
use crate::strategies::Registry;

/// Arguments of `run`.
#[derive(ClapArgs)]
#[allow(clippy::struct_excessive_bools)] // each is a flag
pub(super) struct Args {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Folder for results [default: results/<name of the experiment>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// What carries out the runs
    #[arg(long, value_enum, default_value_t)]
    engine: EngineChoice,
    /// Keep finished runs of the same settings, data and program in the result folder, and do the
    /// rest
    #[arg(long)]
    resume: bool,
    /// Go on with the other runs when one fails; the exit code is still 1
    #[arg(long)]
    keep_going: bool,
    /// How many runs train at the same time; the tables are the same. Modelled compute alone
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Do part K of N of the runs, such as 3/16, into results/<name>-K-of-N; `merge` joins them
    #[arg(long, value_name = "K/N")]
    part: Option<Share>,
    /// Say how many seeds each claim needs, by the runs of this file as a pilot
    #[arg(long)]
    plan_seeds: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Print neither progress nor what was read and left out; the report has it
    #[arg(long, short)]
    quiet: bool,
    /// Leave a trace of every run in traces/<cell>-<seed>.json (open it in Perfetto or
    /// `chrome://tracing`), and a timeline in the report
    #[arg(long)]
    trace: bool,
    /// How many epochs, from the first, are traced
    #[arg(long, value_name = "N", default_value_t = 3, requires = "trace",
          value_parser = clap::value_parser!(u32).range(1..))]
    trace_epochs: u32,
}

pub(super) fn run(args: &Args, registry: &Registry) -> anyhow::Result<Verdict> {
    args.engine.run(|engine| run_on(args, registry, engine))
}

fn run_on(args: &Args, registry: &Registry, engine: &Engine) -> anyhow::Result<Verdict> {
    let refused = match engine.processes() {
        Some(_) if args.trace => {
            "--trace is kept by the simulated engine only; leave out one of --trace and --engine mpi"
        }
        Some(_) if args.keep_going => {
            "--keep-going is for the simulated engine only: over MPI a run that fails ends its processes; \
             leave it out, and go on later with --resume"
        }
        Some(_) if args.jobs > 1 => {
            "--jobs is for the simulated engine only: over MPI each worker has a process, and times are measured; leave it out"
        }
        _ => "",
    };
    // All processes refuse it. By agreement one of them says so.
    let refuse = |what: &str| {
        let refused = Err(Error::from(SimError::Input(what.to_owned())));
        engine.agree(refused, |()| Vec::new(), Error::is_input)
    };
    if !refused.is_empty() {
        refuse(refused)?;
    }
    let experiment = engine.agree(
        read_experiment(&args.experiment, registry),
        // Not compared yet: the digest of what is prepared from it has all of it.
        |_| Vec::new(),
        Error::is_input,
    )?;
    if args.plan_seeds && experiment.claims.is_empty() {
        let what = "--plan-seeds says how many seeds claims need, and the file has no [[claim]]; leave it out, or add one";
        refuse(what)?;
    }
    let out = args.out.clone();
    let out = out.unwrap_or_else(|| default_out(&experiment, args.part));
    let runner = Runner {
        experiment: &experiment,
        registry,
        base: base_of(&args.experiment.file),
        out: out.clone(),
        drawn: report::files(&out),
        command: std::env::args().collect(),
        engine: engine.clone(),
        trace_epochs: if args.trace {
            args.trace_epochs as usize
        } else {
            0
        },
        resume: args.resume,
        keep_going: args.keep_going,
        jobs: usize::from(args.jobs),
        part: args.part,
    };
    let progress: Arc<dyn Progress> = Arc::new(Terminal::new(args.quiet || !engine.leads()));
    let mut summary = match runner.run(&progress) {
        Ok(summary) => summary,
        Err(failure @ Error::Failed { .. }) if engine.leads() => {
            // What was finished before deserves a report too; should that fail as well, the first
            // failure says more.
            if let (Ok(tables), Ok(manifest)) = (Tables::read(&out), read_manifest(&out)) {
                let _ = report::build(&out, &tables, &manifest);
            }
            return Err(failure.into());
        }
        Err(error) => return Err(error.into()),
    };
    if !engine.leads() {
        return Ok(Verdict::Good);
    }
    let manifest = read_manifest(&out).context("cannot read back the manifest")?;
    let written = report::build(&out, &summary.tables, &manifest)?;
    summary.notes.extend(written.notes);
    if args.json {
        print_json(&json!({
            "out": out,
            "runs": summary.tables.runs,
            "claims": summary.tables.claims,
            "notes": summary.notes,
            "elapsed_seconds": summary.elapsed.as_secs_f64(),
            "model_seconds": summary.model.as_secs_f64(),
        }))?;
    } else {
        print(&text(&summary, &out, args.jobs))?;
        if args.plan_seeds {
            print(&seed_plan(&summary.tables.claims, &experiment))?;
        }
    }
    if summary.failures.is_empty() {
        return Ok(Verdict::Good);
    }
    let (of, failures) = (summary.tables.runs.len(), summary.failures);
    Err(Error::Some { failures, of, out }.into())
}

/// How many seeds each claim needs, at what was seen and at equality.
fn seed_plan(claims: &[ClaimRow], experiment: &Experiment) -> String {
    let number =
        |seeds: Option<u64>| seeds.map_or_else(|| "–".to_owned(), |seeds| seeds.to_string());
    let rows: Vec<Vec<String>> = claims
        .iter()
        .map(|claim| {
            vec![
                claim.id.clone(),
                claim.seeds.to_string(),
                report::measured(claim),
                report::detectable(claim),
                number(claim.seeds_needed),
                number(claim.seeds_if_equal),
                claim.verdict.to_string(),
            ]
        })
        .collect();
    let header = [
        "claim",
        "seeds",
        "measured",
        "can be told",
        "seeds as measured",
        "seeds if equal",
        "verdict",
    ];
    let (table, chance) = (columns(&header, &rows), percent(POWER));
    let most = experiment
        .statistics
        .looks
        .map_or_else(String::new, |looks| {
            format!(
                "; the file adds seeds up to {} by itself, and these are by its last look",
                looks.most
            )
        });
    format!(
        "\n{table}note: seeds that decide a claim with a chance of {chance}, by the spread of these runs in the setting that is \
         told, at the level of the first step of the correction; \"can be told\": the distance from the bound that these seeds \
         tell; –: no number of seeds does{most}\n"
    )
}

/// What a person wants to see first.
fn text(summary: &Summary, out: &std::path::Path, jobs: u16) -> String {
    let cells = distinct(summary.tables.runs.iter().map(|run| run.cell.as_str()));
    let rows: Vec<Vec<String>> = cells
        .iter()
        .map(|cell| {
            let runs = summary.tables.runs.iter().filter(|run| run.cell == *cell);
            let runs: Vec<Measured> = runs.filter_map(|run| run.measured).collect();
            cell_row(cell, &runs)
        })
        .collect();
    // Named by the first run, for all are on one engine.
    let simulated = summary
        .tables
        .runs
        .first()
        .is_none_or(|run| run.engine == Engine::Simulated.name());
    let time = if simulated { "simulated time" } else { "time" };
    let score = format!("test {}", metric_title(&summary.tables.runs));
    let header = ["strategy", &score, "node data", "gradients", "other", time];
    let mut text = columns(&header, &rows);
    for claim in &summary.tables.claims {
        text.push_str(&claim_line(claim));
    }
    for note in &summary.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    // Where all runs are kept, the clock may not see any time pass.
    let elapsed = summary.elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    let share = summary.model.as_secs_f64() / elapsed / f64::from(jobs);
    text.push_str(&format!(
        "{:.1} s elapsed, {:.0} % of it inside model computation\n{}\n",
        summary.elapsed.as_secs_f64(),
        share * 100.0,
        out.join("report.html").display()
    ));
    text
}

fn cell_row(cell: &str, runs: &[Measured]) -> Vec<String> {
    if runs.is_empty() {
        return [cell, "failed", "–", "–", "–", "–"]
            .map(str::to_owned)
            .into();
    }
    let mean = |of: &dyn Fn(&Measured) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let size = |of: &dyn Fn(&Measured) -> u64| bytes(mean(&|run| of(run) as f64));
    let moved = mean(&|run| run.repartition_bytes as f64);
    let told = |run: &Measured| {
        run.node_data_bytes() + run.parameter_gradient_bytes + run.repartition_bytes
    };
    let accuracy = statistics::Summary::of(runs.iter().filter_map(|run| run.test_accuracy));
    let diverged = if runs.iter().any(|run| run.diverged_at.is_some()) {
        ", diverged"
    } else {
        ""
    };
    vec![
        cell.to_owned(),
        accuracy.map_or("–".to_owned(), |summary| percent_summary(&summary)) + diverged,
        with_repartition(size(&Measured::node_data_bytes), moved),
        size(&|run| run.parameter_gradient_bytes),
        size(&|run| run.payload_bytes - told(run)),
        seconds(mean(&|run| run.simulated_seconds)),
    ]
}

pub(super) fn claim_line(claim: &ClaimRow) -> String {
    format!(
        "{}: {} — {}; expected {}, measured {}, p {}\n",
        claim.verdict,
        claim.id,
        claim.statement,
        claim.expected,
        report::measured(claim),
        report::p_value(claim)
    )
}
