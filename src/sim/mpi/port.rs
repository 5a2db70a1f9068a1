//! MPI's point-to-point calls, as far as they are needed, with errors instead of aborts and with an
//! ear for failures.
//!
//! Nothing here blocks inside MPI. Whoever waits asks again and again, so that a worker that failed
//! reaches all others wherever they wait, and so that messages under way move on (many MPI
//! libraries move them only inside their calls).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::time::{Duration, Instant};

use mpi::environment::Universe;
use mpi::ffi;
use mpi::topology::Communicator as _;
use mpi::{Threading, traits::AsRaw};

use crate::net::NetError;
use crate::sim::SimError;

/// Which of two separate spaces of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// What the training sends, which is counted.
    Data,
    /// Reports, evaluation results and failures, which are not.
    Control,
}

/// Tag of a failure on the control channel: the reason, as text.
const FAILED: i32 = 0;

/// How long a failing worker waits for its last words to leave.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A message that MPI may still read, and that is therefore not freed when it is given up.
struct Sending {
    request: ffi::MPI_Request,
    payload: ManuallyDrop<Vec<u8>>,
}

/// A message that MPI may still write. One that is given up is never freed, for MPI may write it
/// later.
pub(super) struct Receiving {
    from: usize,
    request: ffi::MPI_Request,
    payload: ManuallyDrop<Vec<u8>>,
}

// SAFETY: as of `Port`: a request belongs to no thread, and is asked about with the port at hand
// alone.
#[allow(unsafe_code)]
unsafe impl Send for Receiving {}

impl Receiving {
    /// Whether all of it is there.
    pub(crate) fn is_there(&mut self) -> Result<bool, NetError> {
        test(&mut self.request)
    }

    /// Sender and content of a message whose request has ended.
    pub(crate) fn taken(self) -> (usize, Vec<u8>) {
        (self.from, ManuallyDrop::into_inner(self.payload))
    }
}

/// This process's connection to all others.
pub(super) struct Port {
    pub rank: usize,
    pub size: usize,
    /// Processes on this machine, this one among them.
    pub neighbours: usize,
    data: ffi::MPI_Comm,
    control: ffi::MPI_Comm,
    sending: Vec<Sending>,
    /// Time in calls in which nothing that they wait for had begun to come.
    idle: Duration,
    failure: Option<(usize, String)>,
    /// Ends MPI when it is dropped.
    universe: Option<Universe>,
}

// SAFETY: the handles name objects of the MPI library, which belong to no thread. The library is
// initialised for calls from any thread, one at a time, and every call here needs `&mut self`.
#[allow(unsafe_code)]
unsafe impl Send for Port {}

#[allow(unsafe_code)]
impl Port {
    /// Starts MPI.
    ///
    /// # Errors
    /// If the library cannot be started, or serves one thread only.
    pub(crate) fn open() -> Result<Self, SimError> {
        // As of a device: what is wrong with the library is the person's to mend.
        let refused = |what: &str| SimError::Device(format!("MPI: {what}"));
        // Calls come from whichever thread a program runs on; the lock around the port makes them
        // one at a time.
        let (universe, threading) = mpi::initialize_with_threading(Threading::Serialized)
            .ok_or_else(|| refused("it was started before in this process"))?;
        if threading < Threading::Serialized {
            return Err(refused(
                "this library can be called from the main thread only; install one with MPI_THREAD_SERIALIZED",
            ));
        }
        let world = universe.world();
        let (rank, size) = (world.rank() as usize, world.size() as usize);
        // Those that share memory are those on one machine.
        let neighbours = world.split_shared(0).size() as usize;
        let separate = || {
            let mut handle = MaybeUninit::uninit();
            // SAFETY: MPI is running, the world exists, and MPI writes the new handle before it
            // returns success; on failure the world's error handler, not replaced yet, ends the
            // program.
            unsafe {
                ffi::MPI_Comm_dup(world.as_raw(), handle.as_mut_ptr());
                let handle = handle.assume_init();
                ffi::MPI_Comm_set_errhandler(handle, ffi::RSMPI_ERRORS_RETURN);
                handle
            }
        };
        Ok(Self {
            rank,
            size,
            neighbours,
            // Duplicates of the world: messages of libraries, and of the other channel, never match
            // these.
            data: separate(),
            control: separate(),
            sending: Vec::new(),
            idle: Duration::ZERO,
            failure: None,
            universe: Some(universe),
        })
    }

