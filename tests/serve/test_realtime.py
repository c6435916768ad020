"""What the kernel grants is what the kernel says, for whoever asks; and a run that needs it refuses without."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from interlock import _core
from interlock.cli.load import load_bound
from interlock.serve.limits import read_back
from interlock.serve.paced import PacedOptions, PacedRun
from interlock.view.recording import Recording

pytest.importorskip("mujoco", reason="the simulated arm needs the extra `sim`")

TASK = "reach the red block"
PRIORITY = 50  # of the control thread; the driver gets 45, the worker 40
REFUSED = 5
NOBODY = 65534
UNBOUNDED = resource.RLIM_INFINITY
LITTLE = 1 << 16  # bytes
CPUS = sorted(os.sched_getaffinity(0))

IS_ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not IS_ROOT, reason="only root can take and give privileges here")


def grantable() -> bool:
    return bool(_core.try_realtime(PRIORITY)["complete"])


def arm_run(arm_policy, folder, **options):
    bound = load_bound(arm_policy, arm_policy.parent / "robot.yaml")
    recording = folder / "run.mcap"
    driver_options = {"seed": 3, "task": TASK}
    return PacedRun(
        bound,
        PacedOptions(
            driver="sim:arm", driver_options=driver_options, recording=recording, record_images="none",
            simulated=True, **options,
        ),
    )  # fmt: skip


def control_thread() -> int:
    """Thread number of this process's control thread."""
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text(encoding="utf-8").strip() == "control":
            return int(task.name)
    raise AssertionError("no control thread")


def locked_bytes() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmLck:"))


def test_everything_that_is_told_as_granted_holds_by_the_kernels_own_word(arm_policy, tmp_path):
    if not grantable():
        pytest.skip("this user may not have SCHED_FIFO and locked memory")
    cpu = CPUS[-1]
    with arm_run(arm_policy, tmp_path, realtime_priority=PRIORITY, realtime_required=True, cpu=cpu) as run:
        thread, granted = control_thread(), run.granted
        assert granted["complete"]
        assert granted["missing"] == granted["refused"] == []
        assert os.sched_getscheduler(thread) == os.SCHED_FIFO
        assert os.sched_getparam(thread).sched_priority == granted["priority"] == PRIORITY
        assert sorted(os.sched_getaffinity(thread)) == granted["cpus"] == [cpu]
        assert locked_bytes() >= granted["locked_bytes"] > 0
        assert granted["memory_locked"]
        for child, role, below in ((run.driver, "driver", 5), (run.worker, "worker", 10)):
            told = granted["processes"][role]
            assert os.sched_getscheduler(child.process.pid) == os.SCHED_FIFO
            assert told == read_back(child.process.pid)
            assert (told["scheduler"], told["priority"]) == ("fifo", PRIORITY - below)
    assert locked_bytes() == 0, "what was locked for the run is not kept"
    header = Recording.open(tmp_path / "run.mcap").header
    assert {**header["granted"], "processes": header["processes"]} == granted


def test_without_real_time_the_timers_are_exact_and_nothing_is_told_that_is_not(arm_policy, tmp_path):
    with arm_run(arm_policy, tmp_path) as run:
        thread, granted = control_thread(), run.granted
        assert os.sched_getscheduler(thread) == os.SCHED_OTHER
        assert (granted["scheduler"], granted["priority"]) == ("other", 0)
        assert granted["timer_slack_ns"] == 1, "the kernel's default of 50 us would be every tick's lateness"
        assert not granted["memory_locked"]
        assert granted["complete"], "nothing was asked for"
        assert granted["processes"]["driver"]["scheduler"] == "other"


def groups_here() -> set[str]:
    """Paths in which the kernel says this process is."""
    return {line.split(":", 2)[2] for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()}


def test_control_groups_stand_there_as_the_kernel_names_them():
    granted = _core.try_realtime(0)
    assert {group["path"] for group in granted["cgroups"]} <= groups_here()
    assert all(group["allows"] for group in granted["cgroups"])


# ---- the command line, as users with and without privileges


