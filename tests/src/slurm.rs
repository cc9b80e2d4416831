//! A real Slurm cluster on this machine: one controller, several nodes that are processes, and munge. Everything lies in a
//! directory of its own, listens on loopback only, and ends with it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::town::{Ran, environment_has, is_alive, kill_nine, processes, ran};

/// How long a cluster may take to come up before another try.
const PATIENCE: Duration = Duration::from_secs(30);
/// Ports that were free a moment ago may be taken by then.
const TRIES: u32 = 3;
/// How many nodes it has, and how many processors each of them says it has.
const NODES: usize = 2;
const CPUS: usize = 8;
/// How many jobs of one processor run at the same time.
pub const CPUS_IN_ALL: usize = NODES * CPUS;

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    dir: TempDir,
    munge: Child,
    controller: Option<Child>,
    nodes: Vec<Child>,
}

impl Cluster {
    /// Starts one and waits until its nodes are idle.
    pub fn start() -> Self {
        Self::start_with(&["slurmd"])
    }

    /// One whose nodes number their processes by themselves, as other hosts do: nobody here can signal what runs there.
    pub fn start_apart() -> Self {
        Self::start_with(&["unshare", "--pid", "--mount-proc", "--fork", "--kill-child", "slurmd"])
    }

    fn start_with(slurmd: &[&str]) -> Self {
        for _ in 1..TRIES {
            if let Ok(cluster) = Self::try_start(slurmd) {
                return cluster;
            }
        }
        Self::try_start(slurmd).unwrap_or_else(|log| panic!("the cluster does not come up:\n{log}"))
    }

