//! Sets fetched from a server on this machine that behaves as servers do.

mod folders;
mod server;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use super::*;
use server::{Reply, Server};

/// Takes what it is told.
#[derive(Default)]
struct Notes {
    said: Mutex<Vec<String>>,
    begun: Mutex<Vec<(String, Option<u64>, u64)>>,
    refuses: bool,
}

impl Notes {
    fn said(&self) -> String {
        self.said.lock().unwrap().join("\n")
    }
}

impl Watch for Notes {
    fn begin(&self, file: &str, bytes: Option<u64>, have: u64) {
        self.begun
            .lock()
            .unwrap()
            .push((file.to_owned(), bytes, have));
    }
    fn more(&self, _: u64) {}
    fn say(&self, text: &str) {
        self.said.lock().unwrap().push(text.to_owned());
    }
    fn may_take(&self, _: &str, _: u64) -> bool {
        !self.refuses
    }
}

/// As patient as a test can be.
fn patience() -> Patience {
    Patience {
        connect: Duration::from_secs(5),
        idle: Duration::from_millis(400),
        tries: 3,
        pause: Duration::from_millis(5),
        window: Duration::from_millis(300),
        least: 1000,
    }
}

fn fetch<'a>(folder: &Path, watch: &'a Notes) -> Fetch<'a> {
    Fetch {
        folder: folder.to_owned(),
        from: None,
        sum: None,
        patience: patience(),
        watch,
    }
}

/// A zip of a folder `outer` with one file, larger than what is read at once.
fn archive() -> Vec<u8> {
    use std::io::Write;
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    zip.start_file("outer/edges.txt", options).unwrap();
    zip.write_all(&content()).unwrap();
    zip.finish().unwrap().into_inner()
}

fn content() -> Vec<u8> {
    (0..40_000)
        .flat_map(|v| format!("{v}\t{}\n", v + 1).into_bytes())
        .collect()
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    format!("sha256:{:x}", Sha256::digest(bytes))
}

/// A set of one file at an address.
fn set(at: String, bytes: Option<&[u8]>) -> PublishedSet {
    let file = PublishedFile {
        at,
        bytes: bytes.map(|bytes| bytes.len() as u64),
        sum: bytes.map(sha256),
        ..PublishedFile::default()
    };
    let template = crate::graph::published_set("web-google").unwrap().clone();
    PublishedSet {
        name: "tiny".to_owned(),
        files: vec![file],
        ..template
    }
}

/// What is left over in the data folder beside locks.
fn remains(folder: &Path) -> Vec<String> {
    let staged = folder.join(".fetching/tiny");
    let mut names: Vec<String> = fs::read_dir(staged).map_or(vec![], |entries| {
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    });
    names.sort();
    names
}

#[test]
fn a_good_file_is_fetched_checked_and_unpacked_and_the_second_time_it_is_there() {
    let (folder, notes, bytes) = (tempfile::tempdir().unwrap(), Notes::default(), archive());
    let server = Server::start(vec![Reply::of(&bytes)]);
    let set = set(server.at("tiny.zip"), Some(&bytes));
    let fetch = fetch(folder.path(), &notes);
    let goal = folder.path().join("tiny");
    assert_eq!(fetch.set(&set).unwrap(), Fetched::Now(goal.clone()));
    assert_eq!(fs::read(goal.join("edges.txt")).unwrap(), content());
    let account: toml::Table =
        toml::from_str(&fs::read_to_string(goal.join(".fetched.toml")).unwrap()).unwrap();
    assert_eq!(account["file"][0]["sum"].as_str(), Some(&*sha256(&bytes)));
    assert_eq!(fetch.set(&set).unwrap(), Fetched::There(goal));
    assert_eq!(server.requests().len(), 1);
    assert!(remains(folder.path()).is_empty());
}

