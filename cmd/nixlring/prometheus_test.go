// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/fleet"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/diagnose/fleets"
	"github.com/nixl-otel/nixl-otel/internal/lab/golden"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// fakeBackend answers the queries of nixlring for the series of a fleet, as Prometheus does.
type fakeBackend struct {
	url     string
	end     time.Time
	names   func(name, suffixes string) string // of a series, given the suffixes that Prometheus adds
	native  bool                               // histograms have no buckets
	without string                             // part of the names of series that are missing
	series  map[string]*fakeSeries
	rules   bool                         // recording rules are loaded
	alerts  map[string]map[string]string // labels of what an alert finds, by a part of its expression
}

type fakeSeries struct {
	name   string
	labels map[string]string
	values []float64
}

func withSuffixes(name, suffixes string) string { return strings.ReplaceAll(name, ".", "_") + suffixes }

// serve starts a backend with the series of a fleet, which end at a time.
func (b *fakeBackend) serve(t *testing.T, f *fleets.Fleet) {
	t.Helper()
	if b.names == nil {
		b.names = withSuffixes
	}
	b.end = time.Unix(1_700_000_040, 0)
	b.series = make(map[string]*fakeSeries)
	all := f.Readings()
	for i, readings := range all {
		for n := range readings {
			b.add(&readings[n], i, len(all))
		}
	}
	server := httptest.NewServer(http.HandlerFunc(b.answer))
	t.Cleanup(server.Close)
	b.url = server.URL
}

func (b *fakeBackend) add(r *fleets.Reading, i, n int) {
	a := r.Identity
	add := func(name, suffixes string, v float64, more ...string) {
		key := strings.Join(append(more, a.ID, strconv.Itoa(r.Stream), name, suffixes), " ")
		s := b.series[key]
		if s == nil {
			s = &fakeSeries{b.names(name, suffixes), make(map[string]string), slices.Repeat([]float64{math.NaN()}, n)}
			b.series[key] = s
			for pair := range slices.Chunk(append([]string{
				"k8s.cluster.name", a.Cluster, "k8s.namespace.name", a.Namespace, "service.name", a.Service, "k8s.pod.name", a.Pod, "host.name", a.Host,
				"nixl.agent.name", a.Name, "instance", strconv.Itoa(r.Stream),
			}, more...), 2) {
				if pair[1] != "" {
					s.labels[b.names(pair[0], "")] = pair[1]
				}
			}
		}
		s.values[i] = v
	}
	add("nixl.agent.up", "", float64(int(r.Up)-int(diagnose.No)))
	add("nixl.telemetry.ring.capacity", "", 4096)
	add("nixl.telemetry.ring.utilization", "_ratio", r.Fill())
	add("nixl.telemetry.ring.saturations", "_total", float64(r.Ring.Saturations))
	add("nixl.telemetry.ring.foreign_reads", "_total", float64(r.Ring.Foreign))
	add("nixl.telemetry.ring.restarts", "_total", float64(r.Ring.Restarts))
	add("nixl.telemetry.events.dropped", "_total", float64(r.Dropped))
	add("nixl.telemetry.ring.torn_groups", "_total", float64(r.Ring.Torn))
	for kind := range ringbuf.Type(ringbuf.Types) {
		if name := tally.ErrorName(kind); name != "" { // every status is reported from 0 on
			add("nixl.errors", "_total", float64(r.Errors[name]), "error.type", name)
		}
	}
	histogram := func(name, unit string, sum float64, count uint64, more ...string) {
		if b.native {
			add(name, unit, sum, more...)
			add(name+countMark, unit, float64(count), more...)
			return
		}
		add(name, unit+"_sum", sum, more...)
		add(name, unit+"_count", float64(count), more...)
	}
	for d, direction := range []string{"transmit", "receive"} {
		if m := r.Moved[d]; m.Transfers > 0 {
			add("nixl.transfer.io", "_bytes_total", float64(m.Bytes), "nixl.transfer.direction", direction)
			add("nixl.transfer.requests", "_total", float64(m.Transfers), "nixl.transfer.direction", direction)
			speeds := 0.0
			for n, count := range r.Speeds[d].Counts {
				speeds += float64(count) * r.Speeds[d].Bounds[min(n, len(r.Speeds[d].Bounds)-1)]
			}
			histogram("nixl.transfer.throughput", "_bytes_per_second", speeds, m.Transfers, "nixl.transfer.direction", direction)
		}
	}
	if sum := r.Both(); sum.Transfers > 0 {
		histogram("nixl.transfer.duration", "_seconds", sum.Seconds, sum.Transfers)
		histogram("nixl.transfer.post_duration", "_seconds", r.Post, sum.Transfers)
	}
}

