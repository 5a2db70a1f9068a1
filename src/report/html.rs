//! One self-contained page: claims, tables, figures, setting, and how to do it again.

use minijinja::value::Value as Shown;
use minijinja::{Environment, context};
use serde::Serialize;
use serde_json::Value;

use super::figures::list;
use super::format;
use super::plot::Figure;
use super::recipe::recipe;
use super::series::{self, Entrant};
use super::story;
use super::tables::{self, Table};
use crate::digits::counted;
use crate::experiment::rows::{ClaimRow, ClaimVerdict, RunRow, distinct};
use crate::experiment::statistics::Statistics;

/// The page's skeleton; the name ends in `.html` so that everything put into it is escaped.
const TEMPLATE: (&str, &str) = ("report.html", include_str!("report.html.j2"));
/// What it shows of a projection in place of runs.
const PROJECTION: (&str, &str) = ("projection.html", include_str!("projection.html.j2"));
/// A table, in both.
const TABLE: (&str, &str) = ("table.html", include_str!("table.html.j2"));

/// Everything the page shows.
pub(super) struct Page<'a> {
    /// The finished cells.
    pub cells: &'a [Entrant<'a>],
    /// All runs, failed ones too.
    pub runs: &'a [RunRow],
    /// The claims.
    pub claims: &'a [ClaimRow],
    /// How they were judged, if the manifest says so.
    pub judging: Option<&'a Statistics>,
    /// The summary table.
    pub summary: &'a Table,
    /// The traffic table.
    pub traffic: &'a Table,
    /// What it takes to reach the target accuracy, if there is one.
    pub targets: Option<&'a Table>,
    /// Accuracy within budgets, and who is ahead; none where nothing competes.
    pub budgets: &'a [Table],
    /// Figures with their SVG documents.
    pub figures: &'a [(Figure, String)],
    /// Which were asked for and have nothing to show.
    pub left_out: &'a [String],
    /// The manifest; every field may be absent.
    pub manifest: &'a Value,
    /// What there is in place of runs.
    pub projection: Option<Projection<'a>>,
}

/// What a page says of a projection.
#[derive(Serialize)]
pub(super) struct Projection<'a> {
    /// Its tables.
    pub tables: &'a [Table],
    /// How far it is from what was trained, in a sentence.
    pub errors: String,
    /// What else a reader should know.
    pub notes: &'a [String],
    /// What is assumed of the graphs.
    pub assumed: &'a [String],
}

