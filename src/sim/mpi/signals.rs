//! Last words of a process that is ended from outside.
//!
//! When a process of the run dies, `mpirun` and `srun` end the others with SIGTERM. Each then says
//! so, and leaves with exit code 1.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static LAST_WORDS: OnceLock<String> = OnceLock::new();
static TOLD: AtomicBool = AtomicBool::new(false);

/// How long a process stays after its last words, in milliseconds: `mpirun` passes them on, but not
/// always those of a process that has gone. A second after SIGTERM it sends SIGKILL.
const HEARD_AFTER: libc::c_int = 300;

/// Has this process say that it was ended, if it is.
#[allow(unsafe_code)]
pub(super) fn listen(rank: usize) {
    let words = format!(
        "error: worker {rank}: the run was ended from outside (SIGTERM): another of its processes died, or it was stopped; \
         the message of mpirun or srun says which. The tables of what was finished are in the result folder\n"
    );
    // Made beforehand: a signal handler must not allocate.
    if LAST_WORDS.set(words).is_err() {
        return;
    }
    // SAFETY: the handler calls nothing but what POSIX allows in one: atomic loads, `write`, `poll`
    // and `_exit`.
    unsafe {
        libc::signal(libc::SIGTERM, ended as *const () as libc::sighandler_t);
    }
}

/// Nothing more is to be said: the process has told how it ended.
pub(super) fn told() {
    // Relaxed: it stands alone, and a handler that misses it says a word too many.
    TOLD.store(true, Ordering::Relaxed);
}

#[allow(unsafe_code)]
extern "C" fn ended(_signal: libc::c_int) {
    if !TOLD.load(Ordering::Relaxed)
        && let Some(words) = LAST_WORDS.get()
    {
        // SAFETY: the text is as long as is said, and never changes; of no files there is nothing
        // to read.
        unsafe {
            libc::write(2, words.as_ptr().cast(), words.len());
            // A sleep that POSIX allows in a handler.
            libc::poll(std::ptr::null_mut(), 0, HEARD_AFTER);
        }
    }
    // SAFETY: always allowed; nothing of this process is needed any more.
    unsafe { libc::_exit(1) }
}
