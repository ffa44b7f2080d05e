package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func (c *controller) CreateSnapshot(
	ctx context.Context, request *csi.CreateSnapshotRequest,
) (*csi.CreateSnapshotResponse, error) {
	name, volumeID := request.GetName(), request.GetSourceVolumeId()
	if name == "" || volumeID == "" {
		return nil, status.Error(codes.InvalidArgument, "a name and a volume are required")
	}
	if err := checkParameters(request.GetParameters()); err != nil {
		return nil, err
	}
	// A snapshot and a volume of one name have two locks.
	id := "snapshot-" + objectID(name)
	unlock, err := c.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	made, err := c.snapshot(id)
	if status.Code(err) == codes.NotFound {
		made, err = c.takeSnapshot(ctx, id, request)
	}
	if err != nil {
		return nil, err
	}
	if made.VolumeID != volumeID {
		return nil, status.Error(codes.AlreadyExists, "a snapshot of another volume has this name")
	}
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{
		SnapshotId:     id,
		SourceVolumeId: volumeID,
		SizeBytes:      made.Bytes,
		CreationTime:   timestamppb.New(time.Unix(0, made.CreatedNs)),
		ReadyToUse:     true,
	}}, nil
}

func (c *controller) takeSnapshot(
	ctx context.Context, id string, request *csi.CreateSnapshotRequest,
) (*snapshot, error) {
	of := request.GetSourceVolumeId()
	source, err := c.volume(of)
	if err != nil {
		return nil, err
	}
	parameters := merged(source.Parameters, request.GetParameters())
	// The volume can be used during a delay.
	if err := injectFault(ctx, operationSnapshot, id, parameters); err != nil {
		return nil, err
	}
	unlock, err := c.lock(of)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if source, err = c.volume(of); err != nil {
		return nil, err
	}
	made := &snapshot{
		ID: id, Name: request.GetName(), VolumeID: of, Bytes: source.Bytes,
		IsGrown: source.IsGrown, CreatedNs: time.Now().UnixNano(), Parameters: parameters,
	}
	dir := c.snapshotDir(id)
	if err := renew(dir); err != nil {
		return nil, err
	}
	image := filepath.Join(dir, imageName)
	if err := c.copyVolume(ctx, source, image); err != nil {
		return nil, err
	}
	if parameters[parameterStaleSnapshots] == "true" {
		if err := c.exchangeWithPrevious(ctx, source, image); err != nil {
			return nil, err
		}
	}
	return made, writeDescription(dir, made)
}

// exchangeWithPrevious keeps the data of a snapshot for the next one of the volume, and gives it
// those of the previous one, if there is one.
func (c *controller) exchangeWithPrevious(ctx context.Context, of *volume, image string) error {
	previous := filepath.Join(c.volumeDir(of.ID), "previous.img")
	newest := previous + ".partial"
	if err := copyImage(ctx, image, newest); err != nil {
		return err
	}
	err := os.Rename(previous, image)
	if err == nil || os.IsNotExist(err) {
		err = os.Rename(newest, previous)
	}
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

func (c *controller) DeleteSnapshot(
	ctx context.Context, request *csi.DeleteSnapshotRequest,
) (*csi.DeleteSnapshotResponse, error) {
	id := request.GetSnapshotId()
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "a snapshot is required")
	}
	unlock, err := c.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	found, err := c.snapshot(id)
	switch {
	case status.Code(err) == codes.NotFound:
		return &csi.DeleteSnapshotResponse{}, nil
	case err != nil:
		return nil, err
	}
	if err := injectFault(ctx, operationDeleteSnapshot, id, found.Parameters); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(c.snapshotDir(id)); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.DeleteSnapshotResponse{}, nil
}
