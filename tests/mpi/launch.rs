//! Starting the program alone and under mpirun.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_grapevine");

/// What a call of the program left.
pub(crate) struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The program, running on several processes.
pub(crate) struct Started {
    child: Child,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
}

/// Runs the program by itself.
pub(crate) fn grapevine(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(PROGRAM);
    command.args(arguments);
    begin(folder, command).wait(LIMIT)
}

/// Runs the program on so many processes.
pub(crate) fn mpirun(folder: &Path, processes: usize, arguments: &[&str]) -> Ran {
    start(folder, processes, arguments).wait(LIMIT)
}

/// Runs the program on one process for each list of arguments.
pub(crate) fn mpirun_each(folder: &Path, arguments: &[&[&str]]) -> Ran {
    let mut command = launcher();
    for (place, arguments) in arguments.iter().enumerate() {
        if place > 0 {
            command.arg(":");
        }
        command.args(["-n", "1", PROGRAM]).args(*arguments);
    }
    begin(folder, command).wait(LIMIT)
}

/// Starts the program on so many processes.
pub(crate) fn start(folder: &Path, processes: usize, arguments: &[&str]) -> Started {
    let mut command = launcher();
    command
        .args(["-n", &processes.to_string(), PROGRAM])
        .args(arguments);
    begin(folder, command)
}

/// No run here takes longer.
const LIMIT: Duration = Duration::from_mins(2);

fn launcher() -> Command {
    let mut command = Command::new("mpirun");
    // Root in a container, with fewer cores than processes; copying between processes may be
    // forbidden there.
    command
        .args(["--allow-run-as-root", "--oversubscribe"])
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
    command
}

fn begin(folder: &Path, mut command: Command) -> Started {
    let mut child = command
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("{command:?} cannot be started: {error}; see scripts/mpi-test")
        });
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    Started {
        stdout: std::thread::spawn(|| all_of(stdout)),
        stderr: std::thread::spawn(|| all_of(stderr)),
        child,
    }
}

fn all_of(source: Option<impl Read>) -> String {
    let mut text = Vec::new();
    if let Some(mut source) = source {
        // What was read until an error is what there is.
        let _ = source.read_to_end(&mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}

impl Started {
    /// Kills the process of a worker so that it can say nothing.
    pub(crate) fn kill(&self, rank: usize) {
        let wanted = format!("OMPI_COMM_WORLD_RANK={rank}");
        let launcher = self.child.id();
        let processes = fs::read_dir("/proc").expect("the system lists processes");
        let process = processes
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
            .find(|process| {
                let read =
                    |file: &str| fs::read(format!("/proc/{process}/{file}")).unwrap_or_default();
                let status = String::from_utf8_lossy(&read("status")).into_owned();
                status.contains(&format!("PPid:\t{launcher}\n"))
                    && read("environ")
                        .split(|&byte| byte == 0)
                        .any(|variable| variable == wanted.as_bytes())
            })
            .unwrap_or_else(|| panic!("worker {rank} does not run"));
        let killed = Command::new("kill")
            .args(["-9", &process.to_string()])
            .status();
        assert!(killed.expect("there is kill").success());
    }

    /// What is left when the program has ended, which it must within `limit`.
    pub(crate) fn wait(mut self, limit: Duration) -> Ran {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                break status;
            }
            if start.elapsed() > limit {
                let _ = self.child.kill();
                let stderr = self.stderr.join().unwrap_or_default();
                panic!("still running after {limit:?}: {stderr}");
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        Ran {
            code: status.code().unwrap_or(-1),
            stdout: self.stdout.join().unwrap_or_default(),
            stderr: self.stderr.join().unwrap_or_default(),
        }
    }
}
