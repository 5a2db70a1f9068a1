//! The house keeps its floors: what a file may import, read from its `use` lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders from the ground up. A file imports from its own floor's folder and from those below.
const FLOORS: [&[&str]; 10] = [
    &["defaults", "digits", "names"],
    &["rng", "memory", "parquet", "atomic", "simd"],
    &["graph", "net"],
    &["model", "fetch"],
    &["sim"],
    &["strategies"],
    &["study"],
    &["experiment"],
    &["report"],
    &["cli", "main", "lib"],
];

/// A file of the crate by the path of its module, `["net", "codecs", "top_k"]`.
type Module = Vec<String>;

struct House {
    /// Of each module what its file imports, as whole paths within the crate.
    imports: BTreeMap<Module, BTreeSet<Module>>,
    /// What a module hands on by another name: where it is.
    handed_on: BTreeMap<Module, Module>,
}

impl House {
    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut house = Self {
            imports: BTreeMap::new(),
            handed_on: BTreeMap::new(),
        };
        let files = rust_files(&root);
        let modules: Vec<Module> = files.iter().map(|file| module(&root, file)).collect();
        for module in &modules {
            house.imports.insert(module.clone(), BTreeSet::new());
        }
        for (file, module) in files.iter().zip(&modules) {
            let text = fs::read_to_string(file).expect("it can be read");
            let spelt_out = in_code(&text).into_iter().map(|path| (false, path));
            for (public, path) in uses(&text).into_iter().chain(spelt_out) {
                let Some(path) = house.absolute(module, &path) else {
                    continue;
                };
                if public && let Some(name) = path.last() {
                    let mut here = module.clone();
                    here.push(name.clone());
                    house.handed_on.insert(here, path.clone());
                }
                house
                    .imports
                    .get_mut(module)
                    .expect("it is there")
                    .insert(path);
            }
        }
        house
    }

    /// A path as it stands in a file, from the crate's root; none of another crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        let mut base = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.clone(),
            "super" => module[..module.len().checked_sub(1)?].to_vec(),
            child => {
                let mut inside = module.clone();
                inside.push(child.to_owned());
                self.imports.contains_key(&inside).then_some(inside)?
            }
        };
        for segment in rest {
            if segment == "super" {
                base.pop();
            } else {
                base.push(segment.clone());
            }
        }
        Some(base)
    }

    /// The file in which what a path names is written down.
    fn file_of(&self, path: &Module) -> Option<Module> {
        let mut path = path.clone();
        for _ in 0..8 {
            match self.handed_on.get(&path) {
                Some(there) if *there != path => path.clone_from(there),
                _ => break,
            }
        }
        while !self.imports.contains_key(&path) {
            path.pop()?;
        }
        (!path.is_empty()).then_some(path)
    }

    /// Of each file the files it imports from.
    fn arrows(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let of = |(from, paths): (&Module, &BTreeSet<Module>)| {
            let files = paths.iter().filter_map(|path| self.file_of(path));
            (from.clone(), files.filter(|to| to != from).collect())
        };
        self.imports.iter().map(of).collect()
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("it is a folder");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it is there").path())
        .collect();
    paths.sort();
    let inside = paths.into_iter().flat_map(|path| match path.extension() {
        _ if path.is_dir() => rust_files(&path),
        Some(extension) if extension == "rs" => vec![path],
        _ => Vec::new(),
    });
    // Tests may look at anything.
    let tests = [
        "tests.rs",
        "bad_inputs.rs",
        "loaders/published.rs",
        "layouts.rs",
    ];
    let is_test = |path: &PathBuf| {
        path.components()
            .any(|part| part.as_os_str() == "tests" || part.as_os_str() == "properties")
            || tests.iter().any(|name| path.ends_with(name))
    };
    inside.filter(|path| !is_test(path)).collect()
}

fn module(root: &Path, file: &Path) -> Module {
    let path = file
        .strip_prefix(root)
        .expect("it is below")
        .with_extension("");
    let mut parts: Module = path
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

/// Whether each `use` outside tests is public, and its path; those in braces one by one.
fn uses(text: &str) -> Vec<(bool, Vec<String>)> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("use ") {
        let line = rest[..at].rsplit('\n').next().unwrap_or_default();
        let (_, after) = rest.split_at(at + 4);
        rest = after;
        let public = line.starts_with("pub");
        if !(line.is_empty() || (public && line.ends_with(' ') && !line.contains('/'))) {
            continue;
        }
        let Some(end) = after.find(';') else { break };
        let tree: String = after[..end]
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        expand(&[], &tree, &mut |path| found.push((public, path)));
    }
    found
}

