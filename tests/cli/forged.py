"""Bundles whose checksums all fit and whose contents do not: kernels and manifests are altered, and sealed again."""

import hashlib
import json
import struct

SPEC, LOOKUP_KEY, ARCH, NVRTC = 1, 2, 4, 6  # tags of fields (runtime/Artifact.cpp)
HEAD_BYTES, CHECKSUM_AT = 56, 24


def digest(content):
    return hashlib.sha256(content).hexdigest()


def altered_kernel(content, change):
    """The artifact `content` after `change` has had its fields, by tag, with a checksum that fits."""
    fields, at = {}, HEAD_BYTES
    while at < len(content):
        tag, length = struct.unpack_from("<IQ", content, at)
        at += 12 + length
        fields[tag] = content[at - length:at]
    change(fields)
    payload = b"".join(struct.pack("<IQ", tag, len(value)) + value for tag, value in sorted(fields.items()))
    head = content[:16] + struct.pack("<Q", len(payload))
    inner = head[8:CHECKSUM_AT] + hashlib.sha256(payload).digest()
    return head + hashlib.sha256(inner).digest() + payload


def forge(folder, kernel=None, manifest=None):
    """Lets `kernel` change the fields of every kernel in the bundle `folder`, and `manifest` its manifest; names stay."""
    text = json.loads((folder / "manifest.json").read_text())
    for name in [name for name in text["files"] if kernel and name.endswith(".kernel")]:
        content = altered_kernel((folder / name).read_bytes(), kernel)
        (folder / name).write_bytes(content)
        text["files"][name] = {"bytes": len(content), "sha256": digest(content)}
    if manifest:
        manifest(text)
    (folder / "manifest.json").write_text(json.dumps(text))