    const fn handle(&self, channel: Channel) -> ffi::MPI_Comm {
        match channel {
            Channel::Data => self.data,
            Channel::Control => self.control,
        }
    }

    /// Hands a message to MPI and returns; the payload is kept until it has left.
    pub(crate) fn send(
        &mut self,
        to: usize,
        channel: Channel,
        tag: i32,
        payload: Vec<u8>,
    ) -> Result<(), NetError> {
        let Ok(count) = c_int::try_from(payload.len()) else {
            return Err(NetError::Protocol {
                rank: self.rank,
                reason: format!(
                    "it sends {} bytes in one message, and MPI takes less than 2 GiB; use more workers",
                    payload.len()
                ),
            });
        };
        let mut request = MaybeUninit::uninit();
        // SAFETY: the buffer is `count` bytes long and lives, unmoved on the heap and unchanged,
        // until MPI_Test has said that MPI is done with it (`reap`), or for ever.
        let code = unsafe {
            ffi::MPI_Isend(
                payload.as_ptr().cast::<c_void>(),
                count,
                ffi::RSMPI_UINT8_T,
                to as c_int,
                tag,
                self.handle(channel),
                request.as_mut_ptr(),
            )
        };
        check(code, "send")?;
        // SAFETY: MPI_Isend succeeded and has written the request.
        let request = unsafe { request.assume_init() };
        self.sending.push(Sending {
            request,
            payload: ManuallyDrop::new(payload),
        });
        // What has left by now is freed here: a worker may send for long before it waits.
        self.reap()
    }

    /// Frees what has left.
    pub(crate) fn reap(&mut self) -> Result<(), NetError> {
        let mut place = 0;
        while place < self.sending.len() {
            if test(&mut self.sending[place].request)? {
                // The last takes its place and is asked next, hence no step forward; order means
                // nothing here.
                let sent = self.sending.swap_remove(place);
                drop(ManuallyDrop::into_inner(sent.payload));
            } else {
                place += 1;
            }
        }
        Ok(())
    }

    /// Waits until everything sent has left.
    pub(crate) fn flush(&mut self) -> Result<(), NetError> {
        self.wait(|port| {
            port.reap()?;
            Ok(port.sending.is_empty().then_some(()))
        })
    }

    /// Begins to take the next message with this tag, if one is there.
    pub(crate) fn try_match(
        &mut self,
        from: Option<usize>,
        channel: Channel,
        tag: i32,
    ) -> Result<Option<Receiving>, NetError> {
        // Nobody says beforehand how long a message is. A matched probe tells the length, and holds
        // this very message for what follows.
        let mut flag: c_int = 0;
        let mut message = MaybeUninit::uninit();
        let mut status = MaybeUninit::<ffi::MPI_Status>::zeroed();
        // SAFETY: all pointers are to variables that outlive the call; the handle is one of this
        // port's.
        let code = unsafe {
            let source = from.map_or(ffi::RSMPI_ANY_SOURCE, |rank| rank as c_int);
            ffi::MPI_Improbe(
                source,
                tag,
                self.handle(channel),
                &raw mut flag,
                message.as_mut_ptr(),
                status.as_mut_ptr(),
            )
        };
        check(code, "look for a message")?;
        if flag == 0 {
            return Ok(None);
        }
        let mut count: c_int = 0;
        // SAFETY: the flag says that message and status were written.
        let (mut message, status) = unsafe { (message.assume_init(), status.assume_init()) };
        // SAFETY: the status is that of a probed message of bytes.
        let code =
            unsafe { ffi::MPI_Get_count(&raw const status, ffi::RSMPI_UINT8_T, &raw mut count) };
        check(code, "read the length of a message")?;
        let length = usize::try_from(count).unwrap_or(0);
        let mut payload = ManuallyDrop::new(vec![0_u8; length]);
        let mut request = MaybeUninit::uninit();
        // SAFETY: the buffer is `count` bytes long and lives until MPI_Test says that it is filled,
        // or for ever.
        let code = unsafe {
            ffi::MPI_Imrecv(
                payload.as_mut_ptr().cast::<c_void>(),
                count,
                ffi::RSMPI_UINT8_T,
                &raw mut message,
                request.as_mut_ptr(),
            )
        };
        check(code, "receive")?;
        // SAFETY: MPI_Imrecv succeeded and has written the request.
        let request = unsafe { request.assume_init() };
        Ok(Some(Receiving {
            // Never negative for a message that was matched.
            from: usize::try_from(status.MPI_SOURCE).unwrap_or(0),
            request,
            payload,
        }))
    }

