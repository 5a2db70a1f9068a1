//! How much memory there is, asked before anything large is allocated: a program that takes more is
//! ended by the system without a word, or drags the machine down with it.
//!
//! What there is: what the machine has free, what the limits of its control groups (a container's,
//! say) leave, and what `--memory` leaves, whichever is least. What is needed is a lower bound:
//! whatever is refused would not have fitted.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use thiserror::Error;

use crate::digits::{BYTES, short};

/// The limit set by hand, in bytes; none.
static BY_HAND: AtomicU64 = AtomicU64::new(u64::MAX);

/// Something needs more memory than there is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{what} needs at least {}, and {} of memory are left ({limit}); make it smaller, or run it where there is more",
    text(*needs), text(*there)
)]
pub struct Shortage {
    /// What needs it.
    pub what: String,
    /// Bytes that it takes at least.
    pub needs: u64,
    /// Bytes that are left.
    pub there: u64,
    /// What limits them.
    pub limit: &'static str,
}

/// Sets how many bytes this process may take in all, if any number is given.
pub(crate) fn limit_to(bytes: Option<u64>) {
    if let Some(bytes) = bytes {
        // Relaxed: it is set once, from the command line, before any thread asks.
        BY_HAND.store(bytes, Ordering::Relaxed);
    }
}

/// The number of bytes that was set by hand, if any was.
pub(crate) fn by_hand() -> Option<u64> {
    Some(BY_HAND.load(Ordering::Relaxed)).filter(|&bytes| bytes != u64::MAX)
}

/// Whether so many bytes more can be taken.
///
/// # Errors
/// If not; a system that says nothing about its memory has enough of it.
pub(crate) fn need(what: impl FnOnce() -> String, needs: u64) -> Result<(), Shortage> {
    /// Nobody runs out of memory for the sake of less, and asking costs some 50 µs.
    const SMALL: u64 = 16 << 20;
    if needs < SMALL {
        return Ok(());
    }
    match left() {
        Some((there, limit)) if there < needs => Err(Shortage {
            what: what(),
            needs,
            there,
            limit,
        }),
        _ => Ok(()),
    }
}

/// Bytes of so many values of a size: more than there can be, where the product is.
pub(crate) fn bytes(values: &[usize], size: usize) -> u64 {
    let factors = values.iter().map(|&factor| factor as u64);
    // Saturating: sizes come from a person, and a product that wraps around would look small.
    factors.fold(size as u64, u64::saturating_mul)
}

/// Bytes that can still be taken; none on a system that says nothing about its memory.
pub(crate) fn free() -> Option<u64> {
    left().map(|(bytes, _)| bytes)
}

/// Bytes that can still be taken, and what limits them.
fn left() -> Option<(u64, &'static str)> {
    let by_hand = by_hand().map(|limit| (limit.saturating_sub(taken()), "--memory"));
    // Available, not free: the system's caches give way to whoever needs memory.
    let machine = (field(Path::new("/proc/meminfo"), "MemAvailable:"))
        .map(|kilobytes| (kilobytes * 1024, "what is free on this machine"));
    let group = in_groups(
        &fs::read_to_string("/proc/self/cgroup").unwrap_or_default(),
        Path::new("/sys/fs/cgroup"),
    )
    .map(|left| (left, "what its control group leaves"));
    // Soft limits, which count; "unlimited" is no number.
    let limit = |limit, taken, name| {
        let limit = field(Path::new("/proc/self/limits"), limit)?;
        Some((limit.saturating_sub(of_process(taken)), name))
    };
    let space = limit("Max address space", "VmSize:", "what `ulimit -v` leaves");
    let data = limit("Max data size", "VmData:", "what `ulimit -d` leaves");
    let least = [by_hand, machine, group, space, data].into_iter().flatten();
    least
        .min_by_key(|(left, _)| *left)
        // What this process has freed and not given back serves it again.
        .map(|(left, limit)| (left.saturating_add(freed()), limit))
}

/// Bytes that the allocator holds and nobody uses.
#[allow(unsafe_code)]
fn freed() -> u64 {
    // This can be much: `keep_freed_memory` has the allocator give nothing back.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: `mallinfo2` only reads the allocator's own counts; it has no preconditions.
        unsafe { libc::mallinfo2() }.fordblks as u64
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    0
}

/// Bytes of this process that are in memory.
fn taken() -> u64 {
    of_process("VmRSS:")
}

