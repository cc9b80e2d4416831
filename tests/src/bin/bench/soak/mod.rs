//! Full speed for a long time: a feeder keeps the queue filled with short beads, of which some fail and some are tried
//! again, and nothing may grow: memory, descriptors, files, latency. Results are kept for a minute only.

mod feeder;
mod flat;
mod sample;

use std::thread;
use std::time::{Duration, Instant};

use yard_tests::town::Town;

use crate::Fallible;
use crate::machine::cores;
use crate::report::{figure, progress, say};
use crate::served::Daemon;
use crate::table::{Table, ratio, time};
use feeder::Feeder;
use flat::Series;
use sample::Sampler;

/// How often everything is looked at.
const EVERY: Duration = Duration::from_secs(10);

/// Runs so long; answers how many figures are not flat.
pub(crate) fn run(span: Duration, every: Option<Duration>) -> Fallible<usize> {
    let every = every.unwrap_or(EVERY);
    let town = Town::new();
    town.set("scheduler.max_polecats", &(2 * cores()).to_string());
    town.set("results.ttl", "1m");
    town.set("retry.crash.backoff", r#"["1s"]"#);
    town.set("retry.crash.max_attempts", "2");
    let daemon = Daemon::start(town.root())?;
    let feeder = Feeder::start(&daemon.folder());
    let mut sampler = Sampler::new(&daemon, feeder.counts());
    let mut series: Vec<Series> = Vec::new();
    let began = Instant::now();
    while began.elapsed() < span {
        thread::sleep(every.saturating_sub(sampler.took()));
        let figures = sampler.look()?;
        progress(&format!("  {:>8} {}", time(began.elapsed()), sample::brief(&figures)));
        for (nth, (what, value)) in figures.into_iter().enumerate() {
            if series.len() <= nth {
                series.push(Series::new(what));
            }
            series[nth].add(began.elapsed(), value);
        }
    }
    let (added, ended) = (feeder.counts().added(), feeder.counts().ended());
    feeder.stop()?;
    drop(daemon);
    let header = ["what", "second fifth", "last fifth", "ratio", "slope per hour", ""];
    let title = format!("{added} beads added, {ended} ended in {}", humantime::format_duration(span));
    let mut table = Table::new(&title, &header);
    let mut grown = 0;
    for series in &series {
        let flat = series.is_flat();
        grown += usize::from(!flat && series.what.must_be_flat());
        let verdict = match (series.what.must_be_flat(), flat) {
            (false, _) => "-",
            (true, true) => "flat",
            (true, false) => "GROWS",
        };
        table.row([
            series.what.name().to_owned(),
            series.what.words(series.early()),
            series.what.words(series.late()),
            ratio(series.late() / series.early().max(f64::MIN_POSITIVE)),
            series.what.words(series.slope_per_hour()),
            verdict.to_owned(),
        ]);
        let points = series.points().iter().map(|(at, value)| (format!("{at:.0}s"), *value));
        figure("soak", series.what.name(), points.collect());
    }
    table.print();
    say(
        "\nFlat means that the median of the last fifth is at most a tenth above that of the second, or by no more than",
    );
    say(
        "a little (a mebibyte, a few descriptors, a hundred files, two milliseconds). Latency is that of a most urgent bead,",
    );
    say("from before it is asked for to its first instruction, with every slot taken and the queue full.");
    Ok(grown)
}
