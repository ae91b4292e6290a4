"""Arrays, structs and maps."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
    "GetStructField": ("{struct}.y", "array({struct}, null).x"),
    "GetArrayStructFields": ("if({boolean}, array({struct}, null), array()).x",),
    "CreateArray": ("array({any}, {any})", "array({int}, null, 3)", "array({array}, array())"),
    "CreateNamedStruct": ("named_struct('a', {any}, 'b', {string})", "struct({array}, {map}, {struct})"),
}
