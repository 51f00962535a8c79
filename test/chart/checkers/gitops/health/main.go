// Tells what two GitOps tools make of an object: Argo CD by the Lua that its settings have for the kind, run as Argo
// CD runs it, and Flux by its own rules.
//
// Reads {"lua": …, "object": …} and prints {"argo": what the Lua returns, "flux": its word}.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	luajson "layeh.com/gopher-json"
)

func main() {
	if err := judge(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func judge() error {
	var asked struct {
		Lua    string                    `json:"lua"`
		Object unstructured.Unstructured `json:"object"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return err
	}
	argo, err := health(asked.Lua, asked.Object.Object)
	if err != nil {
		return err
	}
	flux, err := status.Compute(&asked.Object)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"argo": argo,
		"flux": flux.Status,
	})
}

// health runs a check with just the libraries that Argo CD gives it.
func health(script string, object map[string]any) (json.RawMessage, error) {
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{
		{lua.LoadLibName, lua.OpenPackage},
		{lua.BaseLibName, lua.OpenBase},
		{lua.TabLibName, lua.OpenTable},
	} {
		call := lua.P{Fn: l.NewFunction(library.open), Protect: true}
		if err := l.CallByParam(call, lua.LString(library.name)); err != nil {
			return nil, err
		}
	}
	// Its numbers are floats, as those of Lua are.
	plain, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	value, err := luajson.Decode(l, plain)
	if err != nil {
		return nil, err
	}
	l.SetGlobal("obj", value)
	if err := l.DoString(script); err != nil {
		return nil, err
	}
	return luajson.Encode(l.Get(-1))
}
