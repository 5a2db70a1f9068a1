//! `fedavg` and `fedgcn`: clients train on their own nodes, and a server averages their models
//! (`McMahan`, Moore, Ramage, Hampson and Agüera y Arcas, *Communication-Efficient Learning of Deep
//! Networks from Decentralized Data*, AISTATS 2017); with sums of neighbours' features that were
//! exchanged before (Yao, Jin, Ravi and Joe-Wong, *`FedGCN`: Convergence-Communication Tradeoffs in
//! Federated Training of Graph Convolutional Networks*, `NeurIPS` 2023).
//!
//! In each round the server, which is worker 0, draws the clients that take part: all but a share
//! `absent`. It sends them its model; each takes `local_steps` steps with all of its training nodes
//! and the mean of their losses, and sends the result back; the server takes the mean, weighted by
//! training nodes. A round moves `2 · 4|θ|` bytes for each client that takes part, but the server's
//! own (`parameter`). *A round is what is recorded as an epoch*; `training.epochs` is how many
//! steps a client takes in all that is never absent, and the last round has those that are left.
//!
//! With `hops = 0`, which is `fedavg`, a client knows its own nodes and the edges between them.
//! With more, all clients send the server, before the first round and once, what their features add
//! to the first layer's sums `Σ_u A_vu x_u` of their own nodes and of those they have edges to:
//! never a feature of its own. The server adds up what came, and sends each client the sums of its
//! own nodes (1 hop), or of these and their neighbours (2 hops). With `H` nodes that clients have
//! edges to, summed over clients, that moves `4F(n + H)` bytes there and `4Fn`, or `4F(n + H)`,
//! back, less those of the client beside the server (`feature`). The first layer is exact then: it
//! multiplies the sums. The second gathers own rows (1 hop), or own and neighbours' (2 hops), which
//! is exact too; so with 2 hops, two layers and one step a round, plain SGD is that of one device.
//! Layers above the second gather own rows.
//!
//! Evidence, in the authors' code (`yh-yao/FedGCN`): three local steps, the mean of models, plain
//! there and weighted here as in the paper of `FedAvg`; SGD. That every client takes part is
//! theirs, that some are absent `McMahan` et al.'s. The paper encrypts the sums; neither that code
//! nor this does. There a client gets the features around its nodes themselves and adds them up,
//! with one hop its second layer gathers their rows too, and each client is scored on its own part
//! of the graph; here the server's model is, on the whole. Its degrees are those in the client's
//! subgraph, so that there two hops are not exact at the subgraph's rim. Dropout of the input is of
//! the sums, not of the features in them.

mod client;
mod sums;

use std::sync::Arc;

use rand::seq::SliceRandom;

use super::parts::options::option_struct;
use super::parts::plan::{PassPlan, plan_each};
use super::parts::server::{average, hand_out, plan_average, plan_handing_out, shares};
use super::{
    EpochKind, NeedsOfOthers, OptionError, PlansFrom, Registration, Strategy, StrategyInfo,
    Training, options,
};
use crate::digits::counted;
use crate::rng::{Purpose, stream};
use crate::sim::{EpochReport, Planner, Setting, SimError, Track, Worker};
use client::Client;

/// How experiments name and make `FedAvg`.
pub(super) const FEDAVG: Registration = Registration {
    info: StrategyInfo {
        name: "fedavg",
        paper: "McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data (FedAvg, AISTATS 2017)",
        sends: "models to a server and back, once a round; edges between clients are dropped",
        // All but `hops`.
        options: Options::INFO.split_at(1).1,
    },
    read: |table| read(table, 0, &["local_steps", "absent"]),
};

/// How experiments name and make `FedGCN`.
pub(super) const FEDGCN: Registration = Registration {
    info: StrategyInfo {
        name: "fedgcn",
        paper: "Yao, Jin, Ravi and Joe-Wong, FedGCN: Convergence-Communication Tradeoffs in Federated Training of Graph Convolutional Networks (NeurIPS 2023)",
        sends: "sums of neighbours' features to a server and back, once; models, once a round",
        options: Options::INFO,
    },
    read: |table| read(table, 2, &["hops", "local_steps", "absent"]),
};

