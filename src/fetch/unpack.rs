//! Archives: regular files within one folder, no more bytes than declared, nothing else.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::EntryType;
use zip::ZipArchive;

use super::error::FetchError;
use crate::net::Bytes;

/// Most files of an archive: no published set has a hundredth of that.
const MOST_FILES: usize = 100_000;

/// Whether a file of this name is unpacked.
pub(super) fn is_archive(name: &str) -> bool {
    [".zip", ".tar.gz", ".tgz"]
        .iter()
        .any(|ending| name.ends_with(ending))
}

/// Unpacks an archive into a folder, to no more than `most` bytes.
pub(super) fn archive(path: &Path, into: &Path, most: u64) -> Result<(), FetchError> {
    let mut unpacking = Unpacking {
        archive: path,
        into,
        most,
        left: most,
        files: 0,
    };
    if path.extension().is_some_and(|ending| ending == "zip") {
        unpacking.zip()
    } else {
        unpacking.tar()
    }
}

struct Unpacking<'a> {
    archive: &'a Path,
    into: &'a Path,
    /// Most bytes of all files, and how many of them are left.
    most: u64,
    left: u64,
    files: usize,
}

impl Unpacking<'_> {
    fn error(&self, what: impl Into<String>) -> FetchError {
        FetchError::Archive {
            path: self.archive.to_owned(),
            what: what.into(),
        }
    }

    fn broken(&self, error: &dyn std::fmt::Display) -> FetchError {
        self.error(format!(
            "is damaged, or no archive that is read here ({error})"
        ))
    }

    fn open(&self) -> Result<BufReader<File>, FetchError> {
        File::open(self.archive)
            .map(BufReader::new)
            .map_err(|error| self.broken(&error))
    }

    fn zip(&mut self) -> Result<(), FetchError> {
        let mut archive = ZipArchive::new(self.open()?).map_err(|error| self.broken(&error))?;
        for index in 0..archive.len() {
            let mut member = archive
                .by_index(index)
                .map_err(|error| self.broken(&error))?;
            let name = PathBuf::from(member.name());
            let place = self.place(&name)?;
            if member.is_dir() {
                continue;
            }
            if !member.is_file() {
                return Err(self.strange(&name));
            }
            let size = member.size();
            self.write(&name, place, size, &mut member)?;
        }
        Ok(())
    }

    fn tar(&mut self) -> Result<(), FetchError> {
        // Names and headers come on top of what files hold; a flood of either ends here.
        let limit = self.most.saturating_mul(2).saturating_add(1 << 20);
        // Several gzip members in a row are one file, as some tools write them.
        let unpacked = MultiGzDecoder::new(self.open()?).take(limit);
        let mut archive = tar::Archive::new(unpacked);
        let entries = archive.entries().map_err(|error| self.broken(&error))?;
        for entry in entries {
            let mut entry = entry.map_err(|error| self.broken(&error))?;
            let name = entry
                .path()
                .map_err(|error| self.broken(&error))?
                .into_owned();
            let place = self.place(&name)?;
            match entry.header().entry_type() {
                // Folders come with their files. A global header is git's, in archives that it
                // makes.
                EntryType::Directory | EntryType::XGlobalHeader => {}
                EntryType::Regular | EntryType::Continuous => {
                    let size = entry.size();
                    self.write(&name, place, size, &mut entry)?;
                }
                _ => return Err(self.strange(&name)),
            }
        }
        Ok(())
    }

    fn strange(&self, name: &Path) -> FetchError {
        self.error(format!(
            "`{}` is a link or a device; published sets have files alone",
            name.display()
        ))
    }

    /// Where a member goes; none for what systems leave in archives.
    fn place(&mut self, name: &Path) -> Result<Option<PathBuf>, FetchError> {
        self.files += 1;
        if self.files > MOST_FILES {
            return Err(self.error(format!("has more than {MOST_FILES} files")));
        }
        let mut place = self.into.to_owned();
        for part in name.components() {
            match part {
                // On other systems these are names, and here they would be again.
                Component::Normal(part) if !part.to_string_lossy().contains(['\\', ':', '\0']) => {
                    place.push(part);
                }
                Component::CurDir => {}
                _ => {
                    let what = format!("`{}` leads out of its folder", name.display());
                    return Err(self.error(what));
                }
            }
        }
        let left_behind = name.starts_with("__MACOSX") || name.ends_with(".DS_Store");
        Ok((!left_behind).then_some(place))
    }

    /// Writes one file, of the size that is declared and no other.
    fn write(
        &mut self,
        name: &Path,
        place: Option<PathBuf>,
        size: u64,
        content: &mut impl Read,
    ) -> Result<(), FetchError> {
        let Some(place) = place else { return Ok(()) };
        let Some(left) = self.left.checked_sub(size) else {
            return Err(self.error(format!(
                "unpacks to more than {}, which is the most that this set is known to have",
                Bytes(self.most)
            )));
        };
        self.left = left;
        let writing = |source| FetchError::Write {
            path: place.clone(),
            source,
        };
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder).map_err(writing)?;
        }
        // Not over one that is there: two members of one name are a trick.
        let file = File::create_new(&place).map_err(writing)?;
        let mut out = BufWriter::new(&file);
        // One byte more tells whether there is more.
        let mut content = content.take(size.saturating_add(1));
        let (mut buffer, mut found) = (vec![0; 1 << 16], 0);
        loop {
            let read = content
                .read(&mut buffer)
                .map_err(|error| self.broken(&error))?;
            if read == 0 {
                break;
            }
            out.write_all(&buffer[..read]).map_err(writing)?;
            found += read as u64;
        }
        if found != size {
            let more = if found > size { "more" } else { "fewer" };
            let name = name.display();
            return Err(self.error(format!(
                "`{name}` has {more} than the {size} bytes it declares"
            )));
        }
        out.flush().map_err(writing)?;
        drop(out);
        // Before the folder gets its name: a system may write names earlier than content.
        file.sync_all().map_err(writing)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn zipped(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = ZipWriter::new(io::Cursor::new(Vec::new()));
        for (name, content) in members {
            zip.start_file(*name, SimpleFileOptions::default()).unwrap();
            zip.write_all(content).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    /// A tar with names as they are given, which its library would not write.
    fn tarred(members: &[(&str, u8, &[u8])]) -> Vec<u8> {
        let mut tar = Vec::new();
        for (name, kind, content) in members {
            let mut header = [0_u8; 512];
            header[..name.len()].copy_from_slice(name.as_bytes());
            header[100..108].copy_from_slice(b"0000644\0");
            header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
            header[156] = *kind;
            header[257..263].copy_from_slice(b"ustar\0");
            header[148..156].copy_from_slice(b"        ");
            let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
            header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
            tar.extend(header);
            tar.extend(*content);
            tar.resize(tar.len().next_multiple_of(512), 0);
        }
        tar.extend([0; 1024]);
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all(&tar).unwrap();
        gz.finish().unwrap()
    }

    /// Unpacks within a folder of a folder; what is in the outer one is there afterwards, too.
    fn unpack(name: &str, bytes: &[u8], most: u64) -> (tempfile::TempDir, Result<(), String>) {
        let outer = tempfile::tempdir().unwrap();
        let (path, into) = (outer.path().join(name), outer.path().join("into"));
        fs::write(&path, bytes).unwrap();
        fs::create_dir(&into).unwrap();
        let outcome = archive(&path, &into, most).map_err(|error| error.to_string());
        assert_eq!(
            fs::read_dir(outer.path()).unwrap().count(),
            2,
            "something got out"
        );
        (outer, outcome)
    }

    #[test]
    fn both_kinds_of_archives_unpack_with_their_folders() {
        let zip = zipped(&[
            ("d/a.csv", b"1,2\n"),
            ("__MACOSX/d/._a.csv", b"x"),
            ("b", b""),
        ]);
        let tar = tarred(&[
            ("d/", b'5', b""),
            ("./d/a.csv", b'0', b"1,2\n"),
            ("b", b'0', b""),
        ]);
        for (name, bytes) in [("a.zip", zip), ("a.tar.gz", tar)] {
            let (folder, outcome) = unpack(name, &bytes, 100);
            outcome.unwrap();
            let into = folder.path().join("into");
            assert_eq!(fs::read_to_string(into.join("d/a.csv")).unwrap(), "1,2\n");
            assert_eq!(fs::read_dir(&into).unwrap().count(), 2);
        }
    }

    #[test]
    fn nothing_leads_out_of_the_folder() {
        for name in [
            "../evil",
            "d/../../evil",
            "/tmp/evil",
            "..\\evil",
            "c:\\evil",
        ] {
            let files = [
                ("a.zip", zipped(&[("fine", b"1"), (name, b"2")])),
                (
                    "a.tar.gz",
                    tarred(&[("fine", b'0', b"1"), (name, b'0', b"2")]),
                ),
            ];
            for (archive, bytes) in files {
                let error = unpack(archive, &bytes, 100).1.unwrap_err();
                assert!(error.contains("leads out of its folder"), "{name}: {error}");
            }
        }
    }

    #[test]
    fn links_and_devices_are_refused() {
        for kind in *b"12346" {
            let error = unpack("a.tgz", &tarred(&[("x", kind, b"")]), 100)
                .1
                .unwrap_err();
            assert!(error.contains("a link or a device"), "{error}");
        }
        let mut zip = ZipWriter::new(io::Cursor::new(Vec::new()));
        zip.add_symlink("x", "/etc/passwd", SimpleFileOptions::default())
            .unwrap();
        let error = unpack("a.zip", &zip.finish().unwrap().into_inner(), 100)
            .1
            .unwrap_err();
        assert!(error.contains("a link or a device"), "{error}");
    }

    #[test]
    fn a_bomb_is_stopped_before_it_fills_the_disk() {
        let zeros = vec![0; 3 << 20];
        for (name, bytes) in [
            ("a.zip", zipped(&[("x", &zeros)])),
            ("a.tar.gz", tarred(&[("x", b'0', &zeros)])),
        ] {
            assert!(bytes.len() < zeros.len() / 100);
            let (folder, outcome) = unpack(name, &bytes, 1 << 20);
            let error = outcome.unwrap_err();
            assert!(error.contains("unpacks to more than 1.05 MB"), "{error}");
            assert_eq!(fs::read_dir(folder.path().join("into")).unwrap().count(), 0);
        }
        // A header that declares less than there is.
        let mut lying = zipped(&[("x", &zeros)]);
        let size = (zeros.len() as u32).to_le_bytes();
        while let Some(at) = lying.windows(4).position(|four| four == size) {
            lying[at..at + 4].copy_from_slice(&100_u32.to_le_bytes());
        }
        let error = unpack("a.zip", &lying, 1 << 20).1.unwrap_err();
        assert!(
            error.contains("than the 100 bytes it declares") || error.contains("is damaged"),
            "{error}"
        );
    }

    #[test]
    fn a_damaged_or_doubled_archive_is_refused() {
        let whole = zipped(&[("x", b"some text that is long enough to be packed at all")]);
        let tar = tarred(&[("x", b'0', &[7; 5000])]);
        for (name, bytes) in [
            ("a.zip", &whole[..whole.len() - 5]),
            ("a.zip", &b"PK\x03\x04"[..]),
            ("a.tar.gz", &tar[..tar.len() / 2]),
            ("a.tar.gz", &b"\x1f\x8b"[..]),
        ] {
            let error = unpack(name, bytes, 1 << 20).1.unwrap_err();
            assert!(error.contains("is damaged"), "{error}");
        }
        let twice = tarred(&[("x", b'0', b"1"), ("x", b'0', b"2")]);
        let error = unpack("a.tar.gz", &twice, 100).1.unwrap_err();
        assert!(error.contains("cannot write"), "{error}");
    }
}
