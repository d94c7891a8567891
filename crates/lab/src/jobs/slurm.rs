//! A shell script that submits the jobs to Slurm.

use super::JobList;
use super::shell::{PLACEHOLDER, command_line, quoted};
use crate::words::count;

/// The script: an array with a task for each shard, and a job that merges after all tasks have succeeded.
pub(super) fn script(list: &JobList, name: &str) -> String {
    let template = &list.template;
    let task = command_line(&template.command(PLACEHOLDER), "$SLURM_ARRAY_TASK_ID");
    let merge = command_line(&template.merge_command(), "");
    // `%` begins what Slurm replaces, such as the number of the task.
    let log = |number: &str| template.directory(number).replace('%', "%%") + ".log";
    format!(
        "#!/usr/bin/env bash
# {runs} of lab {program} as a Slurm array of {tasks}, and a job that merges
# their results into {out}.
# Submit it with `bash FILE`, from a directory that all nodes share. Environment
# variables of sbatch choose where the jobs run, such as SBATCH_PARTITION,
# SBATCH_ACCOUNT and SBATCH_TIMELIMIT. Submitted again, it makes what is missing.
set -euo pipefail
mkdir -p {shards}

array=$(sbatch --parsable --job-name={name} --array=1-{number} \\
    --cpus-per-task={cores} --requeue --output={log} <<'JOB'
#!/usr/bin/env bash
exec {task}
JOB
)
array=${{array%%;*}}

merge=$(sbatch --parsable --job-name={name_merge} --dependency=\"afterok:$array\" \\
    --kill-on-invalid-dep=yes --output={merge_log} <<'JOB'
#!/usr/bin/env bash
exec {merge}
JOB
)
echo \"Submitted array $array, and ${{merge%%;*}} to merge it\"
",
        runs = count(list.runs as u64, "run", "runs"),
        program = list.program,
        tasks = count(list.jobs.len() as u64, "task", "tasks"),
        out = template.out.escape_debug(),
        shards = quoted(&template.directory("")),
        name = quoted(name),
        number = list.jobs.len(),
        cores = list.cores,
        log = quoted(&log(PLACEHOLDER).replace(PLACEHOLDER, "%a")),
        name_merge = quoted(&format!("{name}-merge")),
        merge_log = quoted(&log("merge")),
    )
}
