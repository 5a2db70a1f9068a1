//! How strategies are drawn: for each a colour, a dash and a marker that never change and of which
//! the latter two alone tell it from others.

use super::style::{BLUE, CYAN, Color, GREEN, INK, PURPLE, RED, YELLOW};

/// Colours of strategies without a place, unlike those that have one.
const OTHERS: [Color; 5] = [
    (0x33, 0x33, 0x33),
    (0x99, 0x99, 0x33),
    (0xCC, 0x33, 0x11),
    (0xFF, 0x99, 0xAA),
    (0x33, 0xBB, 0xEE),
];

/// Dash patterns, pt on and pt off in turn; the first is a solid line.
const DASHES: [&[f64]; 5] = [
    &[],
    &[1.2, 1.6],
    &[4.0, 1.6],
    &[5.0, 1.5, 1.2, 1.5],
    &[5.0, 1.2, 1.2, 1.2, 1.2, 1.2],
];

/// The shape that marks points of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    /// A disc.
    Circle,
    /// An upright square.
    Square,
    /// A triangle that points up.
    Triangle,
    /// A square on its corner.
    Diamond,
    /// A triangle that points down.
    Inverted,
    /// Two strokes, diagonal.
    Cross,
    /// Two strokes, upright.
    Plus,
    /// The outline of a disc.
    Ring,
    /// The outline of a square.
    HollowSquare,
    /// The outline of a triangle that points up.
    HollowTriangle,
    /// The outline of a square on its corner.
    HollowDiamond,
    /// The outline of a triangle that points down.
    HollowInverted,
    /// A star of five points.
    Star,
    /// The outline of a star.
    HollowStar,
    /// A triangle that points left.
    Left,
    /// The outline of a triangle that points left.
    HollowLeft,
    /// A triangle that points right.
    Right,
    /// The outline of a triangle that points right.
    HollowRight,
}

impl Marker {
    /// Whether it is an outline.
    pub(super) fn is_hollow(self) -> bool {
        matches!(
            self,
            Self::Ring
                | Self::HollowSquare
                | Self::HollowTriangle
                | Self::HollowDiamond
                | Self::HollowInverted
                | Self::HollowStar
                | Self::HollowLeft
                | Self::HollowRight
        )
    }
}

/// Strategies with a place of their own, their colours, and their markers, of which no two have the
/// same: where points are not joined, the marker alone survives black-and-white print.
const PLACES: [(&str, Color, Marker); 18] = [
    ("full", BLUE, Marker::Circle),
    // The palette's own grey is too pale for a thin line.
    ("isolated", (0x77, 0x77, 0x77), Marker::Cross),
    ("fixed", YELLOW, Marker::Square),
    ("varco", RED, Marker::Triangle),
    ("grappa", GREEN, Marker::Diamond),
    ("retexo", PURPLE, Marker::Inverted),
    ("bns", CYAN, Marker::Ring),
    // From other palettes of Paul Tol's and near them.
    ("pipe", (0xEE, 0x77, 0x33), Marker::Plus),
    ("adaqp", (0x33, 0x22, 0x88), Marker::HollowSquare),
    ("llcg", (0x00, 0x99, 0x88), Marker::HollowTriangle),
    ("distdgl", (0x72, 0x19, 0x0E), Marker::HollowDiamond),
    ("cluster", (0xA9, 0x8B, 0xDC), Marker::HollowInverted),
    // As far as can be from all others, also as two kinds of colour-blind eyes see them (found by
    // search).
    ("sylvie", (0x33, 0xCC, 0xAA), Marker::Star),
    ("cagnet", (0x55, 0x66, 0x44), Marker::HollowLeft),
    ("sancus", (0x00, 0x55, 0x55), Marker::Right),
    ("ecgraph", (0x44, 0x11, 0x44), Marker::HollowStar),
    ("fedavg", (0xAA, 0x55, 0xFF), Marker::Left),
    ("fedgcn", (0x66, 0x22, 0xFF), Marker::HollowRight),
];

/// Numbers of dashes and of markers have no common factor: so many numbers in a row make pairs of
/// which none occurs twice.
const PAIRS: usize = DASHES.len() * PLACES.len();
/// How far the darkest and the lightest variant of a kind are mixed with black and with white.
const SHADE: f64 = 0.45;
/// From one variant of a kind to the next: with another dash, another marker, and a pair that is
/// nobody's place.
const VARIANT: usize = 19;

