"""scripts/fetch_data.sh against a folder and a server of this machine: good, resumed, damaged, absent, unreachable.

The real sets are megabytes, so a copy of the script expects the checksum of a small archive. Standard library only.
"""

import hashlib
import http.server
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
OFFICIAL = "c32a1d4ab5d03f1284b67883e8d87530"


def check(condition, text, done=None):
    if not condition:
        sys.exit(f"FAILED: {text}" + (f"\nexit code {done.returncode}, output:\n{done.stdout}" if done else ""))
    print("ok:", text, flush=True)


def archive():
    content, data = io.BytesIO(), os.urandom(300_000)
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        entry = tarfile.TarInfo("cifar-10-batches-bin/data_batch_1.bin")
        entry.size = len(data)
        tar.addfile(entry, io.BytesIO(data))
    return content.getvalue(), data


class Server(http.server.BaseHTTPRequestHandler):
    files, ranges = {}, []

    def do_GET(self):
        body = self.files.get(self.path)
        if body is None:
            return self.send_error(404)
        wanted = self.headers.get("Range")
        self.ranges.append(wanted)
        start = int(wanted.split("=")[1].rstrip("-")) if wanted else 0
        if start >= len(body):
            return self.send_error(416)
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(body[start:])

    def log_message(self, *unused):
        pass


def fetch(scripts, folder, url, script="fetch_cifar10.sh"):
    env = dict(os.environ, SIMCLR_DATA_URL=url)
    env.pop("http_proxy", None)
    return subprocess.run([scripts / script, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env,
                          timeout=60)


def tests(root):
    good, data = archive()
    scripts = root / "scripts"
    scripts.mkdir()
    for name in ("fetch_data.sh", "fetch_cifar10.sh"):
        shutil.copy(SCRIPTS / name, scripts / name)
    text = (scripts / "fetch_data.sh").read_text()
    check(text.count(OFFICIAL) == 1, "the script knows the published checksum")
    (scripts / "fetch_data.sh").write_text(text.replace(OFFICIAL, hashlib.md5(good).hexdigest()))
    name = "cifar-10-binary.tar.gz"

    store = root / "store"
    store.mkdir()
    (store / name).write_bytes(good)
    done = fetch(scripts, root / "a", f"file://{store}")
    unpacked = root / "a" / "cifar-10-batches-bin"
    check(done.returncode == 0 and f"--set data.path={unpacked}" in done.stdout, "a folder serves", done)
    check((unpacked / "data_batch_1.bin").read_bytes() == data, "what was in the archive is there")
    (store / name).unlink()
    (root / "a" / name).unlink()  # many do that after unpacking
    done = fetch(scripts, root / "a", f"file://{store}")
    check(done.returncode == 0 and "is complete" in done.stdout, "a complete set is left alone", done)
    done = fetch(scripts, root / "b", f"file://{store}")
    check(done.returncode == 1 and "file://" in done.stdout and "does not exist (curl" in done.stdout, "an absent file", done)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/x"
    Server.files[f"/x/{name}"] = good
    (root / "c").mkdir()
    (root / "c" / f"{name}.part").write_bytes(good[:1000])
    done = fetch(scripts, root / "c", url)
    check(done.returncode == 0 and Server.ranges == ["bytes=1000-"], "an interrupted download is resumed", done)
    (root / "d").mkdir()
    (root / "d" / f"{name}.part").write_bytes(good + b"more")
    done = fetch(scripts, root / "d", url)
    check(done.returncode == 0 and (root / "d" / "cifar-10-batches-bin").is_dir(), "too long a rest is replaced", done)

    Server.files[f"/x/{name}"] = good[:-1] + bytes([good[-1] ^ 1])
    done = fetch(scripts, root / "e", url)
    check(done.returncode == 1 and "is damaged or a different file" in done.stdout, "a damaged archive", done)
    check(sorted(p.name for p in (root / "e").iterdir()) == [], "nothing of it is left")
    done = fetch(scripts, root / "e", f"{url}/none")
    check(done.returncode == 1 and "does not exist (curl" in done.stdout and "SIMCLR_DATA_URL" in done.stdout, "404", done)
    server.shutdown()
    server.server_close()
    done = fetch(scripts, root / "e", url)
    check(done.returncode == 1 and "without network access, download cifar-10-binary.tar.gz elsewhere" in done.stdout, "no network", done)
    done = fetch(scripts, "svhn", url, "fetch_data.sh")
    check(done.returncode == 2 and "usage:" in done.stdout, "an unknown set", done)


if shutil.which("curl") is None:
    print("skipped: curl is not installed")
    sys.exit(77)
folder = pathlib.Path(tempfile.mkdtemp(prefix="simclr_test_"))
try:
    tests(folder)
finally:
    shutil.rmtree(folder)
