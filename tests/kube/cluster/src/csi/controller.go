package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	defaultVolumeBytes = 1 << 30
	// Below, mkfs.xfs fails.
	leastVolumeBytes = 32 << 20
	volumeUnitBytes  = 1 << 20
)

// controller serves the requests of the provisioner, attacher, snapshotter and resizer.
type controller struct {
	csi.UnimplementedControllerServer
	store
}

func (*controller) ControllerGetCapabilities(
	context.Context, *csi.ControllerGetCapabilitiesRequest,
) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, kind := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_GET_CAPACITY,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		rpc := &csi.ControllerServiceCapability_RPC{Type: kind}
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: rpc},
		})
	}
	return response, nil
}

func isOfOneNode(capability *csi.VolumeCapability) bool {
	switch capability.GetAccessMode().GetMode() {
	case csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER,
		csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:
		return false
	}
	return true
}

// wantedBytes returns the size of a new volume in whole units.
func wantedBytes(capacity *csi.CapacityRange, least int64) (int64, error) {
	required, limit := capacity.GetRequiredBytes(), capacity.GetLimitBytes()
	bytes := required
	if required == 0 {
		bytes = max(defaultVolumeBytes, least)
		if limit > 0 {
			bytes = min(bytes, limit/volumeUnitBytes*volumeUnitBytes)
		}
	}
	bytes = (bytes + volumeUnitBytes - 1) / volumeUnitBytes * volumeUnitBytes
	bytes = max(bytes, leastVolumeBytes)
	if required < 0 || (limit > 0 && bytes > limit) {
		return 0, status.Errorf(codes.OutOfRange, "no size from %d to %d", required, limit)
	}
	if bytes < least {
		return 0, status.Errorf(codes.OutOfRange, "the source has %d bytes", least)
	}
	return bytes, nil
}

// sourceOf returns the operation that fills a new volume, and the snapshot or volume with the data.
func sourceOf(request *csi.CreateVolumeRequest) (operation, source, id string) {
	content := request.GetVolumeContentSource()
	if id = content.GetSnapshot().GetSnapshotId(); id != "" {
		return operationRestore, "snapshot/" + id, id
	}
	if id = content.GetVolume().GetVolumeId(); id != "" {
		return operationClone, "volume/" + id, id
	}
	return operationCreate, "", ""
}

func (c *controller) CreateVolume(
	ctx context.Context, request *csi.CreateVolumeRequest,
) (*csi.CreateVolumeResponse, error) {
	parameters := request.GetParameters()
	if request.GetName() == "" || len(request.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "a name and capabilities are required")
	}
	if err := checkParameters(parameters); err != nil {
		return nil, err
	}
	for _, capability := range request.GetVolumeCapabilities() {
		if !isOfOneNode(capability) && parameters[parameterShared] != "true" {
			return nil, status.Errorf(codes.InvalidArgument,
				"access mode %s is not supported by this class",
				capability.GetAccessMode().GetMode())
		}
	}
	operation, source, sourceID := sourceOf(request)
	if err := injectFault(ctx, operation, request.GetName(), parameters); err != nil {
		return nil, err
	}
	id := objectID(request.GetName())
	unlock, err := c.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	made, err := c.volume(id)
	if status.Code(err) == codes.NotFound {
		made = &volume{ID: id, Name: request.GetName(), Parameters: parameters, Source: source}
		err = c.fillVolume(ctx, made, request.GetCapacityRange(), operation, sourceID)
	}
	if err != nil {
		return nil, err
	}
	capacity := request.GetCapacityRange()
	limit := capacity.GetLimitBytes()
	isOfSize := made.Bytes >= capacity.GetRequiredBytes() && (limit == 0 || made.Bytes <= limit)
	if !isOfSize || made.Source != source {
		return nil, status.Error(codes.AlreadyExists, "another volume has this name")
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId:           id,
		CapacityBytes:      made.Bytes,
		ContentSource:      request.GetVolumeContentSource(),
		AccessibleTopology: []*csi.Topology{poolTopology()},
	}}, nil
}

func poolTopology() *csi.Topology {
	return &csi.Topology{Segments: map[string]string{poolTopologyKey: poolName}}
}

