//! METIS multilevel k-way (Karypis and Kumar, *Multilevel k-way Partitioning Scheme for Irregular
//! Graphs*, Journal of Parallel and Distributed Computing 48, 1998).

use std::sync::{Mutex, PoisonError};

use metis::option::{ObjType, Seed};
use metis::{Graph, Idx};
use rand::Rng;

use super::random;
use crate::graph::{Balance, Csr, GraphError, Objective};
use crate::memory;

/// METIS keeps its random state in a global of the C library: calls at the same time would disturb
/// one another.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Divides the nodes into `workers` sets, of which some may be empty, of nearly equal size with few
/// edges between them, or few boundary rows, as the `objective` says. With a `balance`, each of its
/// entries is shared out within METIS's 3 %, as a constraint of its own. A graph without edges,
/// where there is nothing to optimise, is divided at random.
pub(super) fn partition(
    graph: &Csr,
    workers: usize,
    objective: Objective,
    (balance, train): (&[Balance], &[u32]),
    random: &mut impl Rng,
) -> Result<Vec<u32>, GraphError> {
    if workers == 1 {
        return Ok(vec![0; graph.nodes()]);
    }
    if graph.edges() == 0 {
        return Ok(random::partition(graph.nodes(), workers, random));
    }
    // Its own copy of the graph with weights, and coarser ones: measured were 21 bytes for each
    // node and stored edge of a graph that shrinks well, and 56 of R-MAT.
    let values = [graph.nodes() + graph.edges(), 5];
    let what = || "METIS, which holds the whole graph (\"ldg\" and \"fennel\" do not),".to_owned();
    memory::need(what, memory::bytes(&values, size_of::<Idx>()))?;
    let failed = |what: String| {
        GraphError::key(
            "partition.method",
            format!("METIS cannot divide this graph: {what}; use \"random\""),
        )
    };
    let too_large = |_| failed("it has more than 2^31 edges or nodes".to_owned());
    let narrow = |&value: &usize| Idx::try_from(value).map_err(too_large);
    let offsets = graph
        .offsets()
        .iter()
        .map(narrow)
        .collect::<Result<Vec<Idx>, _>>()?;
    let indices: Result<Vec<Idx>, _> = graph
        .indices()
        .iter()
        .map(|&u| narrow(&(u as usize)))
        .collect();
    let (indices, parts) = (indices?, narrow(&workers)?);
    let weights: Vec<Idx> = weights(graph, balance, train)?;
    let constraints = narrow(&balance.len().max(1))?;
    // A seed of METIS is not negative.
    let seed = Idx::try_from(random.next_u32() >> 1).map_err(too_large)?;

    let mut assignment: Vec<Idx> = vec![0; graph.nodes()];
    {
        // A panic while it was held left nothing behind that the next call could see.
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        // METIS crashes on an edge that is there one way only; graphs are read as symmetric ones.
        let mut problem = Graph::new(constraints, parts, &offsets, &indices)
            .map_err(|error| failed(error.to_string()))?
            .set_option(Seed(seed))
            .set_option(match objective {
                Objective::Cut => ObjType::Cut,
                Objective::Volume => ObjType::Vol,
            });
        if !weights.is_empty() {
            problem = problem.set_vwgt(&weights);
        }
        problem
            .part_kway(&mut assignment)
            .map_err(|error| match error {
                // Its library catches SIGTERM while it works, and returns with this.
                metis::Error::Other => GraphError::Stopped,
                error => failed(error.to_string()),
            })?;
    }
    let part = |part: Idx| {
        u32::try_from(part).map_err(|_| failed("it answers with a negative part".to_owned()))
    };
    assignment.into_iter().map(part).collect()
}

