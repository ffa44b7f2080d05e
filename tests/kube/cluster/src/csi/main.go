// csi-loop is a CSI driver for tests: volumes are sparse files, which a node attaches as loop
// devices. All nodes of the test cluster run on one machine and see the same files, so that a
// volume can be attached to any node, and to several at once.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const (
	driverName    = "loop.csi.example.com"
	driverVersion = "1.0.0"
	// All nodes reach the only pool, for which the provisioner publishes a capacity.
	poolTopologyKey = driverName + "/pool"
	poolName        = "files"
)

func main() {
	socket := flag.String("socket", "", "Unix socket of the CSI services")
	state := flag.String("state", "", "directory of the volumes and snapshots")
	services := flag.String("services", "controller,node", "services that this process offers")
	node := flag.String("node", "", "name of this node")
	registry := flag.String("registry", "", "the kubelet's plugins_registry directory")
	flag.Parse()
	if *socket == "" || *state == "" {
		log.Fatal("-socket and -state are required")
	}
	files, err := openStore(*state)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(logCall))
	csi.RegisterIdentityServer(server, identity{})
	for _, service := range strings.Split(*services, ",") {
		switch service {
		case "controller":
			csi.RegisterControllerServer(server, &controller{store: files})
		case "node":
			if *node == "" {
				log.Fatal("-node is required")
			}
			if err := files.addNode(*node, os.Getpid()); err != nil {
				log.Fatal(err)
			}
			csi.RegisterNodeServer(server, &nodeServer{store: files, node: *node})
		default:
			log.Fatalf("unknown service %q", service)
		}
	}
	// The kubelet calls the driver as soon as it finds the registration socket.
	listener := listen(*socket)
	if *registry != "" {
		registrar := grpc.NewServer()
		registration.RegisterRegistrationServer(registrar, registrationServer{socket: *socket})
		reg := listen(filepath.Join(*registry, driverName+"-reg.sock"))
		go func() { log.Fatal(registrar.Serve(reg)) }()
	}
	log.Fatal(server.Serve(listener))
}

// listen replaces the socket of an earlier process.
func listen(path string) net.Listener {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		log.Fatal(err)
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	return listener
}

func logCall(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	begun := time.Now()
	response, err := handler(ctx, request)
	log.Print(info.FullMethod, " ", status.Code(err), " ",
		strconv.FormatInt(time.Since(begun).Milliseconds(), 10), " ms ", request, " ", err)
	return response, err
}

type identity struct {
	csi.UnimplementedIdentityServer
}

func (identity) GetPluginInfo(
	context.Context, *csi.GetPluginInfoRequest,
) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: driverName, VendorVersion: driverVersion}, nil
}

func (identity) GetPluginCapabilities(
	context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	service := func(kind csi.PluginCapability_Service_Type) *csi.PluginCapability {
		return &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
			Service: &csi.PluginCapability_Service{Type: kind},
		}}
	}
	online := &csi.PluginCapability{Type: &csi.PluginCapability_VolumeExpansion_{
		VolumeExpansion: &csi.PluginCapability_VolumeExpansion{
			Type: csi.PluginCapability_VolumeExpansion_ONLINE,
		},
	}}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		service(csi.PluginCapability_Service_CONTROLLER_SERVICE),
		service(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS),
		online,
	}}, nil
}

func (identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// registrationServer tells the kubelet the socket of the driver.
type registrationServer struct {
	registration.UnimplementedRegistrationServer
	socket string
}

func (r registrationServer) GetInfo(
	context.Context, *registration.InfoRequest,
) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:              registration.CSIPlugin,
		Name:              driverName,
		Endpoint:          r.socket,
		SupportedVersions: []string{driverVersion},
	}, nil
}

func (registrationServer) NotifyRegistrationStatus(
	_ context.Context, status *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	if !status.PluginRegistered {
		log.Fatalf("the kubelet has refused the driver: %s", status.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}