    /// The next message with this tag, if it is there: its sender and what it holds.
    pub(crate) fn try_receive(
        &mut self,
        from: Option<usize>,
        channel: Channel,
        tag: i32,
    ) -> Result<Option<(usize, Vec<u8>)>, NetError> {
        let Some(mut receiving) = self.try_match(from, channel, tag)? else {
            return Ok(None);
        };
        self.wait(|port| {
            port.reap()?;
            Ok(receiving.is_there()?.then_some(()))
        })?;
        Ok(Some(receiving.taken()))
    }

    /// Waits for a message with this tag.
    pub(crate) fn receive(
        &mut self,
        from: Option<usize>,
        channel: Channel,
        tag: i32,
    ) -> Result<(usize, Vec<u8>), NetError> {
        self.wait(|port| {
            port.reap()?;
            port.try_receive(from, channel, tag)
        })
    }

    /// Waits for one message with this tag from each of `peers`, in their order. All of them travel
    /// at the same time; `meanwhile` is done again and again.
    pub(crate) fn receive_from_all(
        &mut self,
        peers: &[usize],
        channel: Channel,
        tag: i32,
        mut meanwhile: impl FnMut(&mut Self) -> Result<(), NetError>,
    ) -> Result<Vec<Vec<u8>>, NetError> {
        let mut under_way: Vec<Option<Receiving>> = peers.iter().map(|_| None).collect();
        let mut taken: Vec<Option<Vec<u8>>> = peers.iter().map(|_| None).collect();
        let mut since = Instant::now();
        self.wait(|port| {
            port.reap()?;
            meanwhile(port)?;
            for ((peer, under_way), taken) in peers.iter().zip(&mut under_way).zip(&mut taken) {
                if taken.is_some() {
                    continue;
                }
                if under_way.is_none() {
                    *under_way = port.try_match(Some(*peer), channel, tag)?;
                }
                if let Some(mut receiving) = under_way.take() {
                    if receiving.is_there()? {
                        *taken = Some(receiving.taken().1);
                    } else {
                        *under_way = Some(receiving);
                    }
                }
            }
            let now = Instant::now();
            if under_way.iter().all(Option::is_none) {
                port.idle += now - since;
            }
            since = now;
            Ok(taken.iter().all(Option::is_some).then_some(()))
        })?;
        Ok(taken.into_iter().flatten().collect())
    }

    /// So much more time has gone by with nothing under way.
    pub(crate) fn idled(&mut self, time: Duration) {
        self.idle += time;
    }

    /// Time since the last call in which nothing that was waited for had begun to come.
    pub(crate) fn take_idle(&mut self) -> Duration {
        std::mem::take(&mut self.idle)
    }

    /// Asks until there is an answer, or a worker has failed.
    pub(crate) fn wait<T>(
        &mut self,
        mut ask: impl FnMut(&mut Self) -> Result<Option<T>, NetError>,
    ) -> Result<T, NetError> {
        let mut patience = Patience::default();
        loop {
            if let Some(answer) = ask(self)? {
                return Ok(answer);
            }
            // To look for failures is a call of MPI, too, and would slow down short waits.
            if patience.asked.is_multiple_of(16) {
                self.listen()?;
            }
            patience.pause();
        }
    }

