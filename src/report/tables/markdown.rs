//! Tables as Markdown.

use super::Table;

/// The table with its caption above it; best entries in bold.
pub(crate) fn markdown(table: &Table) -> String {
    let mut text = format!("{}\n\n", escape(&table.caption));
    let mut line = |cells: Vec<String>| {
        text += "| ";
        text += &cells.join(" | ");
        text += " |\n";
    };
    line(
        table
            .columns
            .iter()
            .map(|column| escape(&column.name))
            .collect(),
    );
    line(
        table
            .columns
            .iter()
            .map(|column| if column.numeric { "---:" } else { "---" }.to_owned())
            .collect(),
    );
    for row in &table.rows {
        let cell = |text: String, best: bool| if best { format!("**{text}**") } else { text };
        line(
            row.iter()
                .map(|entry| cell(escape(&entry.text), entry.best))
                .collect(),
        );
    }
    text
}

/// Text that a Markdown reader shows as it is.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '|' | '*' | '_' | '`' | '\\' | '<' | '>' | '[' | ']' | '#' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '\n' | '\r' => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::{Entry, columns};
    use super::*;

    #[test]
    fn a_table_reads_as_markdown_with_the_best_in_bold() {
        let table = Table {
            name: "t",
            caption: "Made up.".into(),
            columns: columns(&["strategy", "#bytes"]),
            rows: vec![
                vec![
                    Entry::new("a|b"),
                    Entry {
                        text: "1 kB".into(),
                        best: true,
                    },
                ],
                vec![Entry::new("c_d"), Entry::new("2 kB")],
            ],
        };
        let expected = "Made up.\n\n\
            | strategy | bytes |\n\
            | --- | ---: |\n\
            | a\\|b | **1 kB** |\n\
            | c\\_d | 2 kB |\n";
        assert_eq!(markdown(&table), expected);
    }
}
