"""A certificate for one engine: self-signed, made at attach, and passed to the workers when they start.

All data servers of an engine share it, and their clients trust nothing else, so it proves that a server belongs to the
engine, whatever its address. Python's standard library can use certificates but not make them; Java's `keytool`, which
is available wherever Spark is, can.
"""

from __future__ import annotations

import base64
import secrets
import subprocess
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from wallaby.errors import AttachError
from wallaby.exchange.server import ServerTls
from wallaby.worker.bootstrap import TLS_NAME

if TYPE_CHECKING:
    from pyspark import SparkContext

DAYS = 3650
KEYTOOL_SECONDS = 30.0


def make_certificate(context: SparkContext) -> ServerTls:
    """A new certificate and its key.

    Raises:
        AttachError: this Java has no working keytool.
    """
    jvm: Any = context._jvm
    keytool = Path(jvm.java.lang.System.getProperty("java.home"), "bin", "keytool")
    password = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory(prefix="wallaby-certificate-") as directory:  # 0700
        store, word = Path(directory, "store.p12"), Path(directory, "word")
        word.write_text(password, encoding="ascii")
        command = [
            str(keytool), "-genkeypair", "-alias", "wallaby", "-keyalg", "EC", "-groupname", "secp256r1",
            "-sigalg", "SHA256withECDSA", "-validity", str(DAYS), "-dname", f"CN={TLS_NAME}",
            "-ext", f"san=dns:{TLS_NAME}", "-storetype", "PKCS12", "-keystore", str(store),
            "-storepass:file", str(word),
        ]  # fmt: skip
        try:
            subprocess.run(  # noqa: S603 - Java's own tool, and no shell
                command, check=True, capture_output=True, timeout=KEYTOOL_SECONDS
            )
            return _read(context, store, password)
        except (OSError, subprocess.SubprocessError, Py4JError) as error:
            raise AttachError(
                f"No certificate for encrypted connections could be made: {type(error).__name__} from {keytool}.",
                fix="Run the driver on a Java with keytool.",
            ) from error


def _read(context: SparkContext, store: Path, password: str) -> ServerTls:
    gateway: Any = context._gateway
    jvm = gateway.jvm
    keys = jvm.java.security.KeyStore.getInstance("PKCS12")
    secret = gateway.new_array(jvm.char, len(password))
    for at, character in enumerate(password):
        secret[at] = character
    stream = jvm.java.io.FileInputStream(str(store))
    try:
        keys.load(stream, secret)
    finally:
        stream.close()
    certificate = _encoded(gateway, "java.security.cert.Certificate", keys.getCertificate("wallaby"))
    key = _encoded(gateway, "java.security.Key", keys.getKey("wallaby", secret))
    return ServerTls(_pem("CERTIFICATE", certificate), _pem("PRIVATE KEY", key))


def _encoded(gateway: Any, public_type: str, thing: Any) -> bytes:
    """A key or certificate as bytes. Their classes are not public in Java, so the call uses a public type."""
    jvm = gateway.jvm
    method = jvm.java.lang.Class.forName(public_type).getMethod(
        "getEncoded", gateway.new_array(jvm.java.lang.Class, 0)
    )
    return bytes(method.invoke(thing, gateway.new_array(jvm.java.lang.Object, 0)))


def _pem(what: str, data: bytes) -> bytes:
    text = "\n".join(textwrap.wrap(base64.b64encode(data).decode("ascii"), 64))
    return f"-----BEGIN {what}-----\n{text}\n-----END {what}-----\n".encode("ascii")
