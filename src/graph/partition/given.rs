//! A partition from a file: one worker number, from 0, per line; line i is node i − 1.

use std::path::Path;

use crate::graph::GraphError;
use crate::graph::loaders::{each_line, number, open};

/// Reads the assignment of `nodes` nodes to `workers` workers.
pub fn partition(path: &Path, nodes: usize, workers: usize) -> Result<Vec<u32>, GraphError> {
    let mut assignment: Vec<u32> = Vec::new();
    each_line(path, open(path)?, |line| {
        let worker: u32 = number(line, "a worker number")?;
        if worker as usize >= workers {
            return Err(format!(
                "worker {worker} is not one of 0 to {}, the {workers} workers asked for",
                workers - 1
            ));
        }
        if assignment.len() == nodes {
            return Err(format!(
                "is one line more than the {nodes} nodes of the graph"
            ));
        }
        assignment.push(worker);
        Ok(())
    })?;
    if assignment.len() != nodes {
        let what = format!(
            "has {} lines for the {nodes} nodes of the graph",
            assignment.len()
        );
        return Err(GraphError::file(path, what));
    }
    let mut used = vec![false; workers];
    for &worker in &assignment {
        used[worker as usize] = true;
    }
    match used.iter().position(|used| !used) {
        Some(idle) => Err(GraphError::file(
            path,
            format!("gives no node to worker {idle} of {workers}; ask for fewer workers"),
        )),
        None => Ok(assignment),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<u32>, GraphError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("parts.txt");
        std::fs::write(&path, text).unwrap();
        partition(&path, 3, 2)
    }

    #[test]
    fn one_number_per_line_is_read() {
        assert_eq!(read("0\n1\r\n0\n").unwrap(), [0, 1, 0]);
    }

    #[test]
    fn a_file_that_does_not_fit_is_refused_with_its_line() {
        for (text, message) in [
            (
                "0\n1\n",
                "parts.txt: has 2 lines for the 3 nodes of the graph",
            ),
            (
                "0\n1\n0\n1\n",
                "parts.txt:4: is one line more than the 3 nodes of the graph",
            ),
            (
                "0\n2\n0\n",
                "parts.txt:2: worker 2 is not one of 0 to 1, the 2 workers asked for",
            ),
            (
                "0\nx\n0\n",
                "parts.txt:2: expected a worker number, found `x`",
            ),
            (
                "0\n0\n0\n",
                "parts.txt: gives no node to worker 1 of 2; ask for fewer workers",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.ends_with(message), "{error}");
        }
    }
}
