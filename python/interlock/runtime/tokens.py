"""Task text to token ids, outside the loop: once per change of task.

Reads the `tokenizers` JSON format, and of it only what small policies use: a WordLevel model, a Lowercase normalizer
and a Whitespace pre-tokenizer. Anything else is refused here; a policy that needs it brings the `tokenizers` package.
"""

from __future__ import annotations

import json
import re

import numpy as np
from numpy.typing import NDArray

from interlock.errors import InterlockError

MOST_TOKENS = 64  # the core's MAX_TOKENS
_WORDS = re.compile(r"\w+|[^\w\s]+")  # the Whitespace pre-tokenizer's pattern


class Tokenizer:
    """Turns text into ids.

    Args:
        text: The tokenizer file's content.
        where: Its name, for messages.
        length: Ids that a text may have at most.
    """

    def __init__(self, text: str, *, where: str, length: int) -> None:
        try:
            parsed = json.loads(text)
            model = parsed["model"]
            kinds = (model["type"], parsed["normalizer"]["type"], parsed["pre_tokenizer"]["type"])
            vocabulary = {str(word): int(number) for word, number in model["vocab"].items()}
            unknown = str(model["unk_token"])
        except (ValueError, KeyError, TypeError, AttributeError) as cause:
            raise InterlockError(
                code="tokenizer-format",
                where=where,
                expected="a tokenizers JSON file with a WordLevel model",
                got=str(cause),
                hint="take the tokenizer.json that the policy was trained with",
            ) from None
        if kinds != ("WordLevel", "Lowercase", "Whitespace"):
            raise InterlockError(
                code="tokenizer-kind",
                where=where,
                expected="WordLevel, Lowercase, Whitespace",
                got=", ".join(map(str, kinds)),
                hint="only this kind is read without the tokenizers package",
            )
        self._vocabulary = vocabulary
        self._unknown = vocabulary.get(unknown)
        self._length = min(length, MOST_TOKENS)

    def ids(self, task: str) -> NDArray[np.int64]:
        """Ids of a task text, unpadded. Raises `InterlockError` for an unknown word or a text that is too long.

        A word that the policy never saw is refused rather than mapped to "unknown": the robot would move on a guess.
        """
        words = _WORDS.findall(task.lower())
        strange = [word for word in words if word not in self._vocabulary]
        if strange or not words:
            known = sorted(word for word in self._vocabulary if not word.startswith("["))
            raise InterlockError(
                code="task-unknown-word",
                where=f"task {task!r}",
                expected=f"words out of: {', '.join(known)}",
                got=", ".join(strange) or "nothing",
                hint="the policy was not trained on other words",
            )
        if len(words) > self._length:
            raise InterlockError(
                code="task-too-long",
                where=f"task {task!r}",
                expected=f"at most {self._length} words",
                got=str(len(words)),
            )
        return np.array([self._vocabulary[word] for word in words], dtype=np.int64)
