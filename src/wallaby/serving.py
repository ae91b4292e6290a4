"""`serve`: a Spark Connect server whose sessions use the engine.

Spark's own Connect service runs in the JVM of this driver, with this driver's engine below it. Spark makes the sessions
of its clients from the session here, so Spark's planner offers their plans to the engine as it offers all others
(`above`). Clients need nothing of Wallaby, and no JVM.

Spark Connect has no TLS. So the server listens on this host only, unless Spark's own setting names another address,
and never without a token.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from wallaby.enabling import disable, enable, is_enabled
from wallaby.engine import Engine
from wallaby.errors import AttachError, InvalidArgumentError
from wallaby.spark.checks import check_session

_log = logging.getLogger(__name__)
TOKEN_VARIABLE: Final = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 - the name of a variable
PORT_DEFAULT: Final = 15002
PORT_MAX: Final = 65535
_SERVICE: Final = "org.apache.spark.sql.connect.service.SparkConnectService$"
_ADDRESS: Final = "spark.connect.grpc.binding.address"
_PORT: Final = "spark.connect.grpc.binding.port"
_TOKEN: Final = "spark.connect.authenticate.token"  # noqa: S105 - the name of a setting
_LOOPBACK: Final = "127.0.0.1"
_POLL_SECONDS: Final = 1.0
#: How many exceptions below another one are searched.
_DEEP: Final = 8


class ConnectServer:
    """A Spark Connect server in this application: `serve` makes it.

    It is a context manager, which closes the server at the end.

    Attributes:
        spark: The session whose application it belongs to.
        engine: The engine that its clients use.
        port: The port that it listens on.
        token: What clients have to present.
    """

    def __init__(
        self, spark: SparkSession, engine: Engine, service: Any, address: str, token: str, *, ours: bool
    ) -> None:
        """If `ours`, the engine was enabled for this server, and ends with it."""
        self.spark = spark
        self.engine = engine
        self.port = int(service.localPort())
        self.token = token
        self._address = address
        self._service = service
        self._ours = ours
        self._closed = False
        self._over = threading.Event()

    @property
    def address(self) -> str:
        """The address for clients, without the token.

        Clients send a token without TLS only to a host that they know as `localhost`.
        """
        local = ipaddress.ip_address(self._address).is_loopback
        host = f"[{self._address}]" if ":" in self._address else self._address
        return f"sc://{'localhost' if local else host}:{self.port}"

    @property
    def url(self) -> str:
        """The address for clients, with the token: whoever has it can run queries and Python functions here.

        Example:
            >>> SparkSession.builder.remote(server.url).getOrCreate()
        """
        return f"{self.address}/;token={self.token}"

    def wait(self) -> None:
        """Wait until the server is closed, the process is asked to end (SIGTERM), or Spark stops.

        Raises:
            AttachError: Spark has stopped by itself.
        """
        before = self._on_terminate(lambda _number, _frame: self._over.set())
        try:
            while not self._over.wait(_POLL_SECONDS):
                if not self._is_up():
                    raise AttachError(
                        "Spark has stopped, and the Spark Connect server with it.",
                        fix="See the log of Spark's driver for the reason, and start it again.",
                    )
        finally:
            if before is not None:
                self._on_terminate(before)

    def close(self) -> None:
        """Stop the server, and the engine if it was enabled for it. The operations of clients end."""
        if self._closed:
            return
        self._closed = True
        self._over.set()
        try:
            if self.spark.sparkContext._jsc is not None and self._service.started():
                none = _object(self.spark, "scala.None$")
                self._service.stop(none, none)
        except (Py4JError, OSError) as error:
            _log.debug("cannot stop the Spark Connect server: %s", type(error).__name__)
        if self._ours:
            disable(self.spark)

    def _is_up(self) -> bool:
        try:
            return self.spark.sparkContext._jsc is not None and bool(self._service.started())
        except (Py4JError, OSError):
            return False

    @staticmethod
    def _on_terminate(handler: Any) -> Any:
        """Handle SIGTERM; returns the previous handler. Only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            return None
        return signal.signal(signal.SIGTERM, handler)

    def __enter__(self) -> ConnectServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ConnectServer({self.address}, {'closed' if self._closed else 'open'})"


def serve(
    spark: SparkSession, *, port: int | None = None, token: str | None = None, **settings: object
) -> ConnectServer:
    """Start a Spark Connect server in this application, whose clients use the engine.

    Programs that connect stay as they are, and need neither Wallaby nor a JVM. The session is enabled too. The server
    listens on 127.0.0.1, unless `spark.connect.grpc.binding.address` names another address.

    Args:
        spark: A classic session.
        port: The port; 0 takes a free one. Default: `spark.connect.grpc.binding.port`, else 15002.
        token: What clients have to present. Default: `spark.connect.authenticate.token`, else the environment's
            SPARK_CONNECT_AUTHENTICATE_TOKEN, else a new one.
        **settings: Settings of a new engine, as for `attach`.

    Returns:
        The server. Close it when it is no longer needed, or use it in a `with` statement.

    Raises:
        AttachError: the server or the engine cannot start: the port is in use, say, or there is a server already.
        InvalidArgumentError: there is no such port, or the token is empty.
        ConfigurationError: a setting of the engine is unknown or invalid.

    Example:
        >>> with wallaby.serve(spark, port=0, workers=3) as server:
        ...     print(server.url)
        ...     server.wait()
    """
    check_session(spark)
    conf = spark.sparkContext.getConf()
    number = _read_port(conf.get(_PORT) if port is None else port)
    address = _read_address(conf.get(_ADDRESS) or _LOOPBACK)
    if token is None:
        token = conf.get(_TOKEN) or os.environ.get(TOKEN_VARIABLE) or secrets.token_urlsafe(24)
    _check_token(token)
    service = _service(spark)
    if service.started():
        raise AttachError(
            "This application already has a Spark Connect server.",
            fix="Leave spark.plugins without SparkConnectPlugin, or close the server that serve returned before.",
        )
    _check_python(spark)
    ours = not is_enabled(spark)
    engine = enable(spark, **settings)
    try:
        _start(spark, service, address, number, token)
        engine._parts.report_to_connect(engine.spark.sparkContext)
        return ConnectServer(spark, engine, service, address, token, ours=ours)
    except BaseException:
        if ours:
            disable(spark)
        raise


