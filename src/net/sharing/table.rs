//! Flows between two sides, as a table.

use pulp::{Arch, Simd, WithSimd};

use super::{Filling, NONE};

/// Numbers of a row that are worked on together.
const LANES: usize = 16;

/// Which links are where in routes.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// By link: in how many bundles it is the first, and the second, of two.
    pub(super) ends: Vec<[u32; 2]>,
    /// Links in use, by side.
    used: [usize; 2],
    /// Links that are in use on both sides, so that the routes are not between two sides.
    both: usize,
    /// Bundles of more or fewer links than two.
    odd: usize,
}

impl Shape {
    pub(super) fn new(links: usize) -> Self {
        Self {
            ends: vec![[0; 2]; links],
            used: [0; 2],
            both: 0,
            odd: 0,
        }
    }

    /// A bundle over these links comes, or goes.
    pub(super) fn count(&mut self, links: &[u32], comes: bool) {
        let add = |count: usize| if comes { count + 1 } else { count - 1 };
        let &[first, second] = links else {
            self.odd = add(self.odd);
            return;
        };
        for (side, link) in [first, second].into_iter().enumerate() {
            let ends = &mut self.ends[link as usize];
            let before = ends[side];
            ends[side] = add(before as usize) as u32;
            if before == 0 || ends[side] == 0 {
                self.used[side] = add(self.used[side]);
                if ends[1 - side] > 0 {
                    self.both = add(self.both);
                }
            }
        }
    }

    /// Whether the routes are pairs of two sides, of which one in `sparse` is in use.
    pub(super) fn is_dense(&self, bundles: usize, sparse: usize) -> bool {
        self.odd == 0 && self.both == 0 && bundles * sparse >= self.used[0] * self.used[1]
    }
}

/// The flows between two sides, and the rates of the links that are full.
#[derive(Clone, Debug)]
pub(super) struct Bipartite {
    arch: Arch,
    /// By link: its side, and its column there; [`NONE`] for a link that was on neither.
    pub(super) column: Vec<(u8, u32)>,
    side: [Side; 2],
    /// Bundle of each pair, `[first side, second side]`.
    bundles: Vec<u32>,
    /// First and second link of each bundle.
    ends: Vec<[u32; 2]>,
    /// Links that are not full, when that was last worked out: the capacity to spare, and how much
    /// the rates across might have risen until then.
    pub(super) slack: Vec<(f64, f64)>,
    /// By side: how much the rates of its links may have risen since the beginning, at most.
    pub(super) rise: [f64; 2],
    /// The rate of a link that waits to be filled, as of the last solution.
    pub(super) rated: Vec<f64>,
    /// Where in the order a link was that waits to be filled; [`NONE`] if nowhere.
    pub(super) was: Vec<u32>,
    /// Whether a link is in the window, or has been.
    pub(super) seen: Vec<bool>,
    /// So many of the links in the order are full.
    pub(super) full: usize,
}

#[derive(Clone, Debug, Default)]
struct Side {
    /// Flows between each link and those of the other side, `[links, width of the other side]`.
    /// Short, because reading it is what takes time.
    flows: Vec<u16>,
    /// By column, rounded up to whole lanes: the rate of a full link, and a mask of ones; 0 and 0
    /// of others.
    rate: Vec<f64>,
    full: Vec<u32>,
}

/// A link that may fill next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) link: u32,
    pub(super) side: u8,
    pub(super) column: u32,
    pub(super) filling: Filling,
}

impl Bipartite {
    /// No flows between the links that are in use.
    pub(super) fn new(shape: &Shape) -> Self {
        let links = shape.ends.len();
        let mut count = [0; 2];
        let mut column = vec![(0, NONE); links];
        for (link, ends) in shape.ends.iter().enumerate() {
            if let Some(side) = ends.iter().position(|&bundles| bundles > 0) {
                column[link] = (side as u8, count[side] as u32);
                count[side] += 1;
            }
        }
        // Whole lanes, with zeros at the end: the loop over a row then has no rest.
        let width = count.map(|count: usize| count.next_multiple_of(LANES));
        let side = |side: usize| Side {
            flows: vec![0; count[side] * width[1 - side]],
            rate: vec![0.0; width[side]],
            full: vec![0; width[side]],
        };
        Self {
            arch: Arch::new(),
            column,
            side: [side(0), side(1)],
            bundles: vec![NONE; width[0] * width[1]],
            ends: Vec::new(),
            slack: vec![(0.0, 0.0); links],
            rise: [0.0; 2],
            rated: vec![0.0; links],
            was: vec![NONE; links],
            seen: vec![false; links],
            full: 0,
        }
    }