#[test]
fn a_broken_download_goes_on_where_it_stopped_now_and_in_another_process() {
    let (folder, notes, bytes) = (tempfile::tempdir().unwrap(), Notes::default(), archive());
    let server = Server::start(vec![
        // Dies three times, which is as often as is tried, and is well again after that.
        Reply::of(&bytes).tagged("\"v1\"").dying_after(100_000),
        Reply::of(&bytes).tagged("\"v1\"").dying_after(50_000),
        Reply::of(&bytes).tagged("\"v1\"").dying_after(0),
        Reply::of(&bytes).tagged("\"v1\""),
    ]);
    let set = set(server.at("tiny.zip"), Some(&bytes));
    let fetch = fetch(folder.path(), &notes);
    let error = fetch.set(&set).unwrap_err().to_string();
    assert!(error.contains("3 times in a row"), "{error}");
    assert_eq!(
        remains(folder.path()),
        ["tiny.zip.part", "tiny.zip.part.tag"]
    );
    fetch.set(&set).unwrap();
    let starts: Vec<u64> = notes
        .begun
        .lock()
        .unwrap()
        .iter()
        .map(|begun| begun.2)
        .collect();
    assert_eq!(starts, [0, 100_000, 150_000, 150_000]);
    let last = server.requests().pop().unwrap().to_lowercase();
    assert!(
        last.contains("range: bytes=150000-") && last.contains("if-range: \"v1\""),
        "{last}"
    );
    assert_eq!(
        fs::read(folder.path().join("tiny/edges.txt")).unwrap(),
        content()
    );
}

#[test]
fn a_file_that_changed_meanwhile_is_fetched_from_its_start() {
    let (folder, notes, bytes) = (tempfile::tempdir().unwrap(), Notes::default(), archive());
    let mut old = bytes.clone();
    old[1000] ^= 1;
    let server = Server::start(vec![
        Reply::of(&old).tagged("\"old\"").dying_after(5000),
        // Says by its tag that it is another file, and sends it whole.
        Reply::of(&bytes).tagged("\"new\""),
    ]);
    fetch(folder.path(), &notes)
        .set(&set(server.at("tiny.zip"), Some(&bytes)))
        .unwrap();
    // One that does not say so: the sum does, and the second time it is whole.
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(vec![
        Reply::of(&old).dying_after(5000),
        Reply::of(&bytes),
        Reply::of(&bytes),
    ]);
    fetch(folder.path(), &notes)
        .set(&set(server.at("tiny.zip"), Some(&bytes)))
        .unwrap();
    assert!(
        notes.said().contains("fetching it from the start"),
        "{}",
        notes.said()
    );
}

#[test]
fn a_wrong_sum_deletes_the_file_says_both_and_can_be_overruled() {
    let (folder, notes, bytes) = (tempfile::tempdir().unwrap(), Notes::default(), archive());
    let server = Server::start(vec![Reply::of(&bytes); 2]);
    let mut set = set(server.at("tiny.zip"), Some(&bytes));
    let published = sha256(b"another file");
    set.files[0].sum = Some(published.clone());
    let mut fetch = fetch(folder.path(), &notes);
    let error = fetch.set(&set).unwrap_err().to_string();
    assert!(
        error.contains(&sha256(&bytes)) && error.contains(&published),
        "{error}"
    );
    assert!(remains(folder.path()).is_empty() && !folder.path().join("tiny").exists());
    fetch.sum = Some(sha256(&bytes).parse().unwrap());
    fetch.set(&set).unwrap();
}