// countMark is in the names of series with the counts of histograms without buckets.
const countMark = "#count"

var rangeQuery = regexp.MustCompile(`^(histogram_sum\(|histogram_count\()?(last|max)_over_time\(\{__name__=~"([^"]*)"(?:,service_name="([^"]*)")?(?:,error_type=~"([^"]*)")?\}\[(\w+)\]\)\)?( and increase\(.* > 0)?$`)

func (b *fakeBackend) answer(w http.ResponseWriter, r *http.Request) {
	say := func(data any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data})
	}
	query := r.FormValue("query")
	switch {
	case strings.HasSuffix(r.URL.Path, "/label/__name__/values"):
		names := make(map[string]bool)
		for _, s := range b.series {
			if b.without == "" || !strings.Contains(s.name, b.names(b.without, "")) {
				names[s.name] = true
			}
		}
		if b.rules {
			names["nixl_threshold:straggler_speed"] = true
		}
		var list []string
		for name := range names {
			list = append(list, name)
		}
		slices.Sort(list)
		say(list)
	case strings.HasSuffix(r.URL.Path, "/query") && strings.HasPrefix(query, "max(max_over_time(count_over_time("):
		result := []any{map[string]any{"metric": map[string]string{}, "value": []any{0, "20"}}}
		if m := regexp.MustCompile(`service_name="([^"]*)"`).FindStringSubmatch(query); m != nil && !slices.ContainsFunc(slices.Collect(maps.Values(b.series)), func(s *fakeSeries) bool { return s.labels["service_name"] == m[1] }) {
			result = []any{}
		}
		say(map[string]any{"resultType": "vector", "result": result})
	case strings.HasSuffix(r.URL.Path, "/query") && strings.HasPrefix(query, "count by (error_type) (max_over_time("):
		say(map[string]any{"resultType": "vector", "result": b.errorTypes()})
	case strings.HasSuffix(r.URL.Path, "/query_range"):
		m := rangeQuery.FindStringSubmatch(query)
		if m == nil {
			say(map[string]any{"resultType": "matrix", "result": b.alerted(r, query)})
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(b.matrix(r, m))
	default:
		http.NotFound(w, r)
	}
}

// errorTypes returns the types that occurred. Labels with dots can't be grouped by.
func (b *fakeBackend) errorTypes() []any {
	types, result := make(map[string]bool), []any{}
	for _, s := range b.series {
		if kind, ok := s.labels[b.names("error.type", "")]; ok && slices.ContainsFunc(s.values, func(v float64) bool { return v > 0 }) {
			types[map[bool]string{true: kind}[b.names("error.type", "") == "error_type"]] = true
		}
	}
	for kind := range types {
		metric := map[string]string{"error_type": kind}
		if kind == "" {
			metric = map[string]string{}
		}
		result = append(result, map[string]any{"metric": metric, "value": []any{0, "1"}})
	}
	return result
}

// alerted returns what alerts find at all times.
func (b *fakeBackend) alerted(r *http.Request, query string) []any {
	result := []any{}
	for part, labels := range b.alerts {
		if strings.Contains(query, part) {
			var values []any
			for at := number(r, "start"); at <= number(r, "end"); at += number(r, "step") {
				values = append(values, []any{at, "1.2"})
			}
			result = append(result, map[string]any{"metric": labels, "values": values})
		}
	}
	return result
}

func number(r *http.Request, key string) float64 {
	v, _ := strconv.ParseFloat(r.FormValue(key), 64)
	return v
}

