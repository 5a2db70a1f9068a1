//! Keys that say what another key says already, or that another key switches off: one of the two
//! would pass in silence, so that both are refused. And sweeps whose values make one experiment
//! twice.
//!
//! Pairs that one floor knows by itself are refused where that floor checks its section; here are
//! those between sections, between the file and `--set`, and between cells.

use std::collections::BTreeMap;

use crate::model::{Biases, ModelConfig, ModelKind};

use super::error::ConfigError;
use super::locate::Document;
use super::path::KeyPath;
use super::sweep::{Cell, SweepAxis};

/// Refuses two `--set` of which the second undoes the first, and one of a key that a sweep sets in
/// every cell.
pub(super) fn overrides(
    document: &Document,
    sets: &[(KeyPath, String)],
    axes: &[SweepAxis],
) -> Result<(), ConfigError> {
    for (later, (path, entry)) in sets.iter().enumerate() {
        let wrong = |message: String| ConfigError::Set {
            entry: entry.clone(),
            message,
        };
        let within =
            |inner: &KeyPath, outer: &KeyPath| inner.segments().starts_with(outer.segments());
        if let Some((_, earlier)) = sets[..later].iter().find(|(early, _)| within(early, path)) {
            return Err(wrong(format!(
                "undoes --set {earlier}; leave one of them out"
            )));
        }
        if let Some(axis) = axes.iter().find(|axis| axis.settles(path)) {
            let at = document.place(&KeyPath::dotted("sweep").join(&axis.key));
            return Err(wrong(format!(
                "does nothing, for `{0}` is swept ({at}); set its values, like sweep.\"{0}\"=[…], or take out the sweep, sweep={{}}",
                axis.key
            )));
        }
    }
    Ok(())
}

/// Refuses cells that would be the same training under two names.
pub(super) fn cells(document: &Document, cells: &[Cell]) -> Result<(), ConfigError> {
    let strategies = 1 + cells.iter().map(Cell::number).max().unwrap_or(0);
    // Cells come setting by setting, with all strategies in each.
    let grid = || cells.chunks(strategies);
    // A strategy's `with` may hold still what the sweep varies, as a baseline does; not all of them
    // may.
    let free: Vec<usize> = (0..strategies)
        .filter(|&s| cells[s].strategy.with.is_empty())
        .collect();
    let all: Vec<usize> = (0..strategies).collect();
    let looked_at = if free.is_empty() {
        all
    } else {
        // One is enough: strategies without a `with` have the same settings.
        free[..1].to_vec()
    };
    // By their text: settings hold floats, which have neither an order nor a hash.
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for combination in grid() {
        let what: Vec<String> = (looked_at.iter())
            .map(|&s| format!("{:?}", used(&combination[s])))
            .collect();
        let name = combination[looked_at[0]].name.as_str();
        if let Some(earlier) = seen.insert(what.concat(), name) {
            let message = format!(
                "\"{earlier}\" and \"{name}\" would be the same training: between them the sweep changes nothing that is used; leave out \
                 one of the values"
            );
            return Err(document.refuse(&KeyPath::dotted("sweep"), message));
        }
    }
    for (place, cell) in cells.iter().take(strategies).enumerate() {
        let same = |other: &usize| {
            let (one, two) = (&cell.strategy, &cells[*other].strategy);
            // A `with` may say what holds anyway, and in one setting of a sweep alone.
            let text = |cell: &Cell| format!("{:?}", used(cell));
            one.kind == two.kind
                && one.options == two.options
                && grid().all(|combination| text(&combination[place]) == text(&combination[*other]))
        };
        if let Some(other) = (0..place).find(same).map(|other| &cells[other]) {
            let message = format!(
                "\"{}\" and \"{}\" are the same strategy with the same options; leave one out",
                other.strategy.label, cell.strategy.label
            );
            let path = KeyPath::dotted("strategy").join(&place.to_string());
            return Err(document.refuse(&path.join("*"), message));
        }
    }
    Ok(())
}

