//! The raw limit: tasks in the order of their dependencies by bare posix_spawn, so many at a time. Nothing is stored, no
//! output is kept, no shell is between.
//!
//! The file has a task a line, separated by tabs: the lines it waits for, counted from 0 and all above it, with commas
//! between them, or `-`; then its arguments.

use std::collections::{HashMap, VecDeque};
use std::ffi::CString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::time::Instant;

use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, posix_spawn};
use nix::sys::wait::wait;
use nix::unistd::Pid;

use crate::Fallible;

#[derive(Default)]
struct Task {
    argv: Vec<CString>,
    waits: usize,
    frees: Vec<usize>,
}

/// Runs them all; answers how many seconds that took, the reading of the file included.
pub(crate) fn run(file: &Path, slots: usize) -> Fallible<f64> {
    let began = Instant::now();
    let mut tasks = read(&std::fs::read_to_string(file)?)?;
    let environment = std::env::vars_os().map(|(name, value)| {
        let mut pair = name.into_vec();
        pair.push(b'=');
        pair.extend(value.into_vec());
        CString::new(pair)
    });
    let environment: Vec<CString> = environment.collect::<Result<_, _>>()?;
    let (actions, attributes) = (PosixSpawnFileActions::init()?, PosixSpawnAttr::init()?);
    let mut ready: VecDeque<usize> = (0..tasks.len()).filter(|task| tasks[*task].waits == 0).collect();
    let mut running: HashMap<Pid, usize> = HashMap::new();
    let mut ended = 0;
    while ended < tasks.len() {
        while running.len() < slots
            && let Some(task) = ready.pop_front()
        {
            let argv = &tasks[task].argv;
            let program = argv.first().ok_or("a task has no program")?;
            running.insert(posix_spawn(program.as_c_str(), &actions, &attributes, argv, &environment)?, task);
        }
        let Some(task) = wait()?.pid().and_then(|pid| running.remove(&pid)) else { continue };
        ended += 1;
        for freed in std::mem::take(&mut tasks[task].frees) {
            tasks[freed].waits -= 1;
            if tasks[freed].waits == 0 {
                ready.push_back(freed);
            }
        }
    }
    Ok(began.elapsed().as_secs_f64())
}

fn read(text: &str) -> Fallible<Vec<Task>> {
    let mut tasks: Vec<Task> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut words = line.split('\t');
        let after = words.next().unwrap_or("-");
        let argv = words.map(CString::new).collect::<Result<_, _>>()?;
        let mut task = Task { argv, ..Task::default() };
        for on in after.split(',').filter(|on| *on != "-") {
            let on: usize = on.parse()?;
            tasks.get_mut(on).ok_or("a task waits for one below it")?.frees.push(number);
            task.waits += 1;
        }
        tasks.push(task);
    }
    Ok(tasks)
}
