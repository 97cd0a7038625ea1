// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/test/internal/built"
	"github.com/nixl-otel/nixl-otel/test/internal/otelcol"
	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// A real agent served the page while its application executed the operations in the log. The
// test passes the same operations through a ring.
func TestScaleExporterNamesMatchNIXLsExporter(t *testing.T) {
	t.Parallel()
	needFull(t)
	served := filepath.Join(built.Root, "testdata", "rings", "real-agent")
	log, err := os.ReadFile(filepath.Join(served, "v1.4.0_prometheus_scrape.applog.txt"))
	must.OK(t, err)
	dir := t.TempDir()
	w, err := ringbuf.Create(filepath.Join(dir, "promA"), ringbuf.V4, 1024)
	must.OK(t, err)
	t.Cleanup(func() { _ = w.Close() })
	_, err = w.PushBatch(operations(t, string(log)))
	must.OK(t, err)
	scrape, err := os.ReadFile(filepath.Join(served, "v1.4.0_prometheus_scrape.txt"))
	must.OK(t, err)
	want, got := page(t, string(scrape)), page(t, scrapeNames(t, dir))
	// NIXL v1.4.0 has no histograms; later versions do.
	maps.DeleteFunc(got, func(series string, _ any) bool { return strings.Contains(series, "time_us") })
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-served by NIXL +by the Collector)\n%s", d)
	}
}

// The store and the page are from the same process of NIXL's main branch.
func TestScaleExporterNamesMatchNIXLsMultiprocessExporter(t *testing.T) {
	t.Parallel()
	needFull(t)
	stores, dir := filepath.Join(built.Root, "testdata", "stores"), t.TempDir()
	const store = "nixl.17832.1795211775677999379.0.mmap"
	content, err := os.ReadFile(filepath.Join(stores, store))
	must.OK(t, err)
	must.OK(t, os.WriteFile(filepath.Join(dir, store), content, 0o600))
	scrape, err := os.ReadFile(filepath.Join(stores, "scrape-mpA.txt"))
	must.OK(t, err)
	got := page(t, scrapeNames(t, dir))
	maps.DeleteFunc(got, func(series string, _ any) bool { return !strings.Contains(series, "{") }) // this page has no help texts
	if d := cmp.Diff(page(t, string(scrape)), got); d != "" {
		t.Errorf("(-served by NIXL +by the Collector)\n%s", d)
	}
}

// scrapeNames returns the page that a Collector with the sample configuration serves for a directory.
func scrapeNames(t *testing.T, dir string) (page string) {
	t.Helper()
	port := proc.FreePort(t)
	c := otelcol.Setup{
		Program:  fullBin,
		Sample:   "nixl-exporter-names.yaml",
		Overlays: []string{"receivers: {nixl_shm: {initial_delay: 0s, collection_interval: 200ms, stale_after: 100000h}}\n"},
		Env:      []string{rings(dir), fmt.Sprint("PORT=", port), "METRICS_PORT=0"},
	}.Start(t)
	defer c.Stop(t, syscall.SIGTERM)
	must.EventuallyTrue(t, "the metrics", func() bool {
		page, _ = get(t, port) // it isn't served at first
		return strings.Contains(page, "agent_xfer_time_total{")
	})
	return page
}

var (
	help   = regexp.MustCompile(`(?m)^# HELP (agent_\w+) (.*?)\r?$`)
	series = regexp.MustCompile(`(?m)^(agent_\w+)\{(.*)\} (\S+)\r?$`)
	label  = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// page returns the values of the series and the help texts of a page in the Prometheus text format, without
// the labels that identify the process or the exporter.
func page(t *testing.T, text string) map[string]any {
	t.Helper()
	all := make(map[string]any)
	for _, m := range help.FindAllStringSubmatch(text, -1) {
		all[m[1]] = m[2]
	}
	for _, m := range series.FindAllStringSubmatch(text, -1) {
		var labels []string
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains([]string{"pid", "agent_instance", "job", "instance"}, l[1]) {
				value := l[2]
				if number, err := strconv.ParseFloat(value, 64); err == nil && l[1] == "le" {
					value = strconv.FormatFloat(number, 'f', -1, 64)
				}
				if l[1] == "hostname" && value != "" {
					value = "any" // the page is from another host
				}
				labels = append(labels, l[1]+"="+value)
			}
		}
		slices.Sort(labels)
		value, err := strconv.ParseFloat(m[3], 64)
		must.OK(t, err)
		all[m[1]+"{"+strings.Join(labels, ",")+"}"] = value
	}
	if len(all) == 0 {
		t.Fatalf("no series in\n%s", text)
	}
	return all
}

var (
	size      = regexp.MustCompile(`^\w+ \w+ (\d+)`)
	operation = regexp.MustCompile(`^xfer .*?(READ|WRITE) bytes=(\d+) .*post_us=(\d+) xfer_us=(\d+)`)
)

// operations returns the events that an agent writes for the operations of a log.
func operations(t *testing.T, log string) (events []ringbuf.Event) {
	t.Helper()
	number := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 10, 64)
		must.OK(t, err)
		return n
	}
	status := map[string]ringbuf.Type{"-2": ringbuf.TypeErrInvalidParam, "-4": ringbuf.TypeErrNotFound}
	for line := range strings.Lines(log) {
		field := strings.Fields(line)
		if len(field) == 0 {
			continue
		}
		switch field[0] {
		case "registerMem":
			events = append(events, ringbuf.NewEvent(ringbuf.TypeMemoryRegistered, number(size.FindStringSubmatch(line)[1])))
		case "deregisterMem":
			events = append(events, ringbuf.NewEvent(ringbuf.TypeMemoryDeregistered, number(size.FindStringSubmatch(line)[1])))
		case "xfer":
			m := operation.FindStringSubmatch(line)
			var direction ringbuf.Type
			if m[1] == "READ" {
				direction = 1
			}
			events = append(events,
				ringbuf.NewEvent(ringbuf.TypeXferPostTime, number(m[3])), ringbuf.NewEvent(ringbuf.TypeXferTime, number(m[4])),
				ringbuf.NewEvent(ringbuf.TypeTxBytes+direction, number(m[2])), ringbuf.NewEvent(ringbuf.TypeTxRequests+direction, 1))
		case "err":
			if field[1] != "postXferReq(null)" { // no agent counts a request that is a null pointer
				events = append(events, ringbuf.NewEvent(status[field[len(field)-1]], 1))
			}
		}
	}
	return events
}
