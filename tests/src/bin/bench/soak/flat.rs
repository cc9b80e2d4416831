//! A figure over time, and whether it stays what it is.

use std::time::Duration;

use super::sample::What;
use crate::contest::middle;

/// How much the last fifth may lie above the second.
const MARGIN: f64 = 1.1;

/// One figure at many moments.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) what: What,
    /// Seconds and values.
    points: Vec<(f64, f64)>,
}

impl Series {
    pub(super) fn new(what: What) -> Self {
        Self { what, points: Vec::new() }
    }

    pub(super) fn add(&mut self, at: Duration, value: f64) {
        self.points.push((at.as_secs_f64(), value));
    }

    pub(super) fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// The median of the second fifth: the first is for warming up.
    pub(super) fn early(&self) -> f64 {
        self.fifth(1)
    }

    /// The median of the last fifth.
    pub(super) fn late(&self) -> f64 {
        self.fifth(4)
    }

    fn fifth(&self, nth: usize) -> f64 {
        let (from, to) = (self.points.len() * nth / 5, (self.points.len() * (nth + 1)).div_ceil(5));
        middle(self.points[from..to].iter().map(|(_, value)| *value)).unwrap_or(0.0)
    }

    pub(super) fn is_flat(&self) -> bool {
        let (early, late) = (self.early(), self.late());
        late <= early * MARGIN || late - early <= self.what.a_little()
    }

    /// How much more an hour would bring, if it went on as from the second fifth on.
    pub(super) fn slope_per_hour(&self) -> f64 {
        let rest = &self.points[self.points.len() / 5..];
        let count = rest.len() as f64;
        let (at, value) = rest.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / count, b + y / count));
        let (over, under) = rest.iter().fold((0.0, 0.0), |(over, under), (x, y)| {
            (over + (x - at) * (y - value), under + (x - at) * (x - at))
        });
        if under == 0.0 { 0.0 } else { over / under * 3600.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(value: impl Fn(f64) -> f64) -> Series {
        let mut series = Series::new(What::Memory);
        for minute in 0..60_u32 {
            series.add(Duration::from_mins(u64::from(minute)), value(f64::from(minute)));
        }
        series
    }

    #[test]
    fn warming_up_is_flat_and_growing_is_not() {
        let mib = 1024.0 * 1024.0;
        assert!(series(|minute| mib * 40.0 * (minute / 5.0).min(1.0)).is_flat());
        assert!(!series(|minute| mib * (40.0 + minute)).is_flat());
    }

    #[test]
    fn the_slope_is_told_by_the_hour() {
        let slope = series(|minute| 100.0 + 2.0 * minute).slope_per_hour();
        assert!((slope - 120.0).abs() < 0.01, "{slope}");
    }
}
