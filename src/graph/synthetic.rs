//! Generated data sets: the checks that all share.

use super::csbm::{self, Contextual};
use super::larger::Room;
use super::{EDGE_FACTOR, GraphError, RawDataset, SyntheticSpec, propagated, rmat, sbm};
use crate::memory;

/// Generates what the section asks for. Equal sections give equal data sets, whatever the number of
/// threads.
///
/// Within a room edges and features are on disk; those of the stochastic block model, whose draws
/// follow one another, are in memory. Without `values` it is the same graph for plans alone: where
/// it does not depend on features and classes, they are not drawn, there are no values, and each
/// node is of the first class.
pub(super) fn generate(
    spec: &SyntheticSpec,
    values: bool,
    room: Option<&Room>,
) -> Result<RawDataset, GraphError> {
    let (nodes, classes, width, seed) = match spec {
        SyntheticSpec::Sbm {
            nodes,
            classes,
            features,
            seed,
            ..
        }
        | SyntheticSpec::Csbm {
            nodes,
            classes,
            features,
            seed,
            ..
        } => (*nodes, *classes, *features, *seed),
        SyntheticSpec::Rmat {
            scale,
            nodes,
            classes,
            features,
            seed,
            ..
        } => {
            if *scale > 31 {
                return Err(GraphError::synthetic(
                    "scale",
                    format!("{scale} is more than 31, the largest"),
                ));
            }
            (nodes.unwrap_or(1 << scale), *classes, *features, *seed)
        }
    };
    check(spec, nodes, classes, width)?;
    let drawn = if values { width } else { 0 };
    if room.is_none() || matches!(spec, SyntheticSpec::Sbm { .. }) {
        memory::need(|| "dataset.synthetic".to_owned(), least(spec, nodes, drawn))?;
    }
    let data = match spec {
        SyntheticSpec::Sbm {
            degree_within,
            degree_between,
            noise,
            labels,
            ..
        } => {
            let degrees = [*degree_within, *degree_between];
            let data = sbm::generate(nodes, classes, width, degrees, *noise, seed);
            data.map(|data| match labels {
                Some(labels) => propagated::with_labels(data, *labels, seed),
                None => data,
            })
        }
        SyntheticSpec::Csbm {
            degree,
            homophily,
            feature_signal,
            power_law,
            ..
        } => {
            let model = Contextual {
                degree: *degree,
                homophily: *homophily,
                feature_signal: *feature_signal,
                power_law: *power_law,
            };
            if values {
                csbm::generate(nodes, classes, width, model, seed, room)
            } else {
                csbm::outline(nodes, classes, width, model, seed)
            }
        }
        SyntheticSpec::Rmat {
            scale,
            edge_factor,
            edges,
            quadrants,
            ..
        } => {
            let draws = edges.map_or(
                rmat::Size::Draws(edge_factor.unwrap_or(EDGE_FACTOR) << scale),
                rmat::Size::Distinct,
            );
            let graph = rmat::graph(*scale, nodes, draws, *quadrants, seed, room)?;
            if values {
                rmat::label(graph, classes, width, seed, room)
            } else {
                Ok(rmat::outline(graph, classes, width))
            }
        }
    };
    data?.with_own_split(seed)
}

/// Whether there can be so many of everything.
fn check(
    spec: &SyntheticSpec,
    nodes: usize,
    classes: usize,
    width: usize,
) -> Result<(), GraphError> {
    // From five nodes on, 60, 20 and 20 % of them are at least one node each.
    if u32::try_from(nodes).is_err() || nodes < 5 {
        return Err(GraphError::synthetic(
            "nodes",
            format!("{nodes} is not between 5 and 2^32 - 1"),
        ));
    }
    if classes == 0 || classes > nodes {
        return Err(GraphError::synthetic(
            "classes",
            format!("{classes} is not between 1 and the {nodes} nodes"),
        ));
    }
    if width == 0 {
        return Err(GraphError::synthetic("features", "must be at least 1"));
    }
    if let SyntheticSpec::Sbm {
        labels: Some(0), ..
    } = spec
    {
        return Err(GraphError::synthetic("labels", "must be at least 1"));
    }
    Ok(())
}

/// Bytes that generating takes at least: features, and the pairs of nodes that are drawn, with the
/// two forms of the graph that is made of them.
fn least(spec: &SyntheticSpec, nodes: usize, width: usize) -> u64 {
    const PAIR: u64 = 16;
    let pairs = match spec {
        SyntheticSpec::Sbm {
            degree_within,
            degree_between,
            ..
        } => (nodes as f64 * (degree_within + degree_between) / 2.0) as u64,
        SyntheticSpec::Csbm { degree, .. } => (nodes as f64 * degree / 2.0) as u64,
        SyntheticSpec::Rmat {
            scale,
            edge_factor,
            edges,
            ..
        } => edges.map_or_else(
            || {
                // Of what is drawn, the pairs whose ends are both kept.
                let all = (1_u64 << scale) as f64;
                let kept = nodes as f64 / all;
                (edge_factor.unwrap_or(EDGE_FACTOR) as f64 * all * kept * kept) as u64
            },
            |edges| edges as u64,
        ),
    };
    memory::bytes(&[nodes, width], 4).saturating_add(pairs.saturating_mul(PAIR))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(toml: &str) -> String {
        let spec: SyntheticSpec = toml::from_str(toml).unwrap();
        generate(&spec, true, None).unwrap_err().to_string()
    }

    #[test]
    fn sizes_that_cannot_be_are_refused_by_key() {
        let sbm = "kind = 'sbm'\ndegree_within = 2\ndegree_between = 1\n";
        for (rest, expected) in [
            (
                "nodes = 0\nclasses = 1\nfeatures = 1",
                "nodes: 0 is not between 5",
            ),
            (
                "nodes = 10\nclasses = 11\nfeatures = 1",
                "classes: 11 is not between 1 and the 10 nodes",
            ),
            (
                "nodes = 10\nclasses = 2\nfeatures = 0",
                "features: must be at least 1",
            ),
        ] {
            let text = message(&format!("{sbm}{rest}"));
            assert_eq!(
                &text[.."dataset.synthetic: ".len() + expected.len()],
                format!("dataset.synthetic: {expected}")
            );
        }
        assert!(
            message("kind = 'rmat'\nscale = 40\nclasses = 2\nfeatures = 3")
                .contains("40 is more than 31")
        );
    }
}