/// How one curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    /// Colour of line, band and marker.
    pub color: Color,
    /// Dash pattern in pt; empty for a solid line.
    pub dash: &'static [f64],
    /// Marker.
    pub marker: Marker,
}

impl Look {
    /// A solid line of ink.
    pub(super) const PLAIN: Self = Self {
        color: INK,
        dash: DASHES[0],
        marker: Marker::Circle,
    };
}

/// One look for each strategy, given by its label and its kind.
///
/// The colour belongs to the kind. Strategies of one kind share it and differ in dash and marker,
/// three and more of them also in how dark it is; one that is called as its kind is has the look
/// of the kind. Kinds without a place of their own follow in the order of their appearance.
pub(super) fn looks(strategies: &[(&str, &str)]) -> Vec<Look> {
    // Variant 0 is kept for a strategy that is called as its kind is.
    let first_variant = |kind| usize::from(strategies.contains(&(kind, kind)));
    // Of each kind which variant is next.
    let mut kinds: Vec<(&str, usize)> = PLACES
        .map(|(kind, ..)| (kind, first_variant(kind)))
        .to_vec();
    strategies
        .iter()
        .map(|&(label, kind)| {
            let known = kinds.iter().position(|(known, _)| *known == kind);
            let place = known.unwrap_or_else(|| {
                kinds.push((kind, first_variant(kind)));
                kinds.len() - 1
            });
            let next = &mut kinds[place].1;
            let variant = if label == kind { 0 } else { *next };
            *next += usize::from(label != kind);
            let variants = (strategies.iter())
                .filter(|(label, its)| *its == kind && *label != kind)
                .count();
            // Kinds without a place take what is left from the end.
            let other = place.checked_sub(PLACES.len());
            let first = other.map_or(place, |other| PAIRS - 1 - other % PAIRS);
            let pair = first + variant * VARIANT;
            let color = other.map_or_else(|| PLACES[place].1, |other| OTHERS[other % OTHERS.len()]);
            Look {
                color: if label == kind || variants < 3 {
                    color
                } else {
                    let share = (variant - first_variant(kind)) as f64 / (variants - 1) as f64;
                    shade(color, share)
                },
                dash: DASHES[pair % DASHES.len()],
                marker: PLACES[pair % PLACES.len()].2,
            }
        })
        .collect()
}

