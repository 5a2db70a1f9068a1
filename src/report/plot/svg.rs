//! A page as an SVG document, without a background and without any font: text is drawn as outlines.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use super::canvas::{At, Canvas, Line, Path, Shape};
use super::text::{self, Piece};
use crate::report::style::Color;

/// Units to the point: whole numbers of them are finer than print.
const SCALE: f64 = 20.0;

/// The document of a page of `size` pt that is called `title`.
pub(super) fn document(canvas: &Canvas, (width, height): At, title: &str) -> String {
    let (mut shapes, mut used) = (String::new(), BTreeSet::new());
    let mut outlines = String::new();
    // Writing to a string cannot fail.
    let _ = draw(canvas, &mut shapes, &mut used);
    let _ = used.iter().try_for_each(|&number| {
        let outline = outline(number);
        writeln!(outlines, "<path id=\"glyph-{number}\" d=\"{outline}\"/>")
    });
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.1}pt\" height=\"{height:.1}pt\" \
         viewBox=\"0 0 {:.0} {:.0}\" role=\"img\">\n<title>{}</title>\n<defs>\n{outlines}</defs>\n{shapes}</svg>\n",
        width * SCALE,
        height * SCALE,
        escape(title),
    )
}

fn draw(canvas: &Canvas, shapes: &mut String, used: &mut BTreeSet<u16>) -> fmt::Result {
    canvas.shapes.iter().try_for_each(|shape| match shape {
        Shape::Path(path) => draw_path(path, shapes),
        Shape::Text(line) => draw_text(line, shapes, used),
    })
}

fn draw_path(path: &Path, shapes: &mut String) -> fmt::Result {
    shapes.push_str("<path d=\"");
    let mut sign = 'M';
    for (x, y) in &path.points {
        write!(shapes, "{sign}{:.0} {:.0}", x * SCALE, y * SCALE)?;
        sign = if sign == 'M' { 'L' } else { ' ' };
    }
    shapes.push_str(if path.closed { "Z\"" } else { "\"" });
    match path.fill {
        Some((color, 1.0)) => write!(shapes, " fill=\"{}\"", hexadecimal(color))?,
        Some((color, alpha)) => {
            write!(
                shapes,
                " fill=\"{}\" fill-opacity=\"{alpha}\"",
                hexadecimal(color)
            )?;
        }
        None => shapes.push_str(" fill=\"none\""),
    }
    if let Some(stroke) = path.stroke {
        let (color, width) = (hexadecimal(stroke.color), stroke.width * SCALE);
        write!(shapes, " stroke=\"{color}\" stroke-width=\"{width:.0}\"")?;
        let dash: Vec<String> = (stroke.dash.iter())
            .map(|length| format!("{:.0}", length * SCALE))
            .collect();
        if !dash.is_empty() {
            write!(shapes, " stroke-dasharray=\"{}\"", dash.join(" "))?;
        }
    }
    shapes.push_str("/>\n");
    Ok(())
}

fn draw_text(line: &Line, shapes: &mut String, used: &mut BTreeSet<u16>) -> fmt::Result {
    let (x, y) = (line.start.0 * SCALE, line.start.1 * SCALE);
    let turn = if line.upwards { " rotate(-90)" } else { "" };
    let unit = text::unit(line.size);
    let (color, scale) = (hexadecimal(line.color), unit * SCALE);
    write!(
        shapes,
        "<g fill=\"{color}\" transform=\"translate({x:.0} {y:.0}){turn} scale({scale:.5} -{scale:.5})\">"
    )?;
    for glyph in &line.glyphs {
        let number = glyph.number();
        if used.contains(&number) || !text::outline(number).is_empty() {
            used.insert(number);
            let right = glyph.x / unit;
            write!(shapes, "<use href=\"#glyph-{number}\" x=\"{right:.0}\"/>")?;
        }
    }
    shapes.push_str("</g>\n");
    Ok(())
}

/// The outline of a glyph as path commands, in the font's own units, up being positive.
fn outline(number: u16) -> String {
    let command = |(letter, points): (char, &[At])| {
        let points: Vec<String> = (points.iter())
            .map(|(x, y)| format!("{x:.0} {y:.0}"))
            .collect();
        format!("{letter}{}", points.join(" "))
    };
    let pieces = text::outline(number);
    let commands = pieces.iter().map(|piece| match piece {
        Piece::Move(to) => command(('M', &[*to])),
        Piece::Line(to) => command(('L', &[*to])),
        Piece::Quad(over, to) => command(('Q', &[*over, *to])),
        Piece::Cubic(first, second, to) => command(('C', &[*first, *second, *to])),
    });
    commands.chain(["Z".to_owned()]).collect()
}

fn hexadecimal((red, green, blue): Color) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// Text as XML content.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