// fillVolume makes the image of a new volume.
func (c *controller) fillVolume(
	ctx context.Context, v *volume, capacity *csi.CapacityRange, operation, sourceID string,
) error {
	var fill func(image string) error
	var least int64
	switch operation {
	case operationRestore:
		from, err := c.snapshot(sourceID)
		if err != nil {
			return err
		}
		least, v.IsGrown = from.Bytes, from.IsGrown
		fill = func(image string) error {
			return copyImage(ctx, filepath.Join(c.snapshotDir(from.ID), imageName), image)
		}
	case operationClone:
		unlock, err := c.lock(sourceID)
		if err != nil {
			return err
		}
		defer unlock()
		from, err := c.volume(sourceID)
		if err != nil {
			return err
		}
		least, v.IsGrown = from.Bytes, from.IsGrown
		fill = func(image string) error {
			if v.Parameters[parameterLinkedClones] == "true" {
				return os.Link(c.volumeImage(from.ID), image)
			}
			return c.copyVolume(ctx, from, image)
		}
	default:
		fill = func(image string) error { return os.WriteFile(image, nil, 0o600) }
	}
	bytes, err := wantedBytes(capacity, least)
	if err != nil {
		return err
	}
	if err := c.checkRoom(v.Parameters, bytes); err != nil {
		return err
	}
	v.Bytes = bytes
	v.IsGrown = v.IsGrown || (least > 0 && bytes > least)
	if err := renew(c.volumeDir(v.ID)); err != nil {
		return err
	}
	image := c.volumeImage(v.ID)
	err = fill(image)
	if err == nil {
		err = os.Truncate(image, bytes)
	}
	if err == nil {
		return c.saveVolume(v)
	}
	os.RemoveAll(c.volumeDir(v.ID))
	if _, isStatus := status.FromError(err); !isStatus {
		err = status.Error(codes.Internal, err.Error())
	}
	return err
}

func (c *controller) DeleteVolume(
	ctx context.Context, request *csi.DeleteVolumeRequest,
) (*csi.DeleteVolumeResponse, error) {
	id := request.GetVolumeId()
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "a volume is required")
	}
	unlock, err := c.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	found, err := c.volume(id)
	switch {
	case status.Code(err) == codes.NotFound:
		return &csi.DeleteVolumeResponse{}, nil
	case err != nil:
		return nil, err
	}
	if err := injectFault(ctx, operationDelete, id, found.Parameters); err != nil {
		return nil, err
	}
	if err := detachDevice(ctx, c.volumeImage(id)); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(c.volumeDir(id)); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.DeleteVolumeResponse{}, nil
}

func (c *controller) ControllerPublishVolume(
	ctx context.Context, request *csi.ControllerPublishVolumeRequest,
) (*csi.ControllerPublishVolumeResponse, error) {
	id, node := request.GetVolumeId(), request.GetNodeId()
	if id == "" || node == "" || request.GetVolumeCapability() == nil {
		cause := "a volume, a node and a capability are required"
		return nil, status.Error(codes.InvalidArgument, cause)
	}
	unlock, err := c.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	found, err := c.volume(id)
	if err != nil {
		return nil, err
	}
	if _, err := c.nodeRoot(node); err != nil {
		return nil, err
	}
	if slices.Contains(found.Nodes, node) {
		return &csi.ControllerPublishVolumeResponse{}, nil
	}
	if isOfOneNode(request.GetVolumeCapability()) && len(found.Nodes) > 0 {
		return nil, status.Errorf(codes.FailedPrecondition, "attached to node %s", found.Nodes[0])
	}
	if err := injectFault(ctx, operationAttach, id, found.Parameters); err != nil {
		return nil, err
	}
	found.Nodes = append(found.Nodes, node)
	return &csi.ControllerPublishVolumeResponse{}, c.saveVolume(found)
}

