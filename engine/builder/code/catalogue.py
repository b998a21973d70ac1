"""Catalogue: functions, methods, decorators and classes of Python and of libraries without effects."""

from __future__ import annotations

KEEPING = frozenset({
    "len", "str", "repr", "int", "float", "bool", "type", "isinstance", "issubclass", "format", "round", "abs", "hash",
    "hasattr", "callable", "ord", "chr", "ascii", "bytes", "divmod", "pow", "slice", "range", "id", "getattr", "vars",
})  # fmt: skip
"""Builtin functions that neither change nor consume their arguments."""
CONSUMING = frozenset({
    "tuple", "list", "dict", "set", "frozenset", "sorted", "sum", "min", "max", "any", "all", "zip", "enumerate", "map",
    "filter", "reversed",
})  # fmt: skip
"""Builtin functions that change nothing, but may consume an argument that is an iterator."""
METHODS = frozenset({
    "as_posix", "bit_length", "capitalize", "casefold", "center", "count", "decode", "difference", "encode", "endswith",
    "errors", "exists", "expandtabs", "find", "findall", "finditer", "format", "format_map", "fullmatch", "get", "glob",
    "group", "groupdict", "groups", "hex", "index", "intersection", "is_dir", "is_file", "is_relative_to", "isdigit",
    "isdisjoint", "isidentifier", "isoformat", "issubset", "issuperset", "items", "iterdir", "join", "keys", "ljust",
    "lower", "lstrip", "match", "most_common", "partition", "relative_to", "removeprefix", "removesuffix", "replace",
    "rfind", "rglob", "rjust", "rpartition", "rsplit", "rstrip", "search", "split", "splitlines", "startswith", "strip",
    "sub", "title", "tolist", "total_seconds", "translate", "union", "upper", "values", "with_name", "with_suffix",
    "zfill",
})  # fmt: skip
"""Methods of Python's own types, of paths and of pydantic's errors that change nothing."""
LEAST_ARGUMENTS = {"get": 1, "replace": 2, "index": 1, "count": 1}
"""The least number of arguments for the methods whose names other types use for methods with effects.

`Path.replace` takes one argument, and `Queue.get` takes none.
"""
READING = frozenset({"read", "readline", "readlines", "readinto", "seek", "tell", "close", "send", "throw"})
"""Attributes of files and generators, which are consumed by whoever reads from them."""
GROWING = frozenset({"append", "extend", "add", "update", "insert", "sort", "reverse", "setdefault"})
"""Methods that change the list, set or mapping that they belong to."""
FUNCTIONS = frozenset({
    "collections.Counter", "collections.OrderedDict", "collections.defaultdict", "collections.deque",
    "dataclasses.asdict", "dataclasses.field", "dataclasses.fields", "dataclasses.replace", "functools.partial",
    "itertools.chain", "itertools.count", "itertools.islice", "itertools.product", "itertools.zip_longest",
    "json.dumps", "logging.getLogger", "operator.attrgetter", "operator.itemgetter", "os.fspath", "pathlib.Path",
    "pathlib.PurePath", "pathlib.PurePosixPath", "platform.machine", "platform.system", "pydantic.ConfigDict",
    "pydantic.Field", "pydantic.PrivateAttr", "re.compile", "re.escape", "re.findall", "re.finditer", "re.fullmatch",
    "re.match", "re.search", "re.split", "re.sub", "textwrap.dedent", "textwrap.indent", "textwrap.shorten",
    "threading.Lock", "threading.RLock", "types.MappingProxyType", "typing.NewType", "typing.ParamSpec",
    "typing.TypeVar", "typing.cast",
})  # fmt: skip
"""Functions and classes of libraries whose calls only compute a value."""
LIBRARIES = ("math.", "os.path.", "posixpath.", "struct.")
"""Libraries whose functions only compute values."""
PURE_ROOMS = ("engine.text", "engine.gpus", "engine.errors", "engine.recipe", "engine.feasibility", "engine.reporting")
"""Parts of this project that are no part of any key, and whose functions only compute values."""
CACHING = frozenset({"functools.cache", "functools.lru_cache"})
"""Decorators that keep the results of a function."""
DECORATORS = CACHING | {
    "property", "staticmethod", "classmethod", "abc.abstractmethod", "contextlib.contextmanager",
    "dataclasses.dataclass", "enum.unique", "functools.cached_property", "functools.total_ordering", "functools.wraps",
    "pydantic.field_serializer", "pydantic.field_validator", "pydantic.model_serializer", "pydantic.model_validator",
    "typing.final", "typing.overload", "typing.override", "typing.runtime_checkable",
}  # fmt: skip
"""Decorators that register nothing elsewhere."""
METHOD_DECORATORS = frozenset({
    "property", "staticmethod", "classmethod", "abc.abstractmethod", "functools.cached_property", "typing.override",
    "functools.cache",
})  # fmt: skip
"""Decorators of methods that nobody calls except by name."""
BASES = frozenset({
    "abc.ABC", "enum.Enum", "enum.Flag", "enum.IntEnum", "enum.IntFlag", "enum.StrEnum", "pydantic.BaseModel",
    "pydantic.RootModel", "typing.Generic", "typing.NamedTuple", "typing.Protocol", "typing.TypedDict",
})  # fmt: skip
"""Classes of libraries whose subclasses are registered nowhere."""
DATA_BASES = frozenset({
    "engine.step.Frozen", "engine.reporting.TypedReport", "pydantic.BaseModel", "typing.NamedTuple",
})  # fmt: skip
"""Classes whose subclasses only store the values that an object is made of."""