/// Starts a new peak. Where that is not possible, the peak is that of the process so far.
pub(crate) fn reset_peak() {
    // "5" resets the peak resident size (proc(5)); refused in some containers, which is no reason
    // to stop.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The peak resident size of this process in bytes, as Linux keeps it; 0 where the system does not
/// say.
pub(crate) fn peak() -> u64 {
    of_process("VmHWM:")
}

/// Bytes of memory of the machine, where the system says.
pub(crate) fn of_machine() -> Option<u64> {
    field(Path::new("/proc/meminfo"), "MemTotal:").map(|kilobytes| kilobytes * 1024)
}

fn of_process(name: &str) -> u64 {
    field(Path::new("/proc/self/status"), name).unwrap_or(0) * 1024
}

/// The number behind a name in a file of names and numbers.
fn field(path: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What the control groups of this process leave, the least of them: `groups` is
/// `/proc/self/cgroup`, `root` where they are mounted.
fn in_groups(groups: &str, root: &Path) -> Option<u64> {
    let lines = groups.lines().filter_map(|line| {
        // Three parts and no more: the path, which comes last, may hold colons.
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        Some((controllers, path.trim_start_matches('/')))
    });
    let mut least = None;
    for (controllers, path) in lines {
        let (base, files) = if controllers.is_empty() {
            (
                root.to_owned(),
                ["memory.max", "memory.current", "inactive_file "],
            )
        } else if controllers.split(',').any(|name| name == "memory") {
            let names = [
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_inactive_file ",
            ];
            (root.join("memory"), names)
        } else {
            continue;
        };
        // Within a container the path may be that of outside; its own group is then what is
        // mounted. Every group above also limits what is below it, so that the tightest of all
        // counts.
        for folder in folders(&base, path) {
            let number = |name: &str| {
                fs::read_to_string(folder.join(name))
                    .ok()?
                    .trim()
                    .parse::<u64>()
                    .ok()
            };
            // `max` stands for no limit. It is no number, and such a group is passed over.
            let Some((limit, used)) = number(files[0]).zip(number(files[1])) else {
                continue;
            };
            // Cached files give way to whoever needs memory.
            let cache = field(&folder.join("memory.stat"), files[2]).unwrap_or(0);
            let left = limit.saturating_sub(used.saturating_sub(cache));
            least = Some(least.map_or(left, |least: u64| least.min(left)));
        }
    }
    least
}

/// A folder and those above it, up to the base.
fn folders(base: &Path, path: &str) -> Vec<PathBuf> {
    let whole = base.join(path);
    let above = whole
        .ancestors()
        .take_while(|folder| folder.starts_with(base));
    above.map(Path::to_owned).collect()
}

/// Bytes for people, in the units of `--memory`.
fn text(bytes: u64) -> String {
    // A product that fits no number is the largest one, which says nothing.
    if bytes >= 1_000_000_000_000_000 {
        return "more than 1 PB".to_owned();
    }
    short(bytes as f64, &BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_need_beyond_any_machine_is_refused_with_both_sizes() {
        let shortage = need(|| "a layer".to_owned(), bytes(&[usize::MAX, 3], 4));
        // Where the system says nothing, nothing is refused.
        if let Some((there, _)) = left() {
            let shortage = shortage.unwrap_err();
            // What is left changes from one look to the next, and no machine has a petabyte.
            assert!(there < 1 << 50 && shortage.there < 1 << 50);
            assert_eq!(shortage.needs, u64::MAX);
            let said = shortage.to_string();
            assert!(
                said.starts_with("a layer needs at least more than 1 PB, and "),
                "{said}"
            );
        }
        assert_eq!(need(|| unreachable!("nothing is wrong"), 1 << 20), Ok(()));
    }

    #[test]
    fn the_tightest_group_counts_without_its_cached_files() {
        let root = tempfile::tempdir().unwrap();
        let group = |path: &str, limit: &str, used: &str, cached: &str| {
            let folder = root.path().join(path);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("memory.max"), limit).unwrap();
            fs::write(folder.join("memory.current"), used).unwrap();
            fs::write(
                folder.join("memory.stat"),
                format!("anon 1\ninactive_file {cached}\n"),
            )
            .unwrap();
        };
        group("a", "1000\n", "400\n", "100");
        group("a/b", "max\n", "300\n", "0");
        assert_eq!(in_groups("0::/a/b\n", root.path()), Some(700));
        group("a/b", "500\n", "300\n", "0");
        assert_eq!(in_groups("0::/a/b\n", root.path()), Some(200));
        // A path of outside leads nowhere; what is mounted counts.
        assert_eq!(in_groups("0::/elsewhere\n", root.path()), None);
        group(".", "50\n", "20\n", "0");
        assert_eq!(in_groups("0::/elsewhere\n", root.path()), Some(30));
        assert_eq!(in_groups("3:cpu:/a\n", root.path()), None);
    }
}