/// A colour from a dark one of its kind, at 0, to a light one, at 1; itself between them.
fn shade((red, green, blue): Color, share: f64) -> Color {
    let by = (2.0 * share - 1.0) * SHADE;
    let mixed = |part: u8| {
        let (part, towards) = (f64::from(part), if by < 0.0 { 0.0 } else { 255.0 });
        (part + (towards - part) * by.abs()).round() as u8
    };
    (mixed(red), mixed(green), mixed(blue))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_variants_of_a_kind_and_more_differ_in_how_dark_they_are() {
        let labels = ["a", "b", "c", "d"].map(|label| (label, "full"));
        let colors: Vec<Color> = looks(&labels).iter().map(|look| look.color).collect();
        assert!(
            colors.windows(2).all(|pair| pair[0].0 < pair[1].0),
            "{colors:?}"
        );
        let with_plain = [&labels[..], &[("full", "full")]].concat();
        assert_eq!(looks(&with_plain)[4], looks(&[("full", "full")])[0]);
        assert_eq!(looks(&with_plain)[0].color, colors[0]);
    }

    #[test]
    fn a_strategy_keeps_its_look_whatever_the_company() {
        let alone = looks(&[("retexo", "retexo")]);
        let among = looks(&plain(&["full", "mine", "varco", "retexo"]));
        assert_eq!(alone[0], among[3]);
    }

    #[test]
    fn variants_share_a_colour_and_differ_in_dash_and_marker() {
        let looks = looks(&[("fixed(ratio=2)", "fixed"), ("fixed(ratio=8)", "fixed")]);
        assert_eq!(looks[0].color, looks[1].color);
        assert_ne!(looks[0].dash, looks[1].dash);
        assert_ne!(looks[0].marker, looks[1].marker);
    }

    #[test]
    fn a_grey_line_is_dark_enough_to_be_seen_on_white() {
        for (kind, (red, green, blue), _) in PLACES {
            let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
            assert!(most - least > 40 || most <= 0x88, "{kind}");
        }
    }

    #[test]
    fn a_kind_keeps_its_look_where_others_of_it_have_labels_of_their_own() {
        let looks = looks(&[("one worker", "full"), ("full", "full")]);
        assert_eq!(looks[1], super::looks(&[("full", "full")])[0]);
        assert_eq!(looks[0].color, looks[1].color);
        assert_ne!(looks[0].marker, looks[1].marker);
    }

    /// Strategies that are called as their kinds are.
    fn plain<'a>(kinds: &[&'a str]) -> Vec<(&'a str, &'a str)> {
        kinds.iter().map(|&kind| (kind, kind)).collect()
    }

    fn placed() -> Vec<&'static str> {
        PLACES.iter().map(|(kind, ..)| *kind).collect()
    }

    #[test]
    fn no_two_strategies_share_a_colour_or_in_black_and_white_a_dash_and_a_marker() {
        let mut all = plain(&[&placed()[..], &["a", "b"]].concat());
        all.push(("fixed(ratio=2)", "fixed"));
        let looks = looks(&all);
        for (index, look) in looks.iter().enumerate() {
            for other in &looks[..index] {
                let pair = |look: &Look| (look.dash, look.marker);
                assert_ne!(pair(look), pair(other), "{index}");
                let variant = index == looks.len() - 1;
                assert!(variant || look.color != other.color, "{index}");
            }
        }
    }

    /// A colour in CIELAB (D65) as an eye sees it that has all cones, none for long waves, or none
    /// for middle ones (Machado, Oliveira and Fernandes, 2009, severity 1).
    fn seen(color: Color) -> [[f64; 3]; 3] {
        type Matrix = [[f64; 3]; 3];
        const EYES: [Matrix; 3] = [
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            [
                [0.152_286, 1.052_583, -0.204_868],
                [0.114_503, 0.786_281, 0.099_216],
                [-0.003_882, -0.048_116, 1.051_998],
            ],
            [
                [0.367_322, 0.860_646, -0.227_968],
                [0.280_085, 0.672_501, 0.047_413],
                [-0.011_820, 0.042_940, 0.968_881],
            ],
        ];
        // Rows over the white point, so that white is 1.
        const XYZ: Matrix = [
            [0.433_953, 0.376_219, 0.189_828],
            [0.212_673, 0.715_152, 0.072_175],
            [0.017_758, 0.109_477, 0.872_765],
        ];
        let times = |matrix: Matrix, v: [f64; 3]| {
            matrix.map(|row| row.iter().zip(v).map(|(a, b)| a * b).sum::<f64>())
        };
        let linear = <[u8; 3]>::from(color).map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        });
        EYES.map(|eye| {
            let light = times(eye, linear).map(|part| part.clamp(0.0, 1.0));
            let [x, y, z] = times(XYZ, light).map(|part| {
                if part > 216.0 / 24389.0 {
                    part.cbrt()
                } else {
                    (24389.0 / 27.0 * part + 16.0) / 116.0
                }
            });
            [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
        })
    }

    /// How far two colours are apart for each eye; 2 can just be told.
    fn apart(a: Color, b: Color) -> [f64; 3] {
        let (a, b) = (seen(a), seen(b));
        std::array::from_fn(|eye| {
            let squares = a[eye].iter().zip(b[eye]).map(|(a, b)| (a - b).powi(2));
            squares.sum::<f64>().sqrt()
        })
    }

    #[test]
    fn black_and_white_are_a_hundred_apart_and_red_and_green_nearer_without_a_cone() {
        for distance in apart((0, 0, 0), (255, 255, 255)) {
            assert!((distance - 100.0).abs() < 0.01, "{distance}");
        }
        let [all, no_long, no_middle] = apart((200, 60, 60), (110, 110, 20));
        assert!(no_long < all / 2.0 && no_middle < all / 2.0);
    }

    #[test]
    fn colours_can_be_told_apart_also_by_the_colour_blind() {
        for (index, (kind, color, _)) in PLACES.iter().enumerate() {
            for (other, another, _) in &PLACES[..index] {
                let [all, blind @ ..] = apart(*color, *another);
                assert!(all > 20.0, "{kind} and {other}: {all}");
                // The first twelve are older, and some differ for the colour-blind by dash and
                // marker alone.
                let least = if index < 12 { 5.0 } else { 14.0 };
                assert!(
                    blind.iter().all(|&far| far > least),
                    "{kind} and {other}: {blind:?}"
                );
            }
        }
    }

    #[test]
    fn single_points_of_known_strategies_differ_by_marker_alone() {
        let looks = looks(&plain(&placed()));
        for (index, look) in looks.iter().enumerate() {
            let before = looks[..index].iter();
            assert!(
                before.clone().all(|other| other.marker != look.marker),
                "{index}"
            );
        }
    }
}
