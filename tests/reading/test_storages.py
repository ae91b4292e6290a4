"""What settings of Hadoop's become: a storage, or a reason that shows no value of theirs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wallaby.reading.storages import storage_name, storage_of, written_storage
from wallaby.relations.storage import HdfsStorage, S3Storage

KEYS = {"fs.s3a.access.key": "AKIA-someone", "fs.s3a.secret.key": "very-secret"}
HERE = {**KEYS, "fs.s3a.endpoint": "http://127.0.0.1:9000", "fs.s3a.path.style.access": "true"}
LOCAL = S3Storage("127.0.0.1:9000", "us-east-1", False, False, False, "AKIA-someone", "very-secret")
AMAZON = S3Storage("", "eu-west-1", True, True, False, "AKIA-someone", "very-secret")
PROVIDER = "fs.s3a.aws.credentials.provider"
PACKAGE = "org.apache.hadoop.fs.s3a."
SIMPLE, TEMPORARY = f"{PACKAGE}SimpleAWSCredentialsProvider", f"{PACKAGE}TemporaryAWSCredentialsProvider"
TOKEN = {"fs.s3a.session.token": "short-lived"}


@pytest.mark.parametrize(
    ("settings", "storage"),
    [
        (HERE, LOCAL),
        ({**HERE, "fs.s3a.endpoint": "127.0.0.1:9000", "fs.s3a.connection.ssl.enabled": "false"}, LOCAL),
        ({**HERE, "fs.s3a.endpoint": "127.0.0.1:9000"}, replace(LOCAL, encrypted=True)),
        ({**HERE, "fs.s3a.path.style.access": "false"}, replace(LOCAL, virtual_addressing=True)),
        ({**HERE, "fs.s3a.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}, LOCAL),
        ({**HERE, "fs.s3a.fast.upload.buffer": "bytebuffer", "fs.s3a.threads.max": "4"}, LOCAL),
        ({**HERE, **TOKEN}, replace(LOCAL, session_token="short-lived")),
        ({**HERE, **TOKEN, PROVIDER: SIMPLE}, LOCAL),
        ({**HERE, **TOKEN, PROVIDER: f"{TEMPORARY}, {SIMPLE}"}, replace(LOCAL, session_token="short-lived")),
        (
            {**HERE, PROVIDER: f"{PACKAGE}AnonymousAWSCredentialsProvider"},
            replace(LOCAL, anonymous=True, access_key="", secret_key=""),
        ),
        ({**KEYS, "fs.s3a.endpoint.region": "eu-west-1"}, AMAZON),
        ({**KEYS, "fs.s3a.endpoint": "s3.eu-west-1.amazonaws.com"}, AMAZON),
        (
            {
                **KEYS,
                "fs.s3a.endpoint.region": "us-west-2",
                "fs.s3a.bucket.lake.endpoint.region": "eu-west-1",
            },
            AMAZON,
        ),
        ({**KEYS, "fs.s3a.endpoint.region": "eu-west-1", "fs.s3a.bucket.other.encryption.key": "k"}, AMAZON),
    ],
)
def test_settings_of_s3_that_are_understood(settings: dict[str, str], storage: S3Storage) -> None:
    assert storage_of("s3a", "lake", settings) == storage
    assert written_storage("s3a", "lake", settings) == storage


def test_s3_has_two_names_if_one_class_reads_both() -> None:
    both = {**HERE, "fs.s3.impl": f"{PACKAGE}S3AFileSystem"}
    assert storage_of("s3", "lake", both) == LOCAL
    assert storage_of("s3", "lake", HERE) == "files at s3: are not supported yet"


@pytest.mark.parametrize("name", ["acl.default", "create.storage.class", "create.header.x-amz-tagging"])
def test_settings_about_what_is_written_leave_writing_to_spark(name: str) -> None:
    for bucket in ("", "bucket.lake."):
        settings = {**HERE, f"fs.s3a.{bucket}{name}": "x"}
        assert storage_of("s3a", "lake", settings) == LOCAL
        assert written_storage("s3a", "lake", settings) == f"only Spark's writer follows fs.s3a.{name}"
    assert written_storage("hdfs", "namenode", {}) == "only Spark writes to hdfs:"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"fs.s3a.secret.key": ""}, "credentials for S3 are not in"),
        ({PROVIDER: "com.example.Vault"}, PROVIDER),
        ({PROVIDER: f"{SIMPLE},{PACKAGE}auth.AssumedRoleCredentialProvider"}, PROVIDER),
        ({PROVIDER: TEMPORARY}, "session.token"),
        ({"fs.s3a.assumed.role.arn": "arn:aws:iam::1:role/r"}, "fs.s3a.assumed.role.arn"),
        ({"fs.s3a.encryption.algorithm": "SSE-C"}, "fs.s3a.encryption.algorithm"),
        ({"fs.s3a.bucket.lake.encryption.algorithm": "CSE-KMS"}, "fs.s3a.encryption.algorithm"),
        ({"fs.s3a.requester.pays.enabled": "true"}, "fs.s3a.requester.pays.enabled"),
        ({"fs.s3a.proxy.host": "gate"}, "fs.s3a.proxy.host"),
        ({"fs.s3a.impl": "com.example.Other"}, "fs.s3a.impl"),
        (
            {"hadoop.security.credential.provider.path": "jceks://x"},
            "hadoop.security.credential.provider.path",
        ),
        ({"fs.s3a.path.style.access": "maybe"}, "fs.s3a.path.style.access"),
        ({"fs.s3a.endpoint": "s3.amazonaws.com"}, "region"),
        ({"fs.s3a.endpoint": "s3.dualstack.eu-west-1.amazonaws.com"}, "endpoint"),
    ],
)
def test_a_setting_that_is_not_understood_is_a_reason(changes: dict[str, str], why: str) -> None:
    found = storage_of("s3a", "lake", HERE | changes)
    assert isinstance(found, str)
    assert why in found
    assert not any(value in found for key, value in (HERE | changes).items() if value and "impl" not in key)


def test_a_cluster_of_hadoop_is_reached_with_the_settings_of_its_own_client() -> None:
    settings = {
        "user": "someone",
        "dfs.client.use.datanode.hostname": "true",
        "fs.s3a.secret.key": "very-secret",
    }
    found = storage_of("hdfs", "namenode:8020", settings)
    assert found == HdfsStorage("namenode:8020", "someone", (("dfs.client.use.datanode.hostname", "true"),))
    for odd in ({"hadoop.security.authentication": "kerberos"}, {"fs.hdfs.impl": "com.example.Other"}):
        assert isinstance(storage_of("hdfs", "namenode:8020", settings | odd), str)
    assert isinstance(storage_of("hdfs", "", settings), str)
    assert isinstance(storage_of("gs", "lake", settings), str)


def test_neither_texts_nor_names_of_storages_tell_a_secret() -> None:
    assert "secret" not in repr(LOCAL)
    assert "AKIA" not in repr(LOCAL)
    assert storage_name(LOCAL) == storage_name(replace(LOCAL))
    assert storage_name(LOCAL) != storage_name(replace(LOCAL, secret_key="another"))
    assert "dfs.x" not in repr(HdfsStorage("n:1", "u", (("dfs.x", "y"),)))
