"""What is said to whoever asks for something that makes no sense, is not there, or is not theirs."""

from __future__ import annotations


class RefusalError(Exception):
    """A request that is answered with a sentence and a status."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.status = status
