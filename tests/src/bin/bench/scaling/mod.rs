//! How every operation grows with the number of beads: in-process, over the real engine, journal, views and console.
//! Whatever is worse than n log n altogether, or than log n for each event, is named.

mod curve;
mod operations;

use crate::Fallible;
use crate::effort::Effort;
use crate::report::{figure, progress, say};
use crate::table::{Table, ratio, time};
use curve::{Curve, Per};

/// How many beads.
pub(crate) const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// Measures every operation at every size; answers how many grow too fast.
pub(crate) fn run(sizes: &[usize], effort: &Effort) -> Fallible<usize> {
    let sizes: Vec<usize> = sizes.iter().map(|size| effort.size(*size)).collect();
    let mut curves: Vec<Curve> = Vec::new();
    for size in &sizes {
        progress(&format!("  scaling: {size} beads"));
        for (nth, sample) in operations::measure(*size)?.into_iter().enumerate() {
            if curves.len() <= nth {
                curves.push(Curve::new(sample.operation, sample.per));
            }
            let seconds = sample.span.as_secs_f64();
            progress(&format!("    {}: {}", sample.operation, time(sample.span)));
            curves[nth].add(*size, seconds);
        }
    }
    let names: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    let mut header = vec!["operation", "per"];
    header.extend(names.iter().map(String::as_str));
    header.extend(["exponent", "last step ×", "allowed", ""]);
    let mut table = Table::new("processor time by number of beads, and the exponent of its growth", &header);
    let mut worse = 0;
    for curve in &curves {
        let fits = curve.exponent() <= curve.allowed();
        worse += usize::from(!fits);
        let mut cells = vec![curve.operation.to_owned(), curve.per.word().to_owned()];
        cells.extend(curve.points().iter().map(|(_, seconds)| short(*seconds)));
        cells.push(format!("{:.2}", curve.exponent()));
        cells.push(curve.last_step().map_or("-".to_owned(), ratio));
        cells.push(format!("{:.2}", curve.allowed()));
        cells.push(if fits { "fits" } else { "TOO FAST" }.to_owned());
        table.row(cells);
        let points = curve.points().iter().map(|(size, seconds)| (size.to_string(), *seconds));
        figure(
            "scaling",
            curve.operation,
            points.chain([("exponent".to_owned(), curve.exponent())]).collect(),
        );
    }
    table.print();
    say(&format!(
        "\nExponents are fitted over all sizes (time = c · beads^e). Allowed is what {} has over these sizes, or {} for \
         each event, and {} more for what memory itself costs once it no longer fits the caches.",
        Per::Whole.law(),
        Per::Event.law(),
        curve::FOR_CACHES
    ));
    Ok(worse)
}

fn short(seconds: f64) -> String {
    if seconds < 1e-3 {
        format!("{:.2} µs", seconds * 1e6)
    } else {
        time(std::time::Duration::from_secs_f64(seconds))
    }
}