@pytest.fixture
def unprivileged(arm_policy, tmp_path):
    """Runs the arm as a user without privileges but that of reading this installation, and those given."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv (util-linux) is not installed")
    tmp_path.chmod(0o777)

    def call(*more, capabilities=(), rtprio=0, memlock=LITTLE):
        only = ",".join(["-all", *(f"+{each}" for each in ("dac_read_search", *capabilities))])
        drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        drop += [f"--inh-caps={only}", f"--ambient-caps={only}", f"--bounding-set={only}"]

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_RTPRIO, (rtprio, rtprio))
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (memlock, memlock))

        return command(arm_policy, tmp_path / "out", *more, before=drop, preexec_fn=limit)

    return call


def command(arm_policy, out, *more, before=(), **options):
    """`interlock run` of the arm for a moment."""
    words = ["run", "reach-block.policy", "--sim", "--task", TASK, "--seconds", "0.3", "--record", "none"]
    home = {"HOME": str(out.parent), "XDG_RUNTIME_DIR": str(out.parent)}
    return subprocess.run(
        [*before, sys.executable, "-m", "interlock", *words, "-o", str(out), "--json", *more],
        cwd=arm_policy.parent, env={**os.environ, **home}, capture_output=True, text=True, check=False, **options,
    )  # fmt: skip


def problems(done) -> dict[str, dict[str, str]]:
    """Problems of a refusal by what was refused."""
    assert done.returncode == REFUSED, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    told = json.loads(done.stdout)
    assert told["error"] == "realtime-refused"
    return {each["where"].removeprefix("--require-rt: "): each for each in told["problems"]}


@as_root
def test_a_user_without_privileges_is_refused_and_told_what_to_do(unprivileged, tmp_path):
    refused = problems(unprivileged("--require-rt"))
    assert set(refused) == {"memory", "scheduler"}
    assert "rtprio 50" in refused["scheduler"]["hint"]
    assert "CAP_SYS_NICE" in refused["scheduler"]["hint"]
    assert "memlock unlimited" in refused["memory"]["hint"]
    assert "Operation not permitted" in refused["scheduler"]["got"]
    assert not (tmp_path / "out").exists(), "nothing was started, nothing was recorded"


@as_root
def test_without_the_demand_the_same_user_runs_and_the_recording_says_what_was_missing(unprivileged, tmp_path):
    done = unprivileged()
    assert done.returncode == 0, done.stdout + done.stderr
    granted = Recording.open(tmp_path / "out" / "run.mcap").header["granted"]
    assert granted["missing"] == ["memory", "scheduler"]
    assert (granted["scheduler"], granted["asked_priority"], granted["timer_slack_ns"]) == ("other", PRIORITY, 1)
    assert (granted["rtprio_limit"], granted["memlock_limit"]) == (0, LITTLE)


def is_granted(done, folder) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    header = Recording.open(folder / "out" / "run.mcap").header
    assert header["granted"]["complete"]
    assert (header["granted"]["scheduler"], header["granted"]["priority"]) == ("fifo", PRIORITY)
    assert [header["processes"][role]["priority"] for role in ("driver", "worker")] == [PRIORITY - 5, PRIORITY - 10]


@as_root
def test_two_lines_in_limits_conf_are_enough(unprivileged, tmp_path):
    try:
        done = unprivileged("--require-rt", rtprio=PRIORITY, memlock=UNBOUNDED)
    except subprocess.SubprocessError:
        pytest.skip("root may not raise limits here: it lacks CAP_SYS_RESOURCE")
    is_granted(done, tmp_path)


@as_root
def test_two_capabilities_are_enough(unprivileged, tmp_path):
    is_granted(unprivileged("--require-rt", capabilities=("sys_nice", "ipc_lock")), tmp_path)


@as_root
@pytest.mark.parametrize(("given", "missing"), [("sys_nice", "memory"), ("ipc_lock", "scheduler")])
def test_half_of_it_is_not_enough(unprivileged, given, missing):
    assert set(problems(unprivileged("--require-rt", capabilities=(given,)))) == {missing}


def test_a_processor_that_does_not_exist_is_refused_by_name(arm_policy, tmp_path):
    wrong = CPUS[-1] + 500
    if not grantable():
        pytest.skip("this user is refused more than the processor")
    refused = problems(command(arm_policy, tmp_path / "out", "--require-rt", "--cpu", str(wrong)))
    assert set(refused) == {"affinity"}
    assert f"processor {wrong}" in refused["affinity"]["got"]
    assert str(CPUS) in refused["affinity"]["got"], "those that there are"


def test_a_processor_that_is_only_wished_for_is_said_to_be_refused(arm_policy, tmp_path):
    wrong = CPUS[-1] + 500
    done = command(arm_policy, tmp_path / "out", "--realtime", "off", "--cpu", str(wrong))
    assert done.returncode == 0, done.stdout + done.stderr
    granted = Recording.open(tmp_path / "out" / "run.mcap").header["granted"]
    assert granted["missing"] == ["affinity"]
    assert (granted["asked_cpu"], granted["cpus"]) == (wrong, CPUS)


@pytest.fixture
def one_processor():
    """A control group whose members may run on the first processor only; skips where none can be made."""
    if len(CPUS) < 2:
        pytest.skip("one processor is all there is")
    group = Path("/sys/fs/cgroup/cpuset/interlock-test")
    unified = Path("/sys/fs/cgroup/cgroup.controllers")
    if unified.exists() and "cpuset" in unified.read_text(encoding="ascii"):
        group = Path("/sys/fs/cgroup/interlock-test")
    try:
        group.mkdir()
    except OSError as cause:
        pytest.skip(f"no control group can be made here: {cause}")
    try:
        try:
            (group / "cpuset.mems").write_text((group.parent / "cpuset.mems").read_text(encoding="ascii") or "0")
            (group / "cpuset.cpus").write_text(str(CPUS[0]))
        except OSError as cause:
            pytest.skip(f"no processors can be given to a control group here: {cause}")
        yield group
    finally:
        group.rmdir()


def test_a_processor_outside_the_control_group_is_refused(arm_policy, tmp_path, one_processor):
    if not grantable():
        pytest.skip("this user is refused more than the processor")

    def join() -> None:
        (one_processor / "cgroup.procs").write_text(str(os.getpid()))

    refused = problems(command(arm_policy, tmp_path / "out", "--require-rt", "--cpu", str(CPUS[1]), preexec_fn=join))
    assert set(refused) == {"affinity"}
    assert f"[{CPUS[0]}]" in refused["affinity"]["got"]
    done = command(arm_policy, tmp_path / "out", "--cpu", str(CPUS[0]), preexec_fn=join)
    assert done.returncode == 0, done.stdout + done.stderr
    granted = Recording.open(tmp_path / "out" / "run.mcap").header["granted"]
    allowed = [group["allows"] for group in granted["cgroups"] if group["controller"] == "cpuset"]
    assert [value for pairs in allowed for _, value in pairs] == [str(CPUS[0])]


@pytest.mark.parametrize("also", [["--realtime", "off"], ["--lockstep"]], ids=" ".join)
def test_what_contradicts_the_demand_is_misuse(arm_policy, tmp_path, also):
    done = command(arm_policy, tmp_path / "out", "--require-rt", *also)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"] == "realtime-contradiction"
