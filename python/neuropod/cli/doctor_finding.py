"""What `neuropod doctor` finds."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Limits one feature, or may surprise."""

    PROBLEM = "PROBLEM"
    """Prevents every model from running."""


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    topic: str
    text: str
    level: Level = Level.OK
    remedy: str = ""
    """What to do; empty if nothing needs to be done."""

    def as_dict(self) -> dict[str, str | None]:
        return {
            "topic": self.topic,
            "level": self.level.value.lower(),
            "text": self.text,
            "remedy": self.remedy or None,
        }
