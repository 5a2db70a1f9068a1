//! What would change a ranking, in words.

use super::tells;
use crate::experiment::{Advised, Change};
use crate::report::format::{digits, seconds};

/// Who is first then, and how long it takes.
pub(super) fn changed(change: &Change, ranking: &[Advised]) -> String {
    let fits_now = |name: &str| ranking.iter().any(|advised| advised.strategy == name);
    let names = change.ranking.iter().map(|(name, _)| name.as_str());
    let new: Vec<&str> = names.filter(|name| !fits_now(name)).collect();
    let Some((then, took)) = change.ranking.first() else {
        return "no strategy fits".to_owned();
    };
    let Some(first) = ranking.first() else {
        let new = new.join(", ");
        return format!("there is room for {new}; {then} first: {}", seconds(*took));
    };
    let fit = if new.is_empty() {
        String::new()
    } else {
        format!("; there is room for {}, too", new.join(", "))
    };
    let time = |strategy: &str| {
        let found = change.ranking.iter().find(|(name, _)| name == strategy);
        found.map(|(_, time)| *time)
    };
    let now = first.projection.simulated_seconds;
    let against = |time: f64| match time / now {
        ratio if (0.95..1.05).contains(&ratio) => "as long as now".to_owned(),
        ratio if ratio < 1.0 => format!("{} times less than now", digits(1.0 / ratio)),
        ratio => format!("{} times as long as now", digits(ratio)),
    };
    let senders = if tells(first) {
        String::new()
    } else {
        first_sender(change, ranking)
    };
    if *then == first.strategy {
        return format!(
            "{then} stays first: {}, {}{senders}{fit}",
            seconds(*took),
            against(*took)
        );
    }
    let before = time(&first.strategy).map_or_else(
        || {
            let goes = !change.refused.contains(&first.strategy);
            let why = if goes {
                "no longer fits"
            } else {
                "does not go with it"
            };
            format!("{} {why}", first.strategy)
        },
        |time| format!("{} takes {}", first.strategy, seconds(time)),
    );
    format!(
        "{then} comes first: {}; {before}{senders}{fit}",
        seconds(*took)
    )
}

/// Who of those that send something of nodes is first then, where the first sends nothing.
fn first_sender(change: &Change, ranking: &[Advised]) -> String {
    let sends = |name: &str| ranking.iter().any(|one| one.strategy == name && tells(one));
    let place = change.ranking.iter().position(|(name, _)| sends(name));
    // Who is first of all has been named.
    let Some(place) = place.filter(|&place| place > 0) else {
        return String::new();
    };
    let (then, took) = &change.ranking[place];
    let now = ranking.iter().find(|advised| tells(advised));
    let stays = now.is_some_and(|now| now.strategy == *then);
    let comes = if stays { "stays" } else { "comes" };
    format!(
        "; of those that send or move data of nodes, {then} {comes} first: {}",
        seconds(*took)
    )
}
