"""The long description of the package: README with links that work on a package index, without the files beside it."""

import configparser
import re
from pathlib import Path

from setuptools import setup


def standing_alone(text: str, source: str = "") -> str:
    """The page, its links to files of this repository replaced by links to ``source``, or by their text without one."""
    return re.sub(r"\[([^]]+)]\((?!https?:|#)([^)]+)\)", rf"[\1]({source}/blob/main/\2)" if source else r"\1", text)


def address() -> str:
    """The public address of the sources, as setup.cfg has it among ``project_urls``."""
    config = configparser.ConfigParser()
    config.read("setup.cfg", encoding="utf-8")
    urls = dict(re.findall(r"(\S+) = (\S+)", config.get("metadata", "project_urls", fallback="")))
    return urls.get("Source", "").rstrip("/")


if __name__ == "__main__":
    setup(long_description=standing_alone(Path("README.md").read_text(encoding="utf-8"), address()))