#[test]
fn a_web_page_or_another_length_in_place_of_a_file_is_told_and_the_mirror_tried() {
    let (folder, notes, bytes) = (tempfile::tempdir().unwrap(), Notes::default(), archive());
    let page =
        b"<!DOCTYPE html><html><body>Please log in to go on to what you asked for.</body></html>";
    let server = Server::start(vec![
        Reply::of(page),
        Reply::of(&bytes[..bytes.len() - 1]),
        Reply::of(&bytes).status("404 Not Found"),
        Reply::of(&bytes),
    ]);
    let mut set = set(server.at("tiny.zip"), Some(&bytes));
    let alone = fetch(folder.path(), &notes)
        .set(&set)
        .unwrap_err()
        .to_string();
    assert!(alone.contains("is a web page, not the file"), "{alone}");
    set.files[0].mirrors = vec![server.at("b/tiny.zip"), server.at("c/tiny.zip")];
    fetch(folder.path(), &notes).set(&set).unwrap();
    assert_eq!(server.requests().len(), 4);
    // All reasons are said where none has it.
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(vec![
        Reply::of(page),
        Reply::of(&bytes[..bytes.len() - 1]),
        Reply::of(&bytes).status("404 Not Found"),
    ]);
    set.files[0].at = server.at("tiny.zip");
    set.files[0].mirrors = vec![server.at("b/tiny.zip"), server.at("c/tiny.zip")];
    let error = fetch(folder.path(), &notes)
        .set(&set)
        .unwrap_err()
        .to_string();
    let length = bytes.len();
    for said in [
        "is a web page",
        &format!("has {} bytes, and the published file {length}", length - 1),
        "answers 404 Not Found",
    ] {
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn redirects_are_followed_and_circles_left() {
    let (folder, notes, bytes) = (tempfile::tempdir().unwrap(), Notes::default(), archive());
    let server = Server::start(vec![
        Reply::redirect("/elsewhere/tiny.zip"),
        Reply::of(&bytes),
    ]);
    fetch(folder.path(), &notes)
        .set(&set(server.at("tiny.zip"), Some(&bytes)))
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(vec![Reply::redirect("/tiny.zip"); 30]);
    let error = fetch(folder.path(), &notes)
        .set(&set(server.at("tiny.zip"), Some(&bytes)))
        .unwrap_err()
        .to_string();
    assert!(error.contains("redirect"), "{error}");
    assert!(
        // The first request and ten redirects.
        server.requests().len() <= 11,
        "{} requests",
        server.requests().len()
    );
}

#[test]
fn a_server_that_hangs_drips_or_is_busy_is_given_up_and_gone_on_with() {
    let (folder, notes, bytes) = (tempfile::tempdir().unwrap(), Notes::default(), archive());
    let server = Server::start(vec![
        Reply::of(&bytes).status("503 Service Unavailable"),
        Reply::of(&bytes).tagged("\"v\"").dripping(),
        Reply::of(&bytes).tagged("\"v\"").hanging_after(10_000),
        Reply::of(&bytes).tagged("\"v\""),
    ]);
    let patient = Fetch {
        patience: Patience {
            tries: 9,
            ..patience()
        },
        ..fetch(folder.path(), &notes)
    };
    patient
        .set(&set(server.at("tiny.zip"), Some(&bytes)))
        .unwrap();
    let said = notes.said();
    for what in [
        "answers 503 Service Unavailable",
        "slower than",
        "broke off after",
    ] {
        assert!(said.contains(what), "{said}");
    }
    assert_eq!(
        fs::read(folder.path().join("tiny/edges.txt")).unwrap(),
        content()
    );
}

#[test]
fn nobody_there_ends_with_what_to_do_by_hand() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), Notes::default());
    // A port that was free a moment ago.
    let gone = Server::start(vec![]).at("tiny.zip");
    let error = fetch(folder.path(), &notes)
        .set(&set(gone, Some(b"x")))
        .unwrap_err();
    assert!(!error.is_input());
    assert!(
        error
            .to_string()
            .starts_with("tiny.zip could not be downloaded: http://127.0.0.1")
    );
}

#[test]
fn two_fetches_at_once_download_once() {
    let (folder, bytes) = (tempfile::tempdir().unwrap(), archive());
    let server = Server::start(vec![Reply::of(&bytes).slow(Duration::from_millis(300))]);
    let set = set(server.at("tiny.zip"), Some(&bytes));
    let outcomes = std::thread::scope(|scope| {
        let one = || {
            let notes = Notes::default();
            let outcome = fetch(folder.path(), &notes).set(&set).unwrap();
            (matches!(outcome, Fetched::Now(_)), notes.said())
        };
        let both = [scope.spawn(one), scope.spawn(one)];
        both.map(|thread| thread.join().unwrap())
    });
    assert_eq!(server.requests().len(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.0).count(), 1);
    let waited = outcomes.iter().find(|outcome| !outcome.0).unwrap();
    assert!(
        waited.1.contains("another process fetches it"),
        "{}",
        waited.1
    );
}

