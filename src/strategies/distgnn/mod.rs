//! `distgnn`: the edges are dealt out, and the clones of a node add up what they gathered, as in
//! DistGNN (Md, Misra, Ma, Mohanty, Georganas, Heinecke, Kalamkar, Ahmed and Avancha, *DistGNN:
//! Scalable Distributed Training for Large-Scale Graph Neural Networks*, SC 2021), algorithms cd-0
//! and cd-r.
//!
//! A node has a clone at each worker that has one of its edges; one of them, drawn at random, is
//! its owner. Every worker holds the features of its clones, and in each layer gathers over its own
//! edges. Clones send these partial sums to the owner, which adds its own and sends back the total;
//! then every clone computes the node's next row. On the way back the gradients of the totals go
//! the same way. The loss of a node counts at its owner, parameter gradients are summed over
//! workers. With `S = Σ (clones − 1)` an exchange of `d` columns moves `8 d S` bytes, and an epoch
//! of cd-0 (`delay = 0`) with `L` layers `8 S d_0` (`feature`) `+ 8 S Σ_{1≤l<L} d_l` (`activation`)
//! forward and `8 S Σ_{1≤l<L} d_l` (`activation_gradient`) back. It is exact. Sums of features
//! travel in every epoch, for dropout makes others of them.
//!
//! With `delay = r > 0`, which is cd-r, split nodes are dealt to `r` bins, of which one is on in an
//! epoch: its clones send partial sums to owners, which wait for those that were sent `r` epochs
//! ago, add them to their own new ones and send the totals; clones wait for the totals of `r`
//! epochs ago, and use these for their own. So an epoch moves about `1/r` of the bytes, `r` of them
//! in a row all, and what is used of others is `r` epochs old at owners and up to `2r` at clones.
//! Until epoch `r` nothing goes back to clones. Where nothing came for a split node in an epoch,
//! its sum is over the edges that are here, times all its neighbours over those here, as a mean has
//! it. Biased: by that, and by how much rows change in `2r` epochs.
//!
//! Works for models that begin a layer with a weighted sum: `gcn`, `sage` and `gin`. Edges are
//! dealt by `cut`; `[partition]` gives the number of workers, and how nodes are owned in other
//! strategies.
//!
//! Evidence, in the authors' code (`dgl.distgnn` in branches of DGL): bins, delays, that others'
//! sums are used in the epochs of a node's bin alone, degrees among what came, Libra, owners at
//! random. There a row has its degree and number beside it, which are not counted here: they do not
//! change, and both ends know them. One version (`dmlc/dgl` at bc263ea31c) multiplies by W before
//! it gathers where that is narrower, so that sums cross with fewer columns, of Cora's 1,433
//! features 16, as do the run scripts that came with it and the last pull request; another
//! (9ad9f01f43) does not. Here they cross as the layer's input. Derived: a loss at owners alone,
//! where theirs counts it at every clone; one bin for a node, where each of their workers cuts its
//! own list of split nodes into bins; and the exchange of gradients, which no version with run
//! scripts has, so that cd-0 is exact for the gradient here, and not there.

mod plan;
mod routes;
mod sums;

use std::sync::Arc;

use super::parts::options::{GRADIENTS, option_struct};
use super::parts::{Gradients, Step, Stepwise, SummedPass, sum_steps};
use super::{OptionError, Registration, Strategy, StrategyInfo, Training, options};
use crate::digits::counted;
use crate::graph::{EdgeMethod, VertexCut};
use crate::model::{Gnn, ModelKind};
use crate::sim::{Planner, Restoring, Saving, Setting, SimError, Worker};
use routes::Routes;
use sums::Sums;

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "distgnn",
        paper: "Md et al., DistGNN: Scalable Distributed Training for Large-Scale Graph Neural Networks (SC 2021), cd-0 and cd-r",
        sends: "partial sums of nodes whose edges several workers have, to their owners and back, in every layer, and their gradients; parameter gradients",
        options: DistGnn::INFO,
    },
    read,
};

