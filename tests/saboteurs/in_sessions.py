"""Mistakes in sessions that outlive their links: what counts as life, as received, and as safe."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from weirpool.core import replay
from weirpool.core.replay import Replay
from weirpool.core.timers import Timer
from weirpool.river import link as river_links
from weirpool.river import session as river_session
from weirpool.river.outbound import Sequence as Numbers
from weirpool.rsocket import session
from weirpool.rsocket.keepalive import Keepalive
from weirpool.rsocket.link import Link

from .patching import edited, replaced, together
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def river_hears_whole_messages() -> Sabotage:
    real = river_links.Link.receive

    def receive(self: Any, data: bytes, now: float) -> None:
        received_at, count = self._last_received_at, self._sequence.ack
        real(self, data, now)
        if self._sequence.ack == count:
            self._last_received_at = received_at

    return replaced((river_links.Link, "receive", receive))


def rsocket_output_is_no_life() -> Sabotage:
    def progressed(self: Any, now: float) -> None:
        self._losses.progressed(now)

    return replaced((Link, "progressed", progressed))


def silence_is_endured() -> Sabotage:
    def silent(self: Keepalive, now: float) -> bool:
        self._timers.set(Timer.SILENCE, now + self._lifetime)
        return False

    return replaced((Keepalive, "silent", silent))


def resent_for_ever() -> Sabotage:
    return replaced((river_links.Link, "_end_if_undeliverable", lambda self: None))


def river_takes_twice() -> Sabotage:
    edit = (
        "        # River, Transparent reconnections: it was handled already.\n",
        "        if not message.control_flags:\n            self._inbound.receive(message)\n",
    )
    return edited(river_links.Link, "_receive_message", edit)


def river_confirms_what_has_come() -> Sabotage:
    return replaced((Numbers, "reported", lambda self: self.ack))


def river_ignores_what_streams_hold() -> Sabotage:
    edit = "covered = min([state.seen_until for state in states], default=sequence.ack)", "covered = sequence.ack"
    return edited(river_session, "take", edit)


def river_reserves_nothing() -> Sabotage:
    edit = "    for _ in range(checkpoint.reserved):\n        outbound.send_heartbeat()\n", ""
    return edited(river_session, "restore", edit)


def rsocket_position_counts_prefixes() -> Sabotage:
    return edited(Link, "_receive_frame", (" - codec.prefix_bytes * (len(run) - 1)", ""))


def rsocket_replay_skips_a_frame() -> Sabotage:
    real = Replay.since

    def since(self: Replay, position: int) -> list[bytes]:
        found = real(self, position)
        return found[1:] if position > 0 else found

    return replaced((Replay, "since", since))


def rsocket_replay_repeats_a_frame() -> Sabotage:
    real = Replay.since

    def since(self: Replay, position: int) -> list[bytes]:
        starts = [start for start, _ in self._entries if start < position]
        return real(self, starts[-1] if starts else position)

    return replaced((Replay, "since", since))


def half_a_frame_survives() -> Sabotage:
    edit = "    self._deframer = deframer_of(self._codec, self._settings.max_frame_bytes)\n", ""
    return edited(Link, "forget_input", edit)


def half_a_message_survives() -> Sabotage:
    edit = "    self._deframer = deframer(self._settings.max_frame_bytes, pass_over=True)\n", ""
    return edited(river_links.Link, "_forget_input", edit)


def reported_what_has_come() -> Sabotage:
    edit = (
        "self._life.reported, stream_id, count = self._promised",
        "self._life.reported, (_, stream_id, count) = self._life.received, self._promised",
    )
    # A publisher that forgets by frames, not by entries of many small ones.
    return together(edited(session.RSocketSession, "commit", edit), replaced((replay, "ENTRY_FRAMES", 1)))


def resumed_at_what_has_come() -> Sabotage:
    return edited(Link, "_ask_to_resume", ("position = self._life.position()", "position = self._life.received"))


def request_not_retained() -> Sabotage:
    edit = "        retained.append(codec.request_n_frame(stream_id, count)[codec.prefix_bytes :])\n", ""
    return edited(session, "take_checkpoint", edit)


def set_up_said_once() -> Sabotage:
    return replaced((Link, "_can_begin_again", lambda self: False))


SABOTEURS: Sequence[Saboteur] = (
    Saboteur(
        "River counts only whole messages",
        "a River peer in the middle of a long message counts as silent",
        "RV1",
        "slow links",
        river_hears_whole_messages,
    ),
    Saboteur(
        "RSocket ignores output progress",
        "output that a link accepts does not count as a sign that an RSocket peer is alive",
        "RS6",
        "slow links",
        rsocket_output_is_no_life,
    ),
    Saboteur(
        "silence tolerated",
        "a link stays open although its RSocket peer is silent for longer than the keepalive lifetime",
        "THREATS 91",
        "troubled links",
        silence_is_endured,
    ),
    Saboteur(
        "resent forever",
        "a message during which every link breaks is sent again without limit",
        "RV1",
        "links that break again and again",
        resent_for_ever,
    ),
    Saboteur(
        "River handles a message twice",
        "a River message that arrives again over another link is handled again",
        "THREATS 58",
        "outages",
        river_takes_twice,
    ),
    Saboteur(
        "River confirms too much",
        "a River collector acknowledges everything received, not only what its last checkpoint covers",
        "",
        "kills",
        river_confirms_what_has_come,
    ),
    Saboteur(
        "River ignores items in streams",
        "a River checkpoint covers items that have not been taken from their stream",
        "",
        "kills",
        river_ignores_what_streams_hold,
    ),
    Saboteur(
        "River numbers not reserved",
        "the next process of a River collector reuses numbers that the previous one may have used",
        "",
        "kills",
        river_reserves_nothing,
    ),
    Saboteur(
        "RSocket position counts lengths",
        "the position of an RSocket session counts the length fields within a run of frames",
        "",
        "kills",
        rsocket_position_counts_prefixes,
    ),
    Saboteur(
        "RSocket replay lacks a frame",
        "a resumed RSocket session repeats its output from one frame too late",
        "",
        "outages",
        rsocket_replay_skips_a_frame,
    ),
    Saboteur(
        "RSocket replay repeats a frame",
        "a resumed RSocket session repeats its output from one frame too early",
        "",
        "outages",
        rsocket_replay_repeats_a_frame,
    ),
    Saboteur(
        "partial frame kept after its link",
        "a partial RSocket frame of a broken link is joined with bytes of the next link",
        "",
        "outages",
        half_a_frame_survives,
    ),
    Saboteur(
        "partial message kept after its link",
        "a partial River message of a broken link is joined with bytes of the next link",
        "",
        "outages",
        half_a_message_survives,
    ),
    Saboteur(
        "RSocket confirms too much",
        "an RSocket collector confirms everything received, not only what its last checkpoint covers",
        "",
        "kills",
        reported_what_has_come,
    ),
    Saboteur(
        "RSocket resumes too far",
        "after a broken link, an RSocket collector resumes after everything received, not after its last checkpoint",
        "",
        "full disks",
        resumed_at_what_has_come,
    ),
    Saboteur(
        "request not in the checkpoint",
        "a checkpoint counts credit that it does not request again after a kill",
        "",
        "kills",
        request_not_retained,
    ),
    Saboteur(
        "set-up sent only once",
        "a session is lost if its link breaks before the server has read the set-up",
        "RS7",
        "outages",
        set_up_said_once,
    ),
)
