#!/usr/bin/env bash
# Makes the runs of `lab run` as a Slurm array: each task makes one shard, in a directory of its own.
#
#   sbatch packaging/slurm/array.sh papers --trials 20
#   lab rows lab-shards/* > rows.jsonl            # when all tasks have ended; `lab report` takes them too
#
# The arguments are the scenarios and options of `lab run` that say which runs are made. Submit from a directory that
# all nodes share. A task that is started again goes on after the last run that it finished, so submit lost tasks again:
#
#   sbatch --array=3,17 packaging/slurm/array.sh papers --trials 20
#
# Edit these lines, or give the same options to sbatch, with others such as --partition, --account and --time.
#SBATCH --job-name=lab
#SBATCH --array=1-64
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --output=lab-%A-%a.log
set -euo pipefail

SHARDS=${SHARDS:-64}       # number of shards: as many as the array has tasks, also if some are submitted again
OUT=${OUT:-lab-shards}     # directory for the results, on storage that all nodes share
LAB=${LAB:-lab}            # the program, of the same version on all nodes

exec "$LAB" run "$@" \
    --shard "$SLURM_ARRAY_TASK_ID/$SHARDS" \
    --jobs "${SLURM_CPUS_PER_TASK:-1}" \
    --out "$OUT/$SLURM_ARRAY_TASK_ID" \
    --resume
