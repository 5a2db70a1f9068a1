//! `grapevine fetch`: published graphs by name.

use std::io::{self, BufRead, IsTerminal};
use std::sync::Mutex;
use std::sync::PoisonError;

use clap::Args as ClapArgs;
use indicatif::ProgressBar;
use serde_json::json;

use super::Verdict;
use super::datasets;
use super::output::{BadArgument, print, print_json, tell};
use super::progress;
use crate::Error;
use crate::experiment::config::closest;
use crate::fetch::{Fetch, Fetched, Patience, Source, Watch};
use crate::graph::{BUNDLED, PublishedSet, data_folder, dataset_names, published_set};
use crate::net::Bytes;

/// Arguments of `fetch`.
#[derive(ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(super) struct Args {
    /// Names of published data sets
    #[arg(required_unless_present = "list")]
    names: Vec<String>,
    /// List what can be fetched
    #[arg(long, conflicts_with = "names")]
    list: bool,
    /// A folder with files downloaded by hand, or the address of a mirror that has them
    #[arg(long, value_name = "DIR|URL")]
    from: Option<String>,
    /// Download more than 1 GB without being asked
    #[arg(long, short)]
    yes: bool,
    /// The checksum to go by in place of the published one: sha256:…, md5:… or git:…
    #[arg(long, value_name = "SUM")]
    sum: Option<String>,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Verdict> {
    if args.list {
        if args.json {
            print_json(&datasets::document())?;
        } else {
            print(&datasets::published())?;
        }
        return Ok(Verdict::Good);
    }
    // All names before any download.
    let sets: Vec<Option<&PublishedSet>> = args
        .names
        .iter()
        .map(|name| find(name))
        .collect::<anyhow::Result<_>>()?;
    let watch = Bars {
        yes: args.yes,
        quiet: args.quiet,
        bar: Mutex::new(None),
    };
    let fetch = Fetch {
        folder: data_folder().map_err(Error::from)?,
        from: args.from.as_deref().map(Source::new),
        sum: args.sum.as_deref().map(str::parse).transpose()?,
        patience: Patience::default(),
        watch: &watch,
    };
    let mut done = Vec::new();
    for (name, set) in args.names.iter().zip(sets) {
        let Some(set) = set else {
            done.push(json!({ "name": name, "bundled": true }));
            say(
                args,
                &format!("{name}: part of the program, nothing to fetch\n"),
            )?;
            continue;
        };
        let fetched = fetch.set(set);
        watch.end();
        let (what, folder) = match fetched? {
            Fetched::There(folder) => ("was there", folder),
            Fetched::Now(folder) => ("fetched", folder),
        };
        done.push(json!({ "name": name, "folder": folder, "fetched": what == "fetched" }));
        say(args, &format!("{name}: {what}, {}\n", folder.display()))?;
    }
    if args.json {
        print_json(&done)?;
    }
    Ok(Verdict::Good)
}

fn say(args: &Args, text: &str) -> anyhow::Result<()> {
    if !args.json {
        print(text)?;
    }
    Ok(())
}

/// The published set of this name; none where it is part of the program.
fn find(name: &str) -> anyhow::Result<Option<&'static PublishedSet>> {
    if BUNDLED.contains(&name) {
        return Ok(None);
    }
    published_set(name).map(Some).ok_or_else(|| {
        let meant = closest(name, dataset_names())
            .map_or_else(|| ".".to_owned(), |near| format!("; did you mean {near}?"));
        let what = format!(
            "no published data set is called `{name}`{meant} `grapevine fetch --list` has all"
        );
        BadArgument { flag: "NAME", what }.into()
    })
}

/// Progress on standard error: a bar for each file on a terminal, a line elsewhere.
struct Bars {
    yes: bool,
    quiet: bool,
    bar: Mutex<Option<ProgressBar>>,
}

impl Bars {
    fn with(&self, change: impl FnOnce(&mut Option<ProgressBar>)) {
        change(&mut self.bar.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn end(&self) {
        self.with(|bar| {
            if let Some(bar) = bar.take() {
                bar.finish_and_clear();
            }
        });
    }
}

impl Watch for Bars {
    fn begin(&self, file: &str, bytes: Option<u64>, have: u64) {
        self.end();
        if self.quiet {
            return;
        }
        if !io::stderr().is_terminal() {
            let bytes = bytes.map_or(String::new(), |bytes| format!(", {}", Bytes(bytes)));
            let from = if have > 0 {
                format!(", from byte {have} on")
            } else {
                String::new()
            };
            tell(&format!("{file}{bytes}{from}\n"));
            return;
        }
        let template = match bytes {
            Some(_) => {
                "{msg}  {bar:24} {percent:>3}%  {decimal_bytes} of {decimal_total_bytes}  {decimal_bytes_per_sec}  {eta} left"
            }
            None => "{msg}  {decimal_bytes}  {decimal_bytes_per_sec}",
        };
        let bar = progress::bar(template);
        if let Some(bytes) = bytes {
            bar.set_length(bytes);
        }
        bar.set_message(file.to_owned());
        bar.set_position(have);
        bar.reset_eta();
        self.with(|own| *own = Some(bar));
    }

    fn more(&self, bytes: u64) {
        self.with(|bar| {
            if let Some(bar) = bar {
                bar.inc(bytes);
            }
        });
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            self.end();
            tell(&format!("{text}\n"));
        }
    }

    fn may_take(&self, name: &str, bytes: u64) -> bool {
        if self.yes || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return self.yes;
        }
        tell(&format!(
            "{name} is {} to download. Fetch it? [y/N] ",
            Bytes(bytes)
        ));
        let mut answer = String::new();
        let heard = io::stdin().lock().read_line(&mut answer);
        heard.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
    }
}
