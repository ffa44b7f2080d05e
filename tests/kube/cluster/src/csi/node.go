package main

import (
	"context"
	"os"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// nodeServer serves the requests of one node's kubelet, in the mount namespace of the node.
type nodeServer struct {
	csi.UnimplementedNodeServer
	store
	node string
}

func (*nodeServer) NodeGetCapabilities(
	context.Context, *csi.NodeGetCapabilitiesRequest,
) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, kind := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	} {
		rpc := &csi.NodeServiceCapability_RPC{Type: kind}
		response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: rpc},
		})
	}
	return response, nil
}

func (n *nodeServer) NodeGetInfo(
	context.Context, *csi.NodeGetInfoRequest,
) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.node, AccessibleTopology: poolTopology()}, nil
}

func required(words ...string) error {
	for _, word := range words {
		if word == "" {
			return status.Error(codes.InvalidArgument, "a volume and its paths are required")
		}
	}
	return nil
}

func (n *nodeServer) NodeStageVolume(
	ctx context.Context, request *csi.NodeStageVolumeRequest,
) (*csi.NodeStageVolumeResponse, error) {
	id, path := request.GetVolumeId(), request.GetStagingTargetPath()
	if err := required(id, path); err != nil {
		return nil, err
	}
	if request.GetVolumeCapability() == nil {
		return nil, status.Error(codes.InvalidArgument, "a capability is required")
	}
	unlock, err := n.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	found, err := n.volume(id)
	if err != nil {
		return nil, err
	}
	if err := injectFault(ctx, operationStage, id, found.Parameters); err != nil {
		return nil, err
	}
	device, err := attachDevice(ctx, n.volumeImage(id))
	if err != nil {
		return nil, err
	}
	found.Staged[n.node] = ""
	if request.GetVolumeCapability().GetBlock() == nil {
		mount := request.GetVolumeCapability().GetMount()
		if err := mountOnce(ctx, device, path, mount); err != nil {
			return nil, err
		}
		if err := growOnce(ctx, found, device, path); err != nil {
			return nil, err
		}
		found.Staged[n.node] = path
	}
	return &csi.NodeStageVolumeResponse{}, n.saveVolume(found)
}

// mountOnce mounts a device unless it is mounted, and makes a file system if it has none.
func mountOnce(
	ctx context.Context, device, path string, mount *csi.VolumeCapability_MountVolume,
) error {
	mounted, err := isMounted(path)
	if err != nil || mounted {
		return err
	}
	kind, err := makeFileSystem(ctx, device, mount.GetFsType())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return mountDevice(ctx, device, kind, path, mount.GetMountFlags())
}

// growOnce gives the file system of a volume the size of its image.
func growOnce(ctx context.Context, v *volume, device, path string) error {
	if !v.IsGrown {
		return nil
	}
	err := growFileSystem(ctx, device, path)
	v.IsGrown = err != nil
	return err
}

func (n *nodeServer) NodeUnstageVolume(
	ctx context.Context, request *csi.NodeUnstageVolumeRequest,
) (*csi.NodeUnstageVolumeResponse, error) {
	id, path := request.GetVolumeId(), request.GetStagingTargetPath()
	if err := required(id, path); err != nil {
		return nil, err
	}
	unlock, err := n.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := unmount(ctx, path); err != nil {
		return nil, err
	}
	found, err := n.volume(id)
	switch {
	case status.Code(err) == codes.NotFound:
		return &csi.NodeUnstageVolumeResponse{}, nil
	case err != nil:
		return nil, err
	}
	delete(found.Staged, n.node)
	if len(found.Staged) == 0 {
		if err := detachDevice(ctx, n.volumeImage(id)); err != nil {
			return nil, err
		}
	}
	return &csi.NodeUnstageVolumeResponse{}, n.saveVolume(found)
}

