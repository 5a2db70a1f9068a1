//! A page as an SVG document, on white and without any font: text is drawn as outlines.

use std::collections::BTreeMap;

use tiny_skia::{Path, PathSegment, Point};

use super::canvas::{At, Canvas, Line, Shape};
use super::text;
use crate::report::style::Color;

/// Units to the point: whole numbers of them are finer than print.
const SCALE: f64 = 20.0;
/// White, also on a dark page: ink would not be seen there.
const GROUND: &str = "<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>";

/// The document of a page of `size` pt that is called `title`, with a longer description.
pub(super) fn document(canvas: &Canvas, (width, height): At, title: &str, about: &str) -> String {
    // Outlines by number, so that equal figures are equal files.
    let (mut shapes, mut used) = (String::new(), BTreeMap::new());
    for shape in &canvas.shapes {
        match shape {
            Shape::Fill(path, color, alpha) => {
                let (path, color) = (commands(path, SCALE), hexadecimal(*color));
                shapes +=
                    &format!("<path d=\"{path}\" fill=\"{color}\" fill-opacity=\"{alpha}\"/>\n");
            }
            Shape::Bar(path, color) => {
                let (path, color) = (commands(path, SCALE), hexadecimal(*color));
                shapes += &format!("<path d=\"{path}\" fill=\"{color}\"/>\n");
            }
            Shape::Stroke(path, stroke) => {
                let (path, color) = (commands(path, SCALE), hexadecimal(stroke.color));
                let width = stroke.width * SCALE;
                let dash: Vec<String> = (stroke.dash.iter())
                    .map(|length| format!("{:.0}", length * SCALE))
                    .collect();
                shapes += &format!(
                    "<path d=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width:.0}\""
                );
                if !dash.is_empty() {
                    shapes += &format!(" stroke-dasharray=\"{}\"", dash.join(" "));
                }
                shapes += "/>\n";
            }
            Shape::Text(line) => shapes += &text_of(line, &mut used),
        }
    }
    let outlines = used.into_iter().filter_map(|(number, outline)| {
        let outline = outline?;
        Some(format!("<path id=\"glyph-{number}\" d=\"{outline}\"/>\n"))
    });
    let outlines: String = outlines.collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.1}pt\" height=\"{height:.1}pt\" \
         viewBox=\"0 0 {:.0} {:.0}\" role=\"img\">\n<title>{}</title>\n<desc>{}</desc>\n<defs>\n{outlines}</defs>\n\
         {GROUND}\n{shapes}</svg>\n",
        width * SCALE,
        height * SCALE,
        escape(title),
        escape(about),
    )
}

/// A line of text, by the names of outlines, which are added to those that are `used`.
fn text_of(line: &Line, used: &mut BTreeMap<u16, Option<String>>) -> String {
    let (x, y) = (line.start.0 * SCALE, line.start.1 * SCALE);
    let turn = if line.upwards { " rotate(-90)" } else { "" };
    let unit = text::unit(line.size);
    let (color, scale) = (hexadecimal(line.color), unit * SCALE);
    // Fonts count upwards and pages downwards.
    let mut text = format!(
        "<g fill=\"{color}\" transform=\"translate({x:.0} {y:.0}){turn} scale({scale:.5} -{scale:.5})\">"
    );
    for glyph in &line.glyphs {
        let number = glyph.number();
        let new = || Some(commands(&text::outline(number)?, 1.0));
        // Each outline is written once, however often it is used.
        if used.entry(number).or_insert_with(new).is_some() {
            let right = glyph.x / unit;
            text += &format!("<use href=\"#glyph-{number}\" x=\"{right:.0}\"/>");
        }
    }
    text + "</g>\n"
}

/// A path as commands, in whole numbers after scaling.
fn commands(path: &Path, scale: f64) -> String {
    let command = |letter: &str, points: &[Point]| {
        let place = |at: &Point| {
            let [x, y] = [at.x, at.y].map(|length| f64::from(length) * scale);
            format!("{x:.0} {y:.0}")
        };
        letter.to_owned() + &points.iter().map(place).collect::<Vec<String>>().join(" ")
    };
    let commands = path.segments().map(|segment| match segment {
        PathSegment::MoveTo(to) => command("M", &[to]),
        PathSegment::LineTo(to) => command("L", &[to]),
        PathSegment::QuadTo(over, to) => command("Q", &[over, to]),
        PathSegment::CubicTo(first, second, to) => command("C", &[first, second, to]),
        PathSegment::Close => "Z".to_owned(),
    });
    commands.collect()
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