    fn width(&self, side: usize) -> usize {
        self.side[side].rate.len()
    }

    /// Flows between a link and those of the other side.
    #[inline]
    pub(super) fn row(&self, link: u32) -> &[u16] {
        let (side, column) = self.column[link as usize];
        let width = self.width(1 - usize::from(side));
        &self.side[usize::from(side)].flows[column as usize * width..][..width]
    }

    /// The two links of a bundle.
    #[inline]
    pub(super) fn ends(&self, bundle: usize) -> [u32; 2] {
        self.ends[bundle]
    }

    pub(super) fn bundle(&self, a: u32, b: u32) -> u32 {
        let (a, b) = (self.column[a as usize], self.column[b as usize]);
        let (a, b) = if a.0 == 0 { (a, b) } else { (b, a) };
        self.bundles[a.1 as usize * self.width(1) + b.1 as usize]
    }

    /// The number of flows of a bundle is another; `false` if its links have no place here.
    pub(super) fn set_flows(&mut self, links: &[u32], bundle: u32, flows: u32) -> bool {
        let &[first, second] = links else {
            return false;
        };
        let column = |link: u32| self.column.get(link as usize).copied();
        let (Some((0, a)), Some((1, b))) = (column(first), column(second)) else {
            return false;
        };
        if a == NONE || b == NONE {
            return false;
        }
        let Ok(flows) = u16::try_from(flows) else {
            return false;
        };
        let (a, b) = (a as usize, b as usize);
        let widths = [self.width(0), self.width(1)];
        self.side[0].flows[a * widths[1] + b] = flows;
        self.side[1].flows[b * widths[0] + a] = flows;
        self.bundles[a * widths[1] + b] = bundle;
        if self.ends.len() <= bundle as usize {
            self.ends.resize(bundle as usize + 1, [NONE; 2]);
        }
        self.ends[bundle as usize] = [first, second];
        true
    }

    /// What full links leave a link.
    #[inline]
    pub(super) fn candidate(&self, link: u32, capacity: &[f64], total: &[f64]) -> Candidate {
        let (side, column) = self.column[link as usize];
        let other = &self.side[usize::from(1 - side)];
        let row = self.row(link);
        let (spare, open) = self.arch.dispatch(Settled {
            flows: row,
            rate: &other.rate,
            full: &other.full,
        });
        let spare = sum(spare, |a, b| a + b);
        let open = f64::from(sum(open, |a, b| a + b));
        let filling = Filling {
            spare: capacity[link as usize] - spare,
            open: total[link as usize] - open,
        };
        Candidate {
            link,
            side,
            column,
            filling,
        }
    }

    /// Notes what a link that is not full has to spare.
    pub(super) fn sleep(&mut self, link: u32, spare: f64) {
        let across = 1 - usize::from(self.column[link as usize].0);
        self.slack[link as usize] = (spare, self.rise[across]);
    }

    /// Makes a link full at a rate, or none.
    pub(super) fn set_rate(&mut self, link: u32, rate: Option<f64>) {
        let (side, column) = self.column[link as usize];
        let side = &mut self.side[usize::from(side)];
        side.rate[column as usize] = rate.unwrap_or(0.0);
        side.full[column as usize] = if rate.is_some() { u32::MAX } else { 0 };
    }
}

/// `Σ flows · rate` and `Σ flows` over the full links, apart by lanes. Always in the same order,
/// and without contracting products and sums, so the bits do not depend on the processor.
struct Settled<'a> {
    flows: &'a [u16],
    rate: &'a [f64],
    full: &'a [u32],
}

impl WithSimd for Settled<'_> {
    type Output = ([f64; LANES], [u32; LANES]);

    #[allow(clippy::inline_always)] // it must become part of the code for the chosen instruction set
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Self::Output {
        let mut spare = [0.0; LANES];
        let mut open = [0; LANES];
        let flows = self.flows.as_chunks::<LANES>().0.iter();
        let rates = self.rate.as_chunks::<LANES>().0.iter();
        let full = self.full.as_chunks::<LANES>().0;
        for (flows, (rate, full)) in flows.zip(rates.zip(full)) {
            for lane in 0..LANES {
                spare[lane] += f64::from(flows[lane]) * rate[lane];
                // A mask instead of a branch, so that lanes stay together.
                open[lane] += u32::from(flows[lane]) & full[lane];
            }
        }
        (spare, open)
    }
}

fn sum<T: Copy>(mut lanes: [T; LANES], add: impl Fn(T, T) -> T) -> T {
    // By halves, in an order that does not depend on how wide the processor's vectors are.
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = add(lanes[lane], lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0]
}
