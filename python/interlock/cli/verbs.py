"""The verbs: what each takes, in words and with examples. What they do stands in one module each."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

# `readable=False` leaves it to the verb to refuse what cannot be read: with a code, a hint and the next command.
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
RobotFile = Annotated[
    Path, typer.Option("--robot", "-r", help="The robot file.", show_default="./robot.yaml", readable=False)
]
PolicyFolder = Annotated[Path, typer.Argument(help="A policy folder, NAME.policy.", show_default=False, readable=False)]
Answers = Annotated[
    Path | None,
    typer.Option("--answers", help="YAML with answers to what no file says.", show_default=False, readable=False),
]

Python = Annotated[
    Path | None,
    typer.Option("--python", help="Interpreter that has the source framework.", show_default=False, readable=False),
]

DEFAULT_ROBOT = Path("robot.yaml")


class Images(str, Enum):
    """How images are recorded."""

    png = "png"
    raw = "raw"
    none = "none"


class Realtime(str, Enum):
    """Whether the control thread asks for real-time scheduling."""

    auto = "auto"
    off = "off"


class Level(str, Enum):
    """How grave a line is."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


def register(app: typer.Typer) -> None:
    """Adds every verb to the command line."""
    app.callback()(interlock)
    robot = typer.Typer(help="Describe a robot.", no_args_is_help=True)
    robot.command("import", epilog=_examples("interlock robot import g1.xml g1_rev2.xml -o g1.yaml"))(robot_import)
    app.command("go", epilog=_examples("interlock go demo", "interlock go exported/ --robot g1.yaml --goal 0.5,0,0"))(
        go
    )
    app.add_typer(robot, name="robot")
    app.command(
        "freeze", epilog=_examples("interlock freeze exported/ --robot g1.yaml --answers a.yaml -o g1-velocity.policy")
    )(freeze)
    app.command("check", epilog=_examples("interlock check g1-velocity.policy --robot g1.yaml"))(check)
    app.command("build", epilog=_examples("interlock build reach-block.policy"))(build)
    app.command("verify", epilog=_examples("interlock verify reach-block.policy --robot robot.yaml"))(verify)
    app.command(
        "run",
        epilog=_examples(
            "interlock run reach-block.policy --sim --task 'reach the red block'",
            "interlock run g1-velocity.policy --robot g1.yaml --sim --goal 0.5,0,0 --lockstep",
            "interlock run reach-block.policy --sim --task 'reach the red block' --metrics 9464",
        ),
    )(run)
    app.command("watch", epilog=_examples("interlock watch", "interlock watch runs/one --json"))(watch)
    app.command("report", epilog=_examples("interlock report runs/demo -o report.html"))(report)
    app.command(
        "show",
        epilog=_examples(
            "interlock show g1-velocity.policy --full",
            "interlock show worker-dead",
            "interlock show runs/one --log --module guard,mode --level warning",
        ),
    )(show)


def _examples(*lines: str) -> str:
    return "[bold]Examples[/bold]\n\n" + "\n\n".join(f"$ {line}" for line in lines)


def _version(*, asked: bool) -> None:
    if asked:
        from interlock.artifact.environment import version_of

        typer.echo(f"interlock {version_of('interlock')}")
        raise typer.Exit


def interlock(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=lambda asked: _version(asked=asked), is_eager=True
        ),
    ] = False,
) -> None:
    """Takes a trained robot policy from its checkpoint to a guarded robot, and keeps it safe there."""