// matrix returns the answer to a query of a range. It is most of what a test does, so it isn't encoded by reflection.
func (b *fakeBackend) matrix(r *http.Request, m []string) []byte {
	lookback, err := time.ParseDuration(m[6])
	if err != nil {
		panic(err)
	}
	answer, name := []byte(`{"status":"success","data":{"resultType":"matrix","result":[`), regexp.MustCompile("^("+m[3]+")$")
	first, every := true, fleets.Every.Seconds()
	start, end, step := number(r, "start"), number(r, "end"), number(r, "step")
	for _, s := range b.series {
		if strings.Contains(s.name, countMark) != (m[1] == "histogram_count(") || !name.MatchString(strings.Replace(s.name, countMark, "", 1)) || m[4] != "" && s.labels["service_name"] != m[4] || m[5] != "" && !slices.Contains(strings.Split(m[5], "|"), s.labels["error_type"]) {
			continue
		}
		if known := slices.DeleteFunc(slices.Clone(s.values), math.IsNaN); m[7] != "" && slices.Max(known) == slices.Min(known) {
			continue
		}
		var values []byte
		begin := float64(b.end.Unix()) - float64(len(s.values)-1)*every
		for at := start; at <= end; at += step {
			v := s.newest(int(math.Floor((at-begin)/every)), lookback, m[2] == "max")
			if !math.IsNaN(v) {
				values = append(strconv.AppendFloat(append(values, ",["...), at, 'f', -1, 64), `,"`...)
				values = append(strconv.AppendFloat(values, v, 'g', -1, 64), `"]`...)
			}
		}
		if len(values) == 0 {
			continue
		}
		labels := map[string]string{}
		if m[1] == "" {
			labels["__name__"] = s.name
		}
		maps.Copy(labels, s.labels)
		metric, err := json.Marshal(labels)
		if err != nil {
			panic(err)
		}
		if !first {
			answer = append(answer, ',')
		}
		first = false
		answer = fmt.Appendf(answer, `{"metric":%s,"values":[%s]}`, metric, values[1:])
	}
	return append(answer, "]}}"...)
}

// newest returns the newest value up to a sample, or the highest, in some time, or NaN.
func (s *fakeSeries) newest(sample int, lookback time.Duration, highest bool) float64 {
	found := math.NaN()
	for i := sample; i >= 0 && time.Duration(sample-i)*fleets.Every < lookback; i-- {
		if i >= len(s.values) || math.IsNaN(s.values[i]) {
			continue
		}
		if !highest {
			return s.values[i]
		}
		if math.IsNaN(found) || s.values[i] > found {
			found = s.values[i]
		}
	}
	return found
}

// why returns the findings of nixlring why about the last hours of the backend.
func (b *fakeBackend) why(t *testing.T, length time.Duration, args ...string) (v verdict) {
	t.Helper()
	r := runWith(t.Context(), world{now: time.Now, env: lookup(nil)}, append([]string{
		"why", "-o", "json", "--prometheus", b.url, "--at", strconv.FormatInt(b.end.Unix(), 10), "--for", min(max(length, time.Hour), 6*time.Hour).String(),
	}, args...)...)
	if r.out == "" {
		t.Fatalf("exit code %d: %s", r.code, r.err)
	}
	must.OK(t, json.Unmarshal([]byte(r.out), &v))
	return v
}

// Some fleets in each of the forms that backends have.
func TestWhyJudgesTheFleetsOfABackendAsTheRulesDo(t *testing.T) {
	dots := func(name, _ string) string { return name }
	plain := func(name, suffixes string) string {
		part := suffixes[strings.LastIndex(suffixes, "_")+1:]
		if part != "sum" && part != "count" {
			return strings.ReplaceAll(name, ".", "_")
		}
		return strings.ReplaceAll(name, ".", "_") + "_" + part
	}
	for i, f := range slices.Concat(fleets.Incidents(), fleets.Healthy(), fleets.Strangers(), fleets.HealthyStrangers(), fleets.HealthyVisitors()) {
		if len(f.Members) > 100 {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			b := fakeBackend{native: i%3 == 0}
			switch i % 4 {
			case 1:
				b.names = plain
			case 2:
				b.names = dots
				b.native = true
			}
			b.serve(t, &f)
			for _, wrong := range f.Misjudged(b.why(t, f.Length).Findings) {
				t.Error(wrong)
			}
		})
	}
}