/// Paths that are spelt out in code, outside comments and tests: `super::manifest::write(…)`.
fn in_code(text: &str) -> Vec<Vec<String>> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = text.lines().map(str::trim_start);
    let code = lines.filter(|line| !line.starts_with("//"));
    let words = code.flat_map(|line| {
        line.split(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == ':'))
    });
    let paths = words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
    paths
        .map(|path| path.split("::").filter(|part| !part.is_empty()))
        .map(|parts| parts.map(str::to_owned).collect())
        .collect()
}

fn expand(before: &[String], tree: &str, found: &mut dyn FnMut(Vec<String>)) {
    let tree = tree.trim();
    let (path, inside) = match tree.split_once('{') {
        Some((path, inside)) => (path, Some(inside.strip_suffix('}').unwrap_or(inside))),
        None => (tree, None),
    };
    let path = path.split(" as ").next().unwrap_or(path);
    let segments = path.split("::").map(str::trim);
    let is_name = |part: &&str| !part.is_empty() && (*part != "self" || before.is_empty());
    let names = segments.filter(is_name).map(str::to_owned);
    let before: Vec<String> = before.iter().cloned().chain(names).collect();
    let Some(inside) = inside else {
        return found(before);
    };
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in inside.char_indices().chain([(inside.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inside[start..at].trim().is_empty() {
                    expand(&before, &inside[start..at], found);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

fn floor(module: &Module) -> Option<usize> {
    let folder = module.first()?;
    FLOORS
        .iter()
        .position(|floor| floor.contains(&folder.as_str()))
}

#[test]
fn nothing_is_imported_from_a_floor_above() {
    let mut up = Vec::new();
    for (from, files) in House::read().arrows() {
        let Some(mine) = floor(&from) else {
            panic!("{} stands on no floor", from.join("::"));
        };
        for to in files {
            let theirs = floor(&to).expect("what is imported stands on a floor");
            if theirs > mine || (theirs == mine && from[0] != to[0] && mine < FLOORS.len() - 1) {
                up.push(format!(
                    "{} imports from {}",
                    from.join("::"),
                    to.join("::")
                ));
            }
        }
    }
    assert!(up.is_empty(), "{}", up.join("\n"));
}

#[test]
fn a_strategy_imports_from_no_other() {
    let mut found = Vec::new();
    for (from, files) in House::read().arrows() {
        let [folder, mine, ..] = &from[..] else {
            continue;
        };
        let of_another = |to: &&Module| {
            let shared = ["parts", "strategy", "registration"];
            to.len() > 1 && to[0] == "strategies" && to[1] != *mine && !shared.contains(&&*to[1])
        };
        if folder != "strategies" || mine == "registry" {
            continue;
        }
        for to in files.iter().filter(of_another) {
            found.push(format!(
                "{} imports from {}",
                from.join("::"),
                to.join("::")
            ));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// All files that a file reaches by its imports.
fn reached(arrows: &BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<Module> {
    let mut found = BTreeSet::new();
    let mut left = vec![from];
    while let Some(file) = left.pop() {
        for to in arrows.get(file).into_iter().flatten() {
            if found.insert(to.clone()) {
                left.push(to);
            }
        }
    }
    found
}

/// The imports that close circles.
fn circles(mut arrows: BTreeMap<Module, BTreeSet<Module>>) -> Vec<String> {
    for (from, files) in &mut arrows {
        // The face of a folder knows what is inside.
        files.retain(|to| !to.starts_with(from));
    }
    let reach: BTreeMap<&Module, BTreeSet<Module>> = arrows
        .keys()
        .map(|from| (from, reached(&arrows, from)))
        .collect();
    let mut found = Vec::new();
    for (from, files) in &arrows {
        for to in files.iter().filter(|to| reach[to].contains(from)) {
            found.push(format!("{} -> {}", from.join("::"), to.join("::")));
        }
    }
    found
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let found = circles(House::read().arrows());
    let text = found.join("\n");
    assert!(found.is_empty(), "these imports close circles:\n{text}");
}

#[test]
fn a_circle_is_found_and_what_hangs_on_it_is_not() {
    let module = |name: &str| vec!["experiment".to_owned(), name.to_owned()];
    let arrow = |(from, to): (&str, &str)| (module(from), BTreeSet::from([module(to)]));
    let all = [("a", "b"), ("b", "c"), ("c", "a"), ("before", "a")].map(arrow);
    let found = circles(all.into_iter().collect());
    assert_eq!(found.len(), 3, "{found:?}");
    let text = "use super::x;\n// super::no\nfn f() { super::y::z(crate::w::V, \"super\") }";
    assert_eq!(
        in_code(text),
        [
            vec!["super", "x"],
            vec!["super", "y", "z"],
            vec!["crate", "w", "V"]
        ]
    );
}

#[test]
fn the_walk_names_functions_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let walk = fs::read_to_string(root.join("docs/walk.md")).expect("it can be read");
    let mut stops = 0;
    for line in walk.lines().filter(|line| line.starts_with("| `src/")) {
        let mut cells = line
            .split('|')
            .skip(1)
            .map(|cell| cell.trim().trim_matches('`'));
        let (Some(file), Some(function)) = (cells.next(), cells.next()) else {
            panic!("a row of two cells at least: {line}");
        };
        let code = fs::read_to_string(root.join(file)).expect(file);
        let is_there = ["(", "<"]
            .iter()
            .any(|next| code.contains(&format!("fn {function}{next}")));
        assert!(is_there, "{file} has no function {function}");
        stops += 1;
    }
    assert!(stops > 40, "only {stops} stops were found");
}

/// Items that the library offers to other crates. Lower it with what goes; raise it for what an author of a strategy, a codec, a
/// topology or a claim needs, and for nothing else.
const PUBLIC_ITEMS: usize = 949;

#[test]
fn the_public_interface_does_not_grow_unnoticed() {
    const KINDS: [&str; 8] = [
        "const", "enum", "fn", "mod", "static", "struct", "trait", "type",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = 0;
    for file in rust_files(&root) {
        let text = fs::read_to_string(&file).expect("it can be read");
        // What says `pub` is public: the lint `unreachable_pub` sees to that.
        let public = text
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("pub "));
        let items =
            public.filter(|item| KINDS.contains(&item.split(' ').next().unwrap_or_default()));
        found += items.count();
    }
    assert!(
        found <= PUBLIC_ITEMS,
        "{found} public items: make what no other crate needs `pub(crate)`"
    );
}

#[test]
fn strategies_and_graphs_hide_no_state_behind_locks() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let locked = |file: &PathBuf| {
        let text = fs::read_to_string(file).expect("it can be read");
        ["Mutex", "RwLock"].iter().any(|lock| text.contains(lock))
    };
    let folders = ["graph", "strategies"];
    let mut found = folders
        .map(|folder| rust_files(&source.join(folder)))
        .concat();
    found.retain(locked);
    // METIS has a global of its own in C.
    assert_eq!(found, [source.join("graph/partition/metis.rs")]);
}

#[test]
fn comments_fit_100_columns() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut long = Vec::new();
    for file in rust_files(&root) {
        let text = fs::read_to_string(&file).expect("it can be read");
        for (number, line) in text.lines().enumerate() {
            // The formatter leaves them as they are.
            if line.trim_start().starts_with("//") && line.chars().count() > 100 {
                long.push(format!("{}:{}", file.display(), number + 1));
            }
        }
    }
    assert!(long.is_empty(), "too long:\n{}", long.join("\n"));
}

#[test]
fn loops_for_vector_instructions_are_part_of_their_code() {
    // A closure that is not inlined runs with the few instructions that every processor has, and
    // gives the same results: no other test would notice.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut calls = 0;
    for file in rust_files(&root) {
        let text = fs::read_to_string(&file).expect("it can be read");
        if file.ends_with("simd.rs") {
            continue;
        }
        for (at, call) in text.match_indices("vectorised(") {
            let task = text[at + call.len()..].trim_start();
            assert!(
                task.starts_with("#[inline(always)]"),
                "{}: mark the task of {call}…) `#[inline(always)]`",
                file.display()
            );
            calls += 1;
        }
        // Who calls pulp itself writes a struct for it, whose method is marked.
        let of_a_struct = ["impl WithSimd", "NullaryFnOnce for"];
        assert_eq!(
            of_a_struct.iter().any(|written| text.contains(written)),
            text.contains("use pulp::"),
            "{}: give loops to `simd::vectorised`",
            file.display()
        );
    }
    assert!(calls > 10, "{calls} calls found");
}
