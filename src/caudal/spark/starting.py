"""Sessions that Caudal starts itself, and those that the process has already.

Rules
1. A session of Caudal ends with the last run in it. Runs of several threads share it, because a
   process has one JVM.
2. A session of the user is used if it fits, and it is never ended.
3. SPARK_REMOTE of the environment counts like --remote if nothing else says which Spark, as in
   PySpark.
4. A server that cannot be reached is noticed before gRPC waits for it, which takes minutes.
"""

import contextlib
import os
import re
import signal
import socket
import sys
import tempfile
import threading
import urllib.request
import warnings
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from caudal import extras
from caudal.errors import SparkFailedError, UsageError
from caudal.run_options import SparkOptions
from caudal.spark.reasons import one_reason, spark_errors

_ATTEMPTS = 4  # of a task, as Spark has it elsewhere
# A JVM that lives for one run: its second compiler would take more time than it saves, since Java
# only moves rows. Options that the user has set for drivers count more.
_JVM_OPTIONS = "-XX:TieredStopAtLevel=1"
_REACH_SECONDS = 5
_END_SECONDS = 5  # for the end of a session of a server that may be gone
_PORT = 15002
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")


@contextlib.contextmanager
def started_session(options: SparkOptions) -> Iterator[Any]:
    """Provide the session that the process has, or one that ends with the block."""
    if options.remote and options.master:
        raise UsageError("--remote and --master name two Sparks: leave one of them out")
    connected = None if options.master or options.remote else _active_connect()
    if connected is not None:
        yield connected
        return
    remote, said_by = (options.remote, "--remote") if options.remote else _remote_of_environment()
    if remote and not options.master:
        with _connected(remote, said_by) as session:
            yield session
        return
    with _OWN.joined(options.master) as session:
        yield session


def _remote_of_environment() -> tuple[str, str]:
    """Return the server that the environment names, unless this process has a session already; and
    the variable. Other values than sc://… are masters of servers that PySpark would start."""
    name = "SPARK_REMOTE"
    remote = os.environ.get(name, "")
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)  # a mere client has none
    is_free = getattr(context, "_active_spark_context", None) is None
    return (remote if is_free and remote.startswith("sc://") else ""), name


@contextlib.contextmanager
def _connected(url: str, said_by: str) -> Iterator[Any]:
    """Provide a session of this server, which an option or a variable has named."""
    host, port = _address(url, said_by)
    try:
        from pyspark.sql.connect.session import SparkSession
    except ImportError as error:
        raise extras.missing_extra("spark", "Spark Connect", [str(error.name)]) from None
    _reach(host, port, said_by)
    with spark_errors("cannot start Spark"):
        session = SparkSession.builder.remote(url).create()
    try:
        yield session
    finally:
        ending = threading.Thread(target=_end, args=(session,), daemon=True)
        ending.start()
        ending.join(_END_SECONDS)


def _address(url: str, said_by: str) -> tuple[str, int]:
    """Return host and port of sc://host:port/;parameters."""
    parts = urlsplit(url)
    with contextlib.suppress(ValueError):  # of the port
        if parts.scheme == "sc" and parts.hostname:
            return parts.hostname, parts.port or _PORT
    told = re.split("[;?#]", url.rpartition("@")[2])[0]  # without tokens and passwords
    raise UsageError(
        f"{said_by} {told}: write it as sc://host:{_PORT} or sc://host:{_PORT}/;token=…"
    )


def _reach(host: str, port: int, said_by: str) -> None:
    """Raise an error if nobody listens there. Proxies of gRPC are left to it."""
    if any(map(os.environ.get, _PROXIES)) and not urllib.request.proxy_bypass(host):
        return
    try:
        socket.create_connection((host, port), _REACH_SECONDS).close()
    except OSError as error:
        why = error.strerror or str(error)
        raise SparkFailedError(
            f"cannot reach Spark at {host}:{port} ({why}): "
            f"start its Connect server, or correct {said_by}"
        ) from None