// straggling is a fleet of pods on two hosts with one that is slow.
func straggling() *fleets.Fleet {
	f := &fleets.Fleet{Length: fleets.Found}
	for n := range 6 {
		f.Members = append(f.Members, fleets.Member{
			Identity: diagnose.Identity{Name: "rank-0", Pod: fmt.Sprintf("decode-%d", n), Host: fmt.Sprintf("gpu-%d", n%2), Job: diagnose.Job{Namespace: "prod", Service: "decode"}},
			Do: func(at time.Duration) fleets.State {
				took := time.Millisecond
				if n == 3 && at >= fleets.Begin {
					took *= 5
				}
				return fleets.State{Loads: []fleets.Load{{Size: 4 << 20, Time: took, Post: 4 * time.Microsecond, Rate: 30}}}
			},
		})
	}
	return f
}

func TestWhyOfABackendSaysWhoSinceWhenAndWhatToRun(t *testing.T) {
	var b fakeBackend
	b.serve(t, straggling())
	var got strings.Builder
	for _, args := range [][]string{nil, {"--job", "decode", "--for", "30m"}, {"--job", "prefill"}, {"--include", "rank-1"}} {
		r := runWith(t.Context(), world{now: time.Now, env: lookup(nil)}, append([]string{"why", "--prometheus", b.url, "--at", "1700000050"}, args...)...)
		fmt.Fprintf(&got, "== %v: exit code %d\n%s%s\n", args, r.code, r.out, r.err)
	}
	b.without = "transfer.throughput"
	r := runWith(t.Context(), world{now: time.Now, env: lookup(nil)}, "why", "--prometheus", b.url, "--at", "2023-11-14T22:14:10Z")
	fmt.Fprintf(&got, "== without a series: exit code %d\n%s%s\n", r.code, r.out, r.err)
	golden.Compare(t, *update, "why_prometheus.txt", strings.ReplaceAll(got.String(), b.url, "http://prometheus:9090"))
}

// What only the rules know is said in their words. Without rules, what needs none is evaluated; what why says itself isn't repeated.
func TestWhyOfABackendSaysWhatTheAlertsFind(t *testing.T) {
	const memory, slower, straggler = "nixl_memory_", "alert:nixl_slower:value", "agent:nixl_straggler:ratio"
	agent := map[string]string{"k8s_namespace_name": "prod", "service_name": "decode", "k8s_pod_name": "decode-3", "host_name": "gpu-1", "nixl_agent_name": "rank-0"}
	job := map[string]string{"k8s_namespace_name": "prod", "service_name": "decode", "severity": "critical"}
	for name, tt := range map[string]struct {
		backend fakeBackend
		args    []string
		want    []string
		not     string
	}{
		"without rules": {
			backend: fakeBackend{alerts: map[string]map[string]string{memory: agent, slower: job}},
			want:    []string{"The registered memory of rank-0 on gpu-1 (pod prod/decode-3) only grows", "It grew to 120% of its former size", "docs/alerts.md#nixlmemorygrows", "speeds weren't compared with the last day"},
			not:     "slower than before",
		},
		"with rules": {
			backend: fakeBackend{rules: true, alerts: map[string]map[string]string{"agent:nixl_memory_grows:ratio": agent, "host:nixl_crash_loop:gaps": {"host_name": "gpu-0"}}},
			want:    []string{"only grows", "NIXL metrics from gpu-0 have gaps", "spec.nodeName=gpu-0"},
		},
		"what why says itself": {backend: fakeBackend{rules: true, alerts: map[string]map[string]string{straggler: agent, slower: job}}, want: []string{"1 problem", "alerts: 18 evaluated, with no other problem"}},
		"other agents": {
			backend: fakeBackend{rules: true, alerts: map[string]map[string]string{"agent:nixl_memory_grows:ratio": {"nixl_agent_name": "rank-7"}, "otelcol_receiver": {"instance": "collector"}}},
			args:    []string{"--include", "rank-0"}, want: []string{"1 problem"},
		},
		"a Collector": {backend: fakeBackend{alerts: map[string]map[string]string{"checkpoint_failures": {"instance": "collector\x1b"}}}, want: []string{`The Collector "collector\x1b" can't store checkpoints`}},
		"dots":        {backend: fakeBackend{names: func(name, _ string) string { return name }, native: true}, want: []string{"the alert NIXLSmallerTransfers can't be evaluated: its expression can't use names with dots, such as nixl.transfer"}},
	} {
		tt.backend.serve(t, straggling())
		r := runWith(t.Context(), world{now: time.Now, env: lookup(nil)}, append([]string{"why", "--prometheus", tt.backend.url, "--at", "1700000050"}, tt.args...)...)
		text := strings.Join(strings.Fields(r.out+r.err), " ")
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %s, want %q", name, r.out, want)
			}
		}
		if tt.not != "" && strings.Contains(text, tt.not) {
			t.Errorf("%s: %s, unlike %q", name, r.out, tt.not)
		}
	}
}

