//! `grapevine advise`: which strategy for this graph on this network.

mod changes;

use std::fmt::Write;

use clap::Args as ClapArgs;
use serde::Serialize;

use super::output::{Unwritten, columns, left_columns, print, print_json, tell};
use super::project::{memory, moved, node_data};
use super::{ExperimentArgs, Verdict, read_experiment};
use crate::experiment::rows::distinct;
use crate::experiment::statistics::Summary;
use crate::experiment::{
    Advice, Advised, Heard, NODES_A_WORKER, Probe, Projection, Why, advise, base_of,
};
use crate::net::TrafficKind;
use crate::report::format::{
    bytes, capitalised, counted, digits, factor, percent, percent_summary, seconds, upper,
};
use crate::strategies::{EpochKind, Registry};

/// Epochs and seeds of a probe.
const PROBE_EPOCHS: usize = 30;
const PROBE_SEEDS: u64 = 3;

/// Arguments of `advise`.
#[derive(ClapArgs)]
pub(super) struct Args {
    #[command(flatten)]
    experiment: ExperimentArgs,
    /// Also train each strategy for at most 30 epochs on a part of so many nodes, or of counts on a
    /// small graph that is drawn, with three seeds, and say what accuracy is at risk; 250 nodes a
    /// worker, or else fewer workers
    #[arg(
        long,
        value_name = "NODES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2000",
        value_parser = clap::value_parser!(u32).range(2 * NODES_A_WORKER as i64..)
    )]
    probe: Option<u32>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

/// Advice with its reasons in words.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    advice: &'a Advice,
    /// Of each strategy of the ranking.
    reasons: Vec<String>,
}

pub(super) fn run(args: &Args, registry: &Registry) -> anyhow::Result<Verdict> {
    let experiment = read_experiment(&args.experiment, registry)?;
    let base = base_of(&args.experiment.file);
    let probe = args.probe.map(|nodes| Probe {
        nodes: nodes as usize,
        epochs: PROBE_EPOCHS,
        seeds: PROBE_SEEDS,
    });
    let mut shown = Shown {
        args,
        settings: 0,
        ranked: false,
        written: Ok(()),
    };
    let advice = advise(&experiment, registry, &base, probe, &mut |heard| {
        shown.hear(heard);
    })?;
    shown.written?;
    if args.json {
        let documents: Vec<Document<'_>> = (advice.iter())
            .map(|advice| Document {
                reasons: advice.ranking.iter().map(reason).collect(),
                advice,
            })
            .collect();
        print_json(&documents)?;
    }
    // A cluster on which nothing fits is no cluster for this graph.
    Ok(if advice.iter().all(|advice| advice.ranking.is_empty()) {
        Verdict::Refused
    } else {
        Verdict::Good
    })
}

/// What is printed of advice as it comes: of each setting its ranking, and then the rest.
struct Shown<'a> {
    args: &'a Args,
    settings: usize,
    /// Whether the ranking of this setting is there.
    ranked: bool,
    written: Result<(), Unwritten>,
}

impl Shown<'_> {
    fn hear(&mut self, heard: Heard<'_>) {
        match heard {
            Heard::Begins(what) if !self.args.quiet => tell(&format!("{what}\n")),
            // A document is printed whole.
            _ if self.args.json => {}
            // A probe is a column of the table.
            Heard::Ranked(advice) if self.args.probe.is_none() => self.head(advice),
            Heard::Advised(advice) => {
                if !self.ranked {
                    self.head(advice);
                }
                (self.settings, self.ranked) = (self.settings + 1, false);
                self.write(&rest(advice));
            }
            Heard::Begins(_) | Heard::Ranked(_) => {}
        }
    }

    fn head(&mut self, advice: &Advice) {
        let between = if self.settings > 0 { "\n" } else { "" };
        self.ranked = true;
        self.write(&format!("{between}{}", head(advice)));
    }

    fn write(&mut self, text: &str) {
        if self.written.is_ok() {
            self.written = print(text);
        }
    }
}