def _end(session: Any) -> None:
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # its JVM may be gone
        session.stop()  # what it was needed for is done


def _active_connect() -> Any:
    """Return the active session if it is one of Connect."""
    module = sys.modules.get("pyspark.sql.connect.session")
    return module.SparkSession.getActiveSession() if module is not None else None


class _OwnSession:
    """The classic session of this process that Caudal has started, and the runs that need it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: Any = None
        self._runs = 0

    @contextlib.contextmanager
    def joined(self, master: str | None) -> Iterator[Any]:
        """Provide the session of the process, or start one."""
        with self._lock:
            session = _active(master)
            is_own = session is None or self._runs > 0
            if session is None:
                self._session = session = _classic(master)
            self._runs += is_own
        try:
            yield session
        finally:
            with self._lock:
                self._runs -= is_own
                if is_own and not self._runs:
                    _end(self._session)
                    self._session = None


_OWN = _OwnSession()


def _active(master: str | None) -> Any:
    """Return the session that this process has. Raise an error if it has another master."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    if context is None or context._jsc is None:
        return None
    with spark_errors("the active session of Spark cannot be used"):
        found = str(context.master)
        if master is None or retrying_master(master) == retrying_master(found):
            with _hidden("SPARK_REMOTE"):
                return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    raise UsageError(
        f"a session of Spark with the master {found} is active in this process, "
        f"not {master}: leave the master out to use it, or stop it first"
    )


def _classic(master: str | None) -> Any:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = own_conf(master)
    with spark_errors("cannot start Spark"), _kept_interrupts(), _hidden("SPARK_REMOTE"):
        if SparkContext._gateway is None:  # no JVM of an earlier session
            SparkContext(conf=conf, gateway=_new_jvm(conf))
        return SparkSession.builder.config(conf=conf).getOrCreate()


@contextlib.contextmanager
def _hidden(name: str) -> Iterator[None]:
    """Hide a variable of the environment. With SPARK_REMOTE, PySpark starts no classic session."""
    value = os.environ.pop(name, None)
    try:
        yield
    finally:
        if value is not None:
            os.environ[name] = value


@contextlib.contextmanager
def _kept_interrupts() -> Iterator[None]:
    """Keep what Ctrl-C does: a new context of Spark takes it for itself, also after its end."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGINT, before)


def own_conf(master: str | None) -> Any:
    """Return the settings of a session that Caudal starts."""
    from pyspark import SparkConf

    chosen = retrying_master(master or "local[*]")
    conf = SparkConf().setMaster(chosen).setAppName("caudal")
    conf.set("spark.ui.showConsoleProgress", "false").set("spark.log.level", "OFF")
    if chosen.startswith("local"):
        conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
        conf.set("spark.ui.enabled", "false")
        conf.set("spark.driver.defaultJavaOptions", _JVM_OPTIONS)
    return conf


def _new_jvm(conf: Any) -> Any:
    """Start the JVM of Spark. What it says goes to a file: it greets with ten lines that help
    nobody. If it does not start, the file says why."""
    from pyspark.java_gateway import launch_gateway

    with tempfile.TemporaryFile() as said:
        try:
            return launch_gateway(conf, {"stderr": said})
        except Exception as error:
            said.seek(0)
            told = said.read().decode("utf-8", "replace")
            if told.rstrip().endswith("JAVA_HOME is not set"):  # and there is no java in PATH
                why = "it needs Java: install it (default-jre-headless), or set JAVA_HOME"
            else:
                why = one_reason(told or str(error))
            raise SparkFailedError(f"cannot start Spark: {why}") from error


def retrying_master(master: str) -> str:
    """Return a local master that repeats tasks as others do; alone, it gives up at the first."""
    if master == "local":
        return f"local[1,{_ATTEMPTS}]"
    return re.sub(r"^local\[([0-9]+|\*)\]$", rf"local[\1,{_ATTEMPTS}]", master)
