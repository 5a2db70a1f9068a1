//! Which engine a command runs on, and how it ends there.

use std::time::Duration;

use clap::ValueEnum;
use thiserror::Error;

use super::output::{tell, told};
use super::{Verdict, is_input};
use crate::Error;
use crate::sim::Engine;

/// Engines as arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum EngineChoice {
    /// All workers in this process, on an emulated network in virtual time
    #[default]
    Simulated,
    /// One process per worker, started by mpirun or srun, in real time
    Mpi,
}

/// The first process that ends with an error has `mpirun` end the others and stop passing on what
/// they say: so long do all wait before they end.
const PASSING_ON: Duration = Duration::from_millis(500);

/// An error that has been told.
#[derive(Debug, Error)]
#[error("the run has ended, as was told")]
pub(super) struct Told {
    /// Whether the input was wrong.
    pub input: bool,
}

impl EngineChoice {
    /// Does `work` on this engine. Where workers are processes, every one of them tells how it
    /// failed, unless another has told the same already, and all end with the same exit code.
    ///
    /// # Errors
    /// That of the engine or of `work`.
    pub(super) fn run(
        self,
        work: impl FnOnce(&Engine) -> anyhow::Result<Verdict>,
    ) -> anyhow::Result<Verdict> {
        if self == Self::Simulated {
            return work(&Engine::Simulated);
        }
        let engine = Engine::mpi().map_err(Error::from)?;
        let outcome = work(&engine);
        if let Err(error) = &outcome {
            last_words(&engine, error);
        }
        let closed = engine.close().map_err(|error| Error::from(error).into());
        let error = match (outcome, closed) {
            (Ok(verdict), Ok(())) => return Ok(verdict),
            (Ok(_), Err(error)) => {
                last_words(&engine, &error);
                error
            }
            (Err(error), _) => error,
        };
        std::thread::sleep(PASSING_ON);
        let input = is_input(&error);
        Err(Told { input }.into())
    }
}

fn last_words(engine: &Engine, error: &anyhow::Error) {
    let text = told(error);
    let of_all = error.downcast_ref::<Error>();
    if of_all.is_some_and(Error::is_told_elsewhere) {
        return;
    }
    engine.fail(&text);
    let rank = engine.rank();
    // Wrong input is wrong on all processes, and process 0 speaks for them.
    if rank == 0 && is_input(error) {
        tell(&format!("error: {text}\n"));
    } else {
        tell(&format!("error: worker {rank}: {text}\n"));
    }
}
