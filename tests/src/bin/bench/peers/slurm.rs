//! Slurm: a controller and one node on loopback, without authentication, as quick as its settings make it.

use std::net::TcpListener;
use std::process::Child;
use std::time::Instant;

use super::{Runner, Spent, shell_line, words};
use crate::Fallible;
use crate::graph::{Graph, TRUE};
use crate::site::{Site, ask_to_end, end};

#[derive(Default)]
pub(super) struct Slurm {
    servers: Vec<Child>,
}

fn free_port() -> Fallible<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn config(site: &Site, host: &str) -> Fallible<String> {
    let dir = site.dir.display();
    let quick = "batch_sched_delay=1,sched_min_interval=1000,sched_interval=1,bf_interval=1,default_queue_depth=10000,\
                 sched_max_job_start=0,bf_max_job_test=500,bf_continue";
    Ok([
        format!("ClusterName=bench\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root"),
        "AuthType=auth/none\nCredType=cred/none\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none"
            .to_owned(),
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nMpiDefault=none".to_owned(),
        "JobAcctGatherType=jobacct_gather/none\nSchedulerType=sched/backfill".to_owned(),
        format!("SchedulerParameters={quick}\nMessageTimeout=60\nMinJobAge=2\nReturnToService=2"),
        "MaxJobCount=200000\nMaxArraySize=110001\nSlurmctldDebug=error\nSlurmdDebug=error".to_owned(),
        format!("StateSaveLocation={dir}/state\nSlurmdSpoolDir={dir}/spool"),
        format!("SlurmctldPidFile={dir}/ctld.pid\nSlurmdPidFile={dir}/d.pid"),
        format!("SlurmctldLogFile={dir}/ctld.log\nSlurmdLogFile={dir}/d.log"),
        format!("SlurmctldPort={}\nSlurmdPort={}", free_port()?, free_port()?),
        "SlurmdParameters=config_overrides".to_owned(),
        format!("NodeName={host} NodeAddr=127.0.0.1 CPUs={} RealMemory=1000 State=UNKNOWN", site.slots),
        "PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n".to_owned(),
    ]
    .join("\n"))
}

fn gate(site: &Site, state: &str) -> Fallible<()> {
    site.call(&["scontrol", "update", "PartitionName=p", &format!("State={state}")]).map(drop)
}

impl Runner for Slurm {
    fn start(&mut self, site: &mut Site) -> Fallible<()> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname")?;
        let host = host.trim().split('.').next().unwrap_or("localhost").to_owned();
        for part in ["state", "spool"] {
            std::fs::create_dir_all(site.path(part))?;
        }
        std::fs::write(site.path("slurm.conf"), config(site, &host)?)?;
        site.set("SLURM_CONF", site.path("slurm.conf"));
        self.servers.push(site.serve(&["slurmctld", "-D", "-i"])?);
        self.servers.push(site.serve(&["slurmd", "-D"])?);
        site.until(&["sinfo", "-h", "-o", "%T"], |state| state.trim() == "idle")
    }

    fn run(&mut self, site: &Site, graph: &Graph) -> Fallible<Spent> {
        gate(site, "DOWN")?;
        let began = Instant::now();
        let alike = graph.tasks.iter().all(|task| task.after.is_empty());
        let mut ids: Vec<String> = Vec::new();
        if let Some(first) = graph.tasks.first().filter(|_| alike) {
            let array = format!("1-{}", graph.tasks.len());
            site.call(&[
                "sbatch",
                "-Q",
                "-o",
                "/dev/null",
                "--array",
                &array,
                "--wrap",
                &shell_line(&first.argv),
            ])?;
        } else {
            for task in &graph.tasks {
                let mut argv = words(["sbatch", "--parsable", "-o", "/dev/null"]);
                if !task.after.is_empty() {
                    let on: Vec<&str> = task.after.iter().map(|on| ids[*on].as_str()).collect();
                    argv.extend(["-d".to_owned(), format!("afterok:{}", on.join(":"))]);
                }
                argv.extend(["--wrap".to_owned(), shell_line(&task.argv)]);
                ids.push(site.call(&argv)?.trim().to_owned());
            }
        }
        let submit = began.elapsed();
        gate(site, "UP")?;
        site.until(&["squeue", "-h", "-o", "%i"], |left| left.trim().is_empty())?;
        Ok(Spent::since(began, submit))
    }

    fn submission(&self, _site: &Site) -> Fallible<Vec<String>> {
        Ok(words(["sbatch", "--parsable", "-o", "/dev/null", "--wrap", TRUE]))
    }

    fn status(&self, _site: &Site) -> Fallible<Vec<String>> {
        Ok(words(["squeue", "-r"]))
    }

    fn queue_up(&mut self, site: &Site, tasks: usize) -> Fallible<usize> {
        gate(site, "DOWN")?;
        let array = format!("1-{tasks}");
        site.call(&["sbatch", "-Q", "-o", "/dev/null", "--array", &array, "--wrap", TRUE])?;
        Ok(tasks)
    }

    fn stop(&mut self, _site: &Site) -> Fallible<()> {
        // The node first: without its controller it would wait.
        for server in self.servers.iter_mut().rev() {
            ask_to_end(server);
            end(server)?;
        }
        Ok(())
    }
}
