//! `llcg`: learn locally, correct globally (Ramezani, Cong, Mahdavi, Kandemir and Sivasubramaniam,
//! ICLR 2022).
//!
//! In round `r = 0, 1, …` every worker takes `⌊K ρ^r⌋` steps on its own part of the graph, cut
//! edges dropped and degrees counted within, with the mean loss of its own training nodes. Then all
//! send their models to a server, which is worker 0; it takes their mean, weighted by training
//! nodes, and corrects it by `S` steps with all nodes, all edges and the loss of all training
//! nodes, which no worker sees by itself. The result goes back to all. Optimisers keep their state,
//! the server's being its own.
//!
//! A round moves `2 · 4|θ|` bytes for each worker but the server's, as `parameter`. The server
//! needs the graph: before the first round each of the other workers sends it its part, once, as
//! nothing of it changes: for each node degree, row end, class if it trains and in-neighbours, `4 Σ
//! (3 + d_v)` bytes (`repartition`; of K labels `⌈(K + 1)/32⌉` words take the place of the class),
//! and its features, `4F` (`feature`). Without server steps
//! nobody sends it.
//!
//! *A round is what is recorded as an epoch*, and evaluated after its correction; `training.epochs`
//! is how many local steps each worker takes in all, each with all of its training nodes, as in an
//! epoch elsewhere. So there are as many rounds as that takes, growing as they do, and the last one
//! has the steps that are left. With `K = 0` there are `training.epochs` rounds of the server
//! alone.
//!
//! Local steps are biased, for they miss the cut edges; the paper's bound on this bias falls with
//! the correction, whose gradient is exact here (there it is of a batch).
//!
//! Evidence, in two repositories of the authors. `CongWeilin/LLCG-OBG-PyTorch`, for ogbn-products,
//! has two programs. Where steps are of all nodes, as here, K is 15 in all rounds
//! (`gnn_with_periodic_avg_corr.py`, `avg_per_num_epoch`), the defaults; its local steps see cut
//! edges unless asked otherwise. Where they are of 1,024 nodes and sampled neighbours, K = 50 and
//! ρ = 1.1, and 50 steps are about an epoch. Both have the plain mean, a state of the server's own
//! and the workers' learning rate. `MortezaRamezani/llcg`, in batches, has the mean weighted by
//! training nodes, a learning rate of the server's own (0.1 to 20 times the workers'), `⌈K/ρ^r⌉`
//! steps unless `inc_k` is set, and the workers' mean of Adam's moments for the server's in each
//! round (`server_opt_sync`), which are sent to it.

mod server;

use std::sync::Arc;

use super::parts::options::option_struct;
use super::parts::plan::{pass_alone, pass_over, plan_each};
use super::parts::server::{SERVER, average, hand_out, plan_average, plan_handing_out};
use super::parts::{LayerwiseTrainer, LocalGraph};
use super::{
    EpochKind, NeedsOfOthers, OptionError, PlansFrom, Registration, Strategy, StrategyInfo,
    Training, options,
};
use crate::model::{BlockShape, Input};
use crate::sim::{EpochReport, Planner, Setting, SimError, Track, Worker};
use server::Server;

/// How experiments name and make it.
pub(super) const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "llcg",
        paper: "Ramezani, Cong, Mahdavi, Kandemir and Sivasubramaniam, Learn Locally, Correct Globally: A Distributed Algorithm for Training Graph Neural Networks (ICLR 2022, arXiv 2111.08202)",
        sends: "models to a server and back, once a round; the whole graph to the server, once",
        options: Options::INFO,
    },
    read,
};

option_struct! {
    #[derive(Clone, Copy, Debug)]
    struct Options {
        local_steps: usize = 15, "K, local steps of the first round, each of all nodes (15 in the authors' code for ogbn-products where steps are of all nodes, and 50 where they are of 1,024). A round is recorded as an epoch; training.epochs is how many local steps a worker takes in all. With 0 there are as many rounds, of the server's steps alone.";
        rho: f64 = 1.0, "1", "ρ, by which a round has more local steps than the one before; 1 for as many in each (the authors' code for ogbn-products where steps are of all nodes; 1.1 where they are of 1,024; their other code lets K fall).";
        server_steps: usize = 1, "S, steps of the server on the whole graph after each average (the paper); 0 is plain averaging of models.";
        server_learning_rate: Option<f64> = None, "the optimiser's", "γ, step size of the server (the paper has one of its own; the authors' code for ogbn-products takes that of the workers).";
    }
}

/// With fewer rounds than this hardly anything of the method is seen.
const FEW: usize = 5;

struct Llcg(Options);

