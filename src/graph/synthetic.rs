//! Generated data sets: the checks that all share.

use super::csbm::{self, Contextual};
use super::larger::Room;
use super::{
    EDGE_FACTOR, GraphError, RawDataset, SyntheticSpec, are_quadrants, propagated, rmat, sbm,
};
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
    let checked = spec.check();
    checked.map_err(|(key, what)| GraphError::synthetic(key, what))?;
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
        } => (nodes.unwrap_or(1 << scale), *classes, *features, *seed),
    };
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

impl SyntheticSpec {
    /// Whether there can be such a graph, with values of all its nodes.
    ///
    /// # Errors
    /// The first key whose value cannot be, and why.
    pub(crate) fn check(&self) -> Result<(), Wrong> {
        match self {
            Self::Sbm {
                nodes,
                classes,
                features,
                degree_within,
                degree_between,
                noise,
                labels,
                ..
            } => {
                sizes(*nodes, *classes, *features)?;
                of_each(labels.unwrap_or(1), *nodes, "labels")?;
                not_negative(*degree_within, "degree_within")?;
                not_negative(*degree_between, "degree_between")?;
                not_negative(*noise, "noise")
            }
            Self::Csbm {
                nodes,
                classes,
                features,
                degree,
                homophily,
                feature_signal,
                power_law,
                ..
            } => {
                sizes(*nodes, *classes, *features)?;
                holds(*classes >= 2, "classes", "must be at least 2")?;
                let what = "must be at least `classes` - 1: the means of the classes are the corners of a simplex";
                holds(features + 1 >= *classes, "features", what)?;
                not_negative(*degree, "degree")?;
                let block = nodes / classes;
                let what = format!("must be no more than the {block} nodes of a class");
                holds(*degree <= *nodes as f64 / *classes as f64, "degree", what)?;
                not_negative(*feature_signal, "feature_signal")?;
                let what = "is a chance, between 0 and 1";
                holds((0.0..=1.0).contains(homophily), "homophily", what)?;
                let bounded = |exponent: f64| exponent > 2.0 && exponent.is_finite();
                let what = "must be above 2: with less the mean degree has no bound";
                holds(power_law.is_none_or(bounded), "power_law", what)
            }
            Self::Rmat {
                scale,
                edge_factor,
                edges,
                nodes,
                classes,
                features,
                quadrants,
                ..
            } => {
                let what = format!("must be 3 to 31 (2^scale nodes), not {scale}");
                holds((3..=31).contains(scale), "scale", what)?;
                let what = "says how many there are, and so does `edge_factor`, which would do nothing: keep one";
                holds(edges.is_none() || edge_factor.is_none(), "edges", what)?;
                let factor = edge_factor.unwrap_or(1);
                holds(factor > 0, "edge_factor", NONE)?;
                let what = format!("draws more than {MOST_DRAWS} edges with scale = {scale}");
                // Divided, not multiplied: the product may not fit into a number.
                holds(factor <= MOST_DRAWS >> scale, "edge_factor", what)?;
                let all = 1_usize << scale;
                let nodes = nodes.unwrap_or(all);
                let what = "must be no more than the 2^scale nodes there are";
                holds(nodes <= all, "nodes", what)?;
                sizes(nodes, *classes, *features)?;
                // The fourth quadrant has what the three leave.
                let what = "must be three probabilities that add up to no more than 1";
                holds(are_quadrants(*quadrants), "quadrants", what)
            }
        }
    }
}

/// A key, and what is wrong with its value, as the end of a sentence.
type Wrong = (&'static str, String);

const NONE: &str = "must be at least 1, not 0";

/// Most edges that are drawn, repeated ones included.
const MOST_DRAWS: usize = 1 << 40;

/// Most values of all nodes together: 256 GiB of features.
const MOST_VALUES: usize = 1 << 36;

fn holds(condition: bool, key: &'static str, what: impl Into<String>) -> Result<(), Wrong> {
    if condition {
        Ok(())
    } else {
        Err((key, what.into()))
    }
}

fn not_negative(value: f64, key: &'static str) -> Result<(), Wrong> {
    let what = format!("must be 0 or more, not {value}");
    holds(value >= 0.0 && value.is_finite(), key, what)
}

/// Whether there can be so many of everything.
fn sizes(nodes: usize, classes: usize, features: usize) -> Result<(), Wrong> {
    // From five nodes on, 60, 20 and 20 % of them are at least one node each.
    let what = format!("must be 5 to 2^32 - 1, not {nodes}");
    holds(nodes >= 5 && u32::try_from(nodes).is_ok(), "nodes", what)?;
    holds(classes > 0, "classes", NONE)?;
    holds(nodes >= classes, "nodes", "must be at least `classes`")?;
    of_each(features, nodes, "features")
}

/// Whether each node can have so many.
fn of_each(number: usize, nodes: usize, key: &'static str) -> Result<(), Wrong> {
    holds(number > 0, key, NONE)?;
    let values = number.checked_mul(nodes);
    let what = format!("{number} of each of {nodes} nodes are more than {MOST_VALUES} values");
    holds(
        values.is_some_and(|values| values <= MOST_VALUES),
        key,
        what,
    )
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
    fn numbers_that_cannot_be_are_refused_by_key() {
        let sbm = "kind = 'sbm'\ndegree_within = 2\ndegree_between = 1";
        let csbm = "kind = 'csbm'\nnodes = 100\nclasses = 4\nfeatures = 6\ndegree = 5\nhomophily = 0.5\nfeature_signal = 1";
        let with = |from: &str, to: &str| {
            assert!(csbm.contains(from), "{from}");
            csbm.replace(from, to)
        };
        let sbm = |rest: &str| format!("{sbm}\n{rest}");
        for (text, expected) in [
            (
                sbm("nodes = 0\nclasses = 1\nfeatures = 1"),
                "nodes: must be 5 to 2^32 - 1, not 0",
            ),
            (
                sbm("nodes = 10\nclasses = 11\nfeatures = 1"),
                "nodes: must be at least `classes`",
            ),
            (
                sbm("nodes = 10\nclasses = 2\nfeatures = 0"),
                "features: must be at least 1",
            ),
            (
                sbm("nodes = 10\nclasses = 2\nfeatures = 1\nnoise = -1"),
                "noise: must be 0 or more",
            ),
            (
                sbm("nodes = 10\nclasses = 2\nfeatures = 1\nlabels = 0"),
                "labels: must be at least 1",
            ),
            (
                with("classes = 4", "classes = 1"),
                "classes: must be at least 2",
            ),
            (
                with("features = 6", "features = 2"),
                "features: must be at least `classes` - 1",
            ),
            (
                with("homophily = 0.5", "homophily = 1.5"),
                "homophily: is a chance",
            ),
            (
                with("signal = 1", "signal = -1"),
                "feature_signal: must be 0 or more",
            ),
            (
                with("signal = 1", "signal = 1\npower_law = 2"),
                "power_law: must be above 2",
            ),
            (
                with("degree = 5", "degree = 26"),
                "degree: must be no more than the 25 nodes",
            ),
            (
                "kind = 'rmat'\nscale = 40\nclasses = 2\nfeatures = 3".to_owned(),
                "scale: must be 3 to 31 (2^scale nodes), not 40",
            ),
        ] {
            let error = message(&text);
            let start = format!("dataset.synthetic: {expected}");
            assert!(error.starts_with(&start), "{error}");
        }
    }
}