impl Page<'_> {
    /// The page's HTML.
    ///
    /// # Errors
    /// The template's, which the tests rule out.
    pub(super) fn render(&self) -> Result<String, minijinja::Error> {
        let mut environment = Environment::new();
        for (name, text) in [TEMPLATE, PROJECTION, TABLE] {
            environment.add_template(name, text)?;
        }
        let page = match &self.projection {
            Some(_) => PROJECTION.0,
            None => TEMPLATE.0,
        };
        let claims: Vec<Shown> = self.claims.iter().map(|row| self.claim(row)).collect();
        let picture = |(figure, svg): &(Figure, String)| {
            context! {
                kind => figure.kind,
                title => figure.title,
                caption => figure.caption,
                wide => figure.wide(),
                svg,
            }
        };
        let pictures: Vec<Shown> = self.figures.iter().map(picture).collect();
        let failed: Vec<String> = self
            .runs
            .iter()
            .filter(|run| !run.is_ok())
            .map(|run| format!("{}, seed {}: {}", run.cell, run.seed, run.status))
            .collect();
        let tally =
            |verdict: ClaimVerdict| self.claims.iter().filter(|c| c.verdict == verdict).count();
        let metric = series::metric(self.cells);
        environment.get_template(page)?.render(context! {
            manifest => self.manifest,
            name => self.manifest["name"].as_str().unwrap_or("experiment"),
            story => story::tell(self.cells),
            reproduced => tally(ClaimVerdict::Reproduced),
            claims,
            judging => self.judging.map(ToString::to_string),
            pictures,
            left_out => self.left_out,
            failed,
            unfinished => self.manifest["started"].is_string() && self.manifest["finished"].is_null(),
            runs => self.runs.len(),
            command => self.command(),
            recipe => recipe(self.cells, self.manifest),
            summary => self.summary,
            traffic => self.traffic,
            targets => self.targets,
            budgets => self.budgets,
            metric => &metric,
            titled => format::capitalised(&metric),
            setting => self.setting(),
            elapsed => self.elapsed(),
            projection => self.projection,
        })
    }

    /// A row of the claims, with the experiment file's own remark and the badge's class in the
    /// style sheet.
    fn claim(&self, row: &ClaimRow) -> Shown {
        // Those that were judged, of which a later `report --claims` may have made others.
        let stated = self.manifest["claims"].as_array();
        let stated = stated.and_then(|all| all.iter().find(|stated| stated["id"] == *row.id));
        context! {
            row,
            measured => tables::measured(row),
            p => tables::p_value(row),
            note => stated.and_then(|stated| stated["note"].as_str()),
            class => match row.verdict {
                ClaimVerdict::Reproduced => "good",
                ClaimVerdict::NotReproduced => "bad",
                ClaimVerdict::Inconclusive => "open",
            },
        }
    }

    /// What to type into a shell to do it again, if the manifest says so.
    fn command(&self) -> Option<String> {
        let words = self.manifest["command"].as_array()?.iter();
        // Whoever does it again begins from nothing.
        let words = words.filter_map(|word| word.as_str().filter(|&word| word != "--resume"));
        // Refused only where a word has a NUL byte, which no shell takes.
        shlex::try_join(words).ok()
    }

    /// Name and value of everything that was held fixed or swept over.
    fn setting(&self) -> Vec<(&'static str, String)> {
        let mut setting = Vec::new();
        let mut add = |name, value: String| {
            if !value.is_empty() {
                setting.push((name, value));
            }
        };
        let of = |value: fn(&RunRow) -> String| {
            let said = self.runs.iter().map(value);
            list(&distinct(said.filter(|value| !value.is_empty())))
        };
        let data = &self.manifest["data"];
        let counts = ["nodes", "edges", "features", "classes"]
            .into_iter()
            .filter_map(|name| Some(format!("{} {name}", format::grouped(data[name].as_f64()?))));
        let split = ["train", "validation", "test"]
            .into_iter()
            .filter_map(|name| Some(format!("{} {name}", format::grouped(data[name].as_f64()?))));
        let parts: Vec<String> = [of(|run| run.dataset.clone())]
            .into_iter()
            .chain(counts)
            .collect();
        add("Data", parts.join(", "));
        add("Split", split.collect::<Vec<_>>().join(", "));
        add("Notes on data", notes(&self.manifest["data_sets"]));
        add(
            "Model",
            of(|run| {
                let model = format!(
                    "{}, {}, {} hidden",
                    run.model,
                    counted(run.layers, "layer"),
                    run.hidden
                );
                // Of a run that failed they are not known.
                run.parameters.map_or(String::new(), |parameters| {
                    format!("{model}, {} parameters", format::grouped(parameters as f64))
                })
            }),
        );
        add(
            "Partition",
            of(|run| format!("{}, {}", run.partitioner, counted(run.workers, "worker"))),
        );
        add("Cut", self.cuts());
        let config = &self.manifest["config"];
        add("Network", of(|run| run.network.clone()));
        // What cells have of their own, their names tell.
        if !varies(config, "network") {
            add("Links", said(&config["network"]["link"]));
        }
        if !varies(config, "compute") {
            add("Computing takes", computing(&config["compute"]["timing"]));
        }
        add("Epochs", of(|run| run.epochs.to_string()));
        add("Seeds", of(|run| run.seed.to_string()));
        add("Backend", of(|run| run.backend.clone()));
        add("Device", of(|run| run.device.clone()));
        add("Machine", machine(&self.manifest["machine"]));
        add("Peak memory", {
            let measured = self.runs.iter().filter_map(|run| run.measured);
            let peak = measured.map(|measured| measured.peak_memory_bytes).max();
            let known = peak.filter(|&peak| peak > 0 && self.projection.is_none());
            known.map_or(String::new(), |peak| format::bytes(peak as f64))
        });
        setting
    }

    /// What each way of cutting the graph leaves, over seeds; one worker cuts nothing.
    fn cuts(&self) -> String {
        let cut = |run: &&RunRow| run.workers > 1;
        let name = |run: &RunRow| {
            format!(
                "{}, {}, {} workers",
                run.dataset, run.partitioner, run.workers
            )
        };
        let names = distinct(self.runs.iter().filter(cut).map(&name));
        let told = names.into_iter().map(|one| {
            // Seeds have partitions of their own, and so other cuts.
            let range = |of: fn(&RunRow) -> u64| {
                let mine = self.runs.iter().filter(cut).filter(|run| name(run) == one);
                let (mut least, mut most) = (u64::MAX, 0);
                for value in mine.map(of) {
                    (least, most) = (least.min(value), most.max(value));
                }
                let [least, most] = [least, most].map(|end| format::grouped(end as f64));
                if least == most {
                    least
                } else {
                    format!("{least} to {most}")
                }
            };
            let (edges, rows) = (range(|run| run.edge_cut), range(|run| run.boundary_rows));
            format!("{one}: {edges} edges, {rows} boundary rows")
        });
        told.collect::<Vec<String>>().join("; ")
    }

    /// How long it took to emulate, and how much of that was the model's own computation.
    fn elapsed(&self) -> Option<String> {
        let elapsed = self.manifest["elapsed_seconds"].as_f64()?;
        let mut text = format!("{} on the clock", format::seconds(elapsed));
        if let Some(model) = self.manifest["model_seconds"].as_f64()
            && elapsed > 0.0
        {
            let share = format::percent(model / elapsed);
            text = format!("{text}, {share} of it inside model computation");
        }
        Some(text)
    }
}

