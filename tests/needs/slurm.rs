//! A Slurm cluster of one node, with its controller, runs the array `packaging/slurm/array.sh`.
//!
//! Needs Debian's packages `slurmctld`, `slurmd`, `slurm-client` and `munge`.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;

use crate::support::{free_address, on_the_path, output_within};
use playrate_test_support::{Running, SCENARIO, program, root};

const LIMIT: Duration = Duration::from_secs(90);

/// Daemons, which are not on the PATH of every user.
const MUNGED: &str = "/usr/sbin/munged";
const SLURMCTLD: &str = "/usr/sbin/slurmctld";
const SLURMD: &str = "/usr/sbin/slurmd";

pub(crate) fn tests() -> Vec<Trial> {
    let missing = on_the_path(&[
        ("sbatch", "--version"),
        (SLURMCTLD, "-V"),
        (SLURMD, "-V"),
        (MUNGED, "--version"),
    ]);
    tests![
        &missing,
        an_array_makes_the_rows_of_one_run_and_a_lost_task_is_submitted_again
    ]
}

/// The daemons of a cluster, on loopback.
struct Cluster {
    // Stopped before their directory is removed.
    _daemons: Vec<Running>,
    home: tempfile::TempDir,
}

impl Cluster {
    fn start() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| home.path().join(name);
        // munged refuses a socket that is not accessible to everybody, and a key that others can read.
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        fs::write(at("munge.key"), [7_u8; 128]).expect("a file can be written");
        fs::set_permissions(at("munge.key"), fs::Permissions::from_mode(0o400)).expect("it is ours");
        for directory in ["state", "spool"] {
            fs::create_dir(at(directory)).expect("a directory can be made");
        }
        let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("Linux has it");
        let host = host.trim();
        let user = output_within(LIMIT, Command::new("id").arg("-un"), "");
        let configuration = format!(
            "ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
",
            controller = free_address().port(),
            node = free_address().port(),
            home = home.path().display(),
            user = user.trim(),
        );
        fs::write(at("slurm.conf"), configuration).expect("a file can be written");
        let daemon = |program: &str, arguments: &[&str]| {
            let name = program.rsplit('/').next().expect("a path has an end");
            let log = File::create(at(&format!("{name}.log"))).expect("a file can be made");
            let child = Command::new(program)
                .args(arguments)
                .env("SLURM_CONF", at("slurm.conf"))
                .stdin(Stdio::null())
                .stdout(log.try_clone().expect("a file can be cloned"))
                .stderr(log)
                .spawn()
                .unwrap_or_else(|error| panic!("{program}: {error}"));
            Running(child)
        };
        let munge = [
            "key-file=munge.key",
            "socket=munge.socket",
            "pid-file=munge.pid",
            "seed-file=munge.seed",
            "log-file=munged.own.log",
        ];
        let munge = munge.map(|option| {
            let (option, file) = option.split_once('=').expect("it has one");
            format!("--{option}={}", at(file).display())
        });
        let munge: Vec<&str> = ["--foreground"]
            .into_iter()
            .chain(munge.iter().map(String::as_str))
            .collect();
        let mut daemons = vec![daemon(MUNGED, &munge)];
        wait_until("munged listens", home.path(), || at("munge.socket").exists());
        daemons.push(daemon(SLURMCTLD, &["-D", "-i"]));
        daemons.push(daemon(SLURMD, &["-D", "-N", host]));
        let cluster = Self {
            _daemons: daemons,
            home,
        };
        wait_until("the node is idle", cluster.home.path(), || {
            let output = cluster.command("sinfo").args(["-h", "-o", "%T"]).output();
            output.is_ok_and(|output| output.stdout.starts_with(b"idle"))
        });
        cluster
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command
            .env("SLURM_CONF", self.home.path().join("slurm.conf"))
            .current_dir(self.home.path());
        command
    }

    /// Submits these tasks of an array of four and waits until no job is left.
    fn finishes(&self, tasks: &str) {
        let mut submission = self.command("sbatch");
        submission
            .arg(format!("--array={tasks}"))
            .arg(root().join("packaging/slurm/array.sh"))
            .arg("./few.toml")
            .env("SHARDS", "4")
            .env("OUT", "all")
            .env("LAB", program("lab"));
        let said = output_within(LIMIT, &mut submission, "");
        assert!(said.starts_with("Submitted batch job "), "{said}");
        wait_until("all jobs end", self.home.path(), || {
            let output = self.command("squeue").args(["-h", "-o", "%i %T %R"]).output();
            output.is_ok_and(|output| output.status.success() && output.stdout.is_empty())
        });
    }
}

/// Waits for `condition`; on failure, prints the logs below `home`.
fn wait_until(what: &str, home: &Path, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        if begun.elapsed() > LIMIT {
            let logs = ["munged.log", "slurmctld.log", "slurmd.log"];
            let logs = logs.map(|log| fs::read_to_string(home.join(log)).unwrap_or_default());
            panic!("not in {LIMIT:?}: {what}\n{}", logs.join("\n"));
        }
        sleep(Duration::from_millis(100));
    }
}

fn an_array_makes_the_rows_of_one_run_and_a_lost_task_is_submitted_again() {
    let cluster = Cluster::start();
    let home = cluster.home.path();
    let lab = program("lab");
    let run = |line: &str| {
        let mut command = cluster.command(lab.to_str().expect("a path of text"));
        output_within(LIMIT, command.args(line.split(' ')), "")
    };
    // Sorted as text, because the order of rows from several directories differs.
    let rows = |directories: &str| {
        let printed = run(&format!("rows {directories}"));
        let mut rows: Vec<String> = printed.lines().map(str::to_owned).collect();
        rows.sort_unstable();
        rows
    };
    fs::write(home.join("few.toml"), SCENARIO).expect("a file can be written");
    run("run ./few.toml --out whole");
    let whole = rows("whole");
    assert_eq!(whole.len(), 6);
    cluster.finishes("1-4");
    let shards = "all/1 all/2 all/3 all/4";
    assert!(rows(shards) == whole, "the rows differ");
    // One task's work is lost.
    fs::remove_dir_all(home.join("all/3")).expect("it is there");
    cluster.finishes("3");
    assert!(rows(shards) == whole, "the rows differ");
}
