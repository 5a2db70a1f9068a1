//! Text files: lines with their numbers, compressed or not, and CSV records.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::str::FromStr;

use flate2::read::MultiGzDecoder;

use crate::graph::GraphError;
use crate::memory;

/// Longest line: the neighbours of the largest nodes of published graphs fit.
const LONGEST: u64 = 32 << 20;

/// After so many bytes it is asked whether there is memory for several times as many.
const ASK_AFTER: usize = 32 << 20;

/// Opens a text file, unpacking it on the way if its name ends in `.gz`.
pub(crate) fn open(path: &Path) -> Result<Box<dyn BufRead>, GraphError> {
    let file = File::open(path).map_err(|source| GraphError::read(path, source))?;
    Ok(
        if path.extension().is_some_and(|extension| extension == "gz") {
            // Two buffers: of the packed bytes, and of the lines that come of them. A file may be
            // several that were packed one by one.
            Box::new(BufReader::new(MultiGzDecoder::new(BufReader::new(file))))
        } else {
            Box::new(BufReader::new(file))
        },
    )
}

/// Calls `each` with every line, without its line end. What `each` complains about gets the file
/// and the number of the line. One buffer serves all lines: some files are gigabytes long.
pub(crate) fn each_line(
    path: &Path,
    mut reader: impl BufRead,
    mut each: impl FnMut(&str) -> Result<(), String>,
) -> Result<(), GraphError> {
    let mut buffer = String::new();
    let mut unasked = 0;
    for number in 1.. {
        buffer.clear();
        let bytes = (&mut reader)
            .take(LONGEST)
            .read_line(&mut buffer)
            .map_err(|source| GraphError::read(path, source))?;
        if bytes == 0 {
            break;
        }
        if bytes as u64 == LONGEST && !buffer.ends_with('\n') {
            let what = format!("is longer than {LONGEST} bytes; is this a text file?");
            return Err(GraphError::line(path, number, what));
        }
        // A packed file may hold any amount, and a plain one becomes several times its size.
        unasked += bytes;
        if unasked >= ASK_AFTER {
            unasked = 0;
            memory::need(
                || format!("the rest of {}", path.display()),
                4 * ASK_AFTER as u64,
            )?;
        }
        // Files from Windows have both at the end of a line, and some a byte order mark before the
        // first.
        let line = match number {
            1 => buffer.strip_prefix('\u{feff}').unwrap_or(&buffer),
            _ => &buffer,
        };
        each(line.trim_end_matches(['\r', '\n']))
            .map_err(|what| GraphError::line(path, number, what))?;
    }
    Ok(())
}

/// A field as a number, or a sentence that says what was expected.
pub(crate) fn number<T: FromStr>(field: &str, expected: &str) -> Result<T, String> {
    field
        .trim()
        .parse()
        .map_err(|_| format!("expected {expected}, found `{field}`"))
}

/// A field as a finite number in single precision, or a sentence that says what was expected.
pub(super) fn finite(field: &str, expected: &str) -> Result<f32, String> {
    let value: f32 = number(field, expected)?;
    if value.is_finite() {
        return Ok(value);
    }
    Err(format!(
        "expected {expected}, and `{field}` is not finite in single precision; mend the file, or leave the node out"
    ))
}

/// A truth value as a number, as other languages write it.
pub(super) fn truth(field: &str) -> Option<f32> {
    match field.trim() {
        "True" | "true" | "TRUE" => Some(1.0),
        "False" | "false" | "FALSE" => Some(0.0),
        _ => None,
    }
}

/// The number of a column that a key names.
pub(super) fn place(header: &[String], key: &str, name: &str) -> Result<usize, String> {
    let columns = header.iter().enumerate();
    let mut found = columns.filter(|(_, column)| column.trim() == name);
    match (found.next(), found.next()) {
        (Some((place, _)), None) => Ok(place),
        (Some(_), Some(_)) => Err(format!(
            "has more than one column `{name}`, which `{key}` of [dataset] names; rename the others"
        )),
        (None, _) => Err(format!(
            "has no column `{name}`, which `{key}` of [dataset] names; its columns: {}{}",
            header.join(", "),
            doubt(header)
        )),
    }
}

/// What may be wrong with a header that has not a column asked for.
fn doubt(header: &[String]) -> &'static str {
    let is_number = |field: &String| field.trim().parse::<f64>().is_ok();
    match header {
        [one] if one.contains([';', '\t', '|']) => " (columns are separated by commas)",
        fields if fields.iter().any(is_number) => " (is its first line a header?)",
        _ => "",
    }
}