/// A key of the model that not all kinds have.
struct OfKinds {
    key: &'static str,
    /// Those that have it, and their names.
    kinds: &'static [ModelKind],
    names: &'static str,
    given: fn(&ModelConfig) -> bool,
    unset: fn(&mut ModelConfig),
}

/// Kinds with a choice of self-loops.
const LOOPED: [ModelKind; 3] = [ModelKind::Gcn, ModelKind::Sage, ModelKind::Gat];

const OF_KINDS: [OfKinds; 5] = [
    OfKinds {
        key: "heads",
        kinds: &[ModelKind::Gat],
        names: "\"gat\"",
        given: |model| model.heads != 1,
        unset: |model| model.heads = 1,
    },
    OfKinds {
        key: "head_biases",
        kinds: &[ModelKind::Gat],
        names: "\"gat\"",
        given: |model| model.head_biases,
        unset: |model| model.head_biases = false,
    },
    OfKinds {
        key: "attention_dropout",
        kinds: &[ModelKind::Gat],
        names: "\"gat\"",
        given: |model| model.attention_dropout.is_some(),
        unset: |model| model.attention_dropout = None,
    },
    OfKinds {
        key: "self_loops",
        kinds: &LOOPED,
        names: "\"gcn\", \"sage\" or \"gat\"",
        given: |model| {
            let paper = model.kind.has_self_loops();
            model.self_loops.is_some_and(|has| has != paper)
        },
        unset: |model| model.self_loops = None,
    },
    OfKinds {
        key: "biases",
        kinds: &[ModelKind::Sage],
        names: "\"sage\"",
        given: |model| model.biases != Biases::default(),
        unset: |model| model.biases = Biases::default(),
    },
];

/// Refuses keys of the model that some kinds do not have, where no cell is of a kind that does. For
/// a file as it stands: one of its sizes may leave such a kind out.
pub(super) fn idle(document: &Document, cells: &[Cell]) -> Result<(), ConfigError> {
    for OfKinds {
        key, names, given, ..
    } in unsuited(cells)
    {
        if cells.iter().any(|cell| given(&cell.settings.model)) {
            let message = format!(
                "does nothing: it is for kind = {names} alone, and no cell has that; leave it out"
            );
            return Err(document.bad(&KeyPath::dotted("model").join(key), message));
        }
    }
    Ok(())
}

/// Whether a `key=value` is about a key of the model that not all kinds have.
pub(super) fn of_kinds(set: &str) -> bool {
    let key = set.trim_start().strip_prefix("model.");
    key.is_some_and(|key| OF_KINDS.iter().any(|one| key.starts_with(one.key)))
}

/// The model of a file without the keys that no cell has a use for: [`idle`] would refuse them.
pub(super) fn without_idle(model: &ModelConfig, cells: &[Cell]) -> ModelConfig {
    let mut model = model.clone();
    for of_kinds in unsuited(cells) {
        (of_kinds.unset)(&mut model);
    }
    model
}

/// Keys of kinds of which no cell is.
fn unsuited(cells: &[Cell]) -> impl Iterator<Item = &'static OfKinds> {
    let suits = |kinds: &[ModelKind]| {
        let mut models = cells.iter().map(|cell| &cell.settings.model);
        models.any(|model| kinds.contains(&model.kind))
    };
    OF_KINDS.iter().filter(move |one| !suits(one.kinds))
}

/// The settings of a cell as far as they are used.
pub(in crate::experiment) fn used(cell: &Cell) -> super::Settings {
    let mut settings = cell.settings.clone();
    let model = &mut settings.model;
    for OfKinds { kinds, unset, .. } in &OF_KINDS {
        if !kinds.contains(&model.kind) {
            unset(model);
        }
    }
    if model.self_loops == Some(model.kind.has_self_loops()) {
        model.self_loops = None;
    }
    if model.activation == Some(model.kind.activation()) {
        model.activation = None;
    }
    for dropout in [&mut model.input_dropout, &mut model.attention_dropout] {
        if *dropout == Some(model.dropout) {
            *dropout = None;
        }
    }
    settings
}
