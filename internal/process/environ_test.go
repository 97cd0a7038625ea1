// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

var wantedAB = map[string]int{"A": 1000, "B": 1000}

func TestEnvironKeepsOnlyWantedVariables(t *testing.T) {
	long := strings.Repeat("x", 1001)
	for _, tt := range []struct {
		name, environ string
		want          map[string]string
		overwritten   bool
	}{
		{"empty", "", map[string]string{}, false},
		{"some", "A=1\x00SECRET=2\x00B=x=y\x00", map[string]string{"A": "1", "B": "x=y"}, false},
		{"similar names", "AA=1\x00a=2\x00 A=3\x00", map[string]string{}, false},
		{"empty value", "A=\x00", map[string]string{"A": ""}, false},
		{"set twice", "A=1\x00A=2\x00", map[string]string{"A": "1"}, false},
		{"no value", "A\x00B=1\x00", map[string]string{"B": "1"}, false},
		{"not terminated", "A=1", map[string]string{"A": "1"}, false},
		{"not UTF-8", "A=\xff\x00B=ü\x00", map[string]string{"B": "ü"}, false},
		{"too long", "A=" + long + "\x00B=1\x00", map[string]string{"B": "1"}, false},
		{"as long as allowed", "B=1\x00A=" + long[1:], map[string]string{"B": "1", "A": long[1:]}, false},
		{"overwritten with zeros", strings.Repeat("\x00", 100), map[string]string{}, true},
		{"overwritten with a title", "::EngineCore" + strings.Repeat("\x00", 100), map[string]string{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, intact, err := readEnviron(strings.NewReader(tt.environ), wantedAB)
			if err != nil || intact == tt.overwritten {
				t.Errorf("intact: %v, %v", intact, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A variable that exceeds the limit is skipped.
func TestEnvironIsLimited(t *testing.T) {
	const service = "POD_SERVICE_PORT=tcp://10.0.0.1\x00" // 32 bytes
	before := strings.Repeat(service, 1<<20/len(service)-1)
	for variable, want := range map[string]map[string]string{
		"A=1\x00" + service:                            {"A": "1"},
		"A=/tmp/" + strings.Repeat("x", 30) + "\x00":   {},
		service + "A=1\x00":                            {},
		"A=" + strings.Repeat("x", 29) + "\x00B=1\x00": {"A": strings.Repeat("x", 29)},
	} {
		got, _, err := readEnviron(strings.NewReader(before+variable), wantedAB)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%.20q: %s", variable, diff)
		}
	}
}

func TestEnvironReturnsReadErrors(t *testing.T) {
	broken := errors.New("broken")
	if _, _, err := readEnviron(iotest.ErrReader(broken), wantedAB); !errors.Is(err, broken) {
		t.Error(err)
	}
}

func TestAttributesAreThoseThatAProcessMaySet(t *testing.T) {
	long := strings.Repeat("x", MaxAttribute+1)
	for _, tt := range []struct {
		name, service, attributes string
		want                      map[string]string
	}{
		{"nothing", "", "", map[string]string{}},
		{"pairs", "", "a=1,b=2", map[string]string{"a": "1", "b": "2"}},
		{"spaces", "", " a = 1 , b=2 ", map[string]string{"a": "1", "b": "2"}},
		{"percent-encoding", "", "a=x%2Cy%3Dz%20%C3%BC,b%3D=2", map[string]string{"a": "x,y=z ü", "b=": "2"}},
		{"plus", "", "a=1+1", map[string]string{"a": "1+1"}},
		{"equals sign", "", "a=b=c", map[string]string{"a": "b=c"}},
		{"twice", "", "a=1,a=2", map[string]string{"a": "2"}},
		{"invalid pairs", "", "a,=1,,b=%zz,c%=1,d=%ff,e=5,\xff=1", map[string]string{"e": "5"}},
		{"too long", "", "a=" + long + "," + long + "=1,b=2", map[string]string{"b": "2"}},
		{"service", "decode", "service.namespace=prod", map[string]string{"service.name": "decode", "service.namespace": "prod"}},
		{"service twice", "decode", "service.name=prefill", map[string]string{"service.name": "decode"}},
		{"service too long", long, "service.name=prefill", map[string]string{"service.name": "prefill"}},
		{
			"identity of another", "", "k8s.pod.uid=" + "2d51509a-fcf0-41cc-b535-57cfeeaf73d1" +
				",container.id=1,host.name=a,host.id=b,service.instance.id=c,process.pid=1,process.executable.name=sh,k8s%2Epod.uid=x,a=1," +
				"k8s_pod_name=x,nixl.agent.name=b,nixl_agent_name=c",
			map[string]string{"a": "1"},
		},
		{"reserved on a Prometheus page", "", "le=1,quantile=1,job=1,instance=1,__name__=1,_a=1,1=1,ü=1,otel.scope.name=1,a=1", map[string]string{"a": "1"}},
		{"labels of a point", "", "nixl.transfer.direction=1,error_type=2,hostname=3,a=1", map[string]string{"a": "1"}},
		{"equal on a Prometheus page", "", "a_b=1,a__b=2,a-b=3,a.b=4,service_name=x,a.c=5", map[string]string{"a.b": "4", "a.c": "5"}},
		{"set by the operator", "", "nixl.role=a,nixl_role=b,a=1", map[string]string{"a": "1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Config{Attributes: []string{"*"}, Reserved: []string{"nixl.role"}}.attributes(tt.attributes, tt.service)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKeysOfOneLabelAreEqual(t *testing.T) {
	for key, want := range map[string]string{
		"azAZ_09": "azAZ_09", "a.b": "a_b", "a._-b": "a_b", "aü{": "a_", "a/b:c@d[e`f": "a_b_c_d_e_f", "_a": "", "0a": "", "": "",
	} {
		if got := Label(key); got != want {
			t.Errorf("%q has the label %q, want %q", key, got, want)
		}
	}
}

func TestOnlyListedAttributesAreTaken(t *testing.T) {
	got := Config{Attributes: []string{"service.*", "deployment.*", "team"}}.attributes(
		"service.version=1,deployment.environment.name=prod,team=a,teams=b,my.service.version=2,le=1", "decode")
	want := map[string]string{"service.name": "decode", "service.version": "1", "deployment.environment.name": "prod", "team": "a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAttributesAreLimited(t *testing.T) {
	all := Config{Attributes: []string{"*"}}
	var many, large strings.Builder
	for i := range 1_000_000 {
		many.WriteString("k" + strconv.Itoa(i) + "=v,")
	}
	for i := range 60 { // of 256 bytes each
		large.WriteString("k" + strconv.Itoa(10+i) + "=" + strings.Repeat("x", 253) + ",")
	}
	if got := len(all.attributes(many.String(), "")); got != 64 {
		t.Errorf("%d attributes, want 64", got)
	}
	size := 0
	for key, value := range all.attributes(large.String(), "") {
		size += len(key) + len(value)
	}
	if size != 4<<10 {
		t.Errorf("attributes have %d bytes, want 4 KiB", size)
	}
}

// Many processes may have long variables.
func TestVariablesOfAProcessAreLimited(t *testing.T) {
	limits := map[string]int{
		EnvEnable: 256, EnvExporter: 256, EnvRank: 256, serviceName: 256, "RANK": 256,
		EnvDir: 1024, EnvMultiprocDir: 1024, resourceAttributes: 16 << 10,
	}
	for name, limit := range limits {
		for n, want := range map[int]bool{limit: true, limit + 1: false} {
			environ := strings.NewReader(name + "=" + strings.Repeat("x", n) + "\x00")
			env, _, err := readEnviron(environ, Config{Env: []string{"RANK"}}.variables())
			if _, ok := env[name]; err != nil || ok != want {
				t.Errorf("%s with %d bytes: %v, %v", name, n, ok, err)
			}
		}
	}
}
