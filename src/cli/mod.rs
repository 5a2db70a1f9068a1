//! The command line: one file per subcommand.
//!
//! Results go to standard output, progress and messages to standard error. Exit code 0: done; 1:
//! failed while running; 2: the input was wrong.

mod advise;
mod calibrate;
mod columns;
mod compare;
mod completions;
mod datasets;
mod engine;
mod estimator;
mod fetch;
mod info;
mod kernels;
mod list;
mod merge;
mod net;
mod output;
mod partition;
mod progress;
mod project;
mod report;
mod run;
mod source;
mod verify;
mod weights;

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::experiment::config::{PAPER, Vocabulary};
use crate::experiment::{ConfigError, Experiment};
use crate::fetch::FetchError;
use crate::graph::keep_data_in;
use crate::net::Bytes;
use crate::sim::keep_freed_memory;
use crate::strategies::Registry;
use crate::{Error, memory, report as reports};

/// Train graph neural networks across emulated machines and measure what each way of communicating
/// costs.
#[derive(Parser)]
#[command(name = "grapevine", version, propagate_version = true)]
struct Cli {
    /// Most memory to take, such as 8GB; needs below 16 MiB each are not looked at [default:
    /// what is free on the machine and in its container]
    #[arg(long, global = true, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// Folder of fetched data sets [default: `$GRAPEVINE_DATA`, or `grapevine` in your cache]
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train every cell of an experiment; write tables, figures, a report and verdicts
    Run(run::Args),
    /// Rebuild figures, tables and report.html of a result folder from its tables
    Report(report::Args),
    /// Check every invariant of a result folder
    Verify(verify::Args),
    /// Join the folders of all parts of an experiment (`run --part`), and judge its claims
    Merge(merge::Args),
    /// Show what changed between result folders, run by run, with intervals
    Compare(compare::Args),
    /// Bytes and time from the plan alone, without training, for the first seed
    Project(project::Args),
    /// Rank the strategies that fit one graph and network by the time they would take, with reasons
    Advise(advise::Args),
    /// Write the initial weights of every run as .npz, for other programs that are to start there
    Weights(weights::Args),
    /// Cut a graph: print cut, boundary rows, balance and coverage; write the partition to a file
    Partition(partition::Args),
    /// Measure bias, variance and error of Grappa's gradient weights on small graphs
    Estimator(estimator::Args),
    /// Emulate a list of flows over a network: when each starts and finishes
    Net(net::Args),
    /// Measure the network between the processes that mpirun started, and write it as a [network]
    /// section
    Calibrate(calibrate::Args),
    /// Time the operations of an epoch on this machine's devices: copying, products, aggregation
    Kernels(kernels::Args),
    /// Download published data sets, check them, and put them where experiments find them by name
    Fetch(fetch::Args),
    /// Show what a graph is like: degrees, components, homophily, classes, features
    Info(info::Args),
    /// List what experiment files can name
    List(list::Args),
    /// Print completions for a shell
    Completions(completions::Args),
}

/// What a subcommand found: good, or breaches that it has already printed.
enum Verdict {
    Good,
    /// Something is not as it should be: exit code 1.
    Breached,
    /// What was asked for cannot be: exit code 2.
    Refused,
}

/// Runs the program with the strategies of `registry`, and returns its exit code. A crate of your
/// own calls this with `Registry::builtin().with(…)` to get the whole program with its strategy in
/// it.
pub fn run_with(registry: &Registry) -> ExitCode {
    // First of all, for the allocator is told before any thread starts.
    keep_freed_memory();
    // `parse` would print by itself, and drop the error where the text cannot be written.
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version come this way, too.
        Err(said) => {
            let written = said.print();
            let unwritten = written.is_err_and(|error| error.kind() != ErrorKind::BrokenPipe);
            // clap's codes are ours: 2 where an argument is wrong, 0 for help and version.
            let code = if unwritten { 1 } else { said.exit_code() };
            return ExitCode::from(u8::try_from(code).unwrap_or(1));
        }
    };
    memory::limit_to(cli.memory.map(|memory| memory.0));
    keep_data_in(cli.data);
    let outcome = match cli.command {
        Command::Run(args) => run::run(&args, registry),
        Command::Report(args) => report::run(&args, registry),
        Command::Verify(args) => verify::run(&args, registry),
        Command::Merge(args) => merge::run(&args, registry),
        Command::Compare(args) => compare::run(&args),
        Command::Project(args) => project::run(&args, registry),
        Command::Advise(args) => advise::run(&args, registry),
        Command::Weights(args) => weights::run(&args, registry),
        Command::Partition(args) => partition::run(&args),
        Command::Estimator(args) => estimator::run(&args),
        Command::Net(args) => net::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Kernels(args) => kernels::run(&args),
        Command::Fetch(args) => fetch::run(&args),
        Command::Info(args) => info::run(&args),
        Command::List(args) => list::run(&args, registry),
        Command::Completions(args) => completions::run(&args).map(|()| Verdict::Good),
    };
    match outcome {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Breached) => ExitCode::from(1),
        Ok(Verdict::Refused) => ExitCode::from(2),
        Err(error) if error.is::<engine::Told>() => {
            ExitCode::from(if is_input(&error) { 2 } else { 1 })
        }
        Err(error) => {
            output::tell(&format!("error: {}\n", output::told(&error)));
            ExitCode::from(if is_input(&error) { 2 } else { 1 })
        }
    }
}

/// Whether a person's input is to blame.
fn is_input(error: &anyhow::Error) -> bool {
    error.is::<output::BadFolder>()
        || error.is::<output::BadArgument>()
        || error
            .downcast_ref::<engine::Told>()
            .is_some_and(|told| told.input)
        || (error.downcast_ref::<FetchError>()).is_some_and(FetchError::is_input)
        || error.downcast_ref::<Error>().is_some_and(Error::is_input)
}

/// Which experiment, in which size, with which changes: arguments that several subcommands share.
#[derive(clap::Args, Clone, Debug)]
pub struct ExperimentArgs {
    /// Experiment file
    pub file: PathBuf,
    /// Size of the experiment: `paper` is the file as it stands; the others are its `[scale.…]`
    /// tables
    #[arg(long, value_name = "SIZE", default_value = PAPER)]
    pub scale: String,
    /// Change a value of the file, such as `training.epochs=20`; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
}

impl ExperimentArgs {
    /// The file as it stands.
    pub fn of(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            scale: PAPER.to_owned(),
            sets: Vec::new(),
        }
    }
}

/// Reads an experiment file against everything this program knows.
///
/// # Errors
/// What is wrong with the file or an override, and where.
pub fn read_experiment(args: &ExperimentArgs, registry: &Registry) -> Result<Experiment, Error> {
    with_vocabulary(registry, |vocabulary| {
        Experiment::read(&args.file, &args.scale, &args.sets, vocabulary)
    })
}

/// Reads an experiment with all names that this program knows.
fn with_vocabulary(
    registry: &Registry,
    read: impl FnOnce(&Vocabulary<'_>) -> Result<Experiment, ConfigError>,
) -> Result<Experiment, Error> {
    let figures = reports::figure_kinds();
    let vocabulary = Vocabulary {
        registry,
        figures: &figures,
    };
    Ok(read(&vocabulary)?)
}
