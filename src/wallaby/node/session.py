"""One query at one worker: its channels, their deliveries and re-reads, and their epoch.

The session's look is the only place where a worker changes its view of the query: a view of a new epoch drops the
channels that moved elsewhere, begins those that arrived, and restarts deliveries from what the store says. Within an
epoch routes are constant. Everything else continues through a recovery: state, arrived slices, and attempts that are
executed but not committed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wallaby.errors import MemoryLimitError, QueryError, WallabyError
from wallaby.gcs.interface import Assignment, QueryView
from wallaby.lineage.aligned import run_aligned, run_aligned_collector
from wallaby.lineage.attempt import (
    RETRY_MS,
    ChannelPhase,
    ChannelRun,
    WorkerContext,
    run_channel,
    run_collector,
    used_sides,
    verify,
)
from wallaby.lineage.barriers import AlignedInbox, Start
from wallaby.lineage.choose import DrawPolicy, Static
from wallaby.lineage.effects import (
    Acknowledge,
    Await,
    BackUp,
    ClaimReRead,
    Effects,
    Execute,
    Fail,
    FailPoint,
    Leave,
    Pause,
    Push,
    PushReply,
    Slice,
    ask,
)
from wallaby.lineage.graph import StageGraph
from wallaby.lineage.inbox import Inbox
from wallaby.lineage.kept import run_keeper
from wallaby.lineage.lineage import decode
from wallaby.lineage.names import HEAD, ChannelName, Edge, TaskName, WorkerId
from wallaby.lineage.outbox import Outbox
from wallaby.lineage.tolerance import LINEAGE, Tolerance
from wallaby.lineage.verdict import Claim, Verdict
from wallaby.node.actors import ActorKind, ActorName
from wallaby.node.effects import Complain, Look, Spawn, Stop
from wallaby.node.reaching import UnansweredPushes

#: A refused edge is tried again with every n-th push, and after every wait.
PROBE_EVERY_PUSHES = 8


@dataclass(frozen=True, slots=True)
class QuerySessionSettings:
    """Settings of a session. The window and the policy are constants of the query, equal on every worker."""

    policy: DrawPolicy
    window_bytes: int
    tolerance: Tolerance = LINEAGE
    outputs_per_push: int = 32
    reread_slots: int = 1
    look_every_ms: int = 200
    #: The most that the side inputs of a query may take at one worker; None: no limit.
    sides_bytes: int | None = None
    #: The snapshot from which all channels go on after a roll-back.
    start: Start | None = None


class QuerySession:
    """See the module. `collected` is called on the head once the whole result is there, at the client or at workers."""

    def __init__(
        self,
        worker: WorkerId,
        graph: StageGraph,
        settings: QuerySessionSettings,
        collected: Callable[[], None],
    ) -> None:
        self.worker = worker
        self.graph = graph
        self.over = False
        self.runs: dict[ChannelName, ChannelRun] = {}
        tolerance = settings.tolerance
        self.context = WorkerContext(graph, settings.policy, Outbox(graph, tolerance), tolerance)
        self._settings = settings
        self._collected = collected
        self._rereads_waiting = False
        #: The query has been ended because of its side inputs.
        self._refused = False
        self._slots = 0
        self._routes: dict[ChannelName, WorkerId] = {}
        self._delivering_to: set[WorkerId] = set()
        self.reaching = UnansweredPushes()
        #: The epoch of the acknowledgement that is under way, if one is.
        self._acknowledging: int | None = None

    # --- looking -------------------------------------------------------------------------------------

    def run(self) -> Effects[None]:
        """Look until the query, or this worker's part in it, has ended."""
        for _ in range(self._settings.reread_slots):
            yield self._spawn_slot()
        while not self.over:
            self.context.look_wanted = False
            view = yield from ask(Look())
            match view and view.verdict:
                case Verdict.DONE:
                    assert view is not None
                    yield from self._adopt(view)
                case Verdict.GONE | Verdict.EXPELLED:
                    self.over = True
                case _:
                    pass  # frozen, not a member yet, or no answer: look again
            if not self.over:
                yield Pause(self._settings.look_every_ms)

    def _adopt(self, view: QueryView) -> Effects[None]:
        """Adopt a view: first what changes only with the epoch, then what changes within it."""
        if view.epoch != self.context.epoch:
            yield from self._begin_epoch(view)
        for assignment in view.assignments:
            self.runs[assignment.channel].closed |= assignment.closed
        self._rereads_waiting = view.rereads_waiting

    def _begin_epoch(self, view: QueryView) -> Effects[None]:
        """Apply all changes of a new epoch at once, before any other generator runs; then wake the others."""
        mine = tuple(assignment.channel for assignment in view.assignments)
        present = {each.channel: (each.since_epoch, each.base) for each in view.assignments}
        # Another run: the channel was rewound in place, or has been elsewhere meanwhile.
        gone = [name for name, run in self.runs.items() if present.get(name) != (run.since_epoch, run.base)]
        for name in gone:
            del self.runs[name]
        self._routes = dict(view.routes or {})
        self.context.epoch = view.epoch
        self.context.outbox.begin_epoch(view.delivered or {}, self._routes, mine)
        self.reaching.begin_epoch()
        begun = [(a.channel, self._begin(a)) for a in view.assignments if a.channel not in self.runs]
        for name in gone:
            yield Stop(ActorName(ActorKind.CHANNEL, name))
        for name, effects in begun:
            yield Spawn(
                ActorName(ActorKind.CHANNEL, name), self._during(self.runs[name], self._guarded(effects))
            )
        for target in sorted(set(self._routes.values()) - self._delivering_to):
            self._delivering_to.add(target)
            yield Spawn(ActorName(ActorKind.DELIVERY, target), self._guarded(self._deliver(target)))

    def _begin(self, assignment: Assignment) -> Effects[None]:
        """Begin a channel at this worker: with an empty inbox, from its base."""
        policy = self._settings.policy
        reserve = policy.outputs if isinstance(policy, Static) else 1
        tolerance = self.context.tolerance
        # Nothing has to be repeated for a state from which nothing continues.
        rests = tolerance.rests(ended=assignment.final or assignment.closed)
        is_reader = self.graph.is_reader(assignment.channel.stage)
        phase = ChannelPhase.CHOOSING
        if assignment.final and (rests or assignment.base == assignment.length):
            phase = ChannelPhase.ENDED
        elif assignment.length > 0 and not is_reader and not rests:
            phase = ChannelPhase.RETRACING
        run = ChannelRun(
            context=self.context,
            channel=assignment.channel,
            inbox=Inbox(self.graph, assignment.channel, self._settings.window_bytes, reserve),
            base=assignment.base,
            length=assignment.length,
            split=assignment.split,
            closed=assignment.closed,
            since_epoch=assignment.since_epoch,
            phase=phase,
        )
        self.runs[assignment.channel] = run
        self.context.outbox.start(assignment.channel, *tolerance.at_hand(assignment.base, assignment.length))
        if tolerance.rolls_back:
            run.inbox = AlignedInbox(self.graph, run.channel, self._settings.window_bytes, reserve)
            return self._aligned(run)
        if assignment.channel == self.graph.collector:
            return (run_keeper if self.graph.keeps else run_collector)(run, self._collected)
        if run.ended:
            self.context.outbox.end(assignment.channel)
            if not is_reader:  # as when a channel ends: what still arrives is accepted and dropped
                run.inbox.discard()
            return _nothing()
        return run_channel(run)

    def _aligned(self, run: ChannelRun) -> Effects[None]:
        if run.channel == self.graph.collector:
            return run_aligned_collector(run, self._collected, self._settings.start)
        return run_aligned(run, self._settings.start)

    def _guarded(self, effects: Effects[None]) -> Effects[None]:
        """Drive a generator: a query's own error ends the query through the store, anything else ends the worker."""
        try:
            yield from effects
        except QueryError as error:
            yield from self.fail(error)

    def fail(self, error: QueryError) -> Effects[None]:
        """End the query with an error, through the store."""
        while (yield from ask(Fail(error, self.context.epoch))) in (Verdict.FROZEN, Verdict.STALE, None):
            self.context.look_wanted = True
            yield Pause(RETRY_MS, FailPoint.FAIL)

    def _during(self, run: ChannelRun, effects: Effects[None]) -> Effects[None]:
        """Drive a channel's generator while its run lasts; later answers have no effect.

        A generator is stopped some steps after its run has ended, and may be woken before that, or only then begin. It
        must not commit, publish or end anything in the name of the following run.
        """
        answer, error = None, None
        try:
            while self.runs.get(run.channel) is run:
                effect = effects.throw(error) if error is not None else effects.send(answer)
                answer, error = None, None
                try:
                    answer = yield effect
                except WallabyError as thrown:
                    error = thrown
        except StopIteration:
            return
        effects.close()

    def news(self) -> tuple[int, ...]:
        """What a look may change; if it differs from before, the waiting actors of the session are woken."""
        closed = sum(run.closed for run in self.runs.values())
        return (self.context.epoch, len(self.runs), closed, self._rereads_waiting)

    # --- delivering ----------------------------------------------------------------------------------

    def _deliver(self, target: WorkerId) -> Effects[None]:
        """Push what is due to one worker, in order per edge, until the session ends.

        While other edges progress, a refused edge is tried only with every few pushes.
        """
        pushes = 0
        while not self.over:
            epoch, news = self.context.epoch, self.context.outbox.news
            probing = pushes % PROBE_EVERY_PUSHES == 0
            items = self.context.outbox.due(target, self._settings.outputs_per_push, probing=probing)
            pushes += 1
            if not items:
                yield from self._speak_of(target)
                yield from self._acknowledge()
                # If something was published meanwhile, this actor was not woken for it.
                if news == self.context.outbox.news:
                    yield Await()
                pushes = 0
                continue
            reply = yield from ask(Push(FailPoint.DELIVER, epoch, self.worker, target, items))
            moved = False
            if self.context.epoch == epoch:
                yield from self._judge(target, items, reply)
            if reply is not None and reply.accepted and self.context.epoch == epoch:
                moved = self.context.outbox.confirm(items, reply.held)
            if moved:
                yield from self._acknowledge()
            else:
                if news == self.context.outbox.news:
                    yield Await()
                pushes = 0

    def _judge(
        self, target: WorkerId, items: tuple[tuple[Edge, TaskName], ...], reply: PushReply | None
    ) -> Effects[None]:
        """Complain about a worker that does not answer, renew the complaint, and withdraw it when the worker answers.

        The answer to a push that was cut says nothing about slices that were not sent.
        """
        spoken_of = items if reply is None or not reply.accepted else items[: len(reply.held)]
        self.reaching.note(target, spoken_of, answered=reply is not None)
        yield from self._speak_of(target, unanswered=reply is None)

    def _speak_of(self, target: WorkerId, *, unanswered: bool = False) -> Effects[None]:
        """Report that a worker is out of reach, or withdraw that.

        The head is never expelled. A worker that cannot reach it is of no use to its queries, and accuses itself.
        """
        accused = self.worker if target == HEAD else target
        if self.reaching.is_out_of_reach(target):
            if unanswered:
                self.reaching.accused.add(target)
                yield Complain(accused, reachable=False)
        elif target in self.reaching.accused:
            taken_back = yield from ask(Complain(accused, reachable=True))
            if taken_back is not None and not self.reaching.is_out_of_reach(target):
                self.reaching.accused.discard(target)

    def _acknowledge(self) -> Effects[None]:
        """Write the deliveries of ended channels to the store; those of other channels go with their next commit.

        There is a delivery actor for every worker, but only one acknowledgement under way at a time; others leave their
        news to it. What is not known to be written is tried again whenever there is nothing to deliver.
        """
        epoch = self.context.epoch
        if self._acknowledging == epoch:
            return
        self._acknowledging = epoch
        try:
            while news := self.context.outbox.report_ended():
                verdict = yield from ask(Acknowledge(news, epoch))
                if verdict is not Verdict.DONE or self.context.epoch != epoch:
                    break
                self.context.outbox.reported(news)
        finally:
            if self._acknowledging == epoch:
                self._acknowledging = None

    def fetchable(self, channel: ChannelName, first: int, end: int) -> range:
        """Which of some outputs of a channel a reader may have from this worker: those it has published, in order.

        What is published is committed, so it does not matter in which epoch it is read.
        """
        if channel not in self.runs:
            return range(first, first)
        return range(first, max(first, min(end, self.context.outbox.published(channel))))

    def receive(self, epoch: int, target: WorkerId, slices: tuple[Slice, ...]) -> PushReply:
        """Accept what fits of a push of this epoch to this worker; refuse any other push as a whole.

        `arrived` of the channels' inboxes shows which channels got something new.
        """
        inboxes = self._inboxes(epoch, target, slices)
        if inboxes is None:
            return PushReply(accepted=False)
        held = tuple(inbox.offer(piece) for inbox, piece in zip(inboxes, slices, strict=True))
        return PushReply(accepted=True, held=held)

    def too_much_beside(self) -> MemoryLimitError | None:
        """The error if there is no room for the query's side inputs, which must be here as a whole; else None.

        An optional one is given up instead. That depends only on its size, so all channels do the same.
        """
        limit = self._settings.sides_bytes
        if limit is None or self._refused:
            return None
        sizes: dict[int, int] = {}
        for name, run in self.runs.items():
            for link in self.graph.sides(name.stage):
                size = run.inbox.link_bytes(link)
                if self.graph.links[link].required:
                    sizes[link] = max(sizes.get(link, 0), size)  # channels share what they hold
                elif size > limit:
                    run.inbox.give_up(link)
        size = sum(sizes.values())
        if size <= limit:
            return None
        self._refused = True
        largest = max(sizes, key=lambda link: sizes[link])
        return MemoryLimitError(
            f"The broadcast build sides have {size >> 20} MiB or more, {sizes[largest] >> 20} of them from stage "
            f"{self.graph.links[largest].producer}: more than was estimated, and more than the {limit >> 20} MiB "
            "available for them.",
            fix="Raise spark.wallaby.memory, or lower spark.wallaby.broadcast so that such sides are partitioned.",
            stage=self.graph.links[largest].consumer,
            operator="broadcast",
            memory_bytes=limit,
            setting="spark.wallaby.broadcast",
        )

    def preview(self, epoch: int, target: WorkerId, slices: tuple[Slice, ...]) -> PushReply:
        """What `receive` would now answer to slices whose bodies have not been sent."""
        inboxes = self._inboxes(epoch, target, slices)
        if inboxes is None:
            return PushReply(accepted=False)
        promised: dict[Edge, int] = {}
        held = []
        for inbox, piece in zip(inboxes, slices, strict=True):
            before = promised.get(piece.edge, 0)
            held.append(inbox.would_hold(piece, before))
            if held[-1]:
                promised[piece.edge] = before + inbox.added_bytes(piece)
        return PushReply(accepted=True, held=tuple(held))

    def _inboxes(self, epoch: int, target: WorkerId, slices: tuple[Slice, ...]) -> list[Inbox] | None:
        """The inboxes for the slices of a push; None if it is not of this epoch, or not for this worker."""
        if epoch != self.context.epoch or target != self.worker or self.over:
            self.context.look_wanted |= epoch > self.context.epoch
            return None
        runs = [self.runs.get(self.graph.consumer(piece.edge)) for piece in slices]
        inboxes = [run.inbox for run in runs if run is not None]
        return inboxes if len(inboxes) == len(slices) else None

    # --- re-reading ----------------------------------------------------------------------------------

    def _spawn_slot(self) -> Spawn:
        """Start one more slot. A slot whose output finds no room starts another, so that it blocks no other output."""
        slot, self._slots = self._slots, self._slots + 1
        return Spawn(ActorName(ActorKind.RE_READ, slot), self._guarded(self._reread_slot(slot)))

    def _reread_slot(self, slot: int) -> Effects[None]:
        """Claim, re-read, deliver and complete one output after the other, while there are any.

        A claim without an answer may have been granted, and then nobody else gets it: so it is repeated, within its
        epoch, until it is answered. A new epoch voids all claims.
        """
        completed: TaskName | None = None
        asked_in_epoch = 0
        while not self.over:
            epoch = self.context.epoch
            if asked_in_epoch != epoch:
                completed, asked_in_epoch = None, 0
            if not (self._rereads_waiting or asked_in_epoch):
                yield Await()
                continue
            asked_in_epoch = epoch
            claim = yield from ask(ClaimReRead(slot, completed, epoch))
            if claim is None or claim.verdict is not Verdict.DONE or epoch != self.context.epoch:
                self.context.look_wanted = True
                yield Pause(RETRY_MS, FailPoint.CLAIM)
            elif claim.task is None:
                self._rereads_waiting, completed, asked_in_epoch = False, None, 0
            elif (yield from self._reread(claim.task, claim, epoch)):
                completed = claim.task

    def _reread(self, task: TaskName, claim: Claim, epoch: int) -> Effects[bool]:
        """Repeat one read as its record says, and deliver it to the edges that need it. False: a new epoch."""
        record = decode(claim.record)
        links = [link for bit, link in enumerate(self.graph.sides(task.stage)) if record.sides >> bit & 1]
        while (inbox := self._inbox_of(task.stage)) is None or not all(map(inbox.is_whole, links)):
            yield Await()
            if epoch != self.context.epoch or self.over:
                return False
        sides = used_sides(self.graph, task.stage, inbox, record.sides)
        last = record.split is None
        _, output = yield from ask(Execute(FailPoint.REREAD, task, None, record.split, None, (), sides, last))
        verify(task, record, output)
        if not (yield from ask(BackUp(FailPoint.REREAD_BACK_UP, task, output, record.final, epoch))):
            yield Leave(f"no room to back {task} up")
        missing = sorted(claim.edges)
        yield from self._push_reread(task, missing, epoch)
        if missing and self._rereads_waiting and epoch == self.context.epoch:
            yield self._spawn_slot()
        while missing and epoch == self.context.epoch and not self.over:
            yield Await()
            yield from self._push_reread(task, missing, epoch)
        return not missing and epoch == self.context.epoch

    def _push_reread(self, task: TaskName, missing: list[Edge], epoch: int) -> Effects[None]:
        """Offer a re-read output once to every edge that lacks it; a push that was cut is followed by another.

        Edges that refuse it go behind the others, the first of them last: so each gets to be the first of a push, for
        which there is always room on the way.
        """
        by_target: dict[WorkerId, list[tuple[Edge, TaskName]]] = {}
        for edge in missing:
            target = self._routes.get(self.graph.consumer(edge))
            if target is not None:
                by_target.setdefault(target, []).append((edge, task))
        for target, items in by_target.items():
            at = 0
            while at < len(items) and epoch == self.context.epoch:
                left = tuple(items[at:])
                reply = yield from ask(Push(FailPoint.REREAD_DELIVER, epoch, self.worker, target, left))
                if epoch == self.context.epoch:
                    yield from self._judge(target, left, reply)
                if epoch != self.context.epoch or reply is None or not reply.held:
                    break
                sent = left[: len(reply.held)]
                at += len(sent)
                refused = [edge for (edge, _), held in zip(sent, reply.held, strict=True) if not held]
                for edge, _ in sent:
                    missing.remove(edge)
                missing += refused[1:] + refused[:1]

    def _inbox_of(self, stage: int) -> Inbox | None:
        """An inbox of this worker that receives the side inputs of a stage."""
        return next((t.inbox for name, t in self.runs.items() if name.stage == stage), None)


def _nothing() -> Effects[None]:
    return
    yield
