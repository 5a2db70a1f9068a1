//! What goes together, tried pair by pair, against the tables of `docs/combine.md`.

use std::fmt::Write as _;
use std::path::Path;

use crate::common::Case;
use grapevine::graph::BatchSpec;
use grapevine::strategies::Registry;

/// Choices: a name in the tables, and what an entry says; mini-batches are a matter of the case.
const CHOICES: [(&str, &str); 20] = [
    ("no rows", "rows = \"none\""),
    ("blocks", "rows = \"blocks\""),
    ("share", "share = 0.5"),
    ("late", "late = true"),
    ("smoothing", "late = true\nsmoothing = \"both\""),
    ("fresh", "late = true\nfresh_every = 2"),
    ("bound", "bound = 2"),
    ("threshold", "bound = 2\nthreshold = 0.1"),
    ("codec", "codec = \"quantise\""),
    ("last layer", "codec = \"quantise\"\ncompress_last = true"),
    (
        "difference",
        "codec = { kind = \"difference\", of = \"top_k\" }",
    ),
    (
        "bits by row",
        "codec = { kind = \"quantise_rows\", bits = \"random\" }",
    ),
    (
        "adaptive ratio",
        "codec = \"top_k\"\nschedule = { kind = \"adaptive-error\", from = 8, to = 1, patience = 1 }",
    ),
    ("features resent", "cache_features = false"),
    ("product", "exchange = \"product\""),
    ("overlap", "overlap = true"),
    (
        "gradient codec",
        "gradients = { codec = { kind = \"power_sgd\", rank = 1 } }",
    ),
    (
        "local steps",
        "gradients = { every = 2, average = \"models\" }",
    ),
    ("repartitioned", "repartition_every = 2"),
    (BATCHES, ""),
];

const BATCHES: &str = "mini-batches";

/// What all strategies are asked for, beside [`CHOICES`] that are of the same name.
const STRATEGIES: [(&str, &str); 21] = [
    ("full", ""),
    ("isolated", ""),
    ("fixed", ""),
    ("varco", ""),
    ("bns", ""),
    ("pipe", ""),
    ("adaqp", "bits = 4"),
    ("sylvie", ""),
    ("ecgraph", ""),
    ("cagnet", ""),
    ("sancus", ""),
    ("distgnn", ""),
    ("train", ""),
    ("grappa", ""),
    ("retexo", "rounds_per_layer = 2"),
    (
        "retexo, clients",
        "form = \"distributed\"\nrounds_per_layer = 2",
    ),
    ("distdgl", ""),
    ("llcg", "local_steps = 2"),
    ("fedavg", ""),
    ("fedgcn", ""),
    ("cluster", "clusters = 12\nclusters_per_batch = 1"),
];

/// What became of a combination.
enum Tried {
    Works,
    /// Both set the same key to something else.
    SameKey,
    NoSuchOption,
    /// The key and what was said of it.
    Refused(String, String),
}

fn case(batches: bool) -> Case {
    let batch = BatchSpec {
        size: 20,
        fanouts: vec![3, 3, 3],
    };
    Case {
        batch: batches.then_some(batch),
        epochs: 3,
        ..Case::default()
    }
}

/// Both of two choices in one table; none where they set one key differently.
fn joined(parts: [&str; 2]) -> Option<String> {
    let [mut all, more] = parts.map(|part| part.parse::<toml::Table>().expect("TOML"));
    for (key, value) in more {
        if all.get(&key).is_some_and(|there| *there != value) {
            return None;
        }
        all.insert(key, value);
    }
    Some(all.to_string())
}