/// Who is first in a setting, and the table.
fn head(advice: &Advice) -> String {
    let Advice {
        setting,
        dataset,
        workers,
        epochs,
        ranking,
        ..
    } = advice;
    let of = if setting.is_empty() { "" } else { ": " };
    let Some(first) = ranking.first() else {
        return format!("{setting}{of}no strategy fits into the memory of its workers\n");
    };
    let mut text = format!(
        "{setting}{of}{} first, {} for {} on {dataset} with {}\n",
        first.strategy,
        time(&first.projection),
        counted(*epochs as u64, "epoch"),
        counted(*workers as u64, "worker")
    );
    text.push_str(&silent(ranking));
    text.push('\n');
    text.push_str(&table(ranking));
    text
}

/// Whether a strategy sends anything of the nodes of one worker to another.
fn tells(advised: &Advised) -> bool {
    let projection = &advised.projection;
    projection.payload_of(TrafficKind::is_node_data) + moved(projection) > 0
}

/// Where the first sends nothing of nodes, how much of the graph that is about, and who is the
/// first that does.
fn silent(ranking: &[Advised]) -> String {
    let (first, next) = (&ranking[0], ranking.iter().find(|advised| tells(advised)));
    if tells(first) || first.projection.cut_share == 0.0 {
        return String::new();
    }
    let cut = percent(first.projection.cut_share);
    let next = next.map_or_else(String::new, |next| {
        format!(
            ". Of the strategies that send or move some, {} is first, {}",
            next.strategy,
            time(&next.projection)
        )
    });
    format!("It sends nothing of nodes, and {cut} of the edges join two workers{next}.\n")
}

/// What is said of a ranking below its table.
fn rest(advice: &Advice) -> String {
    let mut text = String::new();
    if !advice.ranking.is_empty() {
        let ranking = advice.ranking.iter();
        let reasons = ranking.map(|advised| (advised.strategy.clone(), reason(advised)));
        text.push('\n');
        text.push_str(&left_columns(&rows(reasons)));
    }
    if !advice.left_out.is_empty() {
        text.push_str("\nLeft out\n");
        let left_out = advice.left_out.iter();
        text.push_str(&left_columns(&rows(
            left_out.map(|left| (left.strategy.clone(), why(&left.why))),
        )));
    }
    let changes = advice.changes.iter().map(|change| {
        let changed = changes::changed(change, &advice.ranking);
        let name = match change.to.name() {
            name if change.workers == advice.workers => name.to_owned(),
            name => format!("{name} ({})", change.workers),
        };
        (name, changed)
    });
    let unasked = advice.unasked.iter().map(|unasked| {
        let why = format!("cannot be asked: {}", unasked.why);
        (unasked.to.name().to_owned(), why)
    });
    let next = rows(changes.chain(unasked));
    if !next.is_empty() {
        text.push_str("\nWhat would change this\n");
        text.push_str(&left_columns(&next));
    }
    if !advice.ranking.is_empty() {
        text.push_str(&notes(&advice.ranking));
    }
    text
}

fn rows(pairs: impl Iterator<Item = (String, String)>) -> Vec<Vec<String>> {
    pairs.map(|(name, text)| vec![name, text]).collect()
}

fn table(ranking: &[Advised]) -> String {
    let asked = |advised: &Advised| advised.probe.is_some() || advised.unprobed.is_some();
    let probed = ranking.iter().any(asked);
    let mut header = vec![
        "strategy",
        "time",
        "times the first",
        "node data",
        "gradients, models",
        "machine time",
        "memory",
    ];
    if probed {
        header.push("probe");
    }
    let first = ranking[0].projection.simulated_seconds;
    let rows: Vec<Vec<String>> = ranking
        .iter()
        .map(|advised| {
            let projection = &advised.projection;
            let mut row = vec![
                advised.strategy.clone(),
                time(projection),
                factor(projection.simulated_seconds / first),
                node_data(projection),
                bytes(parameters(projection) as f64),
                upper(projection, seconds(projection.machine_hours * 3600.0)),
                memory(projection),
            ];
            if probed {
                row.push(accuracy(advised).unwrap_or_else(|| "?".to_owned()));
            }
            row
        })
        .collect();
    columns(&header, &rows)
}

