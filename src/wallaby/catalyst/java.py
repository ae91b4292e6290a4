"""Our Java classes in Spark's driver, compiled by Janino, the compiler that Spark ships for its generated code.

Each class is compiled once per JVM: py4j caches methods by class name, so two classes must not share a name.
"""

from __future__ import annotations

import threading
from importlib import resources
from typing import Any

#: The JVM, and the classes that were compiled in it; a new JVM needs new ones.
_loaded: tuple[Any, dict[str, Any]] = (None, {})
#: The class that all others may use.
_VERSIONS = ("wallaby.catalyst", "SparkVersions")
_loading = threading.Lock()


def load_class(jvm: Any, package: str, name: str, above: str | None = None) -> Any:
    """Load the class `wallaby.<name>`, compiled from the file of that name in one of our packages.

    It may use `SparkVersions`, and the class `above`, which was loaded before, with all that this one may use.
    """
    global _loaded  # noqa: PLW0603 - one compilation per JVM, whoever asks
    with _loading:
        if _loaded[0] is not jvm:
            _loaded = (jvm, {})
        classes = _loaded[1]
        if name not in classes:
            sparks = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
            package_of_versions, versions = _VERSIONS
            if versions not in classes:
                classes[versions] = _compiled(jvm, package_of_versions, versions, sparks)
            parent = classes[above or versions].getClassLoader()
            classes[name] = _compiled(jvm, package, name, parent)
        return classes[name]


def _compiled(jvm: Any, package: str, name: str, parent: Any) -> Any:
    source = resources.files(package).joinpath(f"{name}.java").read_text(encoding="utf-8")
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(parent)
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(f"wallaby.{name}")


def new_object(gateway: Any, jvm: Any, made: Any, *arguments: Any) -> Any:
    """Create an object of a class from `load_class`, with its first constructor."""
    given = gateway.new_array(jvm.java.lang.Object, len(arguments))
    for at, argument in enumerate(arguments):
        given[at] = argument
    return made.getConstructors()[0].newInstance(given)
