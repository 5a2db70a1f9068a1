//! What experiment files may say of it.

use super::degrees::HaloDegrees;
use super::estimators::{Normalise, Shrinkage, Weight};
use super::layout::{Rules, Schedule};
use super::weighing::Weighing;
use crate::graph::Task;
use crate::model::ModelKind;
use crate::sim::Setting;
use crate::strategies::parts::options::{GRADIENTS, at_least_one, option_struct};
use crate::strategies::parts::{Chunking, Gradients};
use crate::strategies::{OptionError, options};

option_struct! {
    /// The options of one entry.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Options {
        /// Number of chunks.
        pub chunks: Option<usize> = None, "the workers; twice as many with schedule = \"regroup\"", "Number of chunks, a multiple of the workers (the authors' code: as many); a worker stores equally many.";
        /// How they come about.
        pub chunking: Chunking = Chunking::Random, "\"random\"", "How nodes are dealt into chunks: random (the authors' default), metis, or partition: as [partition] says (a given file then numbers chunks, those of one worker in a row).";
        /// When they move.
        pub schedule: Schedule = Schedule::Sweep, "\"sweep\"", "sweep: one variable chunk beside the worker's own, moving on round-robin (the paper); fixed: the first one stays (the paper's ablation FP); regroup: all chunks are dealt out anew at random (derived).";
        repartition_every: Option<usize> = None, "50", "Epochs between switches (the authors' code).";
        halo: Option<bool> = None, "true; false with remote_sampling", "Also load the features of all sources of edges into the chunks at a switch (the authors' default).";
        keep_halo: Option<bool> = None, "true; false with schedule = \"regroup\", which keeps no chunk", "Keep the halo of a worker's own chunks from the first switch on (ours); false: load it again at each switch (the authors' code).";
        /// By what halo rows are normalised.
        pub halo_degrees: HaloDegrees = HaloDegrees::Global, "\"global\"", "By which degree a halo node's row is normalised: global, its own in the whole graph; seen, the number of edges into the worker's chunks (ours); authors: every row that is read by the number of chunk nodes that read it, and a halo node without its own row among its messages, the rules of DGL's GraphConv on the blocks of the authors' code.";
        remote_sampling: f64 = 0.0, "0", "Share of the boundary rows of a worker's chunks that is fetched from those who store them, drawn anew each epoch (our reading of the paper's ablation 50S, which is 0.5).";
        weight: Weight = Weight::BatchMean, "\"batch_mean\"", "none (the paper's ablation UW); node_ht: each node's loss by its coverage (the paper's node level); node_hajek: by 1 if any neighbour is seen, else 0 (derived); batch_mean: the whole gradient by the nodes' mean (the authors' code); batch_gram: by their mean weighted with squared gradient norms (the paper's minimum distance; formula derived); edge_ht: each message by one over its probability (derived).";
        coverage_hops: Option<usize> = None, "the model's layers", "Steps of the random walk whose chance to stay local is the coverage (derived; the authors' code: 1).";
        shrinkage: Shrinkage = Shrinkage::Kappa, "\"kappa\"", "none; kappa: for one hop (d_local + κ)/(d + κ) per node (derived); authors: (d_local + 1)/(d + 2) per node (the authors' code, whose degrees count self-loops, with coverage_hops = 1 and normalise = \"none\"); lambda: 1 + λ(w − 1) on the batch weight (the paper's form); james_stein: as lambda, with λ estimated from all workers' weights (derived).";
        kappa: Option<f64> = None, "1", "κ of shrinkage = \"kappa\".";
        lambda: Option<f64> = None, "0.5", "λ of shrinkage = \"lambda\" (the value is ours).";
        normalise: Normalise = Normalise::Mean, "\"mean\"", "mean: divide weights by their mean over all training nodes, which keeps the learning rate's scale (derived; the sum travels with the gradients, 4 bytes a worker); rho: each by its expectation over super-epochs, which for one hop makes it Horvitz and Thompson's, and for more is taken as if the walk never came back to what it has seen (derived); none (the authors' code).";
        cap: Option<f64> = None, "none", "Largest weight of a node or batch, after normalisation (the authors' code: 1, before).";
        /// How parameter gradients are summed.
        pub gradients: Gradients = Gradients::PLAIN, GRADIENTS;
    }
}

