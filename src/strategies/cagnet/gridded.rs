//! Training on a grid of workers, and its plan.

use std::sync::Arc;

use super::grid::Grid;
use super::product::Product;
use crate::graph::PartitionSpec;
use crate::model::{BlockShape, Gnn, ModelKind, Work};
use crate::sim::{Activity, Planner, Setting, SimError, Track, Worker};
use crate::strategies::parts::gradients::LearnerPlan;
use crate::strategies::parts::plan::{SummedPlan, exchange_of_lane, plan_each};
use crate::strategies::parts::{Gradients, Lane, SummedPass, sum_steps};
use crate::strategies::{BatchUse, Needs, OptionError, Strategy, Training};

/// The algorithms that divide the graph's edges too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gridded {
    /// Workers with the same rows, for 1.5D; none for 2D.
    pub(super) replication: Option<usize>,
    /// How parameter gradients are summed.
    pub(super) gradients: Gradients,
}

impl Gridded {
    fn grid(&self, workers: usize) -> Result<Grid, OptionError> {
        match self.replication {
            Some(replication) => Grid::replicated(workers, replication),
            None => Grid::square(workers),
        }
    }
}

impl Strategy for Gridded {
    fn needs(&self, asked: &PartitionSpec) -> Result<Needs, OptionError> {
        self.grid(asked.workers)?;
        Ok(Needs::of(asked.clone(), BatchUse::Never))
    }

    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        let refuse = |what: &str| Err(OptionError::key("algorithm", what));
        if matches!(setting.model.kind, ModelKind::Gat | ModelKind::SagePool) {
            return refuse(
                "other than \"1d\" adds up sums over the edges of several workers, and a softmax or a maximum over neighbours is no sum: \
                 take model.kind = \"gcn\", \"sage\" or \"gin\"",
            );
        }
        let grid = self.grid(setting.workers())?;
        let nodes = grid.nodes(&setting.boundary);
        if nodes.iter().any(Vec::is_empty) {
            return refuse(
                "other than \"1d\" needs a node in each row of workers, and some have none: lower partition.workers",
            );
        }
        let widths = &setting.model.widths[..setting.model.layers()];
        if grid.slices && widths[0] < grid.columns {
            return refuse(
                "\"2d\" divides the columns of every layer, and nodes have fewer features than a row has workers: lower \
                 partition.workers",
            );
        }
        if grid.slices && widths.iter().any(|&width| width < grid.columns) {
            return refuse(
                "\"2d\" divides the columns of every layer, and one has fewer than a row has workers: lower partition.workers, or raise \
                 model.hidden",
            );
        }
        let graph = &setting.dataset.graph;
        let edges = |rank| grid.edges(graph, &nodes, rank).edges();
        Ok(Box::new(Fitted {
            edges: (0..setting.workers()).map(edges).collect(),
            gradients: self.gradients,
            nodes: nodes.into(),
            grid,
            setting: Arc::clone(setting),
        }))
    }
}

/// The strategy in its setting.
#[derive(Clone)]
struct Fitted {
    grid: Grid,
    /// Of each row of workers.
    nodes: Arc<[Vec<u32>]>,
    /// How many each worker has.
    edges: Arc<[usize]>,
    gradients: Gradients,
    setting: Arc<Setting>,
}

impl Fitted {
    /// One product with the adjacency matrix.
    fn total(&self, track: &mut Track, rank: usize, lane: Lane) {
        let (grid, nodes) = (self.grid, &self.nodes);
        let (row, column) = grid.place(rank);
        let width = self.setting.model.widths[lane.1];
        let (held, slice) = (nodes[row].len(), grid.slice(column, width).len());
        let read = grid.read(column);
        track.compute(Work::pass(held * slice));
        if grid.rows > 1 {
            let peers = || grid.beside_in_column(rank);
            let receivers = peers().filter(|_| read.contains(&row));
            let senders = peers().filter(|&peer| read.contains(&grid.place(peer).0));
            let rows = receivers.map(|peer| (peer, held * slice));
            track.exchange(exchange_of_lane(lane, rows, senders));
        }
        let gathered = read.map(|row| nodes[row].len()).sum::<usize>();
        let sums = Work::aggregation(held, self.edges[rank], slice);
        track.compute(Work::pass(gathered * slice) + sums);
        if grid.columns == 1 {
            return;
        }
        let peers = || grid.beside_in_row(rank);
        let added = |column| grid.added(column, held).len() * width;
        track.compute(Work::pass(held * slice));
        if grid.slices {
            let slices = peers().map(|peer| (peer, held * slice));
            track.exchange(exchange_of_lane(lane, slices, peers()));
        } else {
            let parts = peers().map(|peer| (peer, added(grid.place(peer).1)));
            track.exchange(exchange_of_lane(lane, parts, peers()));
            track.compute(Work::sum((grid.columns - 1) * added(column)));
            let totals = peers().map(|peer| (peer, added(column)));
            track.exchange(exchange_of_lane(lane, totals, peers()));
        }
        track.compute(Work::pass(held * width));
    }
}

impl Training for Fitted {
    fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    fn planner(&self) -> Box<dyn Planner> {
        let fitted = self.clone();
        let setting = Arc::clone(&self.setting);
        let learner = LearnerPlan::of_model(self.gradients, &setting, setting.training.epochs);
        plan_each(setting.workers(), move |epoch, rank, track| {
            let model = &fitted.setting.model;
            let (row, column) = fitted.grid.place(rank);
            let read = fitted.grid.read(column);
            let passes = SummedPlan {
                model,
                block: BlockShape {
                    outputs: fitted.nodes[row].len(),
                    inputs: read.map(|row| fitted.nodes[row].len()).sum(),
                    entries: fitted.edges[rank],
                    sampled: false,
                },
                sums: false,
            };
            passes.write(track, &|track, lane| fitted.total(track, rank, lane));
            track.compute(Work::pass(model.parameters()));
            learner.write(track, rank, epoch);
        })
    }

    fn notes(&self) -> Vec<String> {
        let late = self.gradients.note(&self.setting, self.epochs());
        late.into_iter().collect()
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let nodes = self.nodes[self.grid.place(worker.rank()).0].clone();
        let all = (0_u32..).take(nodes.len());
        let pass = SummedPass::new(worker, nodes, None, all);
        let mut product = Product::new(worker, self.grid, &self.nodes);
        // All workers of a row have the gradients of its rows, which are to be summed once.
        let share = 1.0 / self.grid.columns as f32;
        let mut step = |worker: &mut Worker, model: &Gnn, epoch: usize, _: usize| {
            let mut step = pass.step(worker, model, &mut product, epoch)?;
            worker.compute(Activity::Model, |_| {
                step.gradient.iter_mut().for_each(|value| *value *= share);
            });
            step.loss *= f64::from(share);
            Ok::<_, SimError>(step)
        };
        sum_steps(worker, self.gradients, 1, &mut step)
    }

    fn saves(&self) -> Result<(), String> {
        Ok(())
    }
}
