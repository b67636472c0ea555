"""What scripts/slurm/job.sh decides, with stand-ins for srun, mpirun, scontrol and the program: which launcher, whether the
job is run again, with which code it ends. scripts/slurm/test_cluster.sh holds the same against a real Slurm.

Each stand-in is a shell script in a folder of its own, first in PATH; the program writes the status.json that a test asks for.
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

PROGRAM = """#!/bin/bash
for word in "$@"; do if [ "$word" = --print-config ]; then
  printf 'run:\\n  name: "a run"\\n  output_dir: "%s"\\n  seed: 1\\ndata:\\n  name: "wrong"\\n' "$FOLDER"
  exit
fi; done
trap 'echo x >>"$FOLDER/asked"' USR1
mkdir -p "$RUN"
touch "$FOLDER/begun"
[ -z "$HOLD" ] || until [ -e "$FOLDER/asked" ] && [ "$(wc -l <"$FOLDER/asked")" -ge "${ASKS:-1}" ]; do sleep 0.05; done
[ -z "$STATE" ] || printf '{\\n  "state": "%s",\\n  "reason": "asked, to stop",\\n  "step": %s,\\n  "exit_code": null,\\n  "pid": %s\\n}\\n' "$STATE" "$STEP" $$ >"$RUN/status.json"
exit "$CODE"
"""
# Runs the words after its own options, as the launchers do.
LAUNCHER = """#!/bin/bash
if [ "$1" = --mpi=list ]; then printf '%s\\n' "$PLUGINS"; exit; fi
mask=$((0x$(awk '/^SigBlk/ {print $2}' /proc/self/status) & 0x4000))
echo "$(basename "$0") $*, kill after ${OMPI_MCA_odls_base_sigkill_timeout:-none}, SIGTERM $([ $mask = 0 ] && echo heard || echo blocked)" >"$FOLDER/launched"
while [[ "$1" == --* || "$1" == none ]]; do shift; done
exec "$@"
"""
SCONTROL = """#!/bin/bash
case $1 in
  show) echo "JobId=7 JobName=x JobState=$JOB_STATE Reason=None" ;;
  requeue) [ -z "${REFUSE_REQUEUE:-}" ] && echo "$2" >>"$FOLDER/requeued" ;;
