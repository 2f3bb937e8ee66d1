# SPDX-License-Identifier: Apache-2.0
"""Images for tests: tars entry by entry, hostile ones too, as OCI layouts and as docker archives.

    tar = Tar().dir("bin").file("bin/sh", b"...", 0o755).link("a", "/etc").bytes()
    oci(path, [tar, ...], config={"Cmd": ["/bin/sh"]})
"""

import gzip
import hashlib
import io
import json
import os
import platform
import subprocess
import tarfile

ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "unknown")


def sha(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


class Tar:
    def __init__(self, format=tarfile.PAX_FORMAT):
        self.out = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.out, mode="w", format=format)

    def add(self, name, type=tarfile.REGTYPE, data=b"", mode=0o644, **kw):
        info = tarfile.TarInfo(name)
        info.type, info.mode, info.size, info.mtime = type, mode, len(data), 1700000000
        for k, v in kw.items():
            setattr(info, k, v)
        self.tar.addfile(info, io.BytesIO(data))
        return self

    def file(self, name, data=b"", mode=0o644, **kw):
        return self.add(name, data=data, mode=mode, **kw)

    def dir(self, name, mode=0o755):
        return self.add(name, tarfile.DIRTYPE, mode=mode)

    def link(self, name, to):
        return self.add(name, tarfile.SYMTYPE, mode=0o777, linkname=to)

    def hard(self, name, to):
        return self.add(name, tarfile.LNKTYPE, linkname=to)

    def busybox(self):
        """Enough to run a shell: /bin/busybox and its names."""
        with open("/bin/busybox", "rb") as f:
            self.dir("bin").file("bin/busybox", f.read(), 0o755)
        for name in "sh cat ls id env pwd stat echo touch mkdir rm readlink ln chmod dd sleep wc true grep head mount".split():
            self.link("bin/" + name, "busybox")
        return self

    def bytes(self):
        self.tar.close()
        return self.out.getvalue()


def config_of(layers, config=None, **more):
    text = {"architecture": ARCH, "os": "linux", "config": config or {},
            "rootfs": {"type": "layers", "diff_ids": [sha(l) for l in layers]}}
    text.update(more)
    return json.dumps(text).encode()


def oci_files(layers, config=None, pack=gzip.compress, name=None, change=None):
    """{path: bytes} of an OCI layout. `change`: called with the manifest before it is written."""
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}

    def blob(data):
        files["blobs/sha256/" + sha(data)[7:]] = data
        return {"digest": sha(data), "size": len(data)}

    conf = config if isinstance(config, bytes) else config_of(layers, config)
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": dict(blob(conf), mediaType="application/vnd.oci.image.config.v1+json"),
                "layers": [dict(blob(pack(l)), mediaType="application/vnd.oci.image.layer.v1.tar+gzip") for l in layers]}
    if change:
        change(manifest, files)
    row = dict(blob(json.dumps(manifest).encode()), mediaType="application/vnd.oci.image.manifest.v1+json",
               platform={"os": "linux", "architecture": ARCH})
    if name:
        row["annotations"] = {"org.opencontainers.image.ref.name": name}
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [row]}).encode()
    return files


def docker_files(layers, config=None, tags=("it:latest",)):
    """{path: bytes} of what `docker save` wrote before version 25."""
    conf = config_of(layers, config)
    files = {sha(conf)[7:] + ".json": conf}
    names = []
    for i, layer in enumerate(layers):
        names.append("%064x/layer.tar" % i)
        files[names[-1]] = layer
    files["manifest.json"] = json.dumps([{"Config": sha(conf)[7:] + ".json", "RepoTags": list(tags), "Layers": names}]).encode()
    return files


def as_tar(files):
    tar = Tar()
    for name in files:
        tar.file(name, files[name])
    return tar.bytes()


def as_dir(path, files):
    for name, data in files.items():
        at = os.path.join(path, name)
        os.makedirs(os.path.dirname(at), exist_ok=True)
        with open(at, "wb") as f:
            f.write(data)
    return path