/// The most steps of the server in a round, each of which its plan has.
const MOST_SERVER_STEPS: usize = 100_000;

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let options: Options = options(table)?;
    let refuse = |key, what: &str| Err(OptionError::key(key, what));
    if !(options.rho.is_finite() && options.rho >= 1.0) {
        return refuse("rho", "must be a number of at least 1");
    }
    if options.local_steps == 0 && options.rho > 1.0 {
        return refuse("rho", "does nothing with local_steps = 0");
    }
    if options.local_steps == 0 && options.server_steps == 0 {
        return refuse(
            "local_steps",
            "must be at least 1 with server_steps = 0, or nobody trains",
        );
    }
    if options.server_steps > MOST_SERVER_STEPS {
        let what = format!("must be at most {MOST_SERVER_STEPS}");
        return refuse("server_steps", &what);
    }
    if let Some(rate) = options.server_learning_rate {
        if !(rate.is_finite() && rate > 0.0) {
            return refuse("server_learning_rate", "must be a positive number");
        }
        if options.server_steps == 0 {
            return refuse("server_learning_rate", "does nothing with server_steps = 0");
        }
    }
    Ok(Box::new(Llcg(options)))
}

impl Options {
    /// `⌊K ρ^r⌋`.
    fn steps_of(&self, round: usize) -> usize {
        let round = i32::try_from(round).unwrap_or(i32::MAX);
        (self.local_steps as f64 * self.rho.powi(round)).floor() as usize
    }

    /// Local steps of each round of a training that has so many in all.
    fn rounds(&self, steps: usize) -> Vec<usize> {
        if self.local_steps == 0 {
            return vec![0; steps];
        }
        let (mut rounds, mut left) = (Vec::new(), steps);
        // With K ≥ 1 and ρ ≥ 1 each round has a step at least, so this ends.
        while left > 0 {
            let next = self.steps_of(rounds.len()).min(left);
            rounds.push(next);
            left -= next;
        }
        rounds
    }

    /// What to know of a training in so few rounds that K decides what comes of it.
    fn note_on_rounds(&self, steps: &[usize]) -> Option<String> {
        let (rounds, all) = (steps.len(), steps.iter().sum::<usize>());
        // With a step a round the training is short, whatever K is.
        (rounds < FEW && rounds < all).then(|| {
            let plural = if rounds == 1 { "" } else { "s" };
            format!(
                "{all} local steps are {rounds} round{plural} (local_steps = {}), after each of which models are averaged and corrected",
                self.local_steps
            )
        })
    }
}

impl Strategy for Llcg {
    fn plans_from(&self, _: bool) -> PlansFrom {
        PlansFrom {
            counts: true,
            law: false,
            // Structure and features come to the server in messages, but for whose they are.
            others: NeedsOfOthers::Boundary,
        }
    }

    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        Ok(Box::new(LlcgTraining {
            steps: self.0.rounds(setting.training.epochs),
            options: self.0,
            setting: Arc::clone(setting),
        }))
    }
}

/// LLCG in its setting.
#[derive(Clone)]
struct LlcgTraining {
    options: Options,
    /// Local steps of each round.
    steps: Vec<usize>,
    setting: Arc<Setting>,
}

impl Training for LlcgTraining {
    fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    fn epochs(&self) -> usize {
        self.steps.len()
    }

    fn epoch_kind(&self) -> EpochKind {
        EpochKind::Round
    }

    fn notes(&self) -> Vec<String> {
        self.options
            .note_on_rounds(&self.steps)
            .into_iter()
            .collect()
    }

