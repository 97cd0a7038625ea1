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

var wantedAB = map[string]bool{"A": true, "B": true}

func TestEnvironKeepsOnlyWantedVariables(t *testing.T) {
	long := strings.Repeat("x", lineSize)
	for _, tt := range []struct {
		name, environ string
		want          map[string]string
		overwritten   bool
	}{
		{"empty", "", nil, false},
		{"some", "A=1\x00SECRET=2\x00B=x=y\x00", map[string]string{"A": "1", "B": "x=y"}, false},
		{"similar names", "AA=1\x00a=2\x00 A=3\x00", nil, false},
		{"empty value", "A=\x00", map[string]string{"A": ""}, false},
		{"set twice", "A=1\x00A=2\x00", map[string]string{"A": "1"}, false},
		{"no value", "A\x00B=1\x00", map[string]string{"B": "1"}, false},
		{"not terminated", "A=1", map[string]string{"A": "1"}, false},
		{"not UTF-8", "A=\xff\x00B=ü\x00", map[string]string{"B": "ü"}, false},
		{"too long", "A=" + long + "\x00B=1\x00", map[string]string{"B": "1"}, false},
		{"much too long", "B=1\x00A=" + strings.Repeat(long, 5), map[string]string{"B": "1"}, false},
		{"overwritten with zeros", strings.Repeat("\x00", 100), nil, true},
		{"overwritten with a title", "::EngineCore" + strings.Repeat("\x00", 100), nil, true},
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
	before := strings.Repeat(service, maxEnviron/len(service)-1)
	for variable, want := range map[string]map[string]string{
		"A=1\x00" + service:                            {"A": "1"},
		"A=/tmp/" + strings.Repeat("x", 30) + "\x00":   nil,
		service + "A=1\x00":                            nil,
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

func TestAttributesReturnsValidPairs(t *testing.T) {
	long := strings.Repeat("x", maxAttribute+1)
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
		{"invalid pairs", "", "a,=1,,b=%zz,c%=1,d=%ff,e=5,\xff=1", map[string]string{"e": "5"}},
		{"too long", "", "a=" + long + "," + long + "=1,b=2", map[string]string{"b": "2"}},
		{"service", "decode", "service.namespace=prod", map[string]string{"service.name": "decode", "service.namespace": "prod"}},
		{"service twice", "decode", "service.name=prefill", map[string]string{"service.name": "decode"}},
		{"service too long", long, "service.name=prefill", map[string]string{"service.name": "prefill"}},
		{
			"identity of another", "", "k8s.pod.uid=" + "2d51509a-fcf0-41cc-b535-57cfeeaf73d1" +
				",container.id=1,host.name=a,host.id=b,service.instance.id=c,process.pid=1,process.executable.name=sh,k8s%2Epod.uid=x,a=1",
			map[string]string{"a": "1"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Process{Env: map[string]string{serviceName: tt.service, resourceAttributes: tt.attributes}}
			if diff := cmp.Diff(tt.want, p.Attributes()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A million pairs exceed the length of a variable, and also the number of attributes.
func TestAttributesAreLimited(t *testing.T) {
	var pairs strings.Builder
	for i := range 1_000_000 {
		pairs.WriteString("k" + strconv.Itoa(i) + "=v,")
	}
	variable := resourceAttributes + "=" + pairs.String() + "\x00"
	got, _, err := readEnviron(strings.NewReader(variable+"A=1\x00"), map[string]bool{resourceAttributes: true})
	if err != nil || len(got) != 0 {
		t.Errorf("%d variables, want 0; error = %v", len(got), err)
	}
	p := Process{Env: map[string]string{resourceAttributes: pairs.String()}}
	if got := len(p.Attributes()); got != maxAttributes {
		t.Errorf("%d attributes, want %d", got, maxAttributes)
	}
}