fn time(projection: &Projection) -> String {
    upper(projection, seconds(projection.simulated_seconds))
}

/// Bytes of models and their gradients.
fn parameters(projection: &Projection) -> u64 {
    use TrafficKind::{Parameter, ParameterGradient};
    projection.payload_of(|kind| matches!(kind, ParameterGradient | Parameter))
}

/// What a strategy sends, and where its time goes.
fn reason(advised: &Advised) -> String {
    let projection = &advised.projection;
    let node = projection.payload_of(TrafficKind::is_node_data);
    let much = match (node, moved(projection)) {
        (0, 0) => "No node data cross the network".to_owned(),
        (0, moved) => format!("Moving the graph takes {}", against(moved, projection)),
        (node, _) => format!("Node data are {}", against(node, projection)),
    };
    let share = |part: f64| part / projection.simulated_seconds.max(f64::MIN_POSITIVE);
    let waits = share(projection.exposed_communication_seconds);
    let idle = share(projection.waiting_seconds);
    let spends = if idle > 0.2 && idle > waits {
        format!("{} of the time it waits for others to begin", percent(idle))
    } else if waits >= 0.1 {
        format!("{} of the time it waits for messages", percent(waits))
    } else {
        let computes = percent(share(projection.compute_seconds));
        format!("{computes} of the time it computes, so the network hardly matters")
    };
    let fits = unsure(projection).map_or_else(String::new, |unsure| format!(" {unsure}"));
    format!("{}. {much}; {spends}.{fits}", capitalised(advised.sends))
}

/// That a worker's memory is enough at one end of what is known of the graph, and not at the other.
fn unsure(projection: &Projection) -> Option<String> {
    let ends = projection.between?.memory_bytes?;
    let there = projection.device_memory_bytes?;
    let open = projection.fits.is_none();
    open.then(|| {
        format!(
            "Whether it fits is open: a worker holds {} to {}, and its device has {}.",
            bytes(ends.0 as f64),
            bytes(ends.1 as f64),
            bytes(there as f64)
        )
    })
}

/// A number of bytes, and how many times as many that is as the bytes of models and gradients.
fn against(part: u64, projection: &Projection) -> String {
    let size = bytes(part as f64);
    let parameters = parameters(projection);
    if parameters == 0 {
        return size;
    }
    let times = digits(part as f64 / parameters as f64);
    let sums = projection.payload_of(|kind| kind == TrafficKind::ParameterGradient);
    let what = if sums > 0 { "gradients" } else { "models" };
    format!("{size}, {times} times the {what}")
}

/// Mean and deviation over the seeds of a probe.
fn accuracy(advised: &Advised) -> Option<String> {
    let accuracies = &advised.probe.as_ref()?.accuracies;
    let known: Option<Vec<f64>> = accuracies.iter().copied().collect();
    Summary::of(known?).as_ref().map(percent_summary)
}

fn why(why: &Why) -> String {
    match why {
        Why::Memory { needs, there } => format!(
            "a worker would hold {}, more than the {} of its device",
            bytes(*needs as f64),
            bytes(*there as f64)
        ),
        Why::Refused(error) => error.clone(),
    }
}

