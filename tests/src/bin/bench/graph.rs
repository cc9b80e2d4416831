//! Tasks and what they wait for, in the shapes that are measured.

use std::path::Path;

use crate::Fallible;
use crate::machine::yardstick;

/// A program that does nothing.
pub(crate) const TRUE: &str = "/bin/true";
/// How long the blocker of a fan-out takes, so that everything else has been handed over by then, in microseconds.
const BLOCKER: u64 = 1_500_000;
/// How long a task of the refill measure takes, in microseconds.
const SHORT: u64 = 10_000;

/// One task.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) argv: Vec<String>,
    /// The tasks it waits for, all before it.
    pub(crate) after: Vec<usize>,
}

/// Tasks, the blocked after their blockers.
#[derive(Debug, Clone)]
pub(crate) struct Graph {
    pub(crate) tasks: Vec<Task>,
}

impl Graph {
    /// Tasks that do nothing and wait for nothing.
    pub(crate) fn bulk(tasks: usize) -> Self {
        Self { tasks: vec![Task { argv: vec![TRUE.to_owned()], after: Vec::new() }; tasks] }
    }

    /// Layers of tasks that do nothing; each waits for two of the layer before.
    pub(crate) fn layers(layers: usize, width: usize) -> Self {
        let after = |layer: usize, place: usize| {
            let Some(before) = layer.checked_sub(1) else { return Vec::new() };
            let mut on = vec![before * width + place, before * width + (place * 7 + 3) % width];
            on.dedup();
            on
        };
        let places = (0..layers).flat_map(|layer| (0..width).map(move |place| (layer, place)));
        let tasks =
            places.map(|(layer, place)| Task { argv: vec![TRUE.to_owned()], after: after(layer, place) });
        Self { tasks: tasks.collect() }
    }

    /// A blocker, and so many tasks that wait for it; all note their times.
    pub(crate) fn fan_out(width: usize, log: &Path) -> Fallible<Self> {
        let mut tasks = vec![Task { argv: stamp(log, "blocker", BLOCKER)?, after: Vec::new() }];
        tasks.extend(vec![Task { argv: stamp(log, "freed", 0)?, after: vec![0] }; width]);
        Ok(Self { tasks })
    }

    /// Tasks of ten milliseconds that note their times.
    pub(crate) fn short(tasks: usize, log: &Path) -> Fallible<Self> {
        Ok(Self { tasks: vec![Task { argv: stamp(log, "short", SHORT)?, after: Vec::new() }; tasks] })
    }
}

/// A task that notes its times.
pub(crate) fn stamp(log: &Path, label: &str, micros: u64) -> Fallible<Vec<String>> {
    let words = [yardstick()?.display().to_string(), "stamp".to_owned(), log.display().to_string()];
    Ok(words.into_iter().chain([label.to_owned(), micros.to_string()]).collect())
}

/// What a task noted, in nanoseconds since 1970.
#[derive(Debug, Clone)]
pub(crate) struct Stamp {
    pub(crate) label: String,
    pub(crate) began: u64,
    pub(crate) ended: u64,
}

/// Everything the tasks noted.
pub(crate) fn stamps(log: &Path) -> Fallible<Vec<Stamp>> {
    let text = std::fs::read_to_string(log)?;
    let read = |line: &str| -> Option<Stamp> {
        let mut words = line.split_whitespace();
        let label = words.next()?.to_owned();
        Some(Stamp { label, began: words.next()?.parse().ok()?, ended: words.next()?.parse().ok()? })
    };
    text.lines().map(|line| read(line).ok_or_else(|| format!("no stamp: {line}").into())).collect()
}