func (n *nodeServer) NodePublishVolume(
	ctx context.Context, request *csi.NodePublishVolumeRequest,
) (*csi.NodePublishVolumeResponse, error) {
	id, staged, path := request.GetVolumeId(), request.GetStagingTargetPath(), request.GetTargetPath()
	if err := required(id, staged, path); err != nil {
		return nil, err
	}
	if request.GetVolumeCapability() == nil {
		return nil, status.Error(codes.InvalidArgument, "a capability is required")
	}
	found, err := n.volume(id)
	if err != nil {
		return nil, err
	}
	mounted, err := isMounted(path)
	if err != nil || mounted {
		return &csi.NodePublishVolumeResponse{}, err
	}
	isDevice := request.GetVolumeCapability().GetBlock() != nil
	// The device was unmounted when a pod before this one ended.
	if !isDevice && found.Parameters[parameterLinkedClones] == "true" && found.Staged[n.node] != "" {
		device, err := findDevice(ctx, n.volumeImage(id))
		if err != nil {
			return nil, err
		}
		mount := request.GetVolumeCapability().GetMount()
		if err := mountOnce(ctx, device, staged, mount); err != nil {
			return nil, err
		}
	}
	from := staged
	if isDevice {
		if from, err = findDevice(ctx, n.volumeImage(id)); err != nil {
			return nil, err
		}
	} else if mounted, err = isMounted(staged); err != nil {
		return nil, err
	}
	if from == "" || (!isDevice && !mounted) {
		return nil, status.Error(codes.FailedPrecondition, "the volume is not staged")
	}
	return &csi.NodePublishVolumeResponse{},
		bindMount(ctx, from, path, isDevice, request.GetReadonly())
}

func (n *nodeServer) NodeUnpublishVolume(
	ctx context.Context, request *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	path := request.GetTargetPath()
	if err := required(request.GetVolumeId(), path); err != nil {
		return nil, err
	}
	if err := unmount(ctx, path); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, n.unmountLinked(ctx, request.GetVolumeId())
}

// unmountLinked unmounts the staged file system of a linked volume. The kubelet never unstages a
// volume while its device is mounted for another volume, so neither of the two would be unstaged.
func (n *nodeServer) unmountLinked(ctx context.Context, id string) error {
	found, err := n.volume(id)
	switch {
	case status.Code(err) == codes.NotFound:
		return nil
	case err != nil:
		return err
	}
	staged := found.Staged[n.node]
	if staged == "" || found.Parameters[parameterLinkedClones] != "true" {
		return nil
	}
	return unmount(ctx, staged)
}

// publishedVolume returns a volume that is mounted at a path.
func (n *nodeServer) publishedVolume(id, path string) (*volume, error) {
	if err := required(id, path); err != nil {
		return nil, err
	}
	found, err := n.volume(id)
	if err != nil {
		return nil, err
	}
	mounted, err := isMounted(path)
	if err != nil {
		return nil, err
	}
	if _, isStaged := found.Staged[n.node]; !isStaged || !mounted {
		return nil, status.Errorf(codes.NotFound, "the volume is not mounted at %s", path)
	}
	return found, nil
}

func (n *nodeServer) NodeGetVolumeStats(
	_ context.Context, request *csi.NodeGetVolumeStatsRequest,
) (*csi.NodeGetVolumeStatsResponse, error) {
	path := request.GetVolumePath()
	found, err := n.publishedVolume(request.GetVolumeId(), path)
	if err != nil {
		return nil, err
	}
	if found.Staged[n.node] == "" {
		return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{
			Unit: csi.VolumeUsage_BYTES, Total: found.Bytes,
		}}}, nil
	}
	var room syscall.Statfs_t
	if err := syscall.Statfs(path, &room); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{
			Unit:      csi.VolumeUsage_BYTES,
			Total:     int64(room.Blocks) * room.Bsize,
			Used:      int64(room.Blocks-room.Bfree) * room.Bsize,
			Available: int64(room.Bavail) * room.Bsize,
		},
		{
			Unit:      csi.VolumeUsage_INODES,
			Total:     int64(room.Files),
			Used:      int64(room.Files - room.Ffree),
			Available: int64(room.Ffree),
		},
	}}, nil
}

func (n *nodeServer) NodeExpandVolume(
	ctx context.Context, request *csi.NodeExpandVolumeRequest,
) (*csi.NodeExpandVolumeResponse, error) {
	id, path := request.GetVolumeId(), request.GetVolumePath()
	if err := required(id, path); err != nil {
		return nil, err
	}
	unlock, err := n.lock(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	found, err := n.volume(id)
	if err != nil {
		return nil, err
	}
	staged, isStaged := found.Staged[n.node]
	if !isStaged {
		return nil, status.Error(codes.FailedPrecondition, "the volume is not staged")
	}
	device, err := attachDevice(ctx, n.volumeImage(id))
	if err != nil {
		return nil, err
	}
	if staged != "" {
		if err := growOnce(ctx, found, device, staged); err != nil {
			return nil, err
		}
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: found.Bytes}, n.saveVolume(found)
}