def _start(spark: SparkSession, service: Any, address: str, port: int, token: str) -> None:
    """Start Spark's service; it reads its settings from the running application."""
    jsc: Any = spark.sparkContext._jsc
    conf = jsc.sc().conf()
    before = {key: conf.get(key, "") for key in (_ADDRESS, _PORT, _TOKEN)}
    for key, value in ((_ADDRESS, address), (_PORT, str(port)), (_TOKEN, token)):
        conf.set(key, value)
    try:
        service.start(jsc.sc())
    except Py4JJavaError as error:
        if _is_taken(address, port):  # Spark's exception does not tell
            raise AttachError(
                f"Port {port} of {address} is in use, so the Spark Connect server cannot listen there.",
                fix="Choose another port; 0 takes any free one.",
                port=port,
            ) from None
        raise AttachError(
            f"The Spark Connect server cannot listen on port {port} of {address}: "
            f"{_why(error.java_exception)}.",
            fix=f"Check {_ADDRESS} and the port.",
        ) from None
    finally:  # the service has read them; nobody else is to find the token there
        for key, text in before.items():
            if text:
                conf.set(key, text)
            else:
                conf.remove(key)


def _is_taken(address: str, port: int) -> bool:
    """Does another program listen there?"""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        socket.create_server((address, port), family=family).close()
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False


def _why(exception: Any) -> str:
    """The innermost reason of a Java exception."""
    for _ in range(_DEEP):
        if exception.getCause() is None:
            break
        exception = exception.getCause()
    return str(exception.getMessage() or exception.getClass().getName()).rstrip(".")


def _service(spark: SparkSession) -> Any:
    try:
        return _object(spark, _SERVICE)
    except Py4JError:
        raise AttachError(
            "This Spark has no Spark Connect server: its jar spark-connect is missing.",
            fix="Use the PySpark of its wheel, or add "
            f"--packages org.apache.spark:spark-connect_2.13:{spark.version}.",
        ) from None


def _object(spark: SparkSession, name: str) -> Any:
    """A Scala object in the JVM."""
    gateway: Any = spark.sparkContext._gateway
    loaded = gateway.jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader().loadClass(name)
    return loaded.getField("MODULE$").get(None)


def _read_port(text: object) -> int:
    try:
        port = PORT_DEFAULT if text is None else int(str(text))
    except ValueError:
        port = -1
    if not 0 <= port <= PORT_MAX:
        raise InvalidArgumentError(f"Invalid port: {text}.", fix=f"Use 0 to {PORT_MAX}.")
    return port


def _read_address(text: str) -> str:
    try:
        address = ipaddress.ip_address(text.strip("[]").replace("localhost", _LOOPBACK))
    except ValueError:
        raise AttachError(
            f"{_ADDRESS} is {text!r}, which is not an IP address.", fix="Use 127.0.0.1, or leave it out."
        ) from None
    if address.is_unspecified:
        raise AttachError(
            f"{_ADDRESS} is {text}: the Spark Connect server would listen on all interfaces, without TLS.",
            fix="Leave it out, and let a proxy with TLS, or ssh -L, forward to 127.0.0.1.",
        )
    if not address.is_loopback:
        _log.warning(
            "The Spark Connect server listens on %s without TLS, which Spark Connect lacks: put a proxy with TLS "
            "between it and its clients.",
            address,
        )
    return str(address)


def _check_token(token: str) -> None:
    if not token.strip() or not token.isascii() or not token.isprintable() or ";" in token:
        raise InvalidArgumentError(
            "The token is empty, or has characters that are not allowed in a server address.",
            fix="Use letters and digits, e.g. those of: openssl rand -hex 24",
        )


def _check_python(spark: SparkSession) -> None:
    """Warn if Python functions of clients would run under another Python than this one."""
    jvm: Any = spark.sparkContext._jvm
    environment = jvm.java.lang.System.getenv()
    named = environment.get("PYSPARK_DRIVER_PYTHON") or environment.get("PYSPARK_PYTHON") or "python3"
    found = shutil.which(str(named))
    if found is None or Path(found).parent.resolve() != Path(sys.executable).parent.resolve():
        _log.warning(
            "Python functions of clients run under %s, which is not the Python of this program (%s). "
            "Set PYSPARK_PYTHON to the one to use before Spark starts.",
            found or named,
            sys.executable,
        )