def go(
    source: Annotated[str, typer.Argument(help="`demo`, or a checkpoint file or folder.", show_default=False)],
    robot: RobotFile = DEFAULT_ROBOT,
    answers: Answers = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Policy folder.", show_default=False)] = None,
    until: Annotated[str, typer.Option(help="Last step: freeze, check, build, verify or run.")] = "run",
    task: Annotated[str | None, typer.Option(help="Task text for the run.", show_default=False)] = None,
    goal: Annotated[str | None, typer.Option(help="Velocity goal VX,VY,WZ.", show_default=False)] = None,
    folder: Annotated[Path, typer.Option(help="Where `go demo` writes.")] = Path("runs/demo"),
    episodes: Annotated[int, typer.Option(help="Episodes of `go demo`.", min=1)] = 20,
    as_json: Json = False,
) -> int:
    """Everything due, in order, until a question or a FAIL; ends in simulation. `go demo` needs nothing at all."""
    from interlock.cli import go as verb

    if source == "demo":
        verb.require_plain_demo(robot=robot, answers=answers, output=output, until=until, task=task, goal=goal)
        return verb.demo(folder, episodes=episodes, as_json=as_json)
    return verb.go(
        Path(source), robot=robot, answers=answers, output=output, until=until, task=task, goal=goal, as_json=as_json
    )


def robot_import(
    files: Annotated[
        list[Path], typer.Argument(help="MJCF or URDF files of one robot; the tightest limit is kept.", readable=False)
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Robot file to write.")] = DEFAULT_ROBOT,
    as_json: Json = False,
) -> int:
    """Make a robot file from model files; what they do not say becomes `ask`."""
    from interlock.cli import robot as verb

    return verb.import_files(files, output, as_json=as_json)


def freeze(
    source: Annotated[Path, typer.Argument(help="A checkpoint file or folder.", show_default=False, readable=False)],
    robot: Annotated[
        Path | None, typer.Option("--robot", "-r", help="Robot file.", show_default=False, readable=False)
    ] = None,
    answers: Answers = None,
    contract: Annotated[
        Path | None,
        typer.Option(help="A contract written by hand, where the checkpoint says nothing.", readable=False),
    ] = None,
    reader: Annotated[
        str, typer.Option(help="Which reader, where several fit; `onnx` believes --contract.", show_default=False)
    ] = "",
    samples: Annotated[
        Path | None, typer.Option(help="Raw observations (npz) to make golden samples from.", readable=False)
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="NAME.policy", show_default=False)] = None,
    python: Python = None,
    as_json: Json = False,
) -> int:
    """Freeze what the policy was trained on into a contract, with golden samples from its own framework."""
    from interlock.cli import release as verb

    return verb.freeze(
        source,
        robot=robot,
        answers=answers,
        contract=contract,
        reader=reader,
        samples=samples,
        output=output,
        python=python,
        as_json=as_json,
    )


def check(policy: PolicyFolder, robot: RobotFile = DEFAULT_ROBOT, as_json: Json = False) -> int:
    """Does this policy fit this robot, and what will the guard enforce? Never moves anything."""
    from interlock.cli import release as verb

    return verb.check(policy, robot, as_json=as_json)


def build(policy: PolicyFolder, robot: RobotFile = DEFAULT_ROBOT, python: Python = None, as_json: Json = False) -> int:
    """Export the graph and compile the engine that will run."""
    from interlock.cli import release as verb

    return verb.build(policy, robot, python=python, as_json=as_json)


def verify(policy: PolicyFolder, robot: RobotFile = DEFAULT_ROBOT, python: Python = None, as_json: Json = False) -> int:
    """Prove that source, graph and served engine act alike, in physical units."""
    from interlock.cli import release as verb

    return verb.verify(policy, robot, python=python, as_json=as_json)


