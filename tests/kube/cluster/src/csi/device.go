package main

import (
	"bufio"
	"context"
	"errors"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// run returns the output of a command, or an Internal error with it.
func run(ctx context.Context, name string, words ...string) (string, error) {
	output, err := exec.CommandContext(ctx, name, words...).CombinedOutput()
	text := strings.TrimSpace(string(output))
	if err != nil {
		line := name + " " + strings.Join(words, " ")
		return text, status.Errorf(codes.Internal, "%s: %v: %s", line, err, text)
	}
	return text, nil
}

// copyImage copies an image, by reflink where the file system can.
func copyImage(ctx context.Context, from, to string) error {
	_, err := run(ctx, "cp", "--reflink=auto", "--sparse=always", from, to)
	return err
}

// copyVolume copies the image of a volume. A mounted file system is frozen meanwhile: the copy has
// all that was written before, and needs no journal.
func (s store) copyVolume(ctx context.Context, v *volume, to string) error {
	if mount := s.mountedAt(v); mount != "" {
		if _, err := run(ctx, "fsfreeze", "--freeze", mount); err != nil {
			return err
		}
		defer func() {
			// The request may be over: the file system must thaw in any case.
			if _, err := run(context.Background(), "fsfreeze", "--unfreeze", mount); err != nil {
				log.Print(err)
			}
		}()
	}
	return copyImage(ctx, s.volumeImage(v.ID), to)
}

// findDevice returns the loop device of an image. Empty: there is none.
func findDevice(ctx context.Context, image string) (string, error) {
	found, err := run(ctx, "losetup", "--associated", image, "--noheadings", "--output", "NAME")
	device, _, _ := strings.Cut(found, "\n")
	return strings.TrimSpace(device), err
}

// attachDevice returns the loop device of an image, with the size of the image.
func attachDevice(ctx context.Context, image string) (string, error) {
	device, err := findDevice(ctx, image)
	if err != nil {
		return "", err
	}
	if device == "" {
		return run(ctx, "losetup", "--find", "--show", "--direct-io=on", image)
	}
	_, err = run(ctx, "losetup", "--set-capacity", device)
	return device, err
}

func detachDevice(ctx context.Context, image string) error {
	device, err := findDevice(ctx, image)
	if err != nil || device == "" {
		return err
	}
	_, err = run(ctx, "losetup", "--detach", device)
	return err
}

// fileSystemOn returns the type of the file system on a device. Empty: it has none.
func fileSystemOn(ctx context.Context, device string) (string, error) {
	found, err := run(ctx, "blkid", "--probe", "--output", "value", "--match-tag", "TYPE", device)
	var exit *exec.ExitError
	if err != nil && found == "" {
		// blkid ends with 2 if it finds nothing.
		probe := exec.CommandContext(ctx, "blkid", "--probe", device).Run()
		if errors.As(probe, &exit) && exit.ExitCode() == 2 {
			return "", nil
		}
	}
	return found, err
}

// makeFileSystem makes a file system on a device that has none. Returns the type of the one there.
func makeFileSystem(ctx context.Context, device, wanted string) (string, error) {
	found, err := fileSystemOn(ctx, device)
	if err != nil || found != "" {
		return found, err
	}
	switch wanted {
	case "", "xfs":
		wanted = "xfs"
		// Without --unsupported, mkfs.xfs refuses less than 300 MiB.
		_, err = run(ctx, "mkfs.xfs", "-q", "-f", "--unsupported", device)
	case "ext4":
		_, err = run(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", device)
	default:
		err = status.Errorf(codes.InvalidArgument, "the file system %s is not supported", wanted)
	}
	return wanted, err
}

// growFileSystem gives a mounted file system the size of its device. The kernel lets ext4 grow only
// with CAP_SYS_RESOURCE.
func growFileSystem(ctx context.Context, device, path string) error {
	kind, err := fileSystemOn(ctx, device)
	if err != nil {
		return err
	}
	switch kind {
	case "ext4":
		_, err = run(ctx, "resize2fs", device)
	case "xfs":
		_, err = run(ctx, "xfs_growfs", path)
	default:
		err = status.Errorf(codes.Internal, "%s has no file system that can grow", device)
	}
	return err
}

func mountDevice(ctx context.Context, device, kind, path string, flags []string) error {
	if kind == "xfs" {
		// A restored volume has the UUID of its source.
		flags = append(flags[:len(flags):len(flags)], "nouuid")
	}
	words := []string{"-t", kind, device, path}
	if len(flags) > 0 {
		words = append(words, "-o", strings.Join(flags, ","))
	}
	_, err := run(ctx, "mount", words...)
	return err
}

// bindMount mounts a directory or device at a path that it creates.
func bindMount(ctx context.Context, from, path string, isDevice, isReadOnly bool) error {
	var err error
	if isDevice {
		if err = os.MkdirAll(filepath.Dir(path), 0o750); err == nil {
			var file *os.File
			if file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600); err == nil {
				err = file.Close()
			}
		}
	} else {
		err = os.MkdirAll(path, 0o750)
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if _, err = run(ctx, "mount", "--bind", from, path); err != nil || !isReadOnly {
		return err
	}
	_, err = run(ctx, "mount", "-o", "remount,bind,ro", path)
	return err
}

// isMounted tells whether a path is a mount of this process's namespace.
func isMounted(path string) (bool, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return false, status.Error(codes.Internal, err.Error())
	}
	defer file.Close()
	wanted := filepath.Clean(path)
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// The fifth field is the mount point. Paths of the kubelet have no character to escape.
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && fields[4] == wanted {
			return true, nil
		}
	}
	if err := lines.Err(); err != nil {
		return false, status.Error(codes.Internal, err.Error())
	}
	return false, nil
}

func unmount(ctx context.Context, path string) error {
	mounted, err := isMounted(path)
	if err != nil || !mounted {
		return err
	}
	_, err = run(ctx, "umount", path)
	return err
}
