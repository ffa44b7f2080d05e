#!/usr/bin/env python3
"""Captures the signatures that real tools write, with what blkid(8) says of them, into NAME.sig beside this file.

Needs: e2fsprogs xfsprogs btrfs-progs f2fs-tools dosfstools exfatprogs ntfs-3g genisoimage squashfs-tools erofs-utils
udftools jfsutils nilfs-tools hfsprogs fdisk cryptsetup-bin mdadm lvm2 bcache-tools util-linux-extra, and root with loop
devices. A tool that is missing is named, and its file left as it is.

A .sig file holds `# command`, `size BYTES`, what blkid said as `type`, `label` and `uuid`, and the sectors that are
not zero as `at OFFSET HEX`, without the zeros at their ends.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
MIB = 1 << 20
HEAD = (0, 4096)


def tail(length):
    return (-length, None)


# name: (size, command with {} for the image, ranges of bytes to keep)
PLAIN = {
    "ext2": (8 * MIB, "mkfs.ext2 -q -L two {}", [(1024, 2048)]),
    "ext3": (16 * MIB, "mkfs.ext3 -q -L three {}", [(1024, 2048)]),
    "ext4": (16 * MIB, "mkfs.ext4 -q -L four {}", [(1024, 2048)]),
    "ext-journal": (16 * MIB, "mke2fs -q -F -O journal_dev {}", [(1024, 2048)]),
    "xfs": (320 * MIB, "mkfs.xfs -q -L data {}", [HEAD]),
    "btrfs": (128 * MIB, "mkfs.btrfs -q -L pool {}", [(0x10000, 0x11000)]),
    "f2fs": (64 * MIB, "mkfs.f2fs -q -l flash {}", [(0, 4096)]),
    "fat12": (2 * MIB, "mkfs.vfat -F 12 -n TWELVE {}", [(0, 512)]),
    "fat16": (32 * MIB, "mkfs.vfat -F 16 -n SIXTEEN {}", [(0, 512)]),
    "fat32": (64 * MIB, "mkfs.vfat -F 32 -n THIRTYTWO {}", [(0, 1024)]),
    "exfat": (16 * MIB, "mkfs.exfat -L ex {}", [(0, 512)]),
    "ntfs": (16 * MIB, "mkntfs -q -Q -F -L win {}", [(0, 512)]),
    "iso9660": (4 * MIB, "genisoimage -quiet -V DISC -o {} /usr/share/doc/mount", [(0x8000, 0x8800)]),
    "udf": (8 * MIB, "mkudffs -l UDISC {}", [(0x8000, 0xc000)]),
    "squashfs": (1 * MIB, "mksquashfs /usr/share/doc/mount {} -noappend -quiet -no-progress", [(0, 512)]),
    "erofs": (1 * MIB, "mkfs.erofs {} /usr/share/doc/mount", [(0x400, 0x600)]),
    "jfs": (32 * MIB, "mkfs.jfs -q -L jay {}", [(0x8000, 0x8200)]),
    "nilfs2": (160 * MIB, "mkfs.nilfs2 -q -L nil {}", [(0x400, 0x800)]),
    "hfsplus": (16 * MIB, "mkfs.hfsplus -v apple {}", [(0x400, 0x600)]),
    "minix": (8 * MIB, "mkfs.minix {}", [(0x400, 0x800)]),
    "swap": (4 * MIB, "mkswap -q -L pages {}", [(0, 4096)]),
    "swap-64k": (4 * MIB, "mkswap -q -p 65536 -L pages {}", [(0x400, 0x600), (0xfe00, 0x10000)]),
    "gpt": (8 * MIB, "sfdisk -q --label gpt {}", [HEAD, tail(17 * 1024)]),
    "dos": (8 * MIB, "sfdisk -q --label dos {}", [(0, 512)]),
    "dos-empty": (8 * MIB, "sfdisk -q {}", [(0, 512)]),
    "sun": (8 * MIB, "sfdisk -q {}", [(0, 512)]),
    "sgi": (8 * MIB, "sfdisk -q {}", [(0, 512)]),
    "luks1": (8 * MIB, "cryptsetup -q luksFormat --type luks1 --pbkdf-force-iterations 1000 {} -", [(0, 512)]),
    "luks2": (32 * MIB, "cryptsetup -q luksFormat --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --label safe {} -", [(0, 512), (0x4000, 0x4200)]),
    "bcache": (16 * MIB, "make-bcache -B {}", [(4096, 4608)]),
}
# The same for tools that want a block device.
DEVICE = {
    "lvm2": (16 * MIB, "pvcreate -q {}", [(0, 2048)]),
    "md-0.90": (16 * MIB, "mdadm --create /dev/md77 --run --force --metadata=0.90 --level=1 --raid-devices=2 {} missing", [tail(128 << 10)]),
    "md-1.0": (16 * MIB, "mdadm --create /dev/md77 --run --force --metadata=1.0 --level=1 --raid-devices=2 {} missing", [tail(16 << 10)]),
    "md-1.1": (16 * MIB, "mdadm --create /dev/md77 --run --force --metadata=1.1 --level=1 --raid-devices=2 {} missing", [(0, 512)]),
    "md-1.2": (16 * MIB, "mdadm --create /dev/md77 --run --force --metadata=1.2 --level=1 --raid-devices=2 {} missing", [(4096, 4608)]),
}
# Text that a tool reads.
INPUT = {
    "gpt": "size=1M\nsize=2M\n", "dos": "size=1M,type=83\n", "dos-empty": "label: dos\n", "sun": "label: sun\n", "sgi": "label: sgi\n",
    "luks1": "secret", "luks2": "secret",
}


def identify(image):
    """What blkid says, as the fields of a .sig file."""
    out = subprocess.run(["blkid", "-p", "-o", "export", image], capture_output=True, text=True).stdout
    said = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
    unescape = lambda text: text.replace("\\ ", " ")
    fields = {
        "type": said.get("TYPE") or said.get("PTTYPE"),
        "label": unescape(said.get("LABEL", "")),
        "uuid": said.get("UUID") or said.get("PTUUID") or "",
    }
    return "".join(f"{key} {value}\n" for key, value in fields.items() if value)


def sectors(image, size, ranges):
    """The sectors in the ranges that are not all zero."""
    lines = []
    with open(image, "rb") as file:
        for first, last in ranges:
            first, last = (size + first, size) if first < 0 else (first, last)
            for at in range(first, last, 512):
                file.seek(at)
                data = file.read(512).rstrip(b"\0")
                if data:
                    lines.append(f"at {at} {data.hex()}\n")
    return "".join(lines)


def capture(name, size, command, ranges, on_device):
    tool = command.split()[0]
    if not shutil.which(tool, path="/usr/sbin:/sbin:/usr/bin:/bin"):
        print(f"{name}: {tool} is not installed", file=sys.stderr)
        return
    with tempfile.NamedTemporaryFile() as image:
        image.truncate(size)
        path, device = image.name, None
        if on_device:
            device = subprocess.check_output(["losetup", "--find", "--show", path], text=True).strip()
        try:
            run = command.format(device or path)
            done = subprocess.run(run.split(), input=INPUT.get(name, ""), text=True, capture_output=True)
            if tool == "mdadm":
                subprocess.run(["mdadm", "--stop", "/dev/md77"], capture_output=True)
        finally:
            if device:
                subprocess.run(["losetup", "--detach", device], check=True)
        said = identify(path)
        if not said:
            print(f"{name}: {run} made nothing: {done.stderr.strip()}", file=sys.stderr)
            return
        size = pathlib.Path(path).stat().st_size
        text = f"# {command.format('IMAGE')}\nsize {size}\n{said}{sectors(path, size, ranges)}"
        (HERE / f"{name}.sig").write_text(text)


for table, on_device in ((PLAIN, False), (DEVICE, True)):
    for entry, (bytes_, line, keep) in table.items():
        if len(sys.argv) == 1 or entry in sys.argv[1:]:
            capture(entry, bytes_, line, keep, on_device)
