//go:build linux

package main

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/fake"
)

// containerRuntime is the fake runtime of the CRI client, and also reports the
// resources of containers and updates them.
type containerRuntime struct {
	*fake.RemoteRuntime
}

func newRuntime() *containerRuntime {
	runtime := &containerRuntime{fake.NewFakeRemoteRuntime()}
	runtime.RuntimeService.FakeStatus = &cri.RuntimeStatus{
		Conditions: []*cri.RuntimeCondition{
			{Type: cri.RuntimeReady, Status: true},
			{Type: cri.NetworkReady, Status: true},
		},
	}
	return runtime
}

func (r *containerRuntime) serve(listener net.Listener) error {
	server := grpc.NewServer()
	cri.RegisterRuntimeServiceServer(server, r)
	cri.RegisterImageServiceServer(server, r)
	return server.Serve(listener)
}

func (r *containerRuntime) CreateContainer(ctx context.Context, request *cri.CreateContainerRequest) (*cri.CreateContainerResponse, error) {
	response, err := r.RemoteRuntime.CreateContainer(ctx, request)
	if err != nil {
		return nil, err
	}
	resources := request.GetConfig().GetLinux().GetResources()
	if resources == nil {
		resources = &cri.LinuxContainerResources{}
	}
	return response, r.setResources(response.ContainerId, resources)
}

func (r *containerRuntime) UpdateContainerResources(_ context.Context, request *cri.UpdateContainerResourcesRequest) (*cri.UpdateContainerResourcesResponse, error) {
	if err := r.setResources(request.ContainerId, request.GetLinux()); err != nil {
		return nil, err
	}
	return &cri.UpdateContainerResourcesResponse{}, nil
}

// setResources replaces those values that are given; 0 is none.
func (r *containerRuntime) setResources(id string, resources *cri.LinuxContainerResources) error {
	service := r.RuntimeService
	service.Lock()
	defer service.Unlock()
	container, found := service.Containers[id]
	if !found {
		return fmt.Errorf("container %q not found", id)
	}
	if container.Resources == nil {
		container.Resources = &cri.ContainerResources{Linux: &cri.LinuxContainerResources{}}
	}
	proto.Merge(container.Resources.Linux, resources)
	return nil
}