/// Calls `each` with the fields of every CSV record after the header (RFC 4180: fields may be
/// quoted, and then hold commas, doubled quotes and line ends). Every record must have as many
/// fields as the first, of which `is_header` says whether it is one, or what keeps it from saying.
/// Returns whether it was.
pub(super) fn each_record(
    path: &Path,
    reader: impl BufRead,
    is_header: impl Fn(&[String]) -> Result<bool, String>,
    mut each: impl FnMut(&[String]) -> Result<(), String>,
) -> Result<bool, GraphError> {
    let (mut record, mut quoted) = (vec![String::new()], false);
    let (mut columns, mut header) = (None, false);
    each_line(path, reader, |line| {
        // Within quotes an empty line is text.
        if !quoted && line.is_empty() {
            return Ok(());
        }
        if split_fields(line, &mut record, quoted) {
            quoted = true;
            return Ok(());
        }
        quoted = false;
        let fields = std::mem::replace(&mut record, vec![String::new()]);
        let Some(expected) = columns else {
            columns = Some(fields.len());
            header = is_header(&fields)?;
            return if header { Ok(()) } else { each(&fields) };
        };
        if fields.len() != expected {
            return Err(format!(
                "expected {expected} fields as in the first record, found {}",
                fields.len()
            ));
        }
        each(&fields)
    })?;
    if quoted {
        return Err(GraphError::file(
            path,
            "ends within a quoted field; the file is cut short",
        ));
    }
    Ok(header)
}

/// Appends the fields of one line to `record`; true if the line ends within quotes. `quoted` says
/// whether it starts so.
fn split_fields(line: &str, record: &mut Vec<String>, quoted: bool) -> bool {
    let mut quoted = quoted;
    let mut characters = line.chars().peekable();
    // A record always has its current field: it starts with one empty field and only gains fields.
    let field = |record: &mut Vec<String>, character| {
        if let Some(last) = record.last_mut() {
            last.push(character);
        }
    };
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field(record, '"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(String::new()),
            other => field(record, other),
        }
    }
    if quoted {
        field(record, '\n');
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn records(text: &str) -> Result<Vec<Vec<String>>, GraphError> {
        let mut all = Vec::new();
        let names = |record: &[String]| Ok(record[0] == "id");
        each_record(Path::new("a.csv"), text.as_bytes(), names, |record| {
            all.push(record.to_vec());
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn a_first_record_that_is_no_header_counts_and_a_byte_order_mark_does_not() {
        assert_eq!(records("1,x\n2,y\n").unwrap(), [["1", "x"], ["2", "y"]]);
        assert_eq!(records("\u{feff}id,name\n2,y\n").unwrap(), [["2", "y"]]);
        assert_eq!(records("\u{feff}1,x\n").unwrap(), [["1", "x"]]);
    }

    #[test]
    fn a_number_that_is_not_finite_is_none() {
        assert_eq!(finite(" 1e3", "a number"), Ok(1000.0));
        for field in ["nan", "inf", "-Infinity", "1e39"] {
            let error = finite(field, "a number").unwrap_err();
            assert!(error.starts_with(&format!("expected a number, and `{field}` is not finite")));
        }
    }

    #[test]
    fn quoted_fields_may_hold_commas_quotes_and_line_ends() {
        let read = records("id,name\r\n1,\"a, \"\"b\"\"\nc\"\n\n2,plain\n").unwrap();
        assert_eq!(read, [["1", "a, \"b\"\nc"], ["2", "plain"]]);
    }

    #[test]
    fn a_record_of_another_length_is_named_by_line() {
        let error = records("id,name\n1,x\n2\n").unwrap_err().to_string();
        assert_eq!(
            error,
            "a.csv:3: expected 2 fields as in the first record, found 1"
        );
        assert!(
            records("id\n\"open\n")
                .unwrap_err()
                .to_string()
                .contains("cut short")
        );
    }

    #[test]
    fn a_gz_file_that_was_packed_in_pieces_is_read_to_its_end() {
        use std::io::Write;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pieces.txt.gz");
        let packed = |text: &str| {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        std::fs::write(&path, [packed("0 1\n1"), packed(" 2\n")].concat()).unwrap();
        let mut lines = Vec::new();
        let each = |line: &str| {
            lines.push(line.to_owned());
            Ok(())
        };
        each_line(&path, open(&path).unwrap(), each).unwrap();
        assert_eq!(lines, ["0 1", "1 2"]);
    }

    #[test]
    fn a_truncated_gz_file_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines.txt.gz");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(b"1\n2\n3\n").unwrap();
        let bytes = encoder.finish().unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let mut sum = 0;
        let mut add = |line: &str| number::<u32>(line, "a number").map(|value| sum += value);
        each_line(&path, open(&path).unwrap(), &mut add).unwrap();
        assert_eq!(sum, 6);
        std::fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
        let error = each_line(&path, open(&path).unwrap(), |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("lines.txt.gz"), "{error}");
    }
}
