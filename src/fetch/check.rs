//! Whether a file is the published one: its kind by its first bytes, its length, its sum.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::error::FetchError;
use crate::graph::PublishedFile;

/// Bytes by which the kind of a file is told.
pub(super) const HEAD: usize = 64;

/// How a sum is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sha256,
    Md5,
    /// SHA-1 of `blob LENGTH\0` and the content: what git calls the file.
    Git,
}

/// A checksum, `sha256:…`, `md5:…` or `git:…`; digits alone are of SHA-256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sum {
    kind: Kind,
    digits: String,
}

impl FromStr for Sum {
    type Err = FetchError;

    fn from_str(text: &str) -> Result<Self, FetchError> {
        let (kind, digits) = text.split_once(':').unwrap_or(("sha256", text));
        let (kind, length) = match kind {
            "sha256" => (Kind::Sha256, 64),
            "md5" => (Kind::Md5, 32),
            "git" => (Kind::Git, 40),
            // No sum is of this length, so that the error below tells of an unknown kind as well.
            _ => (Kind::Sha256, usize::MAX),
        };
        if digits.len() != length || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            let what = format!(
                "`{text}` is no sum: expected sha256: and 64 hexadecimal digits, md5: and 32, or git: and 40"
            );
            return Err(FetchError::Asked { what });
        }
        Ok(Self {
            kind,
            digits: digits.to_ascii_lowercase(),
        })
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Sha256 => "sha256",
            Kind::Md5 => "md5",
            Kind::Git => "git",
        };
        write!(f, "{kind}:{}", self.digits)
    }
}

impl Sum {
    /// The SHA-256 of a file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn sha256(path: &Path) -> Result<Self, FetchError> {
        Self::of(Kind::Sha256, path)
    }

    fn of(kind: Kind, path: &Path) -> Result<Self, FetchError> {
        let digits = match kind {
            Kind::Sha256 => digits::<Sha256>(path, false),
            Kind::Md5 => digits::<Md5>(path, false),
            Kind::Git => digits::<Sha1>(path, true),
        };
        let digits = digits.map_err(|error| unreadable(path, &error))?;
        Ok(Self { kind, digits })
    }

    /// The command with which a person checks a file.
    pub(crate) fn command(&self, file: &str) -> String {
        let command = match self.kind {
            Kind::Sha256 => "sha256sum",
            Kind::Md5 => "md5sum",
            Kind::Git => "git hash-object",
        };
        format!("{command} {file}  says {}", self.digits)
    }
}