option_struct! {
    #[derive(Clone, Copy, Debug)]
    struct Options {
        hops: Option<usize> = None, "2", "Whose sums a client gets: of its own nodes (1), of their neighbours too (2), or none (0, which is `fedavg`). With 1 and 2 the model is a gcn with self-loops.";
        local_steps: usize = 3, "Steps of a client in a round (3 in FedGCN's code). A round is recorded as an epoch; training.epochs is how many steps a client takes in all.";
        absent: f64 = 0.0, "0", "Share of the clients, rounded down, that drop out of a round, drawn anew for each; 0 or more and below 1.";
    }
}

/// The options, which are all there is to the strategy.
#[derive(Clone, Copy, Debug)]
struct FedGcn {
    hops: usize,
    local_steps: usize,
    absent: f64,
}

fn read(
    table: &toml::Table,
    hops: usize,
    known: &[&str],
) -> Result<Box<dyn Strategy>, OptionError> {
    let options: Options = options(table)?;
    if options.hops.is_some() && !known.contains(&"hops") {
        let what =
            "unknown field `hops`, expected `local_steps` or `absent`; with hops it is fedgcn";
        return Err(OptionError::key("hops", what));
    }
    let read = FedGcn {
        hops: options.hops.unwrap_or(hops),
        local_steps: options.local_steps,
        absent: options.absent,
    };
    let refuse = |key, what| Err(OptionError::key(key, what));
    if read.hops > 2 {
        return refuse("hops", "must be 0, 1 or 2");
    }
    if read.local_steps == 0 {
        return refuse("local_steps", "must be at least 1");
    }
    if !(0.0..1.0).contains(&read.absent) {
        return refuse("absent", "must be a number of at least 0 and below 1");
    }
    Ok(Box::new(read))
}

impl FedGcn {
    /// Steps of each round of a training that has so many in all.
    fn rounds(&self, steps: usize) -> Vec<usize> {
        let starts = (0..steps).step_by(self.local_steps);
        starts
            .map(|start| self.local_steps.min(steps - start))
            .collect()
    }

    /// How many of so many workers drop out of a round.
    fn drop_out(&self, workers: usize) -> usize {
        // 0.29 of 100 is a rounding below 29.
        let count = (self.absent * workers as f64 + 1e-9) as usize;
        count.min(workers - 1)
    }

    /// Of so many workers, who takes part in a round.
    fn takes_part(&self, workers: usize, seed: u64, round: usize) -> Vec<bool> {
        let mut takes_part = vec![true; workers];
        takes_part[..self.drop_out(workers)].fill(false);
        // Of no worker, for all must draw alike; others draw with the numbers of workers.
        let mut random = stream(seed, Purpose::Sampling, u64::MAX, round as u64);
        takes_part.shuffle(&mut random);
        takes_part
    }
}

impl Strategy for FedGcn {
    fn plans_from(&self, _: bool) -> PlansFrom {
        PlansFrom {
            counts: true,
            law: false,
            // The server of the sums has to know which nodes each client has and reads.
            others: if self.hops > 0 {
                NeedsOfOthers::Boundary
            } else {
                NeedsOfOthers::Counts
            },
        }
    }

    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        if self.hops > 0 && !sums::can_be_made(&setting.model) {
            let what = "is of sums with which a gcn with self-loops begins: take model.kind = \"gcn\" and no model.self_loops = false, or hops = 0";
            return Err(OptionError::key("hops", what));
        }
        Ok(Box::new(FedGcnTraining {
            steps: self.rounds(setting.training.epochs),
            options: *self,
            setting: Arc::clone(setting),
        }))
    }
}

/// The strategy in its setting.
#[derive(Clone)]
struct FedGcnTraining {
    options: FedGcn,
    /// Local steps of each round.
    steps: Vec<usize>,
    setting: Arc<Setting>,
}

impl FedGcnTraining {
    fn takes_part(&self, round: usize) -> Vec<bool> {
        let Setting { seed, .. } = *self.setting;
        self.options.takes_part(self.setting.workers(), seed, round)
    }
}

