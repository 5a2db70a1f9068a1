//! Cells of a sweep by setting and by strategy.

use super::series::Entrant;
use crate::experiment::rows::{Sweep, distinct, grouped};

/// The cells of one setting of a sweep.
pub(super) type Setting<'c, 'a> = (&'a Sweep, Vec<&'c Entrant<'a>>);

/// The cells by setting, in the order of their appearance; one without a name where nothing is
/// swept.
pub(super) fn settings<'c, 'a: 'c>(
    cells: impl IntoIterator<Item = &'c Entrant<'a>>,
) -> Vec<Setting<'c, 'a>> {
    grouped(cells.into_iter().map(|cell| (cell.setting, cell)))
}

/// What all of several settings share, and therefore no heading needs to say.
pub(super) fn common(settings: &[Setting]) -> Sweep {
    let mut sweeps = settings.iter().map(|(sweep, _)| (*sweep).clone());
    match (settings.len(), sweeps.next()) {
        (2.., Some(first)) => sweeps.fold(first, |common, other| common.shared(&other)),
        _ => Sweep::default(),
    }
}

/// What a caption says of it, after a space; nothing where nothing is shared.
pub(super) fn said_of_all(common: &Sweep) -> String {
    if common.is_empty() {
        return String::new();
    }
    format!(" All settings have {}.", common.heading())
}

/// The strategies' labels, each once, in the order of their appearance.
pub(super) fn strategies<'c, 'a: 'c>(
    cells: impl IntoIterator<Item = &'c Entrant<'a>>,
) -> Vec<&'a str> {
    distinct(cells.into_iter().map(|cell| cell.strategy))
}

/// The label of the reference, if there is one.
pub(super) fn reference<'a>(cells: &[Entrant<'a>]) -> Option<&'a str> {
    let reference = cells.iter().find(|cell| cell.is_reference);
    reference.map(|cell| cell.strategy)
}

/// How headings call the reference: `full` where there is none, as what is missing is called.
pub(super) fn reference_name<'a>(cells: &[Entrant<'a>]) -> &'a str {
    reference(cells).unwrap_or("full")
}

/// The strategy that others are compared with: the reference, or the first where there is none.
pub(super) fn yardstick<'a>(cells: &[Entrant<'a>]) -> Option<&'a str> {
    reference(cells).or(cells.first().map(|cell| cell.strategy))
}
