package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const imageName = "disk.img"

// store is a directory that the processes of all nodes share. A volume and a snapshot are each a
// directory with an image and a description, which is written last.
type store struct{ dir string }

// volume is the description of a volume.
type volume struct {
	ID, Name   string
	Bytes      int64
	Parameters map[string]string
	// Snapshot or volume whose data it has, as "snapshot/ID" or "volume/ID".
	Source string
	// Whether the image has grown, and its file system has not.
	IsGrown bool
	// Nodes to which it is attached.
	Nodes []string
	// Directory of its mount by node. Empty for a block device.
	Staged map[string]string
}

// snapshot is the description of a snapshot.
type snapshot struct {
	ID, Name, VolumeID string
	Bytes              int64
	IsGrown            bool
	CreatedNs          int64
	Parameters         map[string]string
}

func openStore(dir string) (store, error) {
	for _, part := range []string{"volumes", "snapshots", "nodes", "locks"} {
		if err := os.MkdirAll(filepath.Join(dir, part), 0o755); err != nil {
			return store{}, err
		}
	}
	return store{dir}, nil
}

// objectID returns the same ID for each request with this name.
func objectID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}

func (s store) volumeDir(id string) string   { return filepath.Join(s.dir, "volumes", id) }
func (s store) snapshotDir(id string) string { return filepath.Join(s.dir, "snapshots", id) }
func (s store) volumeImage(id string) string { return filepath.Join(s.volumeDir(id), imageName) }

// lock serializes the operations on an object among all processes.
func (s store) lock(id string) (func(), error) {
	path := filepath.Join(s.dir, "locks", objectID(id))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		file.Close()
		return nil, status.Error(codes.Internal, err.Error())
	}
	return func() { file.Close() }, nil
}

// readDescription fails with NotFound if there is no such object, or it is not complete.
func readDescription(dir, id string, into any) error {
	if id == "" || id != filepath.Base(id) || strings.HasPrefix(id, ".") {
		return status.Errorf(codes.NotFound, "there is no %q", id)
	}
	text, err := os.ReadFile(filepath.Join(dir, "description.json"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENAMETOOLONG) {
		return status.Errorf(codes.NotFound, "there is no %q", id)
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

func writeDescription(dir string, description any) error {
	text, err := json.Marshal(description)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	partial := filepath.Join(dir, "description.partial")
	if err = os.WriteFile(partial, text, 0o600); err == nil {
		err = os.Rename(partial, filepath.Join(dir, "description.json"))
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

func (s store) volume(id string) (*volume, error) {
	found := &volume{}
	if err := readDescription(s.volumeDir(id), id, found); err != nil {
		return nil, err
	}
	if found.Staged == nil {
		found.Staged = map[string]string{}
	}
	return found, nil
}

// volumes returns all volumes that are complete.
func (s store) volumes() ([]*volume, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "volumes"))
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	var all []*volume
	for _, entry := range entries {
		found, err := s.volume(entry.Name())
		switch {
		case err == nil:
			all = append(all, found)
		case status.Code(err) != codes.NotFound:
			return nil, err
		}
	}
	return all, nil
}

func (s store) saveVolume(v *volume) error { return writeDescription(s.volumeDir(v.ID), v) }

func (s store) snapshot(id string) (*snapshot, error) {
	found := &snapshot{}
	return found, readDescription(s.snapshotDir(id), id, found)
}

// renew removes what an interrupted request has left, and creates the directory.
func renew(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

// addNode makes a node known with a process of its mount namespace, unless a file or a link to one
// with the process is there.
func (s store) addNode(name string, pid int) error {
	path := filepath.Join(s.dir, "nodes", name)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	return os.WriteFile(path, fmt.Appendln(nil, pid), 0o600)
}

// nodeRoot returns the root directory of a node, as this process sees it.
func (s store) nodeRoot(name string) (string, error) {
	if name != filepath.Base(name) {
		return "", status.Errorf(codes.NotFound, "there is no node %q", name)
	}
	pid, err := os.ReadFile(filepath.Join(s.dir, "nodes", name))
	if err != nil {
		return "", status.Errorf(codes.NotFound, "there is no node %q", name)
	}
	return "/proc/" + strings.TrimSpace(string(pid)) + "/root", nil
}

// mountedAt returns the path of one mount of the volume. Empty: it is mounted nowhere.
func (s store) mountedAt(v *volume) string {
	nodes := make([]string, 0, len(v.Staged))
	for node := range v.Staged {
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	for _, node := range nodes {
		root, err := s.nodeRoot(node)
		if err != nil || v.Staged[node] == "" {
			continue
		}
		path := root + v.Staged[node]
		// A node that was killed has lost its mounts.
		if isOtherDevice(path, filepath.Dir(path)) {
			return path
		}
	}
	return ""
}

func isOtherDevice(path, other string) bool {
	var here, there syscall.Stat_t
	if syscall.Stat(path, &here) != nil || syscall.Stat(other, &there) != nil {
		return false
	}
	return here.Dev != there.Dev
}