// A fleet whose reads and writes have the same times looks as if the times were divided by bytes.
func TestSpeedsOfABackendHaveNoDirectionUnlessTheirSeriesHave(t *testing.T) {
	f := straggling()
	for n := range f.Members {
		f.Members[n].Do = func(time.Duration) fleets.State {
			read, write := fleets.Load{Size: 4 << 20, Time: time.Millisecond, Rate: 30, Read: true}, fleets.Load{Size: 4 << 20, Time: 9 * time.Millisecond, Rate: 30}
			if n == 3 { // far more of what is slow
				write.Rate *= 10
			}
			return fleets.State{Loads: []fleets.Load{read, write}}
		}
	}
	for _, missing := range []string{"", "transfer.throughput"} {
		b := fakeBackend{without: missing}
		b.serve(t, f)
		if found := b.why(t, f.Length).Findings; len(found) > 0 {
			t.Errorf("without %q: %v", missing, found)
		}
	}
}

// Without the host, what is known leads to it.
func TestWhyOfABackendLeadsToAHostThatItDoesNotKnow(t *testing.T) {
	for want, change := range map[string]func(*diagnose.Identity){
		"spec.nodeName=$(kubectl -n prod get pod decode-3 -o jsonpath={.spec.nodeName})": func(a *diagnose.Identity) { a.Host = "" },
		"have no label host_name":    func(a *diagnose.Identity) { a.Host, a.Name, a.Pod = "", a.Name+a.Pod, "" },
		"Their label instance is 0.": func(a *diagnose.Identity) { a.Host, a.Name, a.Pod = "", a.Name+a.Pod, "$(reboot)" },
	} {
		f := straggling()
		for n := range f.Members {
			change(&f.Members[n].Identity)
		}
		var b fakeBackend
		b.serve(t, f)
		r := runWith(t.Context(), world{now: time.Now, env: lookup(nil)}, "why", "--prometheus", b.url, "--at", "1700000050")
		if text := strings.Join(strings.Fields(r.out), " "); !strings.Contains(text, want) || strings.Contains(text, "get pod $(") {
			t.Errorf("%s, want %q", r.out, want)
		}
	}
}

func TestCredentialsOfABackendComeFromAFile(t *testing.T) {
	var b fakeBackend
	b.serve(t, straggling())
	guarded := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("X-Scope-OrgID") != "tenant" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		b.answer(w, r)
	}))
	guarded.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that don't trust it
	guarded.StartTLS()
	t.Cleanup(guarded.Close)
	config := filepath.Join(t.TempDir(), "http.yaml")
	run := func(settings string) result {
		must.OK(t, os.WriteFile(config, []byte(settings), 0o600))
		return runWith(t.Context(), world{now: time.Now, env: lookup(nil)}, "why", "--prometheus", guarded.URL, "--at", "1700000050", "--http.config.file", config)
	}
	if r := run("tls_config: {insecure_skip_verify: true}\n"); r.code != exitNoRing || !strings.Contains(r.err, "401; specify a file with credentials with --http.config.file") {
		t.Errorf("without credentials: %+v", r)
	}
	if r := run("{}\n"); r.code != exitNoRing || !strings.Contains(r.err, "certificate") {
		t.Errorf("without trust: %+v", r)
	}
	settings := "tls_config: {insecure_skip_verify: true}\nauthorization: {credentials: secret}\nhttp_headers: {X-Scope-OrgID: {values: [tenant]}}\n"
	if r := run(settings); r.code != exitError || !strings.Contains(r.out, "decode-3") {
		t.Errorf("with credentials: %+v", r)
	}
}

