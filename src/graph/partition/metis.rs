//! METIS multilevel k-way (Karypis and Kumar, *A Fast and High Quality Multilevel Scheme for
//! Partitioning Irregular Graphs*, 1998).

use std::sync::{Mutex, PoisonError};

use metis::option::Seed;
use metis::{Graph, Idx};
use rand::Rng;

use super::random;
use crate::graph::{Csr, GraphError};

/// METIS keeps its random state in a global of the C library: calls at the same time would disturb
/// one another.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Divides the nodes into `workers` sets, of which some may be empty, of nearly equal size with few
/// edges between them. A graph without edges, where there is nothing to optimise, is divided at
/// random.
pub fn partition(
    graph: &Csr,
    workers: usize,
    random: &mut impl Rng,
) -> Result<Vec<u32>, GraphError> {
    if workers == 1 {
        return Ok(vec![0; graph.nodes()]);
    }
    if graph.edges() == 0 {
        return Ok(random::partition(graph.nodes(), workers, random));
    }
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
    // A seed of METIS is not negative.
    let seed = Idx::try_from(random.next_u32() >> 1).map_err(too_large)?;

    let mut assignment: Vec<Idx> = vec![0; graph.nodes()];
    {
        // A panic while it was held left nothing behind that the next call could see.
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        Graph::new(1, parts, &offsets, &indices)
            .map_err(|error| failed(error.to_string()))?
            .set_option(Seed(seed))
            .part_kway(&mut assignment)
            .map_err(|error| failed(error.to_string()))?;
    }
    let part = |part: Idx| {
        u32::try_from(part).map_err(|_| failed("it answers with a negative part".to_owned()))
    };
    assignment.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};

    #[test]
    fn a_graph_without_edges_is_divided_evenly() {
        let graph = Csr::from_edges(100, std::iter::empty());
        let assignment = partition(&graph, 4, &mut stream(1, Purpose::Partition, 0, 0)).unwrap();
        for part in 0..4 {
            assert_eq!(
                assignment.iter().filter(|&&owner| owner == part).count(),
                25
            );
        }
    }
}