def run(
    policy: PolicyFolder,
    robot: RobotFile = DEFAULT_ROBOT,
    sim: Annotated[bool, typer.Option("--sim", help="Run the robot file's simulation.")] = False,
    dry: Annotated[bool, typer.Option("--dry", help="Read the robot, send nothing.")] = False,
    lockstep: Annotated[bool, typer.Option("--lockstep", help="One process on a manual clock (with --sim).")] = False,
    task: Annotated[str | None, typer.Option(help="Task text.", show_default=False)] = None,
    goal: Annotated[str | None, typer.Option(help="Velocity goal VX,VY,WZ (m/s, m/s, rad/s).")] = None,
    seconds: Annotated[float, typer.Option(help="Longest episode.", min=0.1, max=86400)] = 10.0,
    episodes: Annotated[int, typer.Option(help="Episodes.", min=1, max=100000)] = 1,
    seed: Annotated[int, typer.Option(help="Of the first simulated episode.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Run folder.", show_default="runs/TIME-NAME")
    ] = None,
    record: Annotated[Images, typer.Option(help="How images are recorded.")] = Images.png,
    realtime: Annotated[Realtime, typer.Option(help="Ask for SCHED_FIFO and locked memory.")] = Realtime.auto,
    require_rt: Annotated[
        bool, typer.Option("--require-rt", help="Refuse to run unless the kernel grants all of it, --cpu included.")
    ] = False,
    cpu: Annotated[
        int | None, typer.Option(help="Processor for the control thread.", min=0, show_default=False)
    ] = None,
    worker_memory: Annotated[
        int | None,
        typer.Option(
            help="MiB that the policy's process may allocate; 0: no bound.",
            min=0,
            max=1 << 30,
            show_default="by the model's size",
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="The operator arms and starts (keys a, Enter; words on the socket).")
    ] = False,
    metrics: Annotated[
        int | None,
        typer.Option(
            help="Serve numbers for Prometheus on this port of 127.0.0.1.", min=0, max=65535, show_default=False
        ),
    ] = None,
    probe: Annotated[
        str | None,
        typer.Option(help="Publish the policy's probes at ipc:///PATH or tcp://127.0.0.1:PORT.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> int:
    """Run a policy on its control cadence, behind the guard. A real robot runs a verified one only."""
    from interlock.cli import run as verb
    from interlock.cli.asked import Asked

    return verb.run(
        policy,
        robot,
        Asked(
            sim=sim,
            dry=dry,
            lockstep=lockstep,
            task=task,
            goal=goal,
            seconds=seconds,
            episodes=episodes,
            seed=seed,
            output=output,
            record=record.value,
            realtime=realtime.value,
            require_rt=require_rt,
            cpu=cpu,
            worker_memory=worker_memory,
            wait=wait,
            metrics=metrics,
            probe=probe,
        ),
        as_json=as_json,
    )


def watch(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="A run's folder; without one, the newest that runs here.", show_default=False, readable=False
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="One look, then done.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line, a line a second.")] = False,
) -> int:
    """Watch a run of yours live: modes, times, rulings, misses, queues. Reads shared memory; cannot slow the loop."""
    from interlock.cli import watch as verb

    return verb.watch(folder, once=once, as_json=as_json)


def report(
    recording: Annotated[
        Path, typer.Argument(help="A run folder or its run.mcap.", show_default=False, readable=False)
    ],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="HTML page.", show_default=False)] = None,
    as_json: Json = False,
) -> int:
    """One self-contained page: latency per stage, misses, limits that acted, modes, pictures."""
    from interlock.cli import report as verb

    return verb.report(recording, output, as_json=as_json)


def show(
    thing: Annotated[str, typer.Argument(help="A policy folder, robot file, run or code.", show_default=False)],
    full: Annotated[bool, typer.Option("--full", help="Expanded arrays too.")] = False,
    log: Annotated[
        bool,
        typer.Option("--log", help="Of a run: every module on one timeline, a line each; with --json an object each."),
    ] = False,
    module: Annotated[str, typer.Option(help="With --log: only these, such as guard,mode.", show_default=False)] = "",
    level: Annotated[Level, typer.Option(help="With --log: this and everything graver.")] = Level.info,
    as_json: Json = False,
) -> int:
    """Show anything: a policy, a robot, a run, a code."""
    from interlock.cli import show as verb

    verb.require_heeded(log=log, full=full, module=module, level=level.value)
    if log:
        return verb.show_log(thing, modules=module, level=level.value, as_json=as_json)
    return verb.show(thing, full=full, as_json=as_json)
