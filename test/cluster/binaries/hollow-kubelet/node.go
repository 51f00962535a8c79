//go:build linux

package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	cadvisorv1 "github.com/google/cadvisor/info/v1"
	cadvisorv2 "github.com/google/cadvisor/info/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/apis/config"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
)

const (
	cpuPeriod = 100_000
	unlimited = -1
)

// containerManager is that of kubemark, but pods have cgroups.
type containerManager struct {
	cm.ContainerManager
	cgroups *podCgroups
}

func newContainerManager(cgroups *podCgroups) cm.ContainerManager {
	return &containerManager{cm.NewStubContainerManager(), cgroups}
}

func (m *containerManager) NewPodContainerManager() cm.PodContainerManager { return m.cgroups }

// podCgroups keeps the limits of each pod in a file, because cgroups outlive
// the kubelet. The memory usage of a pod is an annotation of the pod.
type podCgroups struct {
	cm.PodContainerManager
	dir        string
	annotation string
	mutex      sync.Mutex
	usage      map[string]uint64
}

func openCgroups(dir, annotation string) (*podCgroups, error) {
	stub := cm.NewStubContainerManager().NewPodContainerManager()
	cgroups := &podCgroups{PodContainerManager: stub, dir: dir, annotation: annotation, usage: map[string]uint64{}}
	return cgroups, os.MkdirAll(dir, 0o700)
}

// GetPodContainerName also takes down the memory usage: the kubelet asks for the
// name with the pod as it is now, right before it asks the machine for the usage.
func (c *podCgroups) GetPodContainerName(pod *v1.Pod) (cm.CgroupName, string) {
	name := "/" + string(pod.UID)
	usage, err := resource.ParseQuantity(pod.Annotations[c.annotation])
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err == nil {
		c.usage[name] = uint64(usage.Value())
	} else {
		delete(c.usage, name)
	}
	return cm.CgroupName{string(pod.UID)}, name
}

func (c *podCgroups) memoryUsage(name string) uint64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.usage[name]
}

func (c *podCgroups) Exists(pod *v1.Pod) bool {
	_, err := c.read(pod.UID)
	return err == nil
}

func (c *podCgroups) EnsureExists(_ klog.Logger, pod *v1.Pod) error {
	if c.Exists(pod) {
		return nil
	}
	none, shares, period, quota := int64(math.MaxInt64), uint64(cm.MinShares), uint64(cpuPeriod), int64(unlimited)
	limits := &cm.ResourceConfig{Memory: &none, CPUShares: &shares, CPUPeriod: &period, CPUQuota: &quota}
	return c.write(pod.UID, limits, cm.ResourceConfigForPod(pod, true, cpuPeriod, false, config.NoneMemoryReservationPolicy))
}

func (c *podCgroups) GetPodCgroupConfig(pod *v1.Pod, name v1.ResourceName) (*cm.ResourceConfig, error) {
	limits, err := c.read(pod.UID)
	if err != nil {
		return nil, err
	}
	if name == v1.ResourceMemory {
		return &cm.ResourceConfig{Memory: limits.Memory}, nil
	}
	return &cm.ResourceConfig{CPUShares: limits.CPUShares, CPUPeriod: limits.CPUPeriod, CPUQuota: limits.CPUQuota}, nil
}

func (c *podCgroups) SetPodCgroupConfig(_ klog.Logger, pod *v1.Pod, changes *cm.ResourceConfig) error {
	limits, err := c.read(pod.UID)
	if err != nil {
		return err
	}
	return c.write(pod.UID, limits, changes)
}

func (c *podCgroups) Destroy(_ klog.Logger, name cm.CgroupName) error {
	return os.RemoveAll(c.file(types.UID(name[0])))
}

func (c *podCgroups) file(uid types.UID) string { return filepath.Join(c.dir, string(uid)) }

func (c *podCgroups) read(uid types.UID) (*cm.ResourceConfig, error) {
	data, err := os.ReadFile(c.file(uid))
	if err != nil {
		return nil, err
	}
	limits := &cm.ResourceConfig{}
	return limits, json.Unmarshal(data, limits)
}

func (c *podCgroups) write(uid types.UID, limits, changes *cm.ResourceConfig) error {
	if changes.Memory != nil {
		limits.Memory = changes.Memory
	}
	if changes.CPUShares != nil {
		limits.CPUShares = changes.CPUShares
	}
	if changes.CPUQuota != nil {
		limits.CPUQuota = changes.CPUQuota
	}
	if changes.CPUPeriod != nil {
		limits.CPUPeriod = changes.CPUPeriod
	}
	data, err := json.Marshal(limits)
	if err != nil {
		return err
	}
	// A kubelet that is killed meanwhile leaves the former file or the new one.
	next := c.file(uid) + ".next"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return err
	}
	return os.Rename(next, c.file(uid))
}

// machine has the capacity that it was given, and the memory usage of pods.
type machine struct {
	*cadvisortest.Fake
	info    cadvisorv1.MachineInfo
	cgroups *podCgroups
}

func newMachine(node nodeOptions, cgroups *podCgroups) *machine {
	return &machine{
		Fake:    &cadvisortest.Fake{NodeName: node.name},
		info:    cadvisorv1.MachineInfo{NumCores: node.cpus, MemoryCapacity: node.memory},
		cgroups: cgroups,
	}
}

func (m *machine) MachineInfo() (*cadvisorv1.MachineInfo, error) {
	info := m.info
	return &info, nil
}

// ContainerInfoV2 is what the kubelet asks before it shrinks the memory of a pod.
func (m *machine) ContainerInfoV2(name string, _ cadvisorv2.RequestOptions) (map[string]cadvisorv2.ContainerInfo, error) {
	usage := m.cgroups.memoryUsage(name)
	return map[string]cadvisorv2.ContainerInfo{
		name: {
			Spec:  cadvisorv2.ContainerSpec{HasMemory: true},
			Stats: []*cadvisorv2.ContainerStats{{Timestamp: time.Now(), Memory: &cadvisorv1.MemoryStats{Usage: usage}}},
		},
	}, nil
}