func (c *controller) ControllerUnpublishVolume(
	ctx context.Context, request *csi.ControllerUnpublishVolumeRequest,
) (*csi.ControllerUnpublishVolumeResponse, error) {
	id, node := request.GetVolumeId(), request.GetNodeId()
	if id == "" {
		return nil, status.Error(codes.InvalidArgument, "a volume is required")
	}
	unlock, err := c.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	found, err := c.volume(id)
	switch {
	case status.Code(err) == codes.NotFound:
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	case err != nil:
		return nil, err
	}
	isNode := func(attached string) bool { return node == "" || attached == node }
	if !slices.ContainsFunc(found.Nodes, isNode) {
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	}
	if err := injectFault(ctx, operationDetach, id, found.Parameters); err != nil {
		return nil, err
	}
	found.Nodes = slices.DeleteFunc(found.Nodes, isNode)
	return &csi.ControllerUnpublishVolumeResponse{}, c.saveVolume(found)
}

func (c *controller) ValidateVolumeCapabilities(
	_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest,
) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if request.GetVolumeId() == "" || len(request.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "a volume and capabilities are required")
	}
	found, err := c.volume(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	for _, capability := range request.GetVolumeCapabilities() {
		if !isOfOneNode(capability) && found.Parameters[parameterShared] != "true" {
			cause := "the volume is of one node"
			return &csi.ValidateVolumeCapabilitiesResponse{Message: cause}, nil
		}
	}
	return &csi.ValidateVolumeCapabilitiesResponse{
		Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
			VolumeContext:      request.GetVolumeContext(),
			VolumeCapabilities: request.GetVolumeCapabilities(),
			Parameters:         request.GetParameters(),
		},
	}, nil
}

func (c *controller) GetCapacity(
	_ context.Context, request *csi.GetCapacityRequest,
) (*csi.GetCapacityResponse, error) {
	for key, value := range request.GetAccessibleTopology().GetSegments() {
		if key == poolTopologyKey && value != poolName {
			return &csi.GetCapacityResponse{}, nil
		}
	}
	free, err := c.freeBytes(request.GetParameters())
	return &csi.GetCapacityResponse{AvailableCapacity: free}, err
}

// freeBytes returns what is left for volumes of a class: in its pool, else in the file system.
func (c *controller) freeBytes(parameters map[string]string) (int64, error) {
	var room syscall.Statfs_t
	if err := syscall.Statfs(c.dir, &room); err != nil {
		return 0, status.Error(codes.Internal, err.Error())
	}
	free := int64(room.Bavail) * room.Bsize
	pool := poolBytes(parameters)
	if pool == 0 {
		return free, nil
	}
	all, err := c.volumes()
	if err != nil {
		return 0, err
	}
	for _, other := range all {
		if maps.Equal(other.Parameters, parameters) {
			pool -= other.Bytes
		}
	}
	return max(min(free, pool), 0), nil
}

// checkRoom refuses a volume, or its growth, for which the pool has no room.
func (c *controller) checkRoom(parameters map[string]string, bytes int64) error {
	free, err := c.freeBytes(parameters)
	if err != nil || bytes <= free {
		return err
	}
	if pool := poolBytes(parameters); pool > 0 && bytes > pool {
		return status.Errorf(codes.OutOfRange, "the pool of the class has %d bytes", pool)
	}
	return status.Errorf(codes.ResourceExhausted, "%d bytes are wanted, %d are free", bytes, free)
}

func (c *controller) ControllerExpandVolume(
	ctx context.Context, request *csi.ControllerExpandVolumeRequest,
) (*csi.ControllerExpandVolumeResponse, error) {
	id, capacity := request.GetVolumeId(), request.GetCapacityRange()
	if id == "" || capacity == nil {
		return nil, status.Error(codes.InvalidArgument, "a volume and a size are required")
	}
	unlock, err := c.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	found, err := c.volume(id)
	if err != nil {
		return nil, err
	}
	if err := injectFault(ctx, operationExpand, id, found.Parameters); err != nil {
		return nil, err
	}
	if found.Bytes < capacity.GetRequiredBytes() {
		bytes, err := wantedBytes(capacity, found.Bytes)
		if err != nil {
			return nil, err
		}
		if err := c.checkRoom(found.Parameters, bytes-found.Bytes); err != nil {
			return nil, err
		}
		if err := os.Truncate(c.volumeImage(id), bytes); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		found.Bytes, found.IsGrown = bytes, true
		if err := c.saveVolume(found); err != nil {
			return nil, err
		}
	}
	return &csi.ControllerExpandVolumeResponse{
		CapacityBytes:         found.Bytes,
		NodeExpansionRequired: true,
	}, nil
}
