//go:build linux

// hollow-kubelet is the kubelet of Kubernetes with a container runtime, cgroups
// and a machine that exist only as data. Unlike the hollow node of kubemark it
// completes the resizes of pods.
//
// It is two processes, so that containers outlive a kubelet that restarts:
//
//	hollow-kubelet runtime -socket FILE
//	hollow-kubelet kubelet -socket FILE -kubeconfig FILE -root DIR -node NAME …
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	remote "k8s.io/cri-client/pkg"
	"k8s.io/kubernetes/pkg/kubemark"
)

const criTimeout = 15 * time.Second

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "hollow-kubelet:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 2 {
		return errors.New("say which process: runtime or kubelet")
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	socket := flags.String("socket", "", "Unix socket of the container runtime")
	var node nodeOptions
	flags.StringVar(&node.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster")
	flags.StringVar(&node.root, "root", "", "folder of the kubelet's state, which survives a restart")
	flags.StringVar(&node.name, "node", "", "name of the node")
	flags.StringVar(&node.label, "label", "", "KEY=VALUE, a label of the node")
	flags.StringVar(&node.usageAnnotation, "usage-annotation", "", "annotation of a pod with its memory usage")
	flags.IntVar(&node.cpus, "cpus", 1, "CPUs of the node")
	flags.Uint64Var(&node.memory, "memory", 1<<30, "memory of the node, in bytes")
	flags.IntVar(&node.pods, "pods", 110, "maximum number of pods")
	_ = flags.Parse(os.Args[2:])

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch os.Args[1] {
	case "runtime":
		listener, err := net.Listen("unix", *socket)
		if err != nil {
			return err
		}
		return newRuntime().serve(listener)
	case "kubelet":
		return runKubelet(ctx, node, "unix://"+*socket)
	}
	return fmt.Errorf("no process is named %q: say runtime or kubelet", os.Args[1])
}

type nodeOptions struct {
	kubeconfig, root, name, label, usageAnnotation string
	cpus, pods                                     int
	memory                                         uint64
}

func runKubelet(ctx context.Context, node nodeOptions, endpoint string) error {
	label, value, _ := strings.Cut(node.label, "=")
	flags, config := kubemark.GetHollowKubeletConfig(&kubemark.HollowKubeletOptions{
		NodeName:   node.name,
		MaxPods:    node.pods,
		NodeLabels: map[string]string{label: value},
	})
	// kubemark creates folders in /tmp, and does not remove them.
	if err := os.RemoveAll(flags.RootDirectory); err != nil {
		return err
	}
	flags.RootDirectory = filepath.Join(node.root, "state")
	config.StaticPodPath = ""
	config.PodLogsDir = filepath.Join(node.root, "logs")
	config.ContainerRuntimeEndpoint = endpoint
	config.ImageServiceEndpoint = endpoint
	config.EnableServer = false
	// The disks and the memory of the node are not measured.
	config.EvictionHard = nil

	client, err := newClient(node.kubeconfig, 0)
	if err != nil {
		return err
	}
	heartbeatClient, err := newClient(node.kubeconfig, config.NodeStatusUpdateFrequency.Duration)
	if err != nil {
		return err
	}
	tracing := noop.NewTracerProvider()
	runtimeService, err := remote.NewRemoteRuntimeService(ctx, endpoint, criTimeout, tracing, false)
	if err != nil {
		return err
	}
	imageService, err := remote.NewRemoteImageService(ctx, endpoint, criTimeout, tracing, false)
	if err != nil {
		return err
	}
	cgroups, err := openCgroups(filepath.Join(node.root, "cgroups"), node.usageAnnotation)
	if err != nil {
		return err
	}
	kubemark.NewHollowKubelet(
		flags,
		config,
		client,
		heartbeatClient,
		newMachine(node, cgroups),
		imageService,
		runtimeService,
		newContainerManager(cgroups),
	).Run(ctx)
	return nil
}

func newClient(kubeconfig string, timeout time.Duration) (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	// Without limits: the tests wait for it.
	config.QPS = -1
	config.Timeout = timeout
	return kubernetes.NewForConfig(config)
}
