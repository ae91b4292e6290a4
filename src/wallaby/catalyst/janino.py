"""Our Java classes in Spark's driver, compiled by Janino, the compiler that Spark ships for its generated code.

The sources of a room are in its folder `java`. A class is compiled together with those beside it that it uses, as one
text. So types that several of them import are looked up only once, which takes most of the time, and by the part of
Janino that Spark has loaded for its own code. They have one class loader and may use what is not public in each other,
but they cannot import two classes of one name. Each class is compiled once per JVM: py4j caches methods by class name,
so two classes must not share a name.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

#: Where a room has its Java sources; and the package that they are all in.
FOLDER: Final = "java"
SUFFIX: Final = ".java"
_PACKAGE: Final = "wallaby"
#: The class that those of other rooms may use.
_VERSIONS: Final = ("wallaby.catalyst", "SparkVersions")
#: The JVM, and the classes that were compiled in it; a new JVM needs new ones.
_loaded: tuple[Any, dict[str, Any]] = (None, {})
_loading = threading.Lock()
_COMMENT: Final = re.compile(r"/\*.*?\*/|//.*?$", re.S | re.M)
_IMPORT: Final = re.compile(r"^import [^;]+;$", re.M)
_PACKAGE_LINE: Final = re.compile(rf"^package {_PACKAGE};$", re.M)
_WORD: Final = re.compile(r"\w+")


def load_class(jvm: Any, room: str, name: str) -> Any:
    """Load the class `wallaby.<name>`, compiled from the file of that name in a room, with those that it uses.

    It may use any class beside it, and `SparkVersions` from another room.
    """
    global _loaded  # noqa: PLW0603 - one compilation per JVM, whoever asks
    with _loading:
        if _loaded[0] is not jvm:
            _loaded = (jvm, {})
        classes = _loaded[1]
        if name not in classes:
            parent = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
            room_of_versions, versions = _VERSIONS
            if room != room_of_versions:
                if versions not in classes:
                    classes[versions] = _compiled(jvm, room_of_versions, versions, parent)
                parent = classes[versions].getClassLoader()
            classes[name] = _compiled(jvm, room, name, parent)
        return classes[name]


def class_beside(loaded: Any, name: str) -> Any:
    """A class that was compiled together with one from `load_class`, because that one uses it."""
    return loaded.getClassLoader().loadClass(f"{_PACKAGE}.{name}")


def _compiled(jvm: Any, room: str, name: str, parent: Any) -> Any:
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(parent)
    compiler.cook(joined(sources(room), name))
    return compiler.getClassLoader().loadClass(f"{_PACKAGE}.{name}")


def sources(room: str) -> dict[str, str]:
    """The texts of a room's Java files, by the names of their classes."""
    files = (file for file in resources.files(room).joinpath(FOLDER).iterdir() if file.name.endswith(SUFFIX))
    return {file.name.removesuffix(SUFFIX): file.read_text(encoding="utf-8") for file in files}


def joined(texts: Mapping[str, str], name: str) -> str:
    """The source of a class and of those beside it that it uses, itself or through others, in one text."""
    used = [name]
    for each in used:  # which grows meanwhile
        words = frozenset(_WORD.findall(_COMMENT.sub("", texts[each])))
        used += sorted((words & texts.keys()) - {*used})
    imports = dict.fromkeys(line for each in used for line in _IMPORT.findall(texts[each]))
    bodies = (_PACKAGE_LINE.sub("", _IMPORT.sub("", texts[each])) for each in used)
    return "\n".join((f"package {_PACKAGE};", *imports, *bodies))


def new_object(gateway: Any, jvm: Any, made: Any, *arguments: Any) -> Any:
    """Create an object of a class from `load_class`, with its first constructor."""
    given = gateway.new_array(jvm.java.lang.Object, len(arguments))
    for at, argument in enumerate(arguments):
        given[at] = argument
    return made.getConstructors()[0].newInstance(given)