impl Options {
    /// The options of a table.
    ///
    /// # Errors
    /// What is unknown, out of range, or does not go together.
    pub(super) fn read(table: &toml::Table) -> Result<Self, OptionError> {
        let read: Self = options(table)?;
        read.check_ranges()?;
        read.check_combinations()?;
        read.check_idle()?;
        Ok(read)
    }

    /// Epochs between switches.
    pub(super) fn repartition_every(&self) -> usize {
        self.repartition_every.unwrap_or(50)
    }

    /// What moves.
    fn halo(&self) -> bool {
        self.halo.unwrap_or(self.remote_sampling == 0.0)
    }

    /// What decides who holds what, for nodes with such labels.
    pub(super) fn rules(&self, task: Task) -> Rules {
        Rules {
            schedule: self.schedule,
            halo: self.halo(),
            keeps_halo: self.halo()
                && self.schedule != Schedule::Regroup
                && self.keep_halo.unwrap_or(true),
            sampling: self.remote_sampling,
            expected: self.normalise == Normalise::Rho,
            task,
        }
    }

    /// How gradients are weighted in a model of so many layers.
    pub(super) fn weighing(&self, layers: usize) -> Weighing {
        Weighing {
            weight: self.weight,
            hops: self.coverage_hops.unwrap_or(layers),
            shrinkage: self.shrinkage,
            kappa: self.kappa.unwrap_or(1.0),
            lambda: self.lambda.unwrap_or(0.5),
            normalise: self.normalise,
            cap: self.cap,
            with_gradients: self.gradients.are_plain(),
        }
    }

    fn check_ranges(&self) -> Result<(), OptionError> {
        let refuse = |key, what: &str| Err(OptionError::key(key, what));
        if self.chunks == Some(0) {
            return refuse(
                "chunks",
                "must be the number of workers or a multiple of it",
            );
        }
        at_least_one("repartition_every", self.repartition_every)?;
        if !(0.0..=1.0).contains(&self.remote_sampling) {
            return refuse("remote_sampling", "must be between 0 and 1");
        }
        at_least_one("coverage_hops", self.coverage_hops)?;
        if self
            .kappa
            .is_some_and(|kappa| !(kappa >= 0.0 && kappa.is_finite()))
        {
            return refuse("kappa", "must be a number of at least 0");
        }
        if self
            .lambda
            .is_some_and(|lambda| !(0.0..=1.0).contains(&lambda))
        {
            return refuse("lambda", "must be between 0 and 1");
        }
        if self.cap.is_some_and(|cap| !(cap > 0.0 && cap.is_finite())) {
            return refuse("cap", "must be a positive number");
        }
        Ok(())
    }

    /// Whether they go with a model and its workers.
    ///
    /// # Errors
    /// What does not.
    pub(super) fn fit(&self, setting: &Setting) -> Result<(), OptionError> {
        let (kind, layers) = (setting.model.kind, setting.model.layers());
        if self.coverage_hops.is_some_and(|hops| hops > layers) {
            let most = format!("must be at most the model's {layers} layers");
            return Err(OptionError::key("coverage_hops", most));
        }
        let attends = matches!(kind, ModelKind::Gat | ModelKind::SagePool);
        if self.weight == Weight::EdgeHt && attends {
            let what = "edge_ht needs a model that sums messages (gcn, sage or gin): attention and maxima have weights of \
                        their own";
            return Err(OptionError::key("weight", what));
        }
        Ok(())
    }