fn digits<D: Digest + io::Write>(path: &Path, git: bool) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = D::new();
    if git {
        digest.update(format!("blob {}\0", file.metadata()?.len()));
    }
    io::copy(&mut file, &mut digest)?;
    Ok(digest
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

fn unreadable(path: &Path, error: &io::Error) -> FetchError {
    FetchError::Wrong {
        path: path.to_owned(),
        what: format!("cannot be read: {error}"),
    }
}

/// What the first bytes of a file say against its being what its name says.
pub(super) fn kind(name: &str, head: &[u8]) -> Result<(), String> {
    let text = head.trim_ascii_start();
    // A byte order mark, which some servers put before a page.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let is_page = ["<!doctype", "<html", "<head", "<?xml"]
        .iter()
        .any(|start| {
            text.get(..start.len())
                .is_some_and(|own| own.eq_ignore_ascii_case(start.as_bytes()))
        });
    if is_page {
        return Err(
            "is a web page, not the file: the service may ask for a log-in, or have moved it"
                .to_owned(),
        );
    }
    let ends = |ending: &str| name.ends_with(ending);
    let (is, expected) = match name {
        _ if ends(".zip") || ends(".npz") => (head.starts_with(b"PK"), "a zip archive"),
        _ if ends(".gz") || ends(".tgz") => (head.starts_with(&[0x1f, 0x8b]), "gzip data"),
        _ if ends(".npy") => (head.starts_with(b"\x93NUMPY"), "a NumPy array"),
        _ if ends(".json") => (matches!(text.first(), Some(b'{' | b'[')), "JSON"),
        _ if ends(".parquet") => (head.starts_with(b"PAR1"), "a Parquet table"),
        _ => (true, ""),
    };
    if is {
        return Ok(());
    }
    let start = head[..head.len().min(16)].escape_ascii();
    Err(format!(
        "is not {expected}, as its name says: it starts with `{start}`"
    ))
}

/// Checks a whole file against what is published of it.
pub(super) fn whole(
    path: &Path,
    file: &PublishedFile,
    sum: Option<&Sum>,
) -> Result<(), FetchError> {
    let wrong = |what: String| FetchError::Wrong {
        path: path.to_owned(),
        what,
    };
    let mut head = Vec::new();
    let open = File::open(path).map_err(|error| unreadable(path, &error))?;
    let length = open
        .metadata()
        .map_err(|error| unreadable(path, &error))?
        .len();
    (open.take(HEAD as u64).read_to_end(&mut head)).map_err(|error| unreadable(path, &error))?;
    kind(file.name(), &head).map_err(wrong)?;
    if let Some(sum) = sum {
        let found = Sum::of(sum.kind, path)?;
        if found != *sum {
            return Err(wrong(format!(
                "its sum is {found}, and that of the published file {sum}; it may be another version, or \
                 damaged. If you trust it, `--sum {found}` takes it"
            )));
        }
        // The sum says more than a length that may have been copied wrongly.
        return Ok(());
    }
    match file.bytes {
        Some(bytes) if bytes != length => Err(wrong(format!(
            "has {length} bytes, and the published file {bytes}"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_other_programs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "hello\n").unwrap();
        // sha256sum, md5sum and git hash-object of the same file.
        for text in [
            "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
            "md5:b1946ac92492d2347c6235b4d2611184",
            "git:ce013625030ba8dba906f756967f9e9ca394464a",
        ] {
            let sum: Sum = text.parse().unwrap();
            assert_eq!(Sum::of(sum.kind, &path).unwrap(), sum);
            assert_eq!(sum.to_string(), text);
        }
        for text in [
            "sha256:12",
            "sha1:ce013625030ba8dba906f756967f9e9ca394464a",
            "md5:zz",
            "sha1:",
            "",
        ] {
            let error = text.parse::<Sum>().unwrap_err().to_string();
            assert!(error.contains("is no sum"), "{error}");
        }
    }

    #[test]
    fn every_sum_of_the_table_is_one() {
        for set in crate::graph::published_sets() {
            for sum in set.files.iter().filter_map(|file| file.sum.as_ref()) {
                sum.parse::<Sum>().unwrap();
            }
        }
    }

    #[test]
    fn a_web_page_is_told_whatever_it_is_called_and_files_by_their_first_bytes() {
        for page in [
            "<!DOCTYPE html>",
            "\n <HTML>",
            "\u{feff}<html><body>",
            "<?xml version=\"1.0\"?>",
        ] {
            let error = kind("ind.cora.x", page.as_bytes()).unwrap_err();
            assert!(error.starts_with("is a web page"), "{error}");
        }
        assert!(kind("a.zip", b"PK\x03\x04").is_ok() && kind("a.npz", b"PK\x03\x04").is_ok());
        assert!(kind("a.txt.gz", &[0x1f, 0x8b, 8]).is_ok());
        assert!(kind("data.json", b" {\"a\": 1}").is_ok());
        assert!(kind("test.index", b"12\n").is_ok());
        let error = kind("a.zip", b"version https://git-lfs").unwrap_err();
        assert!(error.contains("is not a zip archive, as its name says: it starts with `version"));
        assert!(kind("a.npy", b"").unwrap_err().contains("a NumPy array"));
    }
}
