"""A process that answers questions, one after the other; each is a pickle.

Question -> answer, by the pipes of its standard input and output. A crash in there ends the process
and not who asks.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any

from avial_lab.core.errors import AvialError


@dataclass(frozen=True)
class Refusal:
    """What went wrong in there, as an answer; it is the last one."""

    message: str
    hint: str | None = None


class AskedProcess:
    """The end of who asks. Where an answer is none, the process is gone, as it is when closed."""

    def __init__(
        self,
        program: str,
        *,
        limit_s: float,
        environment: Mapping[str, str] | None = None,
        own_group: bool = False,
        errors: IO[bytes] | None = None,
    ) -> None:
        """`program` is Python's, and ends in `answer_all`. An answer may take `limit_s`.
        `own_group`: Ctrl-C does not reach it. `errors`: where it prints, else where we do.
        """
        self.limit_s = limit_s
        # Not with -m: its classes would be those of __main__, and answers unknown to who asked.
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            start_new_session=own_group,
        )

    def ask(self, question: object) -> object:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            pickle.dump(question, self.process.stdin)
            self.process.stdin.flush()
            # Nothing of the answer before this is left in the pipe: one is taken as it is asked.
            if not select.select([self.process.stdout], [], [], self.limit_s)[0]:
                raise AvialError(f"no answer in {self.limit_s:g} s")
            answer: object = pickle.load(self.process.stdout)
        except (EOFError, BrokenPipeError):
            ended = self.process.wait()
            self.close()
            raise AvialError(f"its process ended with {_ending(ended)}") from None
        except BaseException:
            self.close()
            raise
        if isinstance(answer, Refusal):
            self.close()
            raise AvialError(answer.message, hint=answer.hint)
        return answer

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"code {code}"


def answer_all(begin: Callable[[Any], tuple[object, Callable[[Any], object]]]) -> None:
    """The process's own end, until nobody asks any more. `begin` takes the first question, and
    gives the answer to it and what answers the others.
    """
    # What is printed goes to stderr, and not between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def send(answer: object) -> None:
        pickle.dump(answer, answers)
        answers.flush()

    try:
        first, others = begin(pickle.load(sys.stdin.buffer))
        send(first)
        while True:
            send(others(pickle.load(sys.stdin.buffer)))
    except EOFError:
        return
    except AvialError as error:
        send(Refusal(error.message, error.hint))
    except Exception as error:  # the boundary of the process: it travels as data
        traceback.print_exc()
        send(Refusal(f"{type(error).__name__}: {error}"))
