"""Derive from Spark's own `fs.*` settings how to reach files on S3 and HDFS, or why only Spark can.

Only settings that differ from Hadoop's defaults matter. An unknown setting might decide who may read, or what is read
(roles, client-side encryption, credential providers), so it leaves the files to Spark. A reason names settings and
never shows their values.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from wallaby.relations.storage import HdfsStorage, S3Storage, Storage

_S3A: Final = "fs.s3a."
#: Which class reads `s3:`; Hadoop itself names none.
_S3_IMPLEMENTATION: Final = "fs.s3.impl"
#: The name of Hadoop's class that reads `s3a:` as we do.
S3A_IMPLEMENTATIONS: Final = frozenset({"org.apache.hadoop.fs.s3a.S3AFileSystem"})
_HDFS_IMPLEMENTATIONS: Final = frozenset({"org.apache.hadoop.hdfs.DistributedFileSystem"})
_KEYS: Final = frozenset(
    {
        "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
    }
)
_ANONYMOUS: Final = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
_UNDERSTOOD: Final = frozenset(
    {
        "access.key",
        "aws.credentials.provider",
        "connection.ssl.enabled",
        "endpoint",
        "endpoint.region",
        "impl",
        "path.style.access",
        "secret.key",
        "session.token",
    }
)
#: Settings that change how fast files are read and listed, or how they are written, but never their contents.
_HARMLESS: Final = re.compile(
    r"""acl\.default | attempts\.maximum | audit\..* | block\.size | buffer\.dir | committer\..*
    | connection\.(?:acquisition\.timeout|establish\.timeout|idle\.time|keepalive|maximum|part\.upload\.timeout
      |request\.timeout|timeout|ttl)
    | create\..* | directory\.marker\..* | downgrade\.syncable\.exceptions | etag\.checksum\.enabled
    | executor\.capacity | experimental\.(?:fadvise|input\.fadvise) | fast\.upload.* | input\.async\.drain\.threshold
    | input\.stream\..* | list\.version | max\.total\.tasks | metadatastore\..* | multiobjectdelete\.enable
    | multipart\..* | optimized\.copy\.from\.local\.enabled | paging\.maximum | performance\..* | prefetch\..*
    | readahead\.range | retry\..* | s3guard\..* | select\..* | socket\..* | threads\..* | user\.agent\.prefix
    | vectored\..*""",
    re.VERBOSE,
)
#: The harmless settings that say what objects are like that are written.
_ABOUT_OBJECTS: Final = re.compile(r"acl\.default|create\.(?:storage\.class|header\..*)")
_AMAZON: Final = re.compile(r"s3[.-](?:(?P<region>[a-z]{2}(?:-[a-z]+)+-\d)\.)?amazonaws\.com")
_SALT: Final = secrets.token_bytes(16)


def storage_name(storage: Storage) -> str:
    """A name for a storage, constant in this process, which reveals nothing about the storage."""
    written = json.dumps([type(storage).__name__, asdict(storage)]).encode()
    return hashlib.blake2b(written, key=_SALT, digest_size=8).hexdigest()


def storage_of(scheme: str, authority: str, settings: Mapping[str, str]) -> Storage | str:
    """How to reach files, or why only Spark can."""
    match scheme:
        case "s3a":
            return _s3(authority, settings)
        case "s3" if settings.get(_S3_IMPLEMENTATION) in S3A_IMPLEMENTATIONS:
            return _s3(authority, settings)
        case "hdfs":
            return _hdfs(authority, settings)
        case _:
            return f"files at {scheme}: are not supported yet"


def written_storage(scheme: str, authority: str, settings: Mapping[str, str]) -> S3Storage | str:
    """How to write files, or why only Spark can."""
    found = storage_of(scheme, authority, settings)
    if not isinstance(found, S3Storage):
        return found if isinstance(found, str) else f"only Spark writes to {scheme}:"
    for name in sorted(_for_bucket(authority, settings)):
        if _ABOUT_OBJECTS.fullmatch(name):
            return f"only Spark's writer follows {_S3A}{name}"
    return found


def _s3(bucket: str, settings: Mapping[str, str]) -> S3Storage | str:
    if "@" in bucket:
        return "there are credentials in the address"
    own = _for_bucket(bucket, settings)
    why = _unknown(own, settings)
    if why is not None:
        return why
    credentials = _credentials(own)
    if isinstance(credentials, str):
        return credentials
    access_key, secret_key, token = credentials
    scheme, _, host = own.get("endpoint", "").rpartition("://")
    amazon = _AMAZON.fullmatch(host)
    if host and amazon is None and "amazonaws" in host:
        return "the S3 endpoint is one of Amazon's that Wallaby does not know"
    region = own.get("endpoint.region", "") or (amazon["region"] or "" if amazon else "")
    if not region and (amazon or not host):
        return "no region is given for S3; set fs.s3a.endpoint.region"
    return S3Storage(
        endpoint="" if amazon else host.rstrip("/"),
        region=region or "us-east-1",
        encrypted=scheme == "https" if scheme else own.get("connection.ssl.enabled", "true") == "true",
        virtual_addressing=own.get("path.style.access", "false") != "true",
        anonymous=not access_key,
        access_key=access_key,
        secret_key=secret_key,
        session_token=token,
    )


def _for_bucket(bucket: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The settings for one bucket: those that name the bucket take precedence."""
    found: dict[str, str] = {}
    of_bucket: dict[str, str] = {}
    for key, value in settings.items():
        if not key.startswith(_S3A):
            continue
        name = key.removeprefix(_S3A)
        if name.startswith(f"bucket.{bucket}."):
            of_bucket[name.removeprefix(f"bucket.{bucket}.")] = value.strip()
        elif not name.startswith("bucket."):
            found[name] = value.strip()
    return found | of_bucket


