//! One worker's program on its own process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use super::Processes;
use super::account::Account;
use super::communicator::MpiCommunicator;
use crate::net::{AllReduceKind, Communicator, NetError};
use crate::sim::engine::{EngineResults, panicked};
use crate::sim::{SimError, Trace};

impl Processes {
    /// Runs one worker's program here, and tells the others if it fails.
    pub(in crate::sim) fn run(
        self: &Arc<Self>,
        all_reduce: AllReduceKind,
        program: impl FnOnce(Box<dyn Communicator>) -> Result<(), SimError>,
    ) -> Result<EngineResults, SimError> {
        // All begin at the same time: what the others still do for the run before is none of this
        // one's.
        self.agree(&Ok(Vec::new()))?;
        self.reports.store(0, Ordering::Relaxed);
        let account = Arc::new(Mutex::new(Account::new(self.rank)));
        let communicator = MpiCommunicator::new(Arc::clone(self), Arc::clone(&account), all_reduce);
        let outcome = catch_unwind(AssertUnwindSafe(|| program(Box::new(communicator))))
            .unwrap_or_else(|panic| Err(panicked(self.rank, &*panic)))
            .and_then(|()| Ok(self.port().flush()?));
        if let Err(error) = outcome {
            // Whoever heard of a failure from another process does not pass it on as its own.
            if !matches!(error, SimError::Net(NetError::PeerFailed { .. })) {
                self.fail(&error.to_string());
            }
            return Err(error);
        }
        let account = Arc::into_inner(account)
            .ok_or_else(|| SimError::Strategy("a worker outlived its run".to_owned()))?
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        Ok(EngineResults {
            times: vec![account.times()],
            ledger: account.ledger,
            // None: no process knows when messages between others were under way.
            timeline: Trace::default(),
        })
    }
}