fn machine(machine: &Value) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(machine["cpu"].as_str().map(Into::into));
    parts.extend(
        machine["cores"]
            .as_u64()
            .map(|cores| counted(cores, "core")),
    );
    parts.extend(
        machine["memory_bytes"]
            .as_f64()
            .map(|b| format!("{} memory", format::bytes(b))),
    );
    parts.extend(machine["os"].as_str().map(Into::into));
    parts.join(", ")
}

/// Whether a sweep or a strategy sets keys of this section.
fn varies(config: &Value, section: &str) -> bool {
    let strategies = config["strategy"].as_array().into_iter().flatten();
    let sets = strategies.map(|strategy| &strategy["with"]);
    let mut sets = sets.chain([&config["sweep"]]).filter_map(Value::as_object);
    sets.any(|keys| {
        keys.keys()
            .any(|key| key.split('.').next() == Some(section))
    })
}

/// How long computing takes in virtual time: as on a device, or as it took.
fn computing(timing: &Value) -> String {
    let beside = match timing["sampling"] {
        Value::Bool(false) => "; mini-batches are drawn and gathered beside it",
        _ => "",
    };
    let device = match &timing["profile"] {
        Value::String(profile) => format!("as long as on {profile}, modelled"),
        Value::Null => "as long as it took here".to_owned(),
        profile => format!("as long as on {}, modelled", said(profile)),
    };
    device + beside
}

/// Keys and values of a section, or the values of a list.
fn said(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(said).collect::<Vec<_>>().join(", "),
        Value::Object(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| format!("{key} {}", said(value)));
            entries.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// What was made up or guessed of each data set, or is known of it, in sentences.
fn notes(sets: &Value) -> String {
    let of = |set: &Value| -> Vec<String> {
        let notes = set["notes"].as_array().into_iter().flatten();
        let notes = notes.filter_map(Value::as_str);
        let name = set["name"].as_str().unwrap_or_default();
        notes.map(|note| format!("{name}: {note}")).collect()
    };
    let all = sets.as_array().into_iter().flatten().flat_map(of);
    all.collect::<Vec<String>>().join(". ")
}