func TestWhatABackendCannotAnswerIsAnError(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"no series":    {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"success","data":[]}`) }, "no series nixl_agent_up between 2023-11-14T21:14:10Z and 2023-11-14T22:14:10Z; does a Collector"},
		"another site": {http.NotFound, "is it the address of Prometheus' HTTP API"},
		"a limit": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"status":"error","errorType":"execution","error":"too many samples\u001b[31m"}`)
		}, "too many samples"},
	} {
		server := httptest.NewServer(tt.answer)
		r := runWith(t.Context(), world{now: time.Now, env: lookup(nil)}, "why", "--prometheus", server.URL, "--at", "1700000050")
		if r.code != exitNoRing || !strings.Contains(r.err, tt.want) || strings.Contains(r.err, "\x1b") {
			t.Errorf("%s: %+v, want %q", name, r, tt.want)
		}
		server.Close()
	}
}

// Nothing has arrived from the future.
func TestWhyOfTheFutureIsThatOfNow(t *testing.T) {
	var b fakeBackend
	b.serve(t, straggling())
	r := runWith(t.Context(), world{now: func() time.Time { return b.end }, env: lookup(nil)}, "why", "--prometheus", b.url, "--at", "1800000000")
	if !strings.Contains(r.out, "1 problem; 6 agents") {
		t.Errorf("%+v", r)
	}
}

func TestTopShowsTheAgentsOfABackend(t *testing.T) {
	var b fakeBackend
	b.serve(t, straggling())
	r := runWith(t.Context(), world{now: time.Now, env: lookup(nil)}, "top", "--prometheus", b.url, "--at", "1700000050")
	first, _, _ := strings.Cut(strings.SplitN(r.out, "\n", 2)[1], " ")
	if r.code != exitOK || first != "decode-3/rank-0" || strings.Count(r.out, "\n") != 7 {
		t.Errorf("%+v", r)
	}
}

// A screen or a page goes on after the past, as time does.
func TestFramesOfABackendGoOnAfterThePast(t *testing.T) {
	f := straggling()
	do, begin := f.Members[0].Do, f.Length-10*time.Minute
	f.Members[0].Do = func(at time.Duration) fleets.State {
		s := do(at)
		if at > begin { // an error that wasn't in the past
			s.Errors = map[string]float64{semconv.ErrorBackend: 2}
		}
		return s
	}
	var b fakeBackend
	b.serve(t, f)
	now := b.end.Add(-10 * time.Minute)
	source, err := fleet.OpenBackend(fleet.Config{Now: func() time.Time { return now }}, fleet.BackendConfig{URL: b.url, Length: 30 * time.Minute, Live: true})
	must.OK(t, err)
	defer source.Close()
	var last *diagnose.Frame
	for last == nil || last.Time.Before(now) {
		frame, err := source.Next(t.Context())
		must.OK(t, err)
		if last != nil && frame.Time.Sub(last.Time) != fleets.Every {
			t.Fatalf("frames at %v and %v", last.Time, frame.Time)
		}
		last = frame
	}
	now = now.Add(fleets.Every)
	frame, err := source.Next(t.Context())
	must.OK(t, err)
	if got := frame.Agents[0].Moved[0].Transfers - last.Agents[0].Moved[0].Transfers; !frame.Time.Equal(now) || got != 450 {
		t.Errorf("%d transfers between %v and %v", got, last.Time, frame.Time)
	}
	if got := frame.Agents[0].Errors[semconv.ErrorBackend]; got != 30 {
		t.Errorf("%d errors between %v and %v", got, last.Time, frame.Time)
	}
}
