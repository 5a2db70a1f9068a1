//! Features that one strategy sends in every epoch and `full` once.

use super::rows::{RunRow, distinct};

/// Kinds that send features in every epoch unless `cache_features` says otherwise.
const RESEND: [&str; 2] = ["fixed", "varco"];

/// What to know of strategies that compress rows and yet send more node data than `full`, because
/// it keeps features and they do not.
pub(super) fn note(runs: &[RunRow]) -> Option<String> {
    // One worker alone sends nothing: who is compared has as many.
    let setting = |run: &RunRow| (run.seed, run.workers, run.sweep.clone());
    let more = |run: &&RunRow| {
        let beside = |full: &&RunRow| full.kind() == "full" && setting(full) == setting(run);
        let pairs = runs.iter().filter(beside);
        let mut pairs = pairs.filter_map(|full| Some((run.measured?, full.measured?)));
        pairs.any(|(own, full)| {
            own.node_data_bytes() > full.node_data_bytes() && own.feature_bytes > full.feature_bytes
        })
    };
    let found: Vec<&str> = (runs.iter().filter(|run| RESEND.contains(&run.kind())))
        .filter(more)
        .map(|run| run.strategy.as_str())
        .collect();
    (!found.is_empty()).then(|| {
        format!(
            "{}: more node data than full, which sends features once, where these send them in every epoch, as VARCO's authors do; \
             `cache_features = true` has them send them once, too",
            distinct(found.into_iter()).join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::rows::Measured;

    #[test]
    fn who_compresses_and_sends_more_is_told_why() {
        let run = |kind: &str, features: u64, activations: u64| RunRow {
            cell: kind.into(),
            strategy: kind.into(),
            strategy_kind: Some(kind.into()),
            ..RunRow::finished(Measured {
                feature_bytes: features,
                activation_bytes: activations,
                ..Measured::default()
            })
        };
        let full = || run("full", 10, 100);
        let told = |run: RunRow| note(&[full(), run]);
        let text = told(run("fixed", 150, 10)).unwrap();
        assert!(text.starts_with("fixed: more node data"), "{text}");
        assert_eq!(told(run("fixed", 10, 101)), None);
        assert_eq!(told(run("varco", 20, 10)), None);
        assert_eq!(told(run("distdgl", 150, 10)), None);
        assert_eq!(note(&[run("fixed", 150, 10)]), None);
        let one_worker = RunRow {
            workers: 1,
            ..run("full", 0, 0)
        };
        assert_eq!(note(&[one_worker, run("fixed", 150, 10)]), None);
    }
}
