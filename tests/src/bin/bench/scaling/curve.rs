//! One operation's time at several sizes, and how it grows.

/// What the caches cost a walk through memory, on top of the law of the operation itself.
pub(super) const FOR_CACHES: f64 = 0.25;

/// What a time is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Per {
    /// Everything there is.
    Whole,
    /// One event or question.
    Event,
}

impl Per {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Whole => "all beads",
            Self::Event => "event",
        }
    }

    /// The fastest growth that is allowed, in words.
    pub(super) fn law(self) -> &'static str {
        match self {
            Self::Whole => "n log n",
            Self::Event => "log n",
        }
    }

    fn allowed_at(self, size: usize) -> f64 {
        let size = size as f64;
        match self {
            Self::Whole => size * size.ln(),
            Self::Event => size.ln(),
        }
    }
}

/// Times by size.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) operation: &'static str,
    pub(super) per: Per,
    points: Vec<(usize, f64)>,
}

impl Curve {
    pub(super) fn new(operation: &'static str, per: Per) -> Self {
        Self { operation, per, points: Vec::new() }
    }

    pub(super) fn add(&mut self, size: usize, seconds: f64) {
        // A clock that saw nothing pass would make the logarithm infinite.
        self.points.push((size, seconds.max(1e-9)));
    }

    pub(super) fn points(&self) -> &[(usize, f64)] {
        &self.points
    }

    /// The exponent of the power of n that fits best.
    pub(super) fn exponent(&self) -> f64 {
        slope(self.points.iter().map(|(size, seconds)| ((*size as f64).ln(), seconds.ln())))
    }

    /// What it may be.
    pub(super) fn allowed(&self) -> f64 {
        let law = self.points.iter().map(|(size, _)| ((*size as f64).ln(), self.per.allowed_at(*size).ln()));
        slope(law) + FOR_CACHES
    }

    /// How many times the last size takes what the one before takes.
    pub(super) fn last_step(&self) -> Option<f64> {
        let [.., (_, before), (_, last)] = self.points[..] else { return None };
        Some(last / before)
    }
}

/// The slope of the straight line that fits points best.
fn slope(points: impl Iterator<Item = (f64, f64)>) -> f64 {
    let points: Vec<(f64, f64)> = points.collect();
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / count, b + y / count));
    let (over, under) = points.iter().fold((0.0, 0.0), |(over, under), (px, py)| {
        (over + (px - x) * (py - y), under + (px - x) * (px - x))
    });
    if under == 0.0 { 0.0 } else { over / under }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(per: Per, law: impl Fn(f64) -> f64) -> Curve {
        let mut curve = Curve::new("test", per);
        for size in [1_000, 10_000, 100_000, 1_000_000] {
            curve.add(size, law(size as f64) * 1e-7);
        }
        curve
    }

    #[test]
    fn what_grows_as_allowed_fits_and_what_is_quadratic_does_not() {
        let fits = |curve: Curve| curve.exponent() <= curve.allowed();
        assert!(fits(curve(Per::Whole, |n| n * n.ln())));
        assert!(!fits(curve(Per::Whole, |n| n * n.sqrt())));
        assert!(fits(curve(Per::Event, f64::ln)));
        assert!(!fits(curve(Per::Event, f64::sqrt)));
    }
}
