"""The value of each setting: flag, else environment, else ``recrawl.yaml``, else default (conventions S2).

What ``recrawl limit`` says of the few that crawls take over while they run comes before all of these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType

from recrawl.app.workspace.settings import Setting, Settings, Value, declared, sections, stages
from recrawl.errors import ConfigError, meant

FILE_NAME = "recrawl.yaml"
RENAMED: Mapping[str, str] = MappingProxyType(
    {
        "crawl.embeds": "crawl.page_requisites",
        "detect.second_looks": "detect.confirm_changes",
        "fetch.check_validators": "fetch.validator_audit_rate",
        "schedule.new_share": "schedule.discovery_share",
    }
)
"""Former names of settings, still read from ``recrawl.yaml`` and from limits in the store. Deprecated."""


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """Who set a value: ``limit``, ``flag``, ``environment``, ``file`` or ``default``, and where exactly."""

    kind: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.place}".rstrip()


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings with the origin of each, by key."""

    settings: Settings
    origins: Mapping[str, SettingOrigin]

    def value(self, setting: Setting) -> Value:
        """The value of one key."""
        found: Value = getattr(getattr(self.settings, setting.section), setting.name)
        return found


def configure(
    file: Path | None,
    environment: Mapping[str, str],
    flags: Mapping[str, object],
    limits: Mapping[str, object] | None = None,
) -> Configuration:
    """Resolve every key. An unknown key anywhere is an error.

    Args:
        file: The workspace's ``recrawl.yaml``; ``None`` while there is none.
        environment: Usually ``os.environ``; only ``RECRAWL_SECTION_KEY`` variables are read.
        flags: Values by key, as given on the command line; they win over file and environment.
        limits: Values by key that win over all others.
    """
    known = {setting.key: setting for setting in declared()}
    limits = {RENAMED.get(key, key): raw for key, raw in (limits or {}).items()}
    layers = (
        {key: (raw, SettingOrigin("file", FILE_NAME)) for key, raw in _from_file(file, known).items()} if file else {},
        {
            key: (raw, SettingOrigin("environment", known[key].variable))
            for key, raw in _from_environment(environment).items()
        },
        {key: (raw, SettingOrigin("flag")) for key, raw in flags.items()},
        {key: (raw, SettingOrigin("limit")) for key, raw in limits.items()},
    )
    values: dict[str, Value] = {}
    origins: dict[str, SettingOrigin] = {}
    for key, setting in known.items():
        values[key], origins[key] = setting.default, SettingOrigin("default")
        for layer in layers:
            if key in layer:
                raw, origins[key] = layer[key]
                values[key] = _read(setting, raw, origins[key])
    for key in (*flags, *limits):
        if key not in known:
            raise _unknown("setting", key, known, "the command line" if key in flags else "recrawl limit")
    return Configuration(_assemble(values), origins)


def parse_assignments(pairs: Iterable[str]) -> dict[str, object]:
    """``--set`` flags as values by key.

    >>> parse_assignments(["fetch.timeout=20s"])
    {'fetch.timeout': '20s'}
    """
    found: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"--set {pair!r} has no value.", "Write --set section.key=value.")
        found[key.strip()] = value.strip()
    return found


def settings_text(chosen: Mapping[str, object]) -> str:
    """The text of a new ``recrawl.yaml``: the chosen keys set, every other one commented out at its default."""
    configuration = configure(None, {}, chosen)
    lines = [
        "# Settings of this workspace. A line that is commented out shows the default.",
        "# A flag (--set section.key=value) overrides an environment variable (RECRAWL_SECTION_KEY), which overrides",
        "# this file. `recrawl config show` prints every value and where it comes from.",
    ]
    for section, introduction in sections().items():
        lines += ["", f"# {introduction}", f"{section}:"]
        for setting in declared():
            if setting.section == section:
                mark = "" if setting.key in chosen else "# "
                lines += [
                    f"  # {setting.help}",
                    f"  {mark}{setting.name}: {setting.kind.write(configuration.value(setting))}",
                ]
    return "\n".join(lines) + "\n"


def _from_file(file: Path, known: Mapping[str, Setting]) -> dict[str, object]:
    import yaml

    try:
        tree = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{file} is not YAML: {error}", "Correct it, or compare with a new one from recrawl init."
        ) from error
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be read: {error.strerror}.", "Check that it is a file you may read."
        ) from error
    found: dict[str, object] = {}
    for section, entries in _mapping(tree, str(file)).items():
        if section not in sections():
            raise _unknown("section", str(section), sections(), str(file))
        for name, raw in _mapping(entries, f"{file}, section {section}").items():
            key = RENAMED.get(f"{section}.{name}", f"{section}.{name}")
            if key not in known:
                raise _unknown("setting", key, known, str(file))
            found[key] = raw
    return found


def _mapping(tree: object, place: str) -> Mapping[object, object]:
    if tree is None:  # an empty file, or a section whose keys are all commented out
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{place}: expected keys and values, found {tree!r}.", "Write one 'key: value' per line.")
    return tree


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    by_variable = {setting.variable: setting.key for setting in declared()}
    prefixes = tuple(f"RECRAWL_{section}_".upper() for section in sections())
    found: dict[str, object] = {}
    for variable, raw in environment.items():
        if variable.startswith(prefixes):
            if variable not in by_variable:
                raise _unknown("variable", variable, by_variable, "the environment")
            found[by_variable[variable]] = raw
    return found


def _read(setting: Setting, raw: object, origin: SettingOrigin) -> Value:
    try:
        return setting.kind.read(raw)
    except ConfigError as error:
        raise ConfigError(f"{setting.key} (from {origin}): {error.what}", error.remedy) from None


def _unknown(what: str, name: str, known: Collection[str], place: str) -> ConfigError:
    return ConfigError(f"{place}: unknown {what} {name!r}.", meant(name, known, "List all with recrawl config show."))


def _assemble(values: Mapping[str, Value]) -> Settings:
    parts = {
        section: stage(**{entry.name: values[f"{section}.{entry.name}"] for entry in fields(stage)})
        for section, stage in stages().items()
    }
    return Settings(**parts)
