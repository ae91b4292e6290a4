"""Our Java classes in Spark's driver, compiled by Janino, the compiler that Spark ships for its generated code.

Each class is compiled once per JVM: py4j caches methods by class name, so two classes must not share a name.
"""

from __future__ import annotations

import threading
from importlib import resources
from typing import Any

#: The JVM, and the classes that were compiled in it; a new JVM needs new ones.
_loaded: tuple[Any, dict[str, Any]] = (None, {})
_loading = threading.Lock()


def load_class(jvm: Any, package: str, name: str, above: str | None = None) -> Any:
    """The class `wallaby.<name>`, compiled from the file of that name in a package of ours.

    It may use the class `above`, which was loaded before, and all that this one may use.
    """
    global _loaded  # noqa: PLW0603 - one compilation per JVM, whoever asks
    with _loading:
        if _loaded[0] is not jvm:
            _loaded = (jvm, {})
        classes = _loaded[1]
        if name not in classes:
            source = resources.files(package).joinpath(f"{name}.java").read_text(encoding="utf-8")
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(
                jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
                if above is None
                else classes[above].getClassLoader()
            )
            compiler.cook(source)
            classes[name] = compiler.getClassLoader().loadClass(f"wallaby.{name}")
        return classes[name]


def new_object(gateway: Any, jvm: Any, made: Any, *arguments: Any) -> Any:
    """An object of a class that `load_class` gave, made by the first of its constructors."""
    given = gateway.new_array(jvm.java.lang.Object, len(arguments))
    for at, argument in enumerate(arguments):
        given[at] = argument
    return made.getConstructors()[0].newInstance(given)