/// The weights of each node, one per entry of a balance, `[nodes, entries]`; none without one.
fn weights(graph: &Csr, balance: &[Balance], train: &[u32]) -> Result<Vec<Idx>, GraphError> {
    if balance.contains(&Balance::Training) && train.is_empty() {
        let what = "has \"training\", but no node of this data trains; leave it out";
        return Err(GraphError::key("partition.balance", what));
    }
    let weight = |node: usize, balance: &Balance| match balance {
        Balance::Nodes => 1,
        Balance::Training => Idx::from(train.binary_search(&(node as u32)).is_ok()),
        // All edges together are few enough for METIS, so those of a node are.
        Balance::Edges => Idx::try_from(graph.degree(node)).unwrap_or(Idx::MAX),
    };
    let of = |node| balance.iter().map(move |balance| weight(node, balance));
    Ok((0..graph.nodes()).flat_map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{BoundaryPlan, Partition, PartitionStats};
    use crate::rng::{Purpose, stream};

    /// The most that a part has of something, over the mean.
    fn imbalance(assignment: &[u32], parts: usize, of: impl Fn(usize) -> usize) -> f64 {
        let mut sums = vec![0; parts];
        for (node, &part) in assignment.iter().enumerate() {
            sums[part as usize] += of(node);
        }
        let most = sums.iter().max().copied().unwrap_or(0);
        (most * parts) as f64 / sums.iter().sum::<usize>() as f64
    }

    #[test]
    fn what_is_balanced_is_shared_out_and_what_is_not_is_left_to_chance() {
        // Heavy-tailed degrees, and training nodes in one corner of the graph: those nearest to the
        // node with most neighbours.
        let spec = "kind = 'rmat'\nscale = 11\nclasses = 2\nfeatures = 2";
        let spec: crate::graph::SyntheticSpec = toml::from_str(spec).unwrap();
        let data = crate::graph::DatasetSpec {
            synthetic: Some(spec),
            ..crate::graph::DatasetSpec::default()
        };
        let graph = data.read(std::path::Path::new("")).unwrap().graph;
        let hub = (0..graph.nodes()).max_by_key(|&v| graph.degree(v)).unwrap();
        let train = graph.neighbours(hub).to_vec();
        let divided = |balance: &[Balance]| {
            let mut random = stream(3, Purpose::Partition, 0, 0);
            let parts =
                partition(&graph, 4, Objective::Cut, (balance, &train), &mut random).unwrap();
            let training = |v: usize| usize::from(train.binary_search(&(v as u32)).is_ok());
            [
                imbalance(&parts, 4, |_| 1),
                imbalance(&parts, 4, training),
                imbalance(&parts, 4, |v| graph.degree(v)),
            ]
        };
        let plain = divided(&[]);
        let all = [Balance::Nodes, Balance::Training, Balance::Edges];
        let balanced = divided(&all);
        assert!(plain[1] > 1.1 && plain[2] > 1.1, "{plain:?}");
        // METIS allows 3 % of each; with several at once it may miss that by a little.
        assert!(balanced.iter().all(|&most| most < 1.06), "{balanced:?}");
        assert_eq!(divided(&[Balance::Nodes]), plain, "that is what it does");
    }

    #[test]
    fn each_objective_has_less_of_what_it_keeps_small() {
        let graph = crate::graph::cora().unwrap().graph;
        // Of one seed either may have less of both.
        let divided = |objective, balance: &[Balance]| {
            let of = |seed| {
                let mut random = stream(seed, Purpose::Partition, 0, 0);
                let assignment =
                    partition(&graph, 8, objective, (balance, &[]), &mut random).unwrap();
                let partition = Partition {
                    parts: 8,
                    assignment,
                };
                let boundary = BoundaryPlan::new(&graph, &partition);
                let stats = PartitionStats::new(&graph, &partition, &boundary);
                [stats.cut_edges, stats.boundary_rows]
            };
            (0..10)
                .map(of)
                .fold([0, 0], |sum, of| [sum[0] + of[0], sum[1] + of[1]])
        };
        // With two constraints, too.
        for balance in [&[][..], &[Balance::Nodes, Balance::Edges]] {
            let [cut, volume] =
                [Objective::Cut, Objective::Volume].map(|aim| divided(aim, balance));
            assert!(
                cut[0] < volume[0] && volume[1] < cut[1],
                "{cut:?} {volume:?}"
            );
        }
    }

    #[test]
    fn training_nodes_cannot_be_balanced_where_there_are_none() {
        let graph = Csr::undirected(4, [(0, 1), (1, 2), (2, 3)].into_iter());
        let mut random = stream(1, Purpose::Partition, 0, 0);
        let training = (&[Balance::Training][..], &[][..]);
        let error = partition(&graph, 2, Objective::Cut, training, &mut random);
        let said = error.unwrap_err().to_string();
        assert!(
            said.starts_with("partition.balance: has \"training\""),
            "{said}"
        );
    }

    #[test]
    fn a_graph_without_edges_is_divided_evenly() {
        let graph = Csr::from_edges(100, std::iter::empty());
        let assignment = partition(
            &graph,
            4,
            Objective::Volume,
            (&[], &[]),
            &mut stream(1, Purpose::Partition, 0, 0),
        )
        .unwrap();
        for part in 0..4 {
            assert_eq!(
                assignment.iter().filter(|&&owner| owner == part).count(),
                25
            );
        }
    }
}
