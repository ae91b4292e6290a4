"""Who may do what: the rules of a Role, and what was asked for, so that a manifest can be checked against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from wallaby_lab.kubernetes.objects import ObjectKind


class Access(NamedTuple):
    """One thing to do with a kind of objects; `create` of `pods/eviction` has a subresource."""

    verb: str
    group: str
    resource: str


@dataclass(frozen=True, slots=True)
class Account:
    """Whoever has this token may do what these rules of a Role say."""

    token: str
    rules: tuple[Mapping[str, Sequence[str]], ...]

    @staticmethod
    def of_role(token: str, role: Mapping[str, Any]) -> Account:
        """The account to which a Role is bound."""
        return Account(token, tuple(role["rules"]))

    def may(self, access: Access) -> bool:
        """Does one of the rules allow this?"""
        return any(
            {"*", access.verb} & set(rule["verbs"])
            and {"*", access.group} & set(rule["apiGroups"])
            and {"*", access.resource} & set(rule["resources"])
            for rule in self.rules
        )


def access(method: str, kind: ObjectKind, name: str, subresource: str, *, watches: bool) -> Access:
    """What a request is, in the words of roles."""
    verb = {
        "GET": "watch" if watches else "get" if name else "list",
        "POST": "create",
        "PUT": "update",
        "PATCH": "patch",
        "DELETE": "delete" if name else "deletecollection",
    }[method]
    return Access(verb, kind.group, f"{kind.plural}/{subresource}" if subresource else kind.plural)
