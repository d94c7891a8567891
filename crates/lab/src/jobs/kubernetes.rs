//! A manifest for Kubernetes: an indexed Job with a pod for each shard, and a Job that merges.

use std::path::{Component, Path};

use super::shell::{PLACEHOLDER, command_line};
use super::{JobList, JobsArgs};
use crate::error::CommandError;
use crate::words::count;

/// Mount point of the shared volume in containers.
const MOUNT: &str = "/work";
/// Longest name of a Job whose pods' names still fit a DNS label: 63 less `-merge`, an index and a random suffix.
const LONGEST_NAME: usize = 45;

/// The manifest of both Jobs, as YAML.
pub(super) fn manifest(list: &JobList, args: &JobsArgs) -> Result<String, CommandError> {
    let (Some(image), Some(claim)) = (&args.image, &args.claim) else {
        let problem = "--format kubernetes needs --image IMAGE and --claim CLAIM";
        return Err(CommandError::BadInput(problem.to_owned()));
    };
    check(args)?;
    let template = &list.template;
    let name = &args.name;
    let task = command_line(&template.command(PLACEHOLDER), "$((JOB_COMPLETION_INDEX + 1))");
    let merge = command_line(&template.merge_command(), "");
    let shards = list.jobs.len();
    Ok(format!(
        "\
# {runs} of lab {program} as an indexed Job of {pods}, and a Job that merges
# their results; the volume's claim must allow all nodes to write (ReadWriteMany).
#   kubectl create -f FILE
#   kubectl wait --for=condition=complete --timeout=-1s job/{name}
#   kubectl patch job/{name}-merge --patch '{{\"spec\":{{\"suspend\":false}}}}'
# A pod that is replaced goes on where the one before was interrupted.
apiVersion: batch/v1
kind: Job
metadata:
  name: {quoted}
spec:
  completionMode: Indexed
  completions: {shards}
  parallelism: {shards}
  backoffLimitPerIndex: 3
  podFailurePolicy:
    rules:
      # A node that is drained or needed for others is no fault of the job.
      - action: Ignore
        onPodConditions:
          - type: DisruptionTarget
            status: \"True\"
      # Exit code 2 is bad input, for which another try is no help.
      - action: FailJob
        onExitCodes:
          containerName: lab
          operator: In
          values: [2]
  template:
{task_pod}---
apiVersion: batch/v1
kind: Job
metadata:
  name: {quoted_merge}
spec:
  suspend: true
  backoffLimit: 3
  template:
{merge_pod}",
        runs = count(list.runs as u64, "run", "runs"),
        program = list.program,
        pods = count(shards as u64, "pod", "pods"),
        // Without quotes some names would be Booleans.
        quoted = scalar(name),
        quoted_merge = scalar(&format!("{name}-merge")),
        task_pod = pod(image, claim, &task, list.cores),
        merge_pod = pod(image, claim, &merge, 1),
    ))
}

/// The template of a pod that runs a line of shell on the shared volume.
fn pod(image: &str, claim: &str, line: &str, cores: usize) -> String {
    format!(
        "    spec:
      restartPolicy: Never
      containers:
        - name: lab
          image: {image}
          workingDir: {MOUNT}
          command: [\"sh\", \"-c\"]
          args:
            - {line}
          resources:
            requests:
              cpu: \"{cores}\"
          volumeMounts:
            - name: work
              mountPath: {MOUNT}
      volumes:
        - name: work
          persistentVolumeClaim:
            claimName: {claim}
",
        image = scalar(image),
        claim = scalar(claim),
        line = scalar(&format!("exec {line}")),
    )
}

/// A text as a JSON string, which YAML reads as it is.
fn scalar(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Checks that names are allowed and that all paths are on the volume.
fn check(args: &JobsArgs) -> Result<(), CommandError> {
    let name = &args.name;
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !begins || name.ends_with('-') || name.len() > LONGEST_NAME || !name.chars().all(is_allowed) {
        return Err(CommandError::BadInput(format!(
            "--name `{name}` is no name of a Kubernetes Job: expected at most {LONGEST_NAME} lowercase letters, \
             digits and `-`, with a letter first and no `-` last"
        )));
    }
    let files = args.selection.scenarios.iter().filter(|name| name.contains('/'));
    for path in files.map(Path::new).chain([args.out.as_path()]) {
        let is_below = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !path.components().all(is_below) {
            return Err(CommandError::BadInput(format!(
                "{} is not on the volume of the claim: expected a path from its root, such as {}",
                path.display(),
                Path::new("sweeps")
                    .join(path.file_name().unwrap_or_default())
                    .display()
            )));
        }
    }
    Ok(())
}
