//! How many dispatches a second the pool can run, against bare posix_spawn.
//!
//! `cargo run --release -p yard-workers --example spawn_rate -- [COUNT] [SLOTS] [RUN_DIR]`
//! prints both rates and their ratio, best of three rounds each, taken in turns.
#![expect(clippy::print_stdout, reason = "a bench prints its result")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use yard_engine::{BeadId, DispatchId, Millis};
use yard_workers::{LocalPool, RunSpec, StartOrder, StepSpec, Surface, WorkerReport};

fn order(round: u32, n: usize, run_dir: &Path) -> Result<StartOrder, Box<dyn std::error::Error>> {
    let dispatch = DispatchId::new(BeadId::parse(&format!("bench-{n}"))?, round);
    let env = vec![
        ("YM_DISPATCH".to_owned(), dispatch.to_string()),
        ("YM_TOWN".to_owned(), run_dir.display().to_string()),
    ];
    let step = StepSpec {
        id: "run".into(),
        argv: vec!["/bin/true".into()],
        stdin: None,
        timeout: None,
        agent: None,
        tail: 0,
    };
    let spec = RunSpec {
        steps: vec![step],
        cwd: PathBuf::from("/tmp"),
        env,
        log: run_dir.join(format!("{dispatch}.log")),
        log_cap: 1 << 20,
        kill_grace: Millis::seconds(10),
        hard_cap: Some(Millis::minutes(10)),
        first_step: 0,
        worktree: None,
        session: None,
    };
    Ok(StartOrder { dispatch, spec, surface: Surface::None })
}

fn pooled(round: u32, count: usize, slots: usize, run_dir: &Path) -> Result<f64, Box<dyn std::error::Error>> {
    let (send, reports) = mpsc::channel();
    let report = move |report| {
        let _ = send.send(report);
    };
    let mut pool = LocalPool::open(run_dir, Box::new(report))?;
    let begun = Instant::now();
    let (mut started, mut ended) = (0, 0);
    while ended < count {
        while started < count && started - ended < slots {
            pool.start(order(round, started, run_dir)?)?;
            started += 1;
        }
        let Ok(report) = reports.try_recv() else {
            pool.attend(Duration::from_secs(1));
            continue;
        };
        match report {
            WorkerReport::Ended { dispatch, exit } if exit.code == Some(0) => {
                ended += 1;
                pool.forget(&dispatch);
            }
            WorkerReport::Running { .. } => {}
            other => return Err(format!("unexpected: {other:?}").into()),
        }
    }
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}

/// The bare limit: posix_spawn through the standard library would wait in threads, so the C program of the bench
/// directory is compiled where there is a compiler.
fn bare(count: usize, slots: usize, program: &Path) -> Option<f64> {
    let output = Command::new(program)
        .args([&count.to_string(), &slots.to_string(), "posix_spawn", "/bin/true"])
        .output()
        .ok()?;
    String::from_utf8_lossy(&output.stdout).split_whitespace().nth(1)?.parse().ok()
}

fn compile(dir: &Path) -> Option<PathBuf> {
    let source = std::env::var_os("RAWSPAWN_C").unwrap_or("../shared/bench/rawspawn.c".into());
    let program = dir.join("rawspawn");
    let done =
        Command::new("cc").arg("-O2").arg("-o").arg(&program).arg(source).stderr(Stdio::null()).status();
    done.is_ok_and(|status| status.success()).then_some(program)
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "__forkserver") {
        return Ok(yard_workers::forkserver_main());
    }
    let number = |n: usize, default: usize| args.get(n).map_or(Ok(default), |text| text.parse());
    let (count, slots) = (number(0, 5000)?, number(1, 2)?);
    let temporary = tempfile::tempdir()?;
    let run_dir = args.get(2).map_or(temporary.path().to_path_buf(), PathBuf::from);
    let program = compile(temporary.path());
    let (mut best_pool, mut best_bare) = (0f64, 0f64);
    for round in 1..=3 {
        let rate = pooled(round, count, slots, &run_dir)?;
        best_pool = best_pool.max(rate);
        let limit = program.as_deref().and_then(|program| bare(count, slots, program));
        best_bare = best_bare.max(limit.unwrap_or(0.0));
        println!("round {round}: pool {rate:.0}/s, posix_spawn {:.0}/s", limit.unwrap_or(0.0));
    }
    println!("best: pool {best_pool:.0}/s, posix_spawn {best_bare:.0}/s, ratio {:.2}", best_pool / best_bare);
    Ok(ExitCode::SUCCESS)
}
