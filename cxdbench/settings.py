"""What all settings share: frozen, checked, to and from JSON, dotted `with_`, a clear sentence for each fault."""
from __future__ import annotations

from functools import cache
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError


class ConfigError(ValueError):
    """A setting is out of range, unknown or contradictory; it names the field, its value and what is allowed.

    `faults` holds the same for each field, (path, value, why), where fields are at fault.
    """

    faults: tuple[tuple[tuple[str, ...], Any, str], ...] = ()


def config_error(title: str, *faults: tuple[tuple[str, ...], Any, str]) -> ConfigError:
    """One sentence a fault: "Device.nand.ways is 65: must be a whole number from 1 to 64"."""
    error = ConfigError("; ".join(f"{'.'.join((title, *path))} is {short(value)}: {why}"
                                  for path, value, why in faults))
    error.faults = faults
    return error


def short(value: Any) -> str:
    """A value as it is shown in a message."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def _number(value: float) -> str:
    return str(int(value) if float(value).is_integer() else value)


def one_of(words: list[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _text(schema: dict, groups: dict[str, dict]) -> str:
    """What a JSON schema allows, in words."""
    if "anyOf" in schema:
        return ", or ".join(_text(s, groups) for s in schema["anyOf"])
    if "discriminator" in schema:
        words = one_of(list(map(repr, schema["discriminator"]["mapping"])))
        return f"{words}, or one of them with its fields"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"{name}({', '.join(groups[name]['properties'])})"
    if "enum" in schema or "const" in schema:
        return one_of([repr(word) for word in schema.get("enum", [schema.get("const")])])
    kind = schema.get("type")
    if kind == "array":
        low, high = schema.get("minItems"), schema.get("maxItems")
        items = _text(schema.get("items") or schema["prefixItems"][0], groups).removeprefix("a ")
        return f"a list of {low if low == high else f'{low} to {high}'} times, each a {items}"
    if kind not in ("integer", "number"):
        others = {"boolean": "True or False", "null": "None", "string": "text"}
        return others.get(kind, "a flat array of whole numbers")
    noun = "a whole number" if kind == "integer" else "a number"
    if "minimum" in schema:
        return f"{noun} from {_number(schema['minimum'])} to {_number(schema['maximum'])}"
    text = f"{noun} above {_number(schema['exclusiveMinimum'])}"
    return f"{text}, at most {_number(schema['maximum'])}" if "maximum" in schema else text


@cache
def _schema(model: type[BaseModel]) -> dict:
    return model.model_json_schema()


def allowed(model: type[BaseModel], field: str) -> str:
    """What a field takes, in words: "a whole number from 1 to 64"."""
    schema = _schema(model)
    return _text(schema["properties"][field], schema.get("$defs", {}))


def _is_number(model: type[BaseModel], field: str) -> bool:
    schema = _schema(model)["properties"].get(field, {})
    return {s.get("type") for s in schema.get("anyOf", [schema])} <= {"integer", "number", "array", "null"}


def _explain(model: type[BaseModel], error: ValidationError, data: dict[str, Any]) -> ConfigError:
    """A pydantic error as one fault a field; those of a group keep their own field's name."""
    found: dict[tuple[str, ...], tuple[Any, str]] = {}
    for e in error.errors():
        field, cause = tuple(map(str, e["loc"][:1])), e.get("ctx", {}).get("error")
        if isinstance(cause, ConfigError):
            for path, value, why in cause.faults or [((), e["input"], str(cause))]:
                found[field + path] = (data[field[0]] if field and not path else value), why
            continue
        value = data.get(field[0], e["input"]) if field else e["input"]
        if e["type"] == "extra_forbidden":
            why = f"there is no such field; there are {', '.join(model.model_fields)}"
        elif isinstance(cause, ValueError):
            why = str(cause)
        else:
            why = "must be " + (allowed(model, field[0]) if field else f"the JSON of a {model.__name__}")
        found.setdefault(field, (value, why))
    return config_error(model.__name__, *((path, *fault) for path, fault in found.items()))


def _path(title: str, name: str, value: Any, data: dict[str, Any]) -> list[str]:
    """A dotted name in parts; "eviction.kind" with a word stands for the word given to the group itself."""
    path = name.split(".")
    if len(path) == 2 and path[1] == "kind" and isinstance(data.get(path[0]), dict):
        if not isinstance(value, str):
            raise config_error(title, ((name,), value, "must be one of its words"))
        return path[:1]
    return path


class Settings(BaseModel):
    """Base of all that can be set: frozen, no unknown fields, ConfigError on bad input, dotted `with_`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __init__(self, **data: Any) -> None:
        model = type(self)
        no_numbers = [((field,), value, f"must be {allowed(model, field)}") for field, value in data.items()
                      if isinstance(value, str | bool) and _is_number(model, field)]
        if no_numbers:  # pydantic would take "8" and True for one
            raise config_error(model.__name__, *no_numbers)
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise _explain(model, error, data) from None

    @classmethod
    def in_full(cls, group: str, value: Any, before: dict[str, Any]) -> Any:
        """The fields of a group, which were `before`, for a bare word or number; any other value as it is.

        ValueError for a word that stands for nothing there.
        """
        return value

    def with_(self, changes: dict[str, Any] | None = None, /, **more: Any) -> Self:
        """A copy with fields changed by (dotted) name: `with_(eviction="clock", **{"nand.read_us": 25})`.

        A bare word or number changes what it stands for and leaves the rest of its group.
        """
        title, data = type(self).__name__, self.model_dump()
        if changes is not None and not (isinstance(changes, dict) and all(isinstance(name, str) for name in changes)):
            raise ConfigError(f"changes is {short(changes)}: must be a dict of dotted names, each with its value")
        changes = {**(changes or {}), **more}
        for name in sorted(changes, key=lambda name: name.count(".")):  # a whole group before fields of it
            value, node = changes[name], data
            *groups, last = _path(title, name, value, data)
            for depth, key in enumerate(groups):
                node = node.get(key)
                if not isinstance(node, dict):
                    why = f"there is no group {'.'.join(groups[:depth + 1])!r}"
                    raise config_error(title, ((name,), value, why))
            try:
                full = value if groups else self.in_full(last, value, data.get(last))
            except ValueError as error:
                raise config_error(title, ((name,), value, str(error))) from None
            node[last] = full.model_dump() if isinstance(full, BaseModel) else full
        return type(self)(**data)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `model_dump_json` wrote; raises ConfigError where it does not fit."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise _explain(cls, error, {}) from None