    /// Options that would change nothing beside the others.
    fn check_idle(&self) -> Result<(), OptionError> {
        let (every, hops) = (self.repartition_every, self.coverage_hops);
        let (switches, covers) = (
            self.schedule != Schedule::Fixed,
            self.weight.uses_coverage(),
        );
        let (kappa, lambda) = (
            self.shrinkage == Shrinkage::Kappa,
            self.shrinkage == Shrinkage::Lambda,
        );
        let coverage = "a weight made of coverages (node_ht, batch_mean or batch_gram)";
        // Key, whether it is given, whether it does something, and beside what it would.
        let options = [
            (
                "repartition_every",
                every.is_some(),
                switches,
                "a schedule that switches (sweep or regroup)",
            ),
            ("coverage_hops", hops.is_some(), covers, coverage),
            (
                "keep_halo",
                self.keep_halo.is_some(),
                self.halo() && self.schedule == Schedule::Sweep,
                "a halo, and chunks that move beside the worker's own (halo = true, schedule = \"sweep\")",
            ),
            (
                "halo_degrees",
                self.halo_degrees != HaloDegrees::Global,
                self.halo() || self.remote_sampling > 0.0,
                "a halo (halo = true, or remote_sampling)",
            ),
            (
                "halo_degrees",
                self.halo_degrees != HaloDegrees::Global,
                self.weight != Weight::EdgeHt,
                "weights of nodes or batches: edge_ht divides by degrees in the whole graph",
            ),
            (
                "kappa",
                self.kappa.is_some(),
                kappa,
                "shrinkage = \"kappa\"",
            ),
            ("kappa", self.kappa.is_some(), covers, coverage),
            (
                "lambda",
                self.lambda.is_some(),
                lambda,
                "shrinkage = \"lambda\"",
            ),
        ];
        let idle = options
            .into_iter()
            .find(|(_, given, works, _)| *given && !works);
        idle.map_or(Ok(()), |(key, _, _, beside)| {
            let what = format!("goes with {beside} only; leave it out");
            Err(OptionError::key(key, what))
        })
    }

    fn check_combinations(&self) -> Result<(), OptionError> {
        let refuse = |key, what: String| Err(OptionError::key(key, what));
        let weight = self.weight.name();
        let sampling = self.remote_sampling > 0.0;
        if sampling && self.halo == Some(true) {
            let what = "must be 0 with halo = true, which has loaded all boundary rows";
            return refuse("remote_sampling", what.to_owned());
        }
        if sampling && self.weight == Weight::EdgeHt {
            let what =
                "must be 0 with weight = \"edge_ht\", which knows the chances of chunks only";
            return refuse("remote_sampling", what.to_owned());
        }
        if self.shrinkage == Shrinkage::Authors && !self.weight.uses_coverage() {
            let what = format!(
                "must not be \"authors\" with weight = \"{weight}\", which has no coverages"
            );
            return refuse("shrinkage", what);
        }
        if self.shrinkage.is_of_batches() && !self.weight.is_batch() {
            let what = format!(
                "must be \"kappa\", \"authors\" or \"none\" with weight = \"{weight}\": {} shrinks a batch weight",
                self.shrinkage.name()
            );
            return refuse("shrinkage", what);
        }
        let by_chance = self.weight == Weight::EdgeHt || self.normalise == Normalise::Rho;
        let drawn = self.chunking == Chunking::Random;
        if by_chance && self.schedule == Schedule::Fixed && !drawn {
            let what = "must be \"random\" with schedule = \"fixed\" and weight = \"edge_ht\" or normalise = \"rho\": these divide by \
                        chances, and nothing else here is left to chance";
            return refuse("chunking", what.to_owned());
        }
        if self.normalise == Normalise::Rho {
            if matches!(self.weight, Weight::None | Weight::EdgeHt) {
                let what = format!(
                    "must not be \"rho\" with weight = \"{weight}\", whose expectation is 1"
                );
                return refuse("normalise", what);
            }
            if sampling {
                let what =
                    "must not be \"rho\" with remote_sampling: it knows the chances of chunks only";
                return refuse("normalise", what.to_owned());
            }
        }
        if self.cap.is_some() && matches!(self.weight, Weight::None | Weight::EdgeHt) {
            let what = format!("goes with weights of nodes or batches, not weight = \"{weight}\"");
            return refuse("cap", what);
        }
        Ok(())
    }
}