    /// Fails if another worker has said that it failed.
    pub(crate) fn listen(&mut self) -> Result<(), NetError> {
        let mut flag: c_int = 0;
        // SAFETY: the flag outlives the call; MPI allows the status to be ignored.
        let code = unsafe {
            ffi::MPI_Iprobe(
                ffi::RSMPI_ANY_SOURCE,
                FAILED,
                self.control,
                &raw mut flag,
                ffi::RSMPI_STATUS_IGNORE,
            )
        };
        check(code, "look for failures")?;
        if flag != 0
            && self.failure.is_none()
            && let Some((rank, reason)) = self.try_receive(None, Channel::Control, FAILED)?
        {
            self.failure = Some((rank, String::from_utf8_lossy(&reason).into_owned()));
        }
        match &self.failure {
            Some((rank, reason)) => Err(NetError::PeerFailed {
                rank: *rank,
                reason: reason.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Tells all others that this worker failed, unless another has said so before.
    pub(crate) fn fail(&mut self, reason: &str) {
        if self.failure.is_some() || self.listen().is_err() {
            return;
        }
        self.failure = Some((self.rank, reason.to_owned()));
        let rank = self.rank;
        for to in (0..self.size).filter(|&to| to != rank) {
            // Whoever cannot be told has lost the connection and notices by itself.
            let _ = self.send(to, Channel::Control, FAILED, reason.as_bytes().to_vec());
        }
        // Not by `wait`, which fails now that a failure is noted.
        let start = Instant::now();
        while !self.sending.is_empty() && start.elapsed() < LAST_WORDS && self.reap().is_ok() {
            std::thread::yield_now();
        }
    }

    /// Takes note of a failure that every process has been told of in another way, so that none
    /// tells it again: whoever heard that before the other would take it for a second failure.
    pub(crate) fn note_failure(&mut self, rank: usize, reason: &str) {
        self.failure
            .get_or_insert_with(|| (rank, reason.to_owned()));
    }

    /// Whether the run has failed, here or elsewhere.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Ends MPI. What is still under way is lost.
    pub(crate) fn close(&mut self) {
        drop(self.universe.take());
    }
}

/// Whether a request has ended.
#[allow(unsafe_code)]
fn test(request: &mut ffi::MPI_Request) -> Result<bool, NetError> {
    let mut flag: c_int = 0;
    // SAFETY: the request is one that MPI wrote and that has not ended, or the null request that
    // MPI made of it.
    let code = unsafe { ffi::MPI_Test(request, &raw mut flag, ffi::RSMPI_STATUS_IGNORE) };
    check(code, "move a message on")?;
    Ok(flag != 0)
}

#[allow(unsafe_code)]
fn check(code: c_int, what: &str) -> Result<(), NetError> {
    if code == 0 {
        return Ok(());
    }
    let mut text = [0 as c_char; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut length: c_int = 0;
    // SAFETY: the buffer is one longer than the longest text, and zeroed, so that it ends.
    let text = unsafe {
        ffi::MPI_Error_string(code, text.as_mut_ptr(), &raw mut length);
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    };
    Err(NetError::Disconnected(format!("MPI cannot {what}: {text}")))
}

/// How long to wait before asking again: not at all at first, for short waits are measured; then as
/// other processes on the same cores need.
#[derive(Default)]
struct Patience {
    asked: u32,
    since: Option<Instant>,
}

impl Patience {
    const SPIN: u32 = 200;
    const YIELD: Duration = Duration::from_millis(5);
    const SLEEP: Duration = Duration::from_micros(50);

    fn pause(&mut self) {
        self.asked += 1;
        if self.asked <= Self::SPIN {
            std::hint::spin_loop();
            return;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() < Self::YIELD {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Self::SLEEP);
        }
    }
}