#[test]
fn files_downloaded_by_hand_or_on_a_mirror_are_taken_and_checked() {
    let (folder, notes, bytes) = (tempfile::tempdir().unwrap(), Notes::default(), archive());
    let by_hand = tempfile::tempdir().unwrap();
    let set = set(
        "http://nowhere.invalid/far/tiny.zip".to_owned(),
        Some(&bytes),
    );
    let from = |source: &str| Fetch {
        from: Some(Source::new(source)),
        ..fetch(folder.path(), &notes)
    };
    let place = by_hand.path().to_str().unwrap();
    let error = from(place).set(&set).unwrap_err();
    assert!(error.is_input());
    let error = error.to_string();
    let said = [
        "has no file tiny.zip",
        "download  http://nowhere.invalid/far/tiny.zip",
        &format!(
            "check     sha256sum tiny.zip  says {}",
            &sha256(&bytes)[7..]
        ),
        "grapevine fetch tiny --from FOLDER",
    ];
    for said in said {
        assert!(error.contains(said), "{error}");
    }
    let file = by_hand.path().join("tiny.zip");
    fs::write(&file, &bytes[1..]).unwrap();
    assert!(
        from(place)
            .set(&set)
            .unwrap_err()
            .to_string()
            .contains("is not a zip archive")
    );
    fs::write(&file, &bytes).unwrap();
    from(place).set(&set).unwrap();
    assert!(file.is_file(), "what a person has is left alone");
    fs::remove_dir_all(folder.path().join("tiny")).unwrap();
    let server = Server::start(vec![Reply::of(&bytes)]);
    from(&server.at("mirror/")).set(&set).unwrap();
    assert!(server.requests()[0].starts_with("GET /mirror/tiny.zip "));
}

#[test]
fn an_archive_that_leads_out_or_swells_leaves_nothing() {
    use std::io::Write;
    let notes = Notes::default();
    let zip = |name: &str, bytes: &[u8]| {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        zip.start_file(name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(bytes).unwrap();
        zip.finish().unwrap().into_inner()
    };
    // It takes 65 kB, and unpacks to more than 32 times that and 16 MiB, which is the bound of sets
    // that declare none.
    let bomb = zip("x", &vec![0; 64 << 20]);
    for (bytes, said) in [
        (zip("../../escaped", b"x"), "leads out of its folder"),
        (bomb, "unpacks to more than"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(vec![Reply::of(&bytes)]);
        let set = set(server.at("tiny.zip"), Some(&bytes));
        let error = fetch(folder.path(), &notes)
            .set(&set)
            .unwrap_err()
            .to_string();
        assert!(error.contains(said), "{error}");
        assert!(!folder.path().join("tiny").exists());
        assert!(!folder.path().join("escaped").exists());
        let left: u64 = walk(folder.path());
        assert_eq!(left, 0, "{left} bytes are left");
    }
}

/// Bytes of all files in a folder.
fn walk(folder: &Path) -> u64 {
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    paths
        .map(|path| {
            if path.is_dir() {
                walk(&path)
            } else {
                path.metadata().unwrap().len()
            }
        })
        .sum()
}

#[test]
fn much_is_asked_about_before_it_is_downloaded_whether_the_table_knows_or_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let notes = Notes {
        refuses: true,
        ..Notes::default()
    };
    let server = Server::start(vec![Reply::of(b"PK").declaring(2_000_000_000)]);
    let mut set = set(server.at("tiny.zip"), None);
    let error = fetch(folder.path(), &notes).set(&set).unwrap_err();
    assert!(error.is_input());
    assert!(
        error.to_string().contains("`tiny` is 2 GB to download"),
        "{error}"
    );
    assert_eq!(server.requests().len(), 1);
    set.files[0].roughly = Some(57_000_000_000);
    let error = fetch(folder.path(), &notes)
        .set(&set)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("57 GB") && error.contains("--yes"),
        "{error}"
    );
    assert_eq!(server.requests().len(), 1, "nobody was asked for anything");
}
