//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// The folder that a file is in, also of a bare name.
pub(crate) fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The file that is replaced: that which a symbolic link leads to, and none that is a device or a
/// pipe, which would become a file.
fn target(path: &Path) -> io::Result<PathBuf> {
    let target = match fs::symlink_metadata(path) {
        Ok(it) if it.is_symlink() => fs::canonicalize(path)?,
        _ => path.to_owned(),
    };
    match fs::metadata(&target) {
        Ok(it) if !it.is_file() && !it.is_dir() => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a device or a pipe; name a file",
        )),
        _ => Ok(target),
    }
}

/// Writes a file through `fill`, so that `path` holds either what it held before or all of the new
/// content, whenever the process or the machine stops. Missing folders above it are made.
///
/// The content goes to a temporary file in the same folder, is flushed to the disk and then
/// renamed.
///
/// # Errors
/// What `fill` returns, or the file system's error; nothing is left behind in either case.
pub(crate) fn write<E: From<io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&File>) -> Result<(), E>,
) -> Result<(), E> {
    let path = &target(path)?;
    let temporary = temporary_beside(path)?;
    let mut writer = BufWriter::new(temporary.as_file());
    fill(&mut writer)?;
    writer.flush()?;
    drop(writer);
    // Before it is renamed: a system may write the new name to the disk earlier than the content.
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// In the same folder, for a file cannot be renamed from one file system to another.
fn temporary_beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = folder_of(path);
    fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".writing-");
    // Result files are made to be shared; the default of temporary files is owner only.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// Whether [`write()`] would come to its end, asked before the work whose result it is to hold.
///
/// # Errors
/// What stands in the way.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    let path = &target(path)?;
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    temporary_beside(path).map(drop)
}

/// [`write()`] for content that is already in memory.
///
/// # Errors
/// The file system's error.
pub(crate) fn write_bytes(path: &Path, content: &[u8]) -> io::Result<()> {
    write(path, |file| file.write_all(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_half_way_leaves_the_old_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        write_bytes(&path, b"old").unwrap();
        let failed = write(&path, |file| {
            file.write_all(b"ne")?;
            Err(io::Error::other("disk full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "disk full");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_one_and_a_device_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let [real, link, socket] =
            ["real.txt", "link.txt", "socket"].map(|it| folder.path().join(it));
        fs::write(&real, b"old").unwrap();
        std::os::unix::fs::symlink("real.txt", &link).unwrap();
        write_bytes(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        let _listens = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let refused = write_bytes(&socket, b"new").unwrap_err();
        assert!(
            refused.to_string().contains("a device or a pipe"),
            "{refused}"
        );
        let dangling = folder.path().join("dangling");
        std::os::unix::fs::symlink("nowhere/file", &dangling).unwrap();
        assert!(write_bytes(&dangling, b"new").is_err());
    }

    #[test]
    fn missing_folders_are_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("figures/new.svg");
        write_bytes(&path, b"<svg/>").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"<svg/>");
    }

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("network.toml");
        check(&file).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(check(folder.path()).is_err());
        fs::write(&file, b"").unwrap();
        assert!(check(&file.join("below-a-file.toml")).is_err());
    }
}