    fn try_start(slurmd: &[&str]) -> Result<Self, String> {
        let [program, arguments @ ..] = slurmd else { panic!("the command line of a node") };
        let dir = tempfile::Builder::new().prefix("ym-slurm-").tempdir().expect("a temporary directory");
        for name in ["state", "log", "spool", "run", "munge"] {
            std::fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("slurm.conf"), config(dir.path())).expect("a file");
        let key: Vec<u8> =
            std::iter::repeat_with(|| std::fs::read("/proc/sys/kernel/random/uuid").expect("random"))
                .take(8)
                .flatten()
                .collect();
        std::fs::write(at("munge/key"), key).expect("a file");
        let mut private = std::fs::metadata(at("munge/key")).expect("a file").permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut private, 0o600);
        std::fs::set_permissions(at("munge/key"), private).expect("permissions");
        let mut munge = Command::new("munged");
        munge.args(["--foreground", "--force", "--num-threads=4"]);
        for (option, name) in [
            ("socket", "socket"),
            ("key-file", "key"),
            ("log-file", "log"),
            ("pid-file", "pid"),
            ("seed-file", "seed"),
        ] {
            munge.arg(format!("--{option}={}", at("munge").join(name).display()));
        }
        let munge = quiet(&mut munge);
        let mut cluster = Self { dir, munge, controller: None, nodes: Vec::new() };
        cluster.until("munge listens", |it| it.at("munge/socket").exists())?;
        cluster.start_controller();
        for node in 1..=NODES {
            std::fs::create_dir(cluster.at(&format!("spool/n{node}"))).expect("a directory");
            let mut slurmd = Command::new(program);
            slurmd
                .args(arguments)
                .arg("-D")
                .arg("-f")
                .arg(cluster.config())
                .args(["-N", &format!("n{node}")]);
            let slurmd = quiet(slurmd.env("SLURM_CONF", cluster.config()));
            cluster.nodes.push(slurmd);
        }
        cluster.until("its nodes are idle", |it| {
            let states = it.run("sinfo", &["-h", "-N", "-o", "%t"]).stdout;
            states.lines().filter(|line| line.trim() == "idle").count() == NODES
        })?;
        Ok(cluster)
    }

    fn until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        while !condition(self) {
            let has_ended = {
                let mut all = self.nodes.iter_mut().chain(&mut self.controller).chain([&mut self.munge]);
                all.any(|child| child.try_wait().is_ok_and(|status| status.is_some()))
            };
            if has_ended || Instant::now() > until {
                return Err(format!("not so: {what}\n{}", self.log()));
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
        Ok(())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Its configuration file, which commands find by `SLURM_CONF`.
    pub fn config(&self) -> PathBuf {
        self.at("slurm.conf")
    }

    /// The directory that holds all it has.
    pub fn directory(&self) -> &Path {
        self.dir.path()
    }

    /// What its controller wrote.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.at("log/slurmctld.log")).unwrap_or_default()
    }

    /// Runs a command of Slurm's.
    pub fn run(&self, program: &str, args: &[&str]) -> Ran {
        let mut command = Command::new(program);
        command.args(args).env("SLURM_CONF", self.config()).stdin(Stdio::null());
        ran(command.output().expect("Slurm's commands can be run"))
    }

    /// State and name of every job it remembers.
    pub fn jobs(&self) -> Vec<(String, String)> {
        let listed = self.run("squeue", &["-h", "-t", "all", "-o", "%T|%j"]).stdout;
        let parts = listed.lines().filter_map(|line| line.split_once('|'));
        parts.map(|(state, name)| (state.trim().to_owned(), name.trim().to_owned())).collect()
    }

    /// The states of the jobs of a dispatch.
    pub fn states_of(&self, dispatch: &str) -> Vec<String> {
        let jobs = self.jobs().into_iter();
        jobs.filter(|(_, name)| name.ends_with(&format!("-{dispatch}"))).map(|(state, _)| state).collect()
    }

    /// Jobs are taken, but none is started.
    pub fn hold_all(&self) {
        self.run("scontrol", &["update", "partition=main", "state=down"]).ok();
    }

    /// Jobs are started again.
    pub fn let_go(&self) {
        self.run("scontrol", &["update", "partition=main", "state=up"]).ok();
    }

    /// `kill -9` of the controller.
    pub fn kill_controller(&mut self) {
        if let Some(mut controller) = self.controller.take() {
            controller.kill().expect("it can be killed");
            controller.wait().expect("it ends");
        }
    }

    /// Starts the controller, and waits for nothing.
    pub fn start_controller(&mut self) {
        let mut controller = Command::new("slurmctld");
        controller.arg("-D").arg("-f").arg(self.config()).env("SLURM_CONF", self.config());
        self.controller = Some(quiet(&mut controller));
    }

    /// The processes that were started with this cluster's configuration.
    fn processes(&self) -> Vec<u32> {
        let mark = format!("SLURM_CONF={}", self.config().display()).into_bytes();
        processes().into_iter().filter(|pid| environment_has(*pid, &mark)).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let daemons = self.nodes.iter_mut().chain(&mut self.controller).chain([&mut self.munge]);
        for daemon in daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        // Jobs and those who look after them.
        let own = std::process::id();
        let until = Instant::now() + PATIENCE;
        loop {
            let left = self.processes().into_iter().filter(|pid| *pid != own && is_alive(*pid));
            let left: Vec<u32> = left.collect();
            if left.is_empty() || Instant::now() > until {
                return;
            }
            left.into_iter().for_each(kill_nine);
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

fn quiet(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}; tests/run installs it"))
}

/// Ports that nobody listens on at the moment.
fn free_ports(count: usize) -> Vec<u16> {
    let held: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    held.iter().map(|listener| listener.local_addr().expect("an address").port()).collect()
}

fn config(dir: &Path) -> String {
    let ports = free_ports(NODES + 1);
    let host = nix::unistd::gethostname().expect("a host name").to_string_lossy().into_owned();
    let host = host.split('.').next().unwrap_or_default();
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current()).ok().flatten().expect("a user").name;
    let dir = dir.display();
    let mut text = format!(
        "ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={dir}/munge/socket
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPort={}
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool/%n
SlurmctldPidFile={dir}/run/slurmctld.pid
SlurmdPidFile={dir}/run/slurmd.%n.pid
SlurmctldLogFile={dir}/log/slurmctld.log
SlurmdLogFile={dir}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,sched_interval=1,bf_interval=1
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdParameters=config_overrides
KillWait=5
MessageTimeout=10
MinJobAge=300
SlurmctldTimeout=30
SlurmdTimeout=30
JobRequeue=0
",
        ports[0]
    );
    let nodes = (1..=NODES).zip(&ports[1..]).map(|(node, port)| {
        format!(
            "NodeName=n{node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={CPUS} CoresPerSocket={CPUS} RealMemory=4000\n"
        )
    });
    text.extend(nodes);
    text + "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
}
