// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package dashboards

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// file returns the path of a file in the repository.
func file(t *testing.T, name ...string) string {
	t.Helper()
	return filepath.Join(append([]string{ringtest.Root(t)}, name...)...)
}

// backend is a server that stores metrics.
type backend struct {
	name   string
	url    string // of its HTTP API
	otlp   string // OTLP endpoint, without /v1/metrics
	config string // path of Prometheus' configuration
}

func startVictoriaMetrics(t *testing.T) backend {
	t.Helper()
	b := backend{name: "VictoriaMetrics"}
	address := fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t))
	b.url = "http://" + address
	b.otlp = b.url + "/opentelemetry"
	proc.Start(t, exec.CommandContext(t.Context(), built.Path(t, "VICTORIA_METRICS"), "-storageDataPath="+t.TempDir(),
		"-httpListenAddr="+address, "-opentelemetry.usePrometheusNaming", "-search.latencyOffset=0s", "-loggerLevel=WARN"))
	b.wait(t)
	return b
}

// startPrometheus starts Prometheus with the recording rules, and with the configuration in
// the README, which promotes resource attributes. It also promotes others.
func startPrometheus(t *testing.T, promoted ...string) backend {
	t.Helper()
	text := fmt.Sprintf("global: {evaluation_interval: 1s}\nrule_files: [%s]\n%s", file(t, "dashboards", "rules.yaml"), promotion(t))
	for _, attribute := range promoted {
		text += "    - " + attribute + "\n"
	}
	return startPrometheusWith(t, text, "--query.lookback-delta=10s") // so that series of an exited agent end sooner
}

// startPrometheusWith starts Prometheus with a configuration and flags.
func startPrometheusWith(t *testing.T, text string, flags ...string) backend {
	t.Helper()
	dir := t.TempDir()
	b := backend{name: "Prometheus", config: filepath.Join(dir, "prometheus.yaml")}
	must.OK(t, os.WriteFile(b.config, []byte(text), 0o600))
	address := fmt.Sprintf("127.0.0.1:%d", proc.FreePort(t))
	b.url = "http://" + address
	b.otlp = b.url + "/api/v1/otlp"
	proc.Start(t, exec.CommandContext(t.Context(), built.Path(t, "PROMETHEUS"), append([]string{
		"--config.file=" + b.config, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address,
		"--web.enable-otlp-receiver", "--web.enable-lifecycle", "--enable-feature=otlp-native-delta-ingestion", "--log.level=warn",
	}, flags...)...))
	b.wait(t)
	return b
}

// promotion returns Prometheus' configuration in the README.
func promotion(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile(file(t, "dashboards", "README.md"))
	must.OK(t, err)
	_, after, found := strings.Cut(string(readme), "```yaml\notlp:\n")
	config, _, ended := strings.Cut(after, "```")
	if !found || !ended {
		t.Fatal("dashboards/README.md has no YAML block that starts with otlp:")
	}
	return "otlp:\n" + config
}

func (b backend) wait(t *testing.T) {
	t.Helper()
	must.Eventually(t, func() string {
		if _, err := b.get(t, "/-/ready", nil); err != nil {
			return err.Error()
		}
		return ""
	})
}

// get reads from the HTTP API.
func (b backend) get(t *testing.T, path string, query url.Values) ([]byte, error) {
	t.Helper()
	return b.call(t, http.MethodGet, path, query)
}

// call sends a request to the HTTP API and returns the response.
func (b backend) call(t *testing.T, method, path string, query url.Values) ([]byte, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, b.url+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, response.Status, text)
	}
	return text, err
}

// series is a series in the result of a query. The value of a histogram is its
// count.
type series struct {
	labels map[string]string
	value  float64
}

// recorded matches the name of a recorded series.
var recorded = regexp.MustCompile(`\b[a-z]\w+:nixl_\w+:\w+|\bnixl_[a-z]+:\w+|\bnamespace:requests:running`)

var queries atomic.Uint64 // number of them

// query returns the newest values of an expression.
func (b backend) query(t *testing.T, expr string) ([]series, error) {
	t.Helper()
	// VictoriaMetrics uses the step as the lookback interval. On a busy machine, rules are evaluated
	// rarely.
	step := "10s"
	if recorded.MatchString(expr) {
		step = "1m"
	}
	// VictoriaMetrics caches for some seconds which series a selector finds. Prometheus ignores the filter.
	fresh := fmt.Sprintf("{query!=%q}", strconv.FormatUint(queries.Add(1), 10))
	text, err := b.get(t, "/api/v1/query", url.Values{"query": {expr}, "step": {step}, "extra_filters[]": {fresh}})
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric    map[string]string
				Value     [2]any
				Histogram []json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	var list []series
	for _, r := range answer.Data.Result {
		if len(r.Histogram) == 2 {
			var h struct{ Count string }
			if err := json.Unmarshal(r.Histogram[1], &h); err != nil {
				return nil, err
			}
			r.Value[1] = h.Count
		}
		number, ok := r.Value[1].(string)
		if !ok {
			return nil, fmt.Errorf("value %v isn't a string", r.Value)
		}
		value, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return nil, err
		}
		list = append(list, series{labels: r.Metric, value: value})
	}
	return list, nil
}
