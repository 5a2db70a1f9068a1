//! Data folders that cannot be written.

use super::*;

#[test]
fn a_data_folder_that_cannot_be_written_is_named() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), Notes::default());
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let set = set("http://127.0.0.1:9/tiny.zip".to_owned(), None);
    let error = fetch(&file, &notes).set(&set).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("cannot write {}", file.display())),
        "{error}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_names_the_file_and_leaves_no_set() {
    let (folder, notes, bytes) = (tempfile::tempdir().unwrap(), Notes::default(), archive());
    let server = Server::start(vec![Reply::of(&bytes)]);
    let set = set(server.at("tiny.zip"), Some(&bytes));
    let staged = folder.path().join(".fetching/tiny");
    fs::create_dir_all(&staged).unwrap();
    // A device on which there is never room.
    std::os::unix::fs::symlink("/dev/full", staged.join("tiny.zip.part")).unwrap();
    let error = fetch(folder.path(), &notes)
        .set(&set)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("tiny.zip.part") && error.contains("No space left on device"),
        "{error}"
    );
    assert!(!folder.path().join("tiny").exists());
    assert_eq!(server.requests().len(), 1, "trying again would not help");
}