/// What to know when reading a ranking.
fn notes(ranking: &[Advised]) -> String {
    let mut notes = String::new();
    if ranking.iter().any(|advised| !advised.projection.exact) {
        notes.push_str(
            "note: ≤ is the most it can be; what is sent depends on how the training goes\n",
        );
    }
    let mut say = |what: &str, of: &dyn Fn(&Advised) -> bool| {
        let named = ranking.iter().filter(|advised| of(advised));
        let names: Vec<&str> = named.map(|advised| advised.strategy.as_str()).collect();
        if !names.is_empty() {
            let _ = writeln!(notes, "note: {what}: {}", names.join(", "));
        }
    };
    let others = "with nothing but defaults, as the file does not have them";
    say(others, &|advised| !advised.listed);
    if ranking.iter().any(|advised| advised.batches) {
        say("on all nodes at once, not in mini-batches", &|advised| {
            !advised.batches
        });
    }
    let nothing = "no more accurate in the probe than the same answer for every node, the largest class, so that it says nothing of them";
    say(nothing, &|advised| {
        let probe = advised.probe.as_ref();
        probe.is_some_and(|probe| probe.learnt_nothing == Some(true))
    });
    for advised in ranking {
        if let Some(why) = &advised.unprobed {
            let _ = writeln!(notes, "note: {}: no probe of it: {why}", advised.strategy);
        }
        for note in &advised.projection.notes {
            let _ = writeln!(notes, "note: {}: {note}", advised.strategy);
        }
    }
    notes.push_str(&other_epochs(ranking));
    // Entries may have workers of their own: those with the most are told of.
    let widest = ranking
        .iter()
        .max_by_key(|advised| advised.projection.workers);
    let probed =
        widest.and_then(|advised| Some((advised.projection.workers, advised.probe.as_ref()?)));
    match probed {
        None => notes.push_str(
            "note: times of the epochs that the file asks for; strategies differ in the accuracy they reach in them (--probe)\n",
        ),
        Some((workers, probe)) => {
            let drawn = if probe.drawn {
                " of a drawn graph"
            } else {
                ""
            };
            let _ = writeln!(
                notes,
                "note: probe is test {} on {}{drawn} over {} after {}, {PROBE_SEEDS} seeds; what strategies lose on the whole \
                 graph can be more or less",
                probe.metric.title(),
                counted(probe.nodes as u64, "node"),
                counted(probe.workers as u64, "worker"),
                counted(probe.epochs as u64, "epoch"),
            );
            if probe.workers < workers {
                let _ = writeln!(
                    notes,
                    "note: a probe is on at least {NODES_A_WORKER} nodes a worker, so that these are {} in place of {workers}: more \
                     workers cut more edges, and strategies lose more; --probe={} has all",
                    counted(probe.workers as u64, "worker"),
                    workers * NODES_A_WORKER
                );
            }
        }
    }
    notes.push_str(&assumptions(ranking));
    if notes.is_empty() {
        return notes;
    }
    format!("\n{notes}")
}

/// Whose epochs are something else, and how many those are.
fn other_epochs(ranking: &[Advised]) -> String {
    let of = |advised: &Advised| {
        let (kind, epochs) = (
            advised.projection.run.epoch_kind?,
            advised.projection.epochs,
        );
        let what = match kind {
            EpochKind::Pass => return None,
            EpochKind::Round => counted(epochs as u64, "round"),
            EpochKind::SubModel => format!("{} of one sub-model", counted(epochs as u64, "epoch")),
        };
        Some(format!("{} has {what}", advised.strategy))
    };
    let others: Vec<String> = ranking.iter().filter_map(of).collect();
    if others.is_empty() {
        return String::new();
    }
    format!(
        "note: an epoch is something else to some: {}\n",
        others.join(", ")
    )
}

/// What is assumed of the graph and its parts, each once; of which strategies, where not of all.
fn assumptions(ranking: &[Advised]) -> String {
    let mut notes = String::new();
    let all = ranking.iter().map(|advised| &advised.projection.assumed);
    for assumed in distinct(all).into_iter().flatten() {
        let same = |advised: &&Advised| advised.projection.assumed.as_ref() == Some(assumed);
        let names = ranking.iter().filter(same);
        let names: Vec<&str> = names.map(|advised| advised.strategy.as_str()).collect();
        let whose = if names.len() < ranking.len() {
            format!("{}: ", names.join(", "))
        } else {
            String::new()
        };
        let _ = writeln!(notes, "note: {whose}{assumed}");
    }
    notes
}