impl Training for FedGcnTraining {
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
        let (absent, clients) = (self.options.absent, self.setting.workers());
        let nobody = (absent > 0.0 && self.options.drop_out(clients) == 0).then(|| {
            format!(
                "nobody drops out: absent = {absent} of {}, rounded down",
                counted(clients as u64, "client")
            )
        });
        nobody.into_iter().collect()
    }

    fn planner(&self) -> Box<dyn Planner> {
        let training = self.clone();
        plan_each(self.setting.workers(), move |round, rank, track| {
            write(&training, round, rank, track);
        })
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let mut model = worker.new_model();
        let mut optimizer = worker.new_optimizer();
        let mut client: Option<Client> = None;
        let mut taken = 0;
        for (round, &steps) in self.steps.iter().enumerate() {
            worker.begin_epoch(round)?;
            // Only now has a round begun, under which the messages to the server are counted.
            let client = match &mut client {
                Some(client) => client,
                none => none.insert(Client::new(worker, self.options.hops)?),
            };
            let takes_part = self.takes_part(round);
            model = hand_out(worker, model, &takes_part)?;
            let mut loss = 0.0;
            if takes_part[worker.rank()] {
                // What is recorded is the sum over workers.
                let share = shares(worker, &takes_part)[worker.rank()] / steps as f64;
                for step in 0..steps {
                    let step = client.step(worker, &model, taken + step)?;
                    model = worker.update(&mut optimizer, model, &step.gradient);
                    loss += share * step.loss;
                }
            }
            taken += steps;
            model = average(worker, model, &takes_part)?;
            // The mean is the server's alone: the others have what they trained.
            let scores = worker.evaluate_first_model(round, &model)?;
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
fn write(training: &FedGcnTraining, round: usize, rank: usize, track: &mut Track) {
    let FedGcnTraining {
        options,
        steps,
        setting,
    } = training;
    if round == 0 && options.hops > 0 {
        track.set_up(true, |track| {
            sums::plan(track, setting, rank, options.hops);
        });
    }
    let (parameters, takes_part) = (setting.model.parameters(), training.takes_part(round));
    plan_handing_out(track, rank, &takes_part, parameters);
    if takes_part[rank] {
        let (blocks, features) = client::shapes(setting, rank, options.hops);
        for _ in 0..steps[round] {
            PassPlan::alone(&setting.model, blocks.clone(), Some(features)).write(track, rank);
            track.update(parameters);
        }
    }
    plan_average(track, rank, &takes_part, parameters);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_many_clients_as_asked_are_absent_and_each_comes_to_be(
            workers in 1_usize..40, absent in 0.0_f64..1.0, seed: u64,
        ) {
            let options = FedGcn { hops: 0, local_steps: 1, absent };
            let mut seen = vec![0; workers];
            for round in 0..40 {
                let takes_part = options.takes_part(workers, seed, round);
                let there = takes_part.iter().filter(|takes| **takes).count();
                let missing = (workers - there) as f64;
                let asked = absent * workers as f64;
                prop_assert!(missing <= asked + 1e-6 && missing + 1.0 > asked - 1e-6);
                prop_assert!(there > 0);
                for (seen, takes) in seen.iter_mut().zip(takes_part) {
                    *seen += usize::from(takes);
                }
            }
            if absent < 0.5 {
                prop_assert!(seen.iter().all(|&seen| seen > 0), "{seen:?}");
            }
        }

        #[test]
        fn shares_of_a_hundred_are_whole_numbers(percent in 0_usize..100) {
            let options = FedGcn { hops: 0, local_steps: 1, absent: percent as f64 / 100.0 };
            let absent = options.takes_part(100, 0, 0).into_iter().filter(|takes| !takes);
            prop_assert_eq!(absent.count(), percent);
        }

        #[test]
        fn rounds_have_all_steps(local_steps in 1_usize..20, steps in 0_usize..100) {
            let options = FedGcn { hops: 0, local_steps, absent: 0.0 };
            let rounds = options.rounds(steps);
            prop_assert_eq!(rounds.iter().sum::<usize>(), steps);
            prop_assert!(rounds.iter().rev().skip(1).all(|&round| round == local_steps));
        }
    }
}
