//! The least that staging a file could cost: each line parsed into what the graph needs, and Kahn's sort over arrays.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use crate::Fallible;

#[derive(Deserialize)]
struct Line<'a> {
    id: &'a str,
    status: &'a str,
    issue_type: &'a str,
    #[serde(borrow, default)]
    dependencies: Vec<Edge<'a>>,
}

#[derive(Deserialize)]
struct Edge<'a> {
    depends_on_id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
}

/// The lines of a text.
pub(crate) struct Bare<'a> {
    lines: Vec<Line<'a>>,
}

/// The text of a file.
pub(crate) fn read(file: &Path) -> Fallible<String> {
    Ok(std::fs::read_to_string(file)?)
}

impl<'a> Bare<'a> {
    pub(crate) fn parse(text: &'a str) -> Fallible<Self> {
        let lines: Result<_, _> = text.lines().map(serde_json::from_str).collect();
        Ok(Self { lines: lines? })
    }

    /// The sizes of the waves.
    pub(crate) fn waves(&self) -> Vec<usize> {
        let is_open = |line: &&Line<'_>| line.status != "closed" && line.issue_type != "epic";
        let open: Vec<&Line<'_>> = self.lines.iter().filter(is_open).collect();
        let slots: HashMap<&str, u32> = open.iter().map(|line| line.id).zip(0..).collect();
        let mut waits = vec![0_u32; open.len()];
        let mut ends = vec![0_u32; open.len() + 1];
        let mut edges = Vec::new();
        for (holder, line) in open.iter().enumerate() {
            for edge in line.dependencies.iter().filter(|edge| edge.kind == "blocks") {
                if let Some(on) = slots.get(edge.depends_on_id) {
                    edges.push((*on, holder as u32));
                    ends[*on as usize] += 1;
                    waits[holder] += 1;
                }
            }
        }
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        let mut waiting = vec![0_u32; edges.len()];
        for (on, holder) in edges {
            let end = &mut ends[on as usize];
            *end -= 1;
            waiting[*end as usize] = holder;
        }
        let mut sizes = Vec::new();
        let mut wave: Vec<usize> = (0..open.len()).filter(|slot| waits[*slot] == 0).collect();
        while !wave.is_empty() {
            sizes.push(wave.len());
            let mut next = Vec::new();
            for slot in wave {
                for holder in &waiting[ends[slot] as usize..ends[slot + 1] as usize] {
                    let count = &mut waits[*holder as usize];
                    *count -= 1;
                    if *count == 0 {
                        next.push(*holder as usize);
                    }
                }
            }
            wave = next;
        }
        sizes
    }
}
