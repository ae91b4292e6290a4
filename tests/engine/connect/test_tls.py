"""A client with TLS, through a proxy that ends it: Spark Connect has none."""

from __future__ import annotations

import contextlib
import datetime
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.engine.connect.conftest import Client, ClientError

from wallaby.serving import ConnectServer


def certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate for localhost, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = directory / "cert.pem", directory / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


def pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while found := source.recv(1 << 16):
            target.sendall(found)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def proxy(port: int, paths: tuple[Path, Path]) -> Iterator[int]:
    """Ends TLS and passes everything on to a port of this host; yields its own port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*paths)
    context.set_alpn_protocols(["h2"])
    open_ends: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def accept(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                plain, _ = listener.accept()
                try:
                    client = context.wrap_socket(plain, server_side=True)
                except OSError:
                    plain.close()
                    continue
                server = socket.create_connection(("127.0.0.1", port))
                open_ends.extend((client, server))
                for pair in ((client, server), (server, client)):
                    threads.append(threading.Thread(target=pass_on, args=pair, daemon=True))
                    threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads.append(threading.Thread(target=accept, args=(listener,), daemon=True))
        threads[0].start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    for end in open_ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join(10)
    for end in open_ends:
        end.close()


def test_a_client_with_tls_is_answered_through_a_proxy(server: ConnectServer, tmp_path: Path) -> None:
    paths = certificate(tmp_path)
    with proxy(server.port, paths) as port:
        for token, is_right in ((server.token, True), ("wrong", False)):
            address = f"sc://localhost:{port}/;use_ssl=true;token={token}"
            client = Client(address, GRPC_DEFAULT_SSL_ROOTS_FILE_PATH=str(paths[0]))
            try:
                if is_right:
                    assert client.run("answer = spark.range(5).count()") == 5
                else:
                    with pytest.raises(ClientError, match="Invalid authentication token"):
                        client.run("spark.range(5).count()")
            finally:
                client.close()
