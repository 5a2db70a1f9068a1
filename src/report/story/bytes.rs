//! What is said of bytes.

use super::{Headline, Story, alone, ranked};
use crate::experiment::rows::{Measured, metric_title};
use crate::report::figures::list;
use crate::report::format;
use crate::report::series::Entrant;
use crate::report::settings::strategies;

/// A strategy that sends no node data, with what it moves to repartition.
pub(super) fn silent(label: &str, up_to: &str, moved: Option<f64>) -> String {
    match moved {
        Some(moved) => {
            let moved = format::bytes(moved);
            format!("{label} (which moves {up_to}{moved} to repartition)")
        }
        None => label.to_owned(),
    }
}

/// Who sends the least node data, and how many times less than who sends everything.
pub(super) fn node_data(cells: &[Entrant], story: &mut Story) {
    // One machine sends nothing: it is left out, unless there is nothing else.
    let every = cells.iter().all(alone);
    let ranked = ranked(cells, |cell| {
        (every || !alone(cell)).then(|| cell.node_data()).flatten()
    });
    // To who sends nothing there is no factor, so these are told apart.
    let (none, some): (Vec<_>, Vec<_>) = ranked.iter().partition(|(_, sum)| sum.mean == 0.0);
    let none: Vec<String> = (none.iter())
        .map(|(cell, _)| silent(&cell.label, "", cell.repartitioned()))
        .collect();
    if !none.is_empty() {
        story
            .sentences
            .push(format!("No node data at all is sent by {}.", list(&none)));
    }
    let (Some((least, bytes)), true) = (some.first(), some.len() > 1) else {
        return;
    };
    let value = format::bytes(bytes.mean);
    let others = if none.is_empty() {
        ""
    } else {
        " among the others"
    };
    // The reference is who sends everything, or whoever sends most where there is none.
    let full = some.iter().find(|(cell, _)| cell.is_reference);
    let reference = full.or(some.last()).unwrap_or(&some[0]);
    let mut sentence = format!(
        "The least node data{others} is sent by {}: {value}",
        least.label
    );
    let mut headline = value.clone();
    let means = least.beside(reference.0, |run| Some(run.node_data_bytes() as f64));
    if reference.0.label != least.label
        && let Some([mine, theirs]) = means
    {
        let factor = format::factor(theirs / mine);
        let theirs = format::bytes(reference.1.mean);
        sentence = format!(
            "{sentence}, {factor} less than the {theirs} of {}",
            reference.0.label
        );
        headline = format!("{factor} less than {}", reference.0.label);
        sentence += &at_accuracy(least, reference.0);
    }
    story.sentences.push(sentence + ".");
    let name = if none.is_empty() {
        "least node data"
    } else {
        "least node data, if any"
    };
    story.headlines.push(Headline {
        name,
        label: least.label.clone(),
        value: headline,
    });
}

/// `, at 1.4 points lower accuracy` than another cell; nothing where one was not evaluated.
pub(super) fn at_accuracy(mine: &Entrant, other: &Entrant) -> String {
    let metric = metric_title(
        [mine, other]
            .iter()
            .flat_map(|cell| cell.runs.iter().map(|(run, _)| *run)),
    );
    let known = |run: &Measured| run.test_accuracy.filter(|_| run.diverged_at.is_none());
    let Some([mine, theirs]) = mine.beside(other, known) else {
        return String::new();
    };
    // Less than this reads as no points at all.
    match (mine - theirs) * 100.0 {
        p if p <= -0.05 => format!(", at {:.1} points lower {metric}", -p),
        p if p >= 0.05 => format!(", at {p:.1} points higher {metric}"),
        _ => format!(", at the same {metric}"),
    }
}

/// Which strategies' gradients weigh more than their node data, and by how much at most.
pub(super) fn outweighed(cells: &[Entrant], story: &mut Story) {
    let factor = |cell: &Entrant| {
        let node_data = cell.node_data()?.mean;
        let gradients = cell.column("parameter_gradient_bytes")?.mean;
        (node_data > 0.0 && gradients > node_data).then_some(gradients / node_data)
    };
    let outweighed: Vec<String> = strategies(cells)
        .into_iter()
        .filter_map(|strategy| {
            let mine: Vec<&Entrant> = (cells.iter())
                .filter(|cell| cell.strategy == strategy)
                .collect();
            let most = mine.iter().filter_map(|cell| factor(cell));
            let most = format::factor(most.max_by(f64::total_cmp)?);
            let up_to = if mine.len() > 1 { "up to " } else { "" };
            Some(format!("{strategy} ({up_to}{most})"))
        })
        .collect();
    if !outweighed.is_empty() {
        story.sentences.push(format!(
            "Parameter gradients outweigh node data for {}: on a graph this small for its model, total bytes say \
             more about the model's size than about the strategy, so node data is shown apart.",
            list(&outweighed)
        ));
    }
}