    fn planner(&self) -> Box<dyn Planner> {
        let training = self.clone();
        plan_each(self.setting.workers(), move |round, rank, track| {
            write(&training, round, rank, track);
        })
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let Options {
            server_steps,
            server_learning_rate,
            ..
        } = self.options;
        let own = worker.shard().train.len();
        // What is recorded is the sum over workers: with this share of each, the mean over all
        // nodes.
        let share = own as f64 / worker.training_nodes() as f64;
        let mut local = LocalGraph::without_halo(worker);
        // Gradients of local steps are not summed, so the mean is over own training nodes alone.
        local.targets = LocalGraph::mean_targets(worker, own);
        let trainer = LayerwiseTrainer::new(worker, local);
        let features = Input::from_features(worker.shard().features.clone(), worker.place());
        let mut model = worker.new_model();
        let mut optimizer = worker.new_optimizer();
        let mut server: Option<Server> = None;
        // Of all steps so far, the server's too: each has dropout of its own.
        let mut taken = 0;
        let all = vec![true; worker.size()];
        for (round, &steps) in self.steps.iter().enumerate() {
            worker.begin_epoch(round)?;
            // Only now has a round begun, under which the messages to the server are counted.
            if round == 0 && server_steps > 0 {
                server = Server::new(worker, server_learning_rate)?;
            }
            let mut losses = Vec::with_capacity(steps);
            for _ in 0..steps {
                let step = trainer.local_step(worker, &model, &features, taken)?;
                model = worker.update(&mut optimizer, model, &step.gradient);
                losses.push(share * step.loss);
                taken += 1;
            }
            model = average(worker, model, &all)?;
            if let Some(server) = &mut server {
                for step in 0..server_steps {
                    let loss;
                    (model, loss) = server.step(worker, model, taken + step)?;
                    // Without local steps the server's loss is all there is to tell.
                    if steps == 0 {
                        losses.push(loss);
                    }
                }
            }
            taken += server_steps;
            model = hand_out(worker, model, &all)?;
            let scores = worker.evaluate_model(round, &model)?;
            // Without local steps the other workers have no loss: zero of nothing, not 0/0.
            let loss = losses.iter().sum::<f64>() / losses.len().max(1) as f64;
            let report = EpochReport {
                loss,
                scores,
                ..EpochReport::default()
            };
            worker.end_epoch(round, report);
        }
        Ok(())
    }
}

/// What worker `rank` does in a round.
fn write(training: &LlcgTraining, round: usize, rank: usize, track: &mut Track) {
    let LlcgTraining {
        options,
        steps,
        setting,
    } = training;
    let (model, counts, workers) = (&setting.model, &setting.counts, setting.workers());
    let corrects = options.server_steps > 0;
    if round == 0 && corrects {
        track.set_up(true, |track| server::plan_gathering(track, setting, rank));
    }
    for _ in 0..steps[round] {
        pass_alone(track, setting, rank);
        track.update(model.parameters());
    }
    let all = vec![true; workers];
    plan_average(track, rank, &all, model.parameters());
    for _ in 0..if rank == SERVER {
        options.server_steps
    } else {
        0
    } {
        let aggregation = model.aggregation();
        let whole = BlockShape::of(counts.nodes, counts.nodes, counts.edges, aggregation);
        let stored = counts.parts.iter().map(|part| part.own_values).sum();
        pass_over(track, setting, rank, whole, stored);
        track.update(model.parameters());
    }
    plan_handing_out(track, rank, &all, model.parameters());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rounds_grow_by_rho_and_the_last_one_has_what_is_left() {
        let of = |local_steps, rho, steps| {
            let options = Options {
                local_steps,
                rho,
                ..Options::default()
            };
            options.rounds(steps)
        };
        assert_eq!(of(50, 1.1, 200), [50, 55, 60, 35]);
        assert_eq!(of(4, 1.5, 20), [4, 6, 9, 1]);
        assert_eq!(of(3, 1.0, 8), [3, 3, 2]);
        assert_eq!(of(1, 1.0, 3), [1, 1, 1]);
        assert_eq!(of(9, 2.0, 4), [4]);
        assert_eq!(of(0, 1.1, 3), [0, 0, 0], "the server alone");
        assert_eq!(of(1, f64::MAX, 5), [1, 4]);
    }

    #[test]
    fn few_rounds_are_told_of_where_local_steps_are_the_reason() {
        let told = |local_steps, steps| {
            let options = Options {
                local_steps,
                ..Options::default()
            };
            options.note_on_rounds(&options.rounds(steps))
        };
        let note = told(50, 60).unwrap();
        assert!(
            note.starts_with("60 local steps are 2 rounds (local_steps = 50)"),
            "{note}"
        );
        let note = told(50, 9).unwrap();
        assert!(note.starts_with("9 local steps are 1 round ("), "{note}");
        assert_eq!(told(4, 60), None, "eleven rounds");
        assert_eq!(told(1, 3), None, "no more steps than rounds");
        assert_eq!(told(0, 3), None, "the server alone");
    }

    proptest! {
        #[test]
        fn local_steps_are_those_of_the_training_and_follow_the_formula(
            local_steps in 1_usize..60, rho in 1.0_f64..1.5, steps in 1_usize..500,
        ) {
            let options = Options { local_steps, rho, ..Options::default() };
            let rounds = options.rounds(steps);
            prop_assert_eq!(rounds.iter().sum::<usize>(), steps);
            let (last, before) = rounds.split_last().expect("there are steps");
            let mut exact = local_steps as f64;
            for &found in before {
                prop_assert!((found as f64 - exact.floor()).abs() <= 1.0);
                exact *= rho;
            }
            prop_assert!(*last >= 1 && *last as f64 <= exact + 1.0);
        }
    }
}