fn attempt(kind: &str, parts: [&str; 2], batches: bool) -> Tried {
    let Some(options) = joined(parts) else {
        return Tried::SameKey;
    };
    let case = case(batches);
    match case.fit(&Registry::builtin(), kind, &options) {
        Ok(_) => {
            // What fits also trains, and as it plans.
            case.run(kind, &options);
            Tried::Works
        }
        Err(error) if error.message.contains("unknown field") => Tried::NoSuchOption,
        Err(error) => {
            let key = error.key.unwrap_or_else(|| "training.batch".to_owned());
            let about = format!(
                "{kind} with these options, or the defaults of those that are left out, trains"
            );
            let message = error.message.replace(
                &about,
                "with these options, or the defaults of those that are left out, it trains",
            );
            Tried::Refused(key, message)
        }
    }
}

/// Tables as the page has them: a letter in place of each reason, and the reasons.
#[derive(Default)]
struct Page {
    text: String,
    reasons: Vec<(Vec<String>, String)>,
}

impl Page {
    fn header(&mut self, first: &str, columns: &[&str]) {
        let _ = writeln!(self.text, "| {first} | {} |", columns.join(" | "));
        let _ = writeln!(self.text, "| --- |{}", " --- |".repeat(columns.len()));
    }

    fn row(&mut self, name: &str, cells: impl IntoIterator<Item = Tried>) {
        let cells: Vec<String> = cells.into_iter().map(|cell| self.cell(cell)).collect();
        let _ = writeln!(self.text, "| {name} | {} |", cells.join(" | "));
    }

    fn cell(&mut self, tried: Tried) -> String {
        match tried {
            Tried::Works => "yes".to_owned(),
            Tried::SameKey => "–".to_owned(),
            Tried::NoSuchOption => "no".to_owned(),
            Tried::Refused(key, reason) => {
                let known = self.reasons.iter().position(|(_, one)| *one == reason);
                let place = known.unwrap_or_else(|| {
                    self.reasons.push((Vec::new(), reason));
                    self.reasons.len() - 1
                });
                let keys = &mut self.reasons[place].0;
                if !keys.contains(&key) {
                    keys.push(key);
                }
                char::from(b'a' + place as u8).to_string()
            }
        }
    }

    fn reasons(&mut self) {
        let _ = writeln!(self.text, "| | key | what the program says |");
        let _ = writeln!(self.text, "| --- | --- | --- |");
        for (place, (keys, reason)) in self.reasons.iter().enumerate() {
            let letter = char::from(b'a' + place as u8);
            let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
            let key = keys.join(", ");
            let _ = writeln!(self.text, "| {letter} | {key} | {reason} |");
        }
    }
}

fn tables() -> String {
    let mut page = Page::default();
    let names: Vec<&str> = CHOICES.iter().map(|(name, _)| *name).collect();
    page.header("`train` with", &names[1..]);
    for (at, (name, one)) in CHOICES.iter().enumerate() {
        let cells = CHOICES
            .iter()
            .enumerate()
            .skip(1)
            .map(|(other_at, (other, two))| {
                if other_at <= at {
                    return Tried::SameKey;
                }
                let batches = *name == BATCHES || *other == BATCHES;
                attempt("train", [one, two], batches)
            });
        if at + 1 < CHOICES.len() {
            page.row(name, cells.collect::<Vec<_>>());
        }
    }
    page.text.push('\n');
    let asked = [
        "codec",
        "adaptive ratio",
        "share",
        "late",
        "overlap",
        "gradient codec",
        "local steps",
        BATCHES,
    ];
    page.header("strategy", &asked);
    for (name, own) in STRATEGIES {
        let kind = name.split(',').next().unwrap_or(name);
        let cells = asked.map(|asked| {
            let choice = CHOICES.iter().find(|(name, _)| *name == asked);
            let choice = choice.expect("it is one of the choices").1;
            let batches = asked == BATCHES || kind == "distdgl";
            attempt(kind, [own, choice], batches)
        });
        page.row(name, cells);
    }
    page.text.push('\n');
    page.reasons();
    page.text
}

#[test]
fn every_pair_does_what_the_page_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/combine.md");
    let page = std::fs::read_to_string(page).expect("it can be read");
    let found = tables();
    for part in found.split("\n\n") {
        let part = part.trim();
        assert!(page.contains(part), "the page should have\n\n{found}");
    }
}
