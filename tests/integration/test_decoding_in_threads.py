"""Threads that are the first to decode a type, all at once, in a process that must survive it."""

import subprocess
import sys

PROGRAM = """
import sys, threading
from caudal.decoding import convert, decode_json, decode_msgpack

sys.setswitchinterval(1e-6)
TYPES = '''
import msgspec
class A{0}(msgspec.Struct):
    x: "int"
    z: "dict[str, tuple[int, ...]]" = {{}}
class B{0}(msgspec.Struct):
    a: "A{0}"
    b: "list[A{0}]"
    c: "dict[str, A{0}]"
'''
VALUE = {"a": {"x": 1, "z": {"q": [1, 2]}}, "b": [{"x": 2}], "c": {"k": {"x": 3}}}
import msgspec
JSON, PACKED = msgspec.json.encode(VALUE), msgspec.msgpack.encode(VALUE)
READ = (
    lambda kind: decode_json(JSON, kind),
    lambda kind: decode_msgpack(PACKED, kind),
    lambda kind: convert(VALUE, kind),
    lambda kind: decode_json(JSON, kind),
)
for number in range(400):
    exec(TYPES.format(number), globals())
    kind, start, found = globals()[f"B{number}"], threading.Barrier(len(READ)), []
    def work(read):
        start.wait()
        found.append(read(kind))
    threads = [threading.Thread(target=work, args=(read,)) for read in READ]
    for one in threads: one.start()
    for one in threads: one.join()
    assert len(found) == len(READ) and all(one == found[0] for one in found)
print("survived")
"""


def test_many_threads_decode_a_new_type_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "survived\n"), done.stderr
