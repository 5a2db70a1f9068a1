//! Tables as LaTeX for the `booktabs` package.

use std::fmt::Write;

use super::Table;

/// A `table` environment with rules of `booktabs`; best entries in bold.
pub(crate) fn latex(table: &Table) -> String {
    let align: String = table
        .columns
        .iter()
        .map(|c| if c.numeric { 'r' } else { 'l' })
        .collect();
    let mut text = String::from("% needs \\usepackage{booktabs}\n\\begin{table}\n  \\centering\n");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  \\caption{{{}}}", escape(&table.caption));
    let _ = writeln!(text, "  \\label{{tab:{}}}", table.name);
    let _ = writeln!(text, "  \\begin{{tabular}}{{{align}}}\n    \\toprule");
    let heading: Vec<String> = table
        .columns
        .iter()
        .map(|column| escape(&column.name))
        .collect();
    let _ = writeln!(text, "    {} \\\\\n    \\midrule", heading.join(" & "));
    for row in &table.rows {
        let cells: Vec<String> = row
            .iter()
            .map(|entry| {
                let cell = escape(&entry.text);
                // After `\\` both would be taken for an argument of it.
                let cell = if cell.starts_with(['[', '*']) {
                    format!("{{}}{cell}")
                } else {
                    cell
                };
                if entry.best {
                    format!("\\textbf{{{cell}}}")
                } else {
                    cell
                }
            })
            .collect();
        let _ = writeln!(text, "    {} \\\\", cells.join(" & "));
    }
    text.push_str("    \\bottomrule\n  \\end{tabular}\n\\end{table}\n");
    text
}

/// Text that LaTeX sets as it is.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            // In LaTeX's first font encoding a bare one is another character.
            '<' => escaped.push_str("$<$"),
            '>' => escaped.push_str("$>$"),
            '×' => escaped.push_str("$\\times$"),
            '±' => escaped.push_str("$\\pm$"),
            '≤' => escaped.push_str("$\\leq$"),
            '≥' => escaped.push_str("$\\geq$"),
            'µ' => escaped.push_str("$\\mu$"),
            '−' => escaped.push_str("$-$"),
            '–' => escaped.push_str("--"),
            '—' => escaped.push_str("---"),
            '…' => escaped.push_str("\\dots{}"),
            '\u{2009}' => escaped.push_str("\\,"),
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
    fn a_table_is_set_with_booktabs_and_the_best_in_bold() {
        let table = Table {
            name: "summary",
            caption: "Made up, 100 %.".into(),
            columns: columns(&["strategy", "#accuracy"]),
            rows: vec![vec![
                Entry::new("[my_own]"),
                Entry {
                    text: "81.5 ± 0.4 %".into(),
                    best: true,
                },
            ]],
        };
        let expected = r"% needs \usepackage{booktabs}
\begin{table}
  \centering
  \caption{Made up, 100 \%.}
  \label{tab:summary}
  \begin{tabular}{lr}
    \toprule
    strategy & accuracy \\
    \midrule
    {}[my\_own] & \textbf{81.5 $\pm$ 0.4 \%} \\
    \bottomrule
  \end{tabular}
\end{table}
";
        assert_eq!(latex(&table), expected);
    }

    #[test]
    fn every_special_sign_is_escaped() {
        assert_eq!(
            escape(r"\~^{}&#_$%"),
            r"\textbackslash{}\textasciitilde{}\textasciicircum{}\{\}\&\#\_\$\%"
        );
    }
}