def _unknown(own: Mapping[str, str], settings: Mapping[str, str]) -> str | None:
    for name in sorted(own):
        if name not in _UNDERSTOOD and not _HARMLESS.fullmatch(name):
            return f"the setting {_S3A}{name} is not supported"
    for key in sorted(settings):
        if key.startswith("hadoop.security.credential."):
            return f"with {key} credentials are kept where only Hadoop finds them"
    implementation = own.get("impl", "")
    if implementation and implementation not in S3A_IMPLEMENTATIONS:
        return f"{_S3A}impl is a class that is not supported"
    for name in ("connection.ssl.enabled", "path.style.access"):
        if own.get(name, "true") not in ("true", "false"):
            return f"{_S3A}{name} is neither true nor false"
    return None


def _credentials(own: Mapping[str, str]) -> tuple[str, str, str] | str:
    """Key, secret and token; empty for anonymous access."""
    named = own.get("aws.credentials.provider", "")
    providers = [name.strip() for name in named.split(",") if name.strip()]
    if providers == [_ANONYMOUS]:
        return "", "", ""
    if not set(providers) <= _KEYS:
        return f"{_S3A}aws.credentials.provider names a class that is not supported"
    keys = own.get("access.key", ""), own.get("secret.key", "")
    if not all(keys):
        return f"credentials for S3 are not in {_S3A}access.key and {_S3A}secret.key"
    token = own.get("session.token", "")
    simple_first = providers and providers[0].endswith(".SimpleAWSCredentialsProvider")
    only_temporary = providers and all(
        name.endswith(".TemporaryAWSCredentialsProvider") for name in providers
    )
    if only_temporary and not token:
        return f"{_S3A}session.token is not given"
    return (*keys, "" if simple_first else token)


def _hdfs(authority: str, settings: Mapping[str, str]) -> HdfsStorage | str:
    if settings.get("hadoop.security.authentication", "simple") != "simple":
        return "with hadoop.security.authentication only Hadoop's own client has the credentials"
    if settings.get("fs.hdfs.impl", "") not in (_HDFS_IMPLEMENTATIONS | {""}):
        return "fs.hdfs.impl is a class that is not supported"
    if not authority or "@" in authority:
        return "the address of the Hadoop cluster is not in the path"
    given = {key: value for key, value in settings.items() if key.startswith("dfs.")}
    return HdfsStorage(authority, settings.get("user", ""), tuple(sorted(given.items())))