esac
"""


class Job(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory(prefix="simclr_job_")
        self.folder = pathlib.Path(self.place.name)
        self.run_folder = self.folder / "run"
        (self.folder / "bin").mkdir()
        for name, text in [("simclr_train", PROGRAM), ("srun", LAUNCHER), ("mpirun", LAUNCHER), ("scontrol", SCONTROL)]:
            (self.folder / "bin" / name).write_text(text)
            (self.folder / "bin" / name).chmod(0o755)

    def tearDown(self):
        self.place.cleanup()

    def start(self, script="train.sbatch", words=None, **settings):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SIMCLR_", "OMPI_"))}
        env.update(PATH=f"{self.folder}/bin:{env['PATH']}", FOLDER=str(self.folder), RUN=str(self.run_folder),
                   SLURM_JOB_ID="7", SLURM_JOB_NAME="simclr", SLURM_SUBMIT_DIR=str(ROOT), PLUGINS="MPI plugin types are... pmix none",
                   SIMCLR_PROGRAM=f"{self.folder}/bin/simclr_train", JOB_STATE="RUNNING", STATE="", STEP="0", CODE="0", HOLD="")
        env.update({k: str(v) for k, v in settings.items()})
        words = ["--config", "x.yaml", "--output", str(self.run_folder)] if words is None else words
        return subprocess.Popen(["bash", str(ROOT / "scripts/slurm" / script), *words], cwd=self.folder, env=env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def finish(self, process):
        self.output, _ = process.communicate(timeout=30)
        return process.returncode

    def job(self, *arguments, **settings):
        return self.finish(self.start(*arguments, **settings))

    def hold_and_send(self, number, **settings):
        process = self.start(HOLD="yes", **settings)
        end = time.monotonic() + 20
        while not (self.folder / "begun").exists() and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(number)
        return self.finish(process)

    @property
    def requeued(self):
        file = self.folder / "requeued"
        return file.read_text().split() if file.exists() else []

    @property
    def launched(self):
        return (self.folder / "launched").read_text()

    def test_finished(self):
        self.assertEqual(self.job(STATE="finished", STEP=9), 0, self.output)
        self.assertEqual(self.requeued, [])

    def test_stopped_is_run_again(self):
        self.assertEqual(self.job(STATE="stopped", STEP=9, CODE=75), 75)
        self.assertEqual(self.requeued, ["7"])
        self.assertIn("stopped at step 9", self.output)

    def test_a_requeue_that_slurm_refuses_is_reported(self):
        self.assertEqual(self.job(STATE="stopped", STEP=9, CODE=75, REFUSE_REQUEUE=1), 75, self.output)
        self.assertEqual(self.requeued, [])
        self.assertIn("scontrol did not requeue it; submit the job again", self.output)

    def test_stopped_counts_whatever_the_launcher_returns(self):
        self.assertEqual(self.job(STATE="stopped", STEP=9, CODE=1), 75)
        self.assertEqual(self.requeued, ["7"])

    def test_75_counts_whatever_the_file_says(self):
        # Asked before the run folder was open: no file of this start.
        self.assertEqual(self.job(STATE="", CODE=75), 75, self.output)
        self.assertEqual(self.requeued, ["7"])
        self.assertIn("stopped at step 0 (before the first step): requeued", self.output)
        self.job(STATE="stopped", STEP=9, CODE=75)
        for state in ("", "running"):  # the file of the start before; one that this start could not replace
            self.assertEqual(self.job(STATE=state, STEP=9, CODE=75), 75, self.output)
            self.assertIn("stopped at step 9 (before the first step): requeued", self.output)
        self.assertEqual(self.requeued, ["7"] * 4)

    def test_a_warning_that_ends_a_launcher_without_a_handler_is_a_stop(self):
        self.assertEqual(self.hold_and_send(signal.SIGUSR1, STATE="", CODE=138), 75, self.output)
        self.assertIn("(before the program had begun): requeued", self.output)
        self.assertEqual(self.requeued, ["7"])
        self.assertEqual(self.job(STATE="", CODE=138), 138, "no stop was requested")
        self.assertEqual(self.requeued, ["7"])

    def test_failures_are_not_run_again(self):
        for state, code, wanted in [("failed", 5, 5), ("", 2, 2), ("running", 137, 137), ("failed", 0, 1)]:
            with self.subTest(state=state, code=code):
                self.assertEqual(self.job(STATE=state, STEP=9, CODE=code), wanted, self.output)
                self.assertEqual(self.requeued, [])

    def test_a_refused_start_after_a_stop_is_a_failure(self):
        self.job(STATE="stopped", STEP=9, CODE=75)
        self.assertEqual(self.job(STATE="", CODE=2), 2, self.output)
        self.assertEqual(self.requeued, ["7"], "once, by the first")
        self.assertIn("not begun", self.output)

    def test_restarts_without_a_new_step_end(self):
        codes = [self.job(STATE="stopped", STEP=9, CODE=75) for _ in range(4)]
        self.assertEqual(codes, [75] * 4)
        self.assertEqual(len(self.requeued), 3, "the first has brought nine steps; then two that bring none are allowed")
        self.assertIn("not requeued: 3 consecutive starts", self.output)

    def test_a_new_step_clears_the_count(self):
        for step in (9, 9, 9, 10, 10, 10):
            self.job(STATE="stopped", STEP=step, CODE=75)
        self.assertEqual(len(self.requeued), 6)

    def test_the_warning_is_handed_on(self):
        self.assertEqual(self.hold_and_send(signal.SIGUSR1, STATE="stopped", STEP=9, CODE=75), 75, self.output)
        self.assertTrue((self.folder / "asked").exists())
        self.assertEqual(self.requeued, ["7"])

    def test_the_warning_is_repeated(self):
        # mpirun loses one that comes before it has started its ranks.
        self.assertEqual(self.hold_and_send(signal.SIGUSR1, STATE="stopped", STEP=9, CODE=75, ASKS=2), 75, self.output)
        self.assertEqual(self.requeued, ["7"])

    def test_slurms_own_end_is_left_to_slurm(self):
        self.assertEqual(self.hold_and_send(signal.SIGTERM, STATE="stopped", STEP=9, CODE=75), 75, self.output)
        self.assertTrue((self.folder / "asked").exists())
        self.assertEqual(self.requeued, [])

    def test_a_job_that_is_being_canceled_is_left_alone(self):
        self.assertEqual(self.job(STATE="stopped", STEP=9, CODE=75, JOB_STATE="CANCELLED"), 75)
        self.assertEqual(self.requeued, [])

    def test_an_array_requeues_its_task_alone(self):
        self.run_folder = self.folder / "all" / "mine" / "seed-3"
        self.job("seeds.sbatch", words=["--config", "x.yaml"], STATE="stopped", STEP=9, CODE=75, SLURM_ARRAY_JOB_ID=7, SLURM_ARRAY_TASK_ID=3,
                 SIMCLR_RUNS=self.folder / "all", SIMCLR_NAME="mine")
        self.assertEqual(self.requeued, ["7_3"], self.output)
        self.assertIn(f"--set run.seed=3 --output {self.folder}/all/mine/seed-3", self.launched)

    def test_srun_with_pmix_comes_first(self):
        self.job(STATE="finished", SLURM_CPUS_PER_TASK=8)
        self.assertIn("srun --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task=8 ", self.launched)
        self.job(STATE="finished", PLUGINS="cray_shasta\npmi2\npmix_v4\nnone")
        self.assertIn("srun --mpi=pmix_v4 ", self.launched)

    def test_without_pmix_mpirun_has_time_to_save(self):
        self.job(STATE="finished", PLUGINS="MPI plugin types are... none pmi2")
        self.assertRegex(self.launched, r"^mpirun --bind-to none .*kill after none, SIGTERM blocked$")
        self.job(STATE="finished", SIMCLR_LAUNCHER="mpirun", SLURM_JOB_NUM_NODES=2)
        self.assertRegex(self.launched, r"^mpirun --bind-to none .*kill after 20, SIGTERM heard$")
        self.job(STATE="finished", SIMCLR_LAUNCHER="mpirun", SLURM_JOB_NUM_NODES=2, OMPI_MCA_odls_base_sigkill_timeout=7)
        self.assertRegex(self.launched, r"^mpirun .*kill after 7, ")
        self.assertEqual(self.job(SIMCLR_LAUNCHER="srun", PLUGINS="none pmi2"), 2)
        self.assertIn("SIMCLR_LAUNCHER=mpirun", self.output)

    def test_the_program_names_the_run_folder(self):
        self.run_folder = self.folder / "a run"
        self.assertEqual(self.job(words=["--config", "x.yaml"], STATE="stopped", STEP=9, CODE=75), 75, self.output)
        self.assertEqual(self.requeued, ["7"])

    def test_wrong_starts_say_what_to_do(self):
        self.assertEqual(self.job(SLURM_SUBMIT_DIR=self.folder), 2)
        self.assertIn("submit from the repository's root, or set SIMCLR_ROOT", self.output)
        self.assertEqual(self.job(SIMCLR_PROGRAM=self.folder / "none"), 2)
        self.assertIn("set SIMCLR_PROGRAM", self.output)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
