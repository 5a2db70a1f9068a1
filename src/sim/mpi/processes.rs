//! All processes of a run, seen from one of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::port::{Channel, Port};
use super::results::{Part, packed, unpacked};
use super::signals;
use crate::sim::record::{Recorder, Relay, Report};
use crate::sim::{Complaint, Outcome, SimError};

// Tags of the control channel, beside those of failures and of what is shared.
const VOTE: i32 = 2;
const VERDICT: i32 = 3;
const REPORT: i32 = 4;
const ENDED: i32 = 5;
const PART: i32 = 6;

/// This process and its connection to the others.
pub struct Processes {
    port: Mutex<Port>,
    pub(super) rank: usize,
    size: usize,
    /// Reports of epochs that this process has sent, or that process 0 has taken from others, in
    /// this run.
    pub(super) reports: AtomicUsize,
}

/// Divides the cores of a machine among its processes, unless the person has said how many threads
/// there are to be. Results do not depend on it.
fn share_cores(processes: usize) {
    if std::env::var_os("RAYON_NUM_THREADS").is_none() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (cores / processes.max(1)).max(1);
        // Refused if threads run already, which then go on as they are.
        let _ = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global();
    }
}

impl Processes {
    pub(in crate::sim) fn open() -> Result<Self, SimError> {
        let port = Port::open()?;
        let (rank, size) = (port.rank, port.size);
        signals::listen(rank);
        share_cores(port.neighbours);
        Ok(Self {
            port: Mutex::new(port),
            rank,
            size,
            reports: AtomicUsize::new(0),
        })
    }

    pub(in crate::sim) const fn rank(&self) -> usize {
        self.rank
    }

    pub(in crate::sim) const fn size(&self) -> usize {
        self.size
    }

    pub(super) fn port(&self) -> MutexGuard<'_, Port> {
        self.port.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gathers what every process has to say, and gives all of them the same verdict: the complaint
    /// of the first that has one, with which the run has failed on every process.
    pub(in crate::sim) fn agree(
        &self,
        vote: &Result<Vec<u8>, Complaint>,
    ) -> Result<Option<(usize, Complaint)>, SimError> {
        let mut port = self.port();
        let verdict = if self.rank == 0 {
            self.judge(&mut port, vote)?
        } else {
            port.send(0, Channel::Control, VOTE, packed(vote)?)?;
            let (_, verdict) = port.receive(Some(0), Channel::Control, VERDICT)?;
            unpacked(&verdict)?
        };
        if let Some((rank, complaint)) = &verdict {
            // Before the failure is noted: once it is, waiting for messages to leave fails at once.
            port.flush()?;
            port.note_failure(*rank, &complaint.reason);
        }
        Ok(verdict)
    }

    /// The part of process 0 in an agreement.
    fn judge(
        &self,
        port: &mut Port,
        vote: &Result<Vec<u8>, Complaint>,
    ) -> Result<Option<(usize, Complaint)>, SimError> {
        let mut verdict = vote.as_ref().err().map(|complaint| (0, complaint.clone()));
        for rank in 1..self.size {
            let (_, theirs) = port.receive(Some(rank), Channel::Control, VOTE)?;
            // The votes of all are taken, also after a complaint. One that stayed would count in
            // the next agreement.
            let theirs: Result<Vec<u8>, Complaint> = unpacked(&theirs)?;
            let complaint = match (&theirs, vote) {
                (Err(complaint), _) => Some(complaint.clone()),
                (Ok(theirs), Ok(mine)) if theirs != mine => Some(Complaint {
                    input: true,
                    reason: "it prepared other data, another partition or another experiment than worker 0; \
                             give all processes the same files, the same arguments and the same program"
                        .to_owned(),
                }),
                _ => None,
            };
            // The first by rank: all processes tell the same one.
            verdict = verdict.or(complaint.map(|complaint| (rank, complaint)));
        }
        let message = packed(&verdict)?;
        for rank in 1..self.size {
            port.send(rank, Channel::Control, VERDICT, message.clone())?;
        }
        Ok(verdict)
    }

    pub(in crate::sim) fn fail(&self, reason: &str) {
        self.port().fail(reason);
    }

    pub(in crate::sim) fn close(&self) -> Result<(), SimError> {
        let goodbye = if self.port().has_failed() {
            Ok(())
        } else {
            // To agree on nothing is to wait for all: nobody ends MPI while another still needs it.
            self.agree(&Ok(Vec::new())).map(drop)
        };
        // The verdict of process 0 may still be on its way out.
        let goodbye = goodbye.and_then(|()| {
            let mut port = self.port();
            if port.has_failed() {
                return Ok(());
            }
            Ok(port.flush()?)
        });
        signals::told();
        self.port().close();
        goodbye
    }

    /// Where reports of epochs go: process 0 keeps them with those that have come in, the others
    /// send them there.
    pub(in crate::sim) fn relay(self: &Arc<Self>) -> Relay {
        let processes = Arc::clone(self);
        Box::new(move |report| {
            let mut port = processes.port();
            if processes.rank > 0 {
                // A lost connection shows at the next call that can say so.
                if let Ok(message) = packed(&report) {
                    let _ = port.send(0, Channel::Control, REPORT, message);
                    // Relaxed, here and below: the port's lock, which is held, orders all of it.
                    processes.reports.fetch_add(1, Ordering::Relaxed);
                }
                return Vec::new();
            }
            let mut reports = vec![report];
            // What has come is taken, and nothing is waited for: the training goes on.
            while let Ok(Some((_, message))) = port.try_receive(None, Channel::Control, REPORT) {
                processes.reports.fetch_add(1, Ordering::Relaxed);
                reports.extend(unpacked::<Report>(&message));
            }
            reports
        })
    }

    /// Waits for the reports that are still missing when this process has ended its own part.
    pub(in crate::sim) fn rest(&self, recorder: &mut Recorder) -> Result<(), SimError> {
        let mut port = self.port();
        if self.rank > 0 {
            let sent = self.reports.load(Ordering::Relaxed);
            port.send(0, Channel::Control, ENDED, packed(&sent)?)?;
            return Ok(());
        }
        // Process 0 cannot know how many reports are still on their way, so that each process says
        // how many it sent.
        let mut missing = 0;
        for rank in 1..self.size {
            let (_, sent) = port.receive(Some(rank), Channel::Control, ENDED)?;
            missing += unpacked::<usize>(&sent)?;
        }
        for _ in self.reports.load(Ordering::Relaxed)..missing {
            let (_, message) = port.receive(None, Channel::Control, REPORT)?;
            recorder.take(unpacked(&message)?);
        }
        Ok(())
    }

    /// Makes one outcome of those of all processes, on process 0; the others keep their own.
    pub(in crate::sim) fn gather(&self, mut outcome: Outcome) -> Result<Outcome, SimError> {
        let mut port = self.port();
        if self.rank > 0 {
            port.send(0, Channel::Control, PART, packed(&Part::of(&outcome))?)?;
            return Ok(outcome);
        }
        for rank in 1..self.size {
            let (_, message) = port.receive(Some(rank), Channel::Control, PART)?;
            // By rank, for a worker's place in `times` is its number.
            unpacked::<Part>(&message)?.add_to(&mut outcome);
        }
        Ok(outcome)
    }
}