option_struct! {
    /// The options, which are all there is to the strategy.
    #[derive(Clone, Copy, Debug)]
    struct DistGnn {
        delay: usize = 5, "The r of cd-r: one r-th of the split nodes is exchanged in an epoch, and what came r epochs ago is used (5 in the paper); 0 is cd-0, which is exact.";
        cut: EdgeMethod = EdgeMethod::Libra, "\"libra\"", "How edges are dealt to workers: libra (the paper's), hdrf, or random.";
        gradients: Gradients = Gradients::PLAIN, GRADIENTS;
    }
}

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let options: DistGnn = options(table)?;
    if options.delay > MOST_BINS {
        let what = format!("must be at most {MOST_BINS}, for each worker keeps as many bins");
        return Err(OptionError::key("delay", what));
    }
    Ok(Box::new(options))
}

/// The largest `delay`.
const MOST_BINS: usize = 100_000;

impl Strategy for DistGnn {
    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        let refuse = |message: &str| Err(OptionError::whole(message));
        if matches!(setting.model.kind, ModelKind::Gat | ModelKind::SagePool) {
            return refuse(
                "adds up sums over the edges of several workers, and a softmax or a maximum over neighbours is no sum: take model.kind = \"gcn\", \"sage\" or \"gin\"",
            );
        }
        let (graph, workers) = (&setting.dataset.graph, setting.workers());
        let cut = VertexCut::new(graph, workers, self.cut, setting.seed);
        let without = cut.parts.iter().filter(|part| part.nodes.is_empty());
        match (without.count(), self.cut) {
            (0, _) => {}
            (without, EdgeMethod::Libra) if graph.edges() >= workers => {
                let message = format!(
                    "leaves {without} of {workers} workers without an edge: libra puts an edge where one of its ends is \
                     already, and in the order of this graph's edges nearly each has such an end; take \"hdrf\" or \
                     \"random\""
                );
                return Err(OptionError::key("cut", message));
            }
            _ => {
                return refuse(
                    "deals out the edges, and there are too few for all workers: lower partition.workers",
                );
            }
        }
        Ok(Box::new(Fitted {
            routes: Arc::new(routes::all(&cut, self.delay)),
            cut: Arc::new(cut),
            options: *self,
            setting: Arc::clone(setting),
        }))
    }
}

/// The strategy in its setting.
#[derive(Clone)]
struct Fitted {
    options: DistGnn,
    cut: Arc<VertexCut>,
    /// Of each worker, by bin.
    routes: Arc<Vec<Vec<Routes>>>,
    setting: Arc<Setting>,
}

impl Training for Fitted {
    fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    fn planner(&self) -> Box<dyn Planner> {
        plan::planner(self)
    }

    fn notes(&self) -> Vec<String> {
        let (epochs, delay) = (self.epochs(), self.options.delay);
        let unused = (delay >= epochs && self.setting.workers() > 1).then(|| {
            format!(
                "what its workers send is never used: delay = {delay}, and it trains for {}",
                counted(epochs as u64, "epoch")
            )
        });
        let late = self.options.gradients.note(&self.setting, epochs);
        unused.into_iter().chain(late).collect()
    }

    fn saves(&self) -> Result<(), String> {
        Ok(())
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let part = &self.cut.parts[worker.rank()];
        let (nodes, owned) = (part.nodes.clone(), part.owned.iter().copied());
        let shares = sums::shares(&self.setting.dataset.graph, part);
        let routes = &self.routes[worker.rank()];
        let mut passes = Passes {
            pass: SummedPass::new(worker, nodes, Some(&part.adjacency), owned),
            sums: Sums::new(routes, self.options.delay, shares),
        };
        sum_steps(worker, self.options.gradients, 1, &mut passes)
    }
}

/// One worker's passes.
struct Passes<'a> {
    pass: SummedPass,
    sums: Sums<'a>,
}

impl Stepwise for Passes<'_> {
    fn step(
        &mut self,
        worker: &mut Worker,
        model: &Gnn,
        epoch: usize,
        _step: usize,
    ) -> Result<Step, SimError> {
        self.pass.step(worker, model, &mut self.sums, epoch)
    }

    fn finish(&mut self, worker: &mut Worker) -> Result<(), SimError> {
        self.sums.finish(worker)
    }

    fn save(&self, _worker: &Worker, into: &mut Saving) {
        self.sums.save(into);
    }

    fn restore(&mut self, from: &mut Restoring<'_>) -> Result<(), SimError> {
        self.sums.restore(from)
    }
}
