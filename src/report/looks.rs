//! How strategies are drawn: for each a colour, a dash and a marker that never change and of which
//! the latter two alone tell it from others.

use super::style::{BLUE, CYAN, Color, GREEN, INK, PURPLE, RED, YELLOW};

// Besides *bright*, from other palettes of Paul Tol's and near them.
const ORANGE: Color = (0xEE, 0x77, 0x33);
const INDIGO: Color = (0x33, 0x22, 0x88);
const TEAL: Color = (0x00, 0x99, 0x88);
const BROWN: Color = (0x72, 0x19, 0x0E);
const LAVENDER: Color = (0xA9, 0x8B, 0xDC);
// The palette's own grey is too pale for a thin line.
const SLATE: Color = (0x77, 0x77, 0x77);

/// Colours of strategies without a place, unlike those that have one.
const OTHERS: [Color; 5] = [
    (0x33, 0x33, 0x33),
    (0x99, 0x99, 0x33),
    (0xCC, 0x33, 0x11),
    (0xFF, 0x99, 0xAA),
    (0x33, 0xBB, 0xEE),
];

/// Strategies with a place of their own, and their colours.
const PLACES: [(&str, Color); 12] = [
    ("full", BLUE),
    ("isolated", SLATE),
    ("fixed", YELLOW),
    ("varco", RED),
    ("grappa", GREEN),
    ("retexo", PURPLE),
    ("bns", CYAN),
    ("pipe", ORANGE),
    ("adaqp", INDIGO),
    ("llcg", TEAL),
    ("distdgl", BROWN),
    ("cluster", LAVENDER),
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
}

impl Marker {
    /// Whether it is an outline.
    pub(super) fn is_hollow(self) -> bool {
        use Marker::{HollowDiamond, HollowInverted, HollowSquare, HollowTriangle, Ring};
        [
            Ring,
            HollowSquare,
            HollowTriangle,
            HollowDiamond,
            HollowInverted,
        ]
        .contains(&self)
    }
}

/// As many as strategies with a place: where points are not joined, the marker alone survives
/// black-and-white print.
const MARKERS: [Marker; PLACES.len()] = [
    Marker::Circle,
    Marker::Cross,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::Inverted,
    Marker::Ring,
    Marker::Plus,
    Marker::HollowSquare,
    Marker::HollowTriangle,
    Marker::HollowDiamond,
    Marker::HollowInverted,
];

/// Numbers of dashes and of markers have no common factor: so many numbers in a row make pairs of
/// which none occurs twice.
const PAIRS: usize = DASHES.len() * MARKERS.len();
/// From one variant of a kind to the next: with another dash, another marker, and a pair that is
/// nobody's place.
const VARIANT: usize = 17;

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
        marker: MARKERS[0],
    };
}

/// One look for each strategy, given by its label and its kind.
///
/// The colour belongs to the kind. Strategies of one kind share it and differ in dash and marker;
/// one that is called as its kind is has those of the kind. Kinds without a place of their own
/// follow in the order of their appearance.
pub(super) fn looks(strategies: &[(&str, &str)]) -> Vec<Look> {
    // Variant 0 is kept for a strategy that is called as its kind is.
    let first = |kind| usize::from(strategies.contains(&(kind, kind)));
    // Of each kind which variant is next.
    let mut kinds: Vec<(&str, usize)> = PLACES.map(|(kind, _)| (kind, first(kind))).to_vec();
    strategies
        .iter()
        .map(|&(label, kind)| {
            let known = kinds.iter().position(|(known, _)| *known == kind);
            let place = known.unwrap_or_else(|| {
                kinds.push((kind, first(kind)));
                kinds.len() - 1
            });
            let next = &mut kinds[place].1;
            let variant = if label == kind { 0 } else { *next };
            *next += usize::from(label != kind);
            // Kinds without a place take what is left from the end.
            let other = place.checked_sub(PLACES.len());
            let first = other.map_or(place, |other| PAIRS - 1 - other % PAIRS);
            let pair = first + variant * VARIANT;
            Look {
                color: other.map_or_else(|| PLACES[place].1, |other| OTHERS[other % OTHERS.len()]),
                dash: DASHES[pair % DASHES.len()],
                marker: MARKERS[pair % MARKERS.len()],
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for (kind, (red, green, blue)) in PLACES {
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
        PLACES.iter().map(|(kind, _)| *kind).collect()
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
